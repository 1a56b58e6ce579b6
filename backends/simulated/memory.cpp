#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <shared_mutex>

namespace simulated {
namespace {

struct Block {
  char* host;  // no access
  char* device;
  std::size_t nbytes, mapped;
};

struct Blocks {
  std::shared_mutex mutex;
  std::map<uintptr_t, Block> by_handle;
  uintptr_t next_number = 16;
};
Blocks& blocks() {
  static auto* b = new Blocks;
  return *b;
}

}  // namespace

void* allocate_block(std::size_t nbytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (nbytes + page - 1) / page * page;
  if (mapped < nbytes) return nullptr;
  const int file = memfd_create("simulated", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  if (ftruncate(file, static_cast<off_t>(mapped)) != 0) {
    close(file);
    return nullptr;
  }
  void* host = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, file, 0);
  void* device = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (host == MAP_FAILED || device == MAP_FAILED) {
    if (host != MAP_FAILED) munmap(host, mapped);
    if (device != MAP_FAILED) munmap(device, mapped);
    return nullptr;
  }
  Blocks& b = blocks();
  std::lock_guard lock(b.mutex);
#ifdef SIMULATED_OPAQUE
  const uintptr_t handle = b.next_number++;  // adding to it leads to another block, or to none
#else
  const auto handle = reinterpret_cast<uintptr_t>(host);
#endif
  b.by_handle[handle] = {static_cast<char*>(host), static_cast<char*>(device), nbytes, mapped};
  return reinterpret_cast<void*>(handle);
}

void free_block(void* handle) {
  Blocks& b = blocks();
  std::lock_guard lock(b.mutex);
  const auto it = b.by_handle.find(reinterpret_cast<uintptr_t>(handle));
  if (it == b.by_handle.end()) return;
  munmap(it->second.host, it->second.mapped);
  munmap(it->second.device, it->second.mapped);
  b.by_handle.erase(it);
}

char* device_address(const void* handle, std::size_t offset, std::size_t nbytes) {
  Blocks& b = blocks();
  std::shared_lock lock(b.mutex);
  const auto address = reinterpret_cast<uintptr_t>(handle);
#ifdef SIMULATED_OPAQUE
  const auto it = b.by_handle.find(address);
  if (it == b.by_handle.end()) return nullptr;
#else
  auto it = b.by_handle.upper_bound(address);
  if (it == b.by_handle.begin()) return nullptr;
  --it;
  offset += address - it->first;
#endif
  if (offset > it->second.nbytes || nbytes > it->second.nbytes - offset) return nullptr;
  return it->second.device + offset;
}

std::size_t live_blocks() {
  Blocks& b = blocks();
  std::shared_lock lock(b.mutex);
  return b.by_handle.size();
}

}  // namespace simulated
