// Idle blocks of host memory, kept for reuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <cresset/base/fork.h>
#include <cresset/core/host_cache.h>

namespace cresset::detail {

/// Blocks that std::free() frees. Those in use and idle ones together take hardly more than those in use once took: training steps find
/// what the step before left, and the peak of the process is about what it would be without the cache.
class HostCache {
 public:
  HostCache();
  /// A block of `size` bytes. Null when there is none; the caller takes one from the system.
  void* take(std::size_t size);
  /// The caller could not take a block that take() had counted.
  void failed(std::size_t size) noexcept;
  /// Keeps a block of which all was counted, or frees it.
  void give(void* p, std::size_t size) noexcept;
  void empty() noexcept;
  HostCacheStats stats();

 private:
  struct Block {
    void* p;
    uint64_t since;  // order of becoming idle
  };
  void* pop(std::map<std::size_t, std::vector<Block>>::iterator at);
  void free_oldest() noexcept;

  ForkSafe<std::mutex> mutex_;
  std::map<std::size_t, std::vector<Block>> idle_;  // by size, each in the order of becoming idle
  uint64_t clock_ = 0;
  HostCacheStats stats_;
};

HostCache& host_cache();

}  // namespace cresset::detail
