// What the allocator of a device has done: counters, pools of memory, limits, the blocks that are there and the history of how they came.
//
// All of it is kept by the core, so that every backend with a table has it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cresset/core/backend.h>
#include <cresset/core/device.h>

namespace cresset {

/// Something that comes and goes.
struct MemoryCounter {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void add(int64_t n) {
    current += n;
    allocated += n;
    if (current > peak) peak = current;
  }
  void remove(int64_t n) {
    current -= n;
    freed += n;
  }
};
/// Blocks by size: all, those of at least 1 MiB, smaller ones.
struct MemoryCounters {
  static constexpr int64_t kLarge = int64_t{1} << 20;
  std::array<MemoryCounter, 3> count, bytes;
  void add(int64_t nbytes);
  void remove(int64_t nbytes);
};
struct DeviceMemoryCounters {
  MemoryCounters tensors;  // blocks of tensors
  MemoryCounters active;   // and those that streams still use
  MemoryCounters held;     // and those that pools keep: all that came from the backend
  int64_t retries = 0, out_of_memory = 0, waits = 0, from_driver = 0, to_driver = 0;
};
/// Of a device with a table, or with a DeviceAllocator; zeros for others.
CRESSET_API DeviceMemoryCounters device_memory_counters(Device d);
/// Peaks become what is there now; with `accumulated` the sums since the start become zero as well.
CRESSET_API void reset_device_memory_counters(Device d, bool accumulated);

/// Tensors may have this part of the device's memory; more is out of memory. The backend must tell the total (get_properties).
CRESSET_API void set_memory_fraction(Device d, double fraction);
CRESSET_API double memory_fraction(Device d);

// ---- pools

namespace detail {
class DeviceMemoryPool;
}
/// Two numbers name a pool: (0, n) one of a user, (n, 0) one of a graph.
using MemoryPoolId = std::pair<uint64_t, uint64_t>;
using MemoryPoolPtr = std::shared_ptr<detail::DeviceMemoryPool>;

/// A pool of a device: blocks of tensors that were made in it come back to it, and go back to the backend when it ends: with its last
/// tensor and owner.
CRESSET_API MemoryPoolPtr make_memory_pool(Device d, bool of_graph = false);
/// The pool with this number, which is made when there is none.
CRESSET_API MemoryPoolPtr memory_pool_with_id(Device d, MemoryPoolId id);
/// A number that no pool has.
CRESSET_API MemoryPoolId new_memory_pool_id(bool of_graph);
CRESSET_API MemoryPoolId id_of_memory_pool(const MemoryPoolPtr& pool);
CRESSET_API Device device_of_memory_pool(const MemoryPoolPtr& pool);

/// This thread, and the threads of its backward passes, take the memory of the pool's device from the pool until end().
class CRESSET_API MemoryPoolScope final {
 public:
  explicit MemoryPoolScope(MemoryPoolPtr pool);
  ~MemoryPoolScope() { end(); }
  MemoryPoolScope(const MemoryPoolScope&) = delete;
  MemoryPoolScope& operator=(const MemoryPoolScope&) = delete;
  /// Scopes may end in any order, in the thread that began them.
  void end() noexcept;

 private:
  friend class detail::DeviceMemoryPool;
  MemoryPoolPtr pool_;
  MemoryPoolScope* outer_;
  bool open_ = true;
};

// ---- blocks and their history

struct MemoryBlockInfo {
  uint64_t address;
  int64_t nbytes;
  enum State { Allocated, AwaitingStreams, InPool } state;
  int64_t stream;
  MemoryPoolId pool;  // (0, 0): none
  std::string stack;  // where it was allocated, while history was kept; else empty
};
/// In order of addresses.
CRESSET_API std::vector<MemoryBlockInfo> device_memory_blocks(Device d);

struct MemoryEvent {
  enum Action { Allocate, Free, SegmentAllocate, SegmentFree, OutOfMemory } action;
  uint64_t address;  // of OutOfMemory: the bytes that the device has left
  int64_t nbytes;
  int64_t stream;
  int64_t time_us;  // since 1970
  std::string stack;
};
/// Keeps the last `most` events of every device of the kind; 0 keeps none and forgets.
CRESSET_API void record_memory_history(DeviceType t, std::size_t most);
CRESSET_API std::vector<MemoryEvent> memory_history(Device d);
/// Called at every allocation while history is kept: tells where the program is, a frame a line. Null: nobody knows.
CRESSET_API void set_memory_stack_source(std::string (*source)());

}  // namespace cresset
