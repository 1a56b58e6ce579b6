// One listener for the memory of storages: the profiler. Threads that it does not listen to pay nothing for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <cresset/core/device.h>

namespace cresset::detail {

/// Told of `bytes` more (or, negative, fewer) at `data`. Must not raise.
using MemoryWatcher = void (*)(const void* data, int64_t bytes, Device device) noexcept;
extern std::atomic<MemoryWatcher> memory_watcher;

inline void memory_changed(const void* data, int64_t bytes, Device device) noexcept {
  if (const MemoryWatcher watcher = memory_watcher.load(std::memory_order_relaxed); CRESSET_UNLIKELY(watcher != nullptr))
    watcher(data, bytes, device);
}
/// From now on the watcher hears of small storages of this thread as well, for as long as there is one.
void watch_small_storages();

/// alloc_cpu and free_cpu_sized for the memory of storages.
void* alloc_storage(std::size_t n);
void free_storage(void* p, std::size_t n) noexcept;

}  // namespace cresset::detail
