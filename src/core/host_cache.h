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

/// Blocks that std::free() frees, and pieces of them. Those in use and idle ones together take hardly more than those in use once took:
/// training steps find what the step before left, and the peak of the process is about what it would be without the cache.
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
  struct Idle {
    char* p;
    uint64_t since;  // order of becoming idle
    bool piece;
  };
  using BySize = std::map<std::size_t, std::vector<Idle>>;  // each in the order of becoming idle
  // A part of a block that was cut. The pieces of a block lie one behind the other; no two idle ones are neighbours.
  struct Piece {
    std::size_t size;
    char* block;
    std::size_t block_size;
    bool idle;
  };

  void keep(char* p, std::size_t size, bool piece);
  void forget(char* p, std::size_t size) noexcept;
  bool cut(const Idle& found, std::size_t whole, std::size_t size) noexcept;
  char* reuse(std::size_t size) noexcept;
  void join(char* p, std::size_t size) noexcept;
  bool free_oldest() noexcept;

  ForkSafe<std::mutex> mutex_;
  BySize idle_;
  std::map<char*, Piece> pieces_;
  uint64_t clock_ = 0;
  HostCacheStats stats_;
};

HostCache& host_cache();

}  // namespace cresset::detail
