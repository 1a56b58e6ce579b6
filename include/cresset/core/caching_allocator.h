// A caching allocator that backends may share: freed blocks are kept and given out again, but never while work in a queue may use them.
//
//   struct MyBlocks : cresset::BlockSource { void* take(std::size_t n) override; void give(void* p, std::size_t n) override; ... };
//   void* MyChip::allocate(int device, std::size_t nbytes) { return cache(device).allocate(nbytes); }
//   void MyChip::deallocate(int device, void* data, std::size_t) { cache(device).deallocate(data); }
//
// The rule is safe without Tensor.record_stream: a block is given out again when every queue has come as far as it was when the block was
// freed. A backend with one queue in order says so by an empty list of marks, and its blocks are free at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cresset/base/macros.h>

namespace cresset {

/// What the allocator asks of a device. Calls come one at a time.
struct CRESSET_API BlockSource {
  virtual ~BlockSource() = default;
  /// A block of exactly this size from the driver, null when there is no memory.
  virtual void* take(std::size_t nbytes) = 0;
  virtual void give(void* data, std::size_t nbytes) = 0;
  /// A mark behind all work that is in the queues now, one for each queue that may use a block; empty when whoever gets a block next comes
  /// after that work anyway.
  virtual std::vector<void*> marks() { return {}; }
  /// Has the work before the mark been done? With `wait` the call returns when it has.
  virtual bool passed(void* /*mark*/, bool /*wait*/) { return true; }
  virtual void drop(void* /*mark*/) {}
};

/// Bytes are those of whole blocks, which are a little larger than what was asked for.
struct CachingAllocatorStats {
  int64_t allocated_bytes = 0;  // in use
  int64_t peak_allocated_bytes = 0;
  int64_t reserved_bytes = 0;  // held from the driver: in use, waiting for queues, or free
  int64_t peak_reserved_bytes = 0;
  int64_t allocations = 0;  // since the start
  int64_t reused = 0;       // of them without the driver
  int64_t retries = 0;      // how often the cache was emptied because the driver had no memory
};

/// The blocks of one device. Every function may be called from any thread.
class CRESSET_API CachingAllocator {
 public:
  /// The source must live as long as the allocator; its blocks are not given back when the allocator goes (processes end in any order).
  explicit CachingAllocator(BlockSource& source);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// At least nbytes (> 0); null when there is no memory even with an empty cache.
  void* allocate(std::size_t nbytes);
  /// Raises for an address that is not a block in use.
  void deallocate(void* data);
  /// Gives blocks that nobody uses back to the driver. Waits for the queues that may use freed ones.
  void empty_cache();
  CachingAllocatorStats stats() const;
  /// The peaks become what is there now.
  void reset_peaks();
  /// The size of the block for a request: multiples of 512 bytes, and above 1 MiB of 128 KiB.
  static std::size_t block_size(std::size_t nbytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cresset
