// Allocators that tell what they do, by PyTorch's names: sources for PyTorch derive from DeviceAllocator and HostAllocator. A backend with
// a table needs neither: the core keeps its statistics (core/device_memory.h).
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <cresset/core/allocator.h>
#include <cresset/core/stream.h>

namespace cresset {

using CaptureId_t = unsigned long long;
using MempoolId_t = std::pair<CaptureId_t, CaptureId_t>;

namespace device_stats {
/// Something that comes and goes.
struct Stat {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void increase(std::size_t n) {
    current += static_cast<int64_t>(n);
    allocated += static_cast<int64_t>(n);
    if (current > peak) peak = current;
  }
  void decrease(std::size_t n) {
    current -= static_cast<int64_t>(n);
    freed += static_cast<int64_t>(n);
  }
  void reset_accumulated() { allocated = freed = 0; }
  void reset_peak() { peak = current; }
};
enum struct StatType : uint64_t { AGGREGATE = 0, SMALL_POOL = 1, LARGE_POOL = 2, NUM_TYPES = 3 };
using StatArray = std::array<Stat, static_cast<std::size_t>(StatType::NUM_TYPES)>;
using StatTypes = std::array<bool, static_cast<std::size_t>(StatType::NUM_TYPES)>;
template <class F>
void for_each_selected_stat_type(const StatTypes& types, F f) {
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i]) f(i);
}
/// Microseconds that calls took.
struct DurationStat {
  int64_t total = 0, max = 0, min = 0, count = 0;
  void increase(int64_t us) {
    total += us;
    max = count == 0 || us > max ? us : max;
    min = count == 0 || us < min ? us : min;
    ++count;
  }
  void reset_accumulated() { total = count = 0; }
  void reset_peak() { max = min = 0; }
};
struct DeviceStats {
  StatArray allocation, segment, active, inactive_split;
  StatArray allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  int64_t num_alloc_retries = 0, num_ooms = 0;
  Stat oversize_allocations, oversize_segments;
  int64_t num_sync_all_streams = 0, num_device_alloc = 0, num_device_free = 0, max_split_size = 0;
};
}  // namespace device_stats

/// An allocator of device memory; what it tells is in accelerator.memory_stats.
struct CRESSET_API DeviceAllocator : Allocator {
  virtual bool initialized() = 0;
  virtual void emptyCache(MempoolId_t pool = {0, 0}) = 0;
  virtual void recordStream(const DataPtr& data, Stream stream) = 0;
  virtual device_stats::DeviceStats getDeviceStats(DeviceIndex device) = 0;
  virtual void resetAccumulatedStats(DeviceIndex device) = 0;
  virtual void resetPeakStats(DeviceIndex device) = 0;
  /// (free, total) bytes.
  virtual std::pair<std::size_t, std::size_t> getMemoryInfo(DeviceIndex device);
};
/// The allocator of a kind when it is a DeviceAllocator, or null.
CRESSET_API DeviceAllocator* find_device_allocator(DeviceType type);
/// Raises when the kind has no DeviceAllocator.
CRESSET_API DeviceAllocator* getDeviceAllocator(DeviceType type);

struct HostStats {
  device_stats::Stat allocation, segment, allocated_bytes, reserved_bytes;
  device_stats::StatArray active_requests, active_bytes;
  device_stats::DurationStat host_alloc_time, host_free_time;
  int64_t num_host_alloc = 0, num_host_free = 0;
};
/// An allocator of host memory that a device reaches.
struct CRESSET_API HostAllocator : Allocator {
  virtual bool record_event(void* data, void* context, Stream stream) = 0;
  virtual void empty_cache() = 0;
  virtual HostStats get_stats() = 0;
  virtual void reset_accumulated_stats() = 0;
  virtual void reset_peak_stats() = 0;
};
/// It must live as long as the process; one with a higher priority stays.
CRESSET_API void setHostAllocator(DeviceType type, HostAllocator* allocator, uint8_t priority = 0);
/// Raises when the kind has none.
CRESSET_API HostAllocator* getHostAllocator(DeviceType type);

}  // namespace cresset
