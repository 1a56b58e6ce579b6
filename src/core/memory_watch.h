// One listener for the memory of storages: the profiler. A null check is all that it costs when nobody listens.
#pragma once

#include <atomic>
#include <cstdint>

#include <cresset/core/device.h>

namespace cresset::detail {

/// Told of `bytes` more (or, negative, fewer) at `data`. Must not raise.
using MemoryWatcher = void (*)(const void* data, int64_t bytes, Device device) noexcept;
extern std::atomic<MemoryWatcher> memory_watcher;

inline bool memory_is_watched() noexcept { return memory_watcher.load(std::memory_order_relaxed) != nullptr; }
inline void memory_changed(const void* data, int64_t bytes, Device device) noexcept {
  if (const MemoryWatcher watcher = memory_watcher.load(std::memory_order_relaxed); CRESSET_UNLIKELY(watcher != nullptr))
    watcher(data, bytes, device);
}

}  // namespace cresset::detail
