// Device memory behind addresses.
//
// An OpenCL buffer is a handle, but views want addresses that can be added to. So every buffer gets a range of addresses of its own, in
// a region of the process that is reserved and can be neither read nor written: a host that follows one by mistake gets a fault, and
// a kernel's argument is found from an address by looking up its range.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include <cresset/core/caching_allocator.h>

#include "runtime.h"

namespace cresset_opencl {

/// Where an address lies: the buffer and the distance from its start in bytes.
struct Place {
  cl_mem buffer = nullptr;
  std::size_t offset = 0;
};

/// The buffers of one device, by addresses.
class Memory final : cresset::BlockSource {
 public:
  explicit Memory(ClDevice& device) : device_(device), cache_(*this) {}

  void* allocate(std::size_t nbytes);
  void deallocate(void* address) { cache_.deallocate(address); }
  Place find(const void* address);
  cresset::CachingAllocator& cache() { return cache_; }

 private:
  void* take(std::size_t nbytes) override;
  void give(void* address, std::size_t nbytes) override;
  /// One queue runs in order, so whoever gets a block next comes later; of several, each gets a mark.
  std::vector<void*> marks() override;
  bool passed(void* mark, bool wait) override;
  void drop(void* mark) override;

  struct Block {
    cl_mem buffer;
    std::size_t nbytes;
  };
  ClDevice& device_;
  std::mutex mutex_;               // of blocks_
  std::map<char*, Block> blocks_;  // all, by their first address
  cresset::CachingAllocator cache_;
};

}  // namespace cresset_opencl
