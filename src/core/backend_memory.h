// The memory of one device of a backend: blocks of tensors, pools, blocks that streams still use, counters and history.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cresset/base/fork.h>
#include <cresset/core/device_memory.h>

namespace cresset::detail {

class Backend;
class DeviceMemory;

/// Text that several events share.
using StackText = std::shared_ptr<const std::string>;

/// Memory of one tensor; owned by its DataPtr.
struct Block {
  DeviceMemory* memory;
  void* data;
  std::size_t nbytes;
  cresset_stream stream;                // that was current when it was allocated
  MemoryPoolPtr pool;                   // where it goes back to; null: the backend
  std::vector<cresset_stream> used_in;  // recorded streams
  StackText stack;
  Block *before = nullptr, *after = nullptr;  // the blocks of the device
};

/// Memory whose tensor is gone while streams that were recorded on it may still use it: it goes back when the events have happened.
struct LingeringBlock {
  void* data;
  std::size_t nbytes;
  cresset_stream stream;
  MemoryPoolPtr pool;
  std::vector<void*> events;
};

/// Blocks that come back are given out again in the stream that they were allocated in: there, new work follows the old.
class DeviceMemoryPool final {
 public:
  struct Idle {
    void* data;
    cresset_stream stream;
    bool reusable;
  };
  DeviceMemoryPool(DeviceMemory& memory, MemoryPoolId id) : memory_(memory), id_(id) {}
  ~DeviceMemoryPool();
  DeviceMemoryPool(const DeviceMemoryPool&) = delete;
  DeviceMemoryPool& operator=(const DeviceMemoryPool&) = delete;

  DeviceMemory& memory() const { return memory_; }
  MemoryPoolId id() const { return id_; }
  /// The pool that this thread takes the memory of a device from, or null.
  static MemoryPoolPtr current(const DeviceMemory& memory);

  // With the lock of the device's memory held:
  std::multimap<std::size_t, Idle> idle;

 private:
  DeviceMemory& memory_;
  const MemoryPoolId id_;
};

/// The memory of one device. Lives as long as the process.
class DeviceMemory final {
 public:
  DeviceMemory(const Backend& backend, int index) : backend_(backend), index_(index) {}

  const Backend& backend() const { return backend_; }
  Device device() const;
  DataPtr allocate(std::size_t nbytes);
  /// A tensor of this block is used in a stream beside its own.
  void record_stream(Block& block, cresset_stream stream);
  /// Gives memory back that streams used and are done with; with `wait`, all of it.
  void free_lingering(bool wait);
  /// The deleter of blocks.
  static void free(void* block);

  DeviceMemoryCounters counters() const;
  void reset_counters(bool accumulated);
  bool was_used() const;
  void set_limit(double fraction, int64_t bytes);
  double fraction() const;
  std::vector<MemoryBlockInfo> blocks() const;
  void keep_history(std::size_t most);
  std::vector<MemoryEvent> history() const;

 private:
  friend class DeviceMemoryPool;
  /// Null: the pool has no such block.
  void* take_from_pool(DeviceMemoryPool& pool, std::size_t nbytes, cresset_stream stream);
  /// The caller counts the block, as it has the lock for its own counters anyway.
  void* take_from_backend(std::size_t nbytes, cresset_stream stream, const StackText& stack);
  void give_to_backend(void* data, std::size_t nbytes, cresset_stream stream);
  void note_return(const void* data, std::size_t nbytes, cresset_stream stream);  // with the lock
  void deallocate(void* data, std::size_t nbytes);
  void give_back(void* data, std::size_t nbytes, cresset_stream stream, const MemoryPoolPtr& pool, bool reusable);
  bool lingers(Block& block);
  void note(MemoryEvent::Action action, const void* address, std::size_t nbytes, cresset_stream stream, const StackText& stack);
  [[noreturn]] void raise_limit(std::size_t nbytes);
  void link(Block& block);
  void unlink(Block& block);

  const Backend& backend_;
  const int index_;
  mutable ForkSafe<std::mutex> mutex_;  // what follows; not held while the backend is called
  DeviceMemoryCounters counters_;
  Block* first_ = nullptr;
  std::vector<LingeringBlock> lingering_;
  std::atomic<bool> has_lingering_{false};
  std::vector<std::weak_ptr<DeviceMemoryPool>> pools_;
  double fraction_ = 1;
  std::atomic<int64_t> limit_{-1};  // bytes, -1: none; asked without the mutex
  struct Event {
    MemoryEvent::Action action;
    uint64_t address;
    int64_t nbytes, stream, time_us;
    StackText stack;
  };
  std::deque<Event> history_;
  std::size_t history_most_ = 0;

  friend MemoryPoolPtr cresset::memory_pool_with_id(Device, MemoryPoolId);
};

/// The memory of a device with a table, or null.
DeviceMemory* memory_of_device(Device d);
/// Has this process been forked from one that used a device?
bool is_forked();

}  // namespace cresset::detail
