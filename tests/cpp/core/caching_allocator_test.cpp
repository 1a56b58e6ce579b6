// The shared caching allocator over a device in software, whose queues move when the test says so.
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <cresset/base/error.h>
#include <cresset/core/caching_allocator.h>

namespace cresset {
namespace {

struct Blocks final : BlockSource {
  void* take(std::size_t nbytes) override {
    if (held + nbytes > capacity) return nullptr;
    held += nbytes;
    ++taken;
    return reinterpret_cast<void*>(next += 4096);
  }
  void give(void*, std::size_t nbytes) override { held -= nbytes; }
  std::vector<void*> marks() override {
    std::vector<void*> out;
    for (int i = 0; i < queues; ++i) out.push_back(reinterpret_cast<void*>(++marked));
    return out;
  }
  bool passed(void* mark, bool wait) override {
    waits += wait;
    return wait || reinterpret_cast<uintptr_t>(mark) <= done;
  }
  void drop(void*) override { ++dropped; }

  std::size_t capacity = std::size_t{1} << 30, held = 0;
  uintptr_t next = 0, marked = 0, done = 0;
  int queues = 0, taken = 0, waits = 0, dropped = 0;
};

TEST(CachingAllocator, GivesFreedBlocksOutAgain) {
  Blocks blocks;
  CachingAllocator cache(blocks);
  void* a = cache.allocate(1000);
  void* b = cache.allocate(1000);
  EXPECT_NE(a, b);
  cache.deallocate(a);
  EXPECT_EQ(cache.allocate(100), a);  // up to twice the size
  cache.deallocate(a);
  void* c = cache.allocate(1500);
  EXPECT_NE(c, a);
  cache.deallocate(b);
  cache.deallocate(c);
  EXPECT_NE(cache.allocate(600), c);
  EXPECT_EQ(blocks.taken, 3);
  const CachingAllocatorStats s = cache.stats();
  EXPECT_EQ(s.allocated_bytes, 1024);
  EXPECT_EQ(s.peak_allocated_bytes, 1024 + 1536);
  EXPECT_EQ(s.reserved_bytes, 2 * 1024 + 1536);
  EXPECT_EQ(s.allocations, 5);
  EXPECT_EQ(s.reused, 2);
  EXPECT_EQ(s.retries, 0);
}

TEST(CachingAllocator, SizesOfBlocks) {
  EXPECT_EQ(CachingAllocator::block_size(1), 512u);
  EXPECT_EQ(CachingAllocator::block_size(512), 512u);
  EXPECT_EQ(CachingAllocator::block_size(513), 1024u);
  EXPECT_EQ(CachingAllocator::block_size((1 << 20) + 1), std::size_t{(1 << 20) + (128 << 10)});
  EXPECT_THROW(CachingAllocator::block_size(~std::size_t{0}), OutOfMemoryError);
}

TEST(CachingAllocator, BlocksWaitForEveryQueue) {
  Blocks blocks;
  CachingAllocator cache(blocks);
  blocks.queues = 2;
  void* a = cache.allocate(100);
  cache.deallocate(a);
  EXPECT_NE(cache.allocate(100), a);
  blocks.done = 1;  // one queue has come this far
  EXPECT_NE(cache.allocate(100), a);
  EXPECT_EQ(blocks.dropped, 1);
  blocks.done = 2;
  EXPECT_EQ(cache.allocate(100), a);
  EXPECT_EQ(blocks.dropped, 2);
  EXPECT_EQ(blocks.waits, 0);
}

TEST(CachingAllocator, EmptiesItselfBeforeItRunsOut) {
  Blocks blocks;
  CachingAllocator cache(blocks);
  blocks.capacity = 1024;
  blocks.queues = 1;
  void* a = cache.allocate(512);
  cache.deallocate(a);                       // waits for its queue
  EXPECT_NE(cache.allocate(1024), nullptr);  // which is waited for now
  EXPECT_EQ(blocks.waits, 1);
  EXPECT_EQ(cache.stats().retries, 1);
  EXPECT_EQ(cache.allocate(512), nullptr);
  EXPECT_EQ(cache.stats().reserved_bytes, 1024);
}

TEST(CachingAllocator, EmptyCacheAndPeaks) {
  Blocks blocks;
  CachingAllocator cache(blocks);
  void* a = cache.allocate(512);
  void* b = cache.allocate(512);
  cache.deallocate(a);
  cache.empty_cache();
  EXPECT_EQ(blocks.held, 512u);
  EXPECT_EQ(cache.stats().reserved_bytes, 512);
  EXPECT_EQ(cache.stats().peak_reserved_bytes, 1024);
  cache.reset_peaks();
  EXPECT_EQ(cache.stats().peak_reserved_bytes, 512);
  EXPECT_EQ(cache.stats().peak_allocated_bytes, 512);
  blocks.queues = 1;
  cache.deallocate(b);
  cache.empty_cache();
  EXPECT_EQ(blocks.waits, 1);
  EXPECT_EQ(cache.stats().reserved_bytes, 0);
  EXPECT_THROW(cache.deallocate(b), Error);
}

TEST(CachingAllocator, ManyThreads) {
  Blocks blocks;
  CachingAllocator cache(blocks);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 500; ++i) cache.deallocate(cache.allocate(static_cast<std::size_t>(t) * 3000 + 1));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cache.stats().allocated_bytes, 0);
  EXPECT_EQ(cache.stats().allocations, 2000);
  cache.empty_cache();
  EXPECT_EQ(blocks.held, 0u);
}

}  // namespace
}  // namespace cresset
