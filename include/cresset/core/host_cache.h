// The cache of the CPU allocator: what it keeps of the memory of large tensors, and giving it back.
#pragma once

#include <cstdint>

#include <cresset/base/macros.h>

namespace cresset {

/// Bytes unless it says otherwise. Only blocks of the size that is cached count.
struct HostCacheStats {
  int64_t limit = 0;       ///< idle bytes kept at most, but for pieces of blocks in use: CRESSET_HOST_CACHE, else half of the memory
  int64_t idle_bytes = 0;  ///< kept for reuse
  int64_t used_bytes = 0;  ///< in use
  int64_t peak_bytes = 0;  ///< in use at most, since the start; beyond 3/2 of it and 32 MiB idle blocks are given back
  int64_t reused = 0;      ///< allocations that the cache served
  int64_t taken = 0;       ///< allocations from the system
  int64_t given_back = 0;  ///< blocks returned to the system
};

CRESSET_API HostCacheStats host_cache_stats();
/// Gives all idle blocks back to the system; not the idle pieces of blocks of which others are in use.
CRESSET_API void empty_host_cache();

namespace detail {
/// Bytes of a text as CRESSET_HOST_CACHE has it: a number, with K, M or G behind it for 2^10, 2^20, 2^30. -1 for anything else.
CRESSET_API int64_t bytes_of(const char* text);
}  // namespace detail

}  // namespace cresset
