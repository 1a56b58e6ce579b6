// Memory of storages that other processes map as well.
#pragma once

#include <string>

#include <cresset/core/storage.h>

namespace cresset::detail {

/// A mapping. Memory without a name is an open file that exists in no folder: it is gone with the last process that has it open. Memory
/// with a name counts who uses it in a header of its own, and the last one removes the name; its file is not kept open.
struct SharedBlock {
  void* base = nullptr;
  std::size_t mapped = 0;
  int fd = -1;
  std::string name;
  std::string key;  // of the memory, for all processes
  int owner = 0;    // process that counts: a forked child has the mapping without having been counted
};

/// The mapping behind a storage, null for memory of this process alone.
CRESSET_API const SharedBlock* shared_block(const StorageImpl& storage);
/// Moves the memory of a host storage into a new mapping; one that has a mapping already stays as it is.
CRESSET_API void share_storage(StorageImpl& storage, bool named);
/// The memory of another process: by an open file, of which a duplicate is kept, or by name. Memory that this process has open already
/// is the same storage again. Raises when there is none of this size.
CRESSET_API Storage open_shared(int fd, std::size_t nbytes);
CRESSET_API Storage open_shared(const std::string& name, std::size_t nbytes);
/// One user more or fewer of memory with a name: a message on its way counts as one.
CRESSET_API void count_shared(const SharedBlock& block, int change);
/// Gives up all names that this process counts for, at its end.
CRESSET_API void release_shared_names() noexcept;

}  // namespace cresset::detail
