// Listeners for the memory of storages: the profiler, and function transforms. Threads that they do not listen to pay nothing for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <cresset/core/device.h>

namespace cresset::detail {

/// Told of `bytes` more (or, negative, fewer) at `data`. Must not raise.
using MemoryWatcher = void (*)(const void* data, int64_t bytes, Device device) noexcept;
extern std::atomic<MemoryWatcher> profiler_memory_watcher, transform_memory_watcher;  // null: nobody

inline bool memory_is_watched() noexcept {
  return profiler_memory_watcher.load(std::memory_order_relaxed) || transform_memory_watcher.load(std::memory_order_relaxed);
}
inline void memory_changed(const void* data, int64_t bytes, Device device) noexcept {
  for (const auto* slot : {&profiler_memory_watcher, &transform_memory_watcher})
    if (const MemoryWatcher watcher = slot->load(std::memory_order_relaxed); CRESSET_UNLIKELY(watcher != nullptr))
      watcher(data, bytes, device);
}
/// From now on watchers hear of small storages of this thread as well, for as long as there are any.
void watch_small_storages();

/// alloc_cpu and free_cpu_sized for the memory of storages.
void* alloc_storage(std::size_t n);
void free_storage(void* p, std::size_t n) noexcept;

}  // namespace cresset::detail
