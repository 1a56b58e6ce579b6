// Arenas of runs that allocate alike.
#include "core/memory_plan.h"

#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <cresset/base/parallel.h>
#include <cresset/core/allocator.h>

namespace cresset::detail {
namespace {

constexpr std::size_t kBlock = 100'000;

struct Block {
  explicit Block(std::size_t n = kBlock, int fill = 1) : p(static_cast<char*>(alloc_cpu(n))), size(n) { std::memset(p, fill, n); }
  ~Block() {
    if (p) free_cpu_sized(p, size);
  }
  Block(Block&& b) noexcept : p(std::exchange(b.p, nullptr)), size(b.size) {}
  bool holds(int fill) const { return p[0] == fill && p[size / 2] == fill && p[size - 1] == fill; }
  char* p;
  std::size_t size;
};

void run(const std::shared_ptr<MemoryPlan>& plan, const std::function<void()>& body) {
  const PlannedRun planned(plan);
  body();
}
// Five blocks, of which two live at a time.
void chain() {
  Block last;
  for (int i = 0; i < 4; ++i) {
    Block next(kBlock + 64 * static_cast<std::size_t>(i), i);
    EXPECT_TRUE(last.holds(i ? i - 1 : 1));
    std::swap(last.p, next.p);
    std::swap(last.size, next.size);
  }
}

TEST(MemoryPlan, BlocksOfOtherTimesShareMemory) {
  const auto plan = std::make_shared<MemoryPlan>();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(plan->arena_bytes(), 0);
    run(plan, chain);
  }
  EXPECT_GT(plan->block_bytes(), 5 * static_cast<int64_t>(kBlock));
  EXPECT_LT(plan->arena_bytes(), 2 * static_cast<int64_t>(kBlock) + 1024);
  for (int i = 0; i < 3; ++i) run(plan, chain);
  EXPECT_GT(plan->arena_bytes(), 0);
  EXPECT_EQ(num_arenas.load(), 0);
}

TEST(MemoryPlan, ResultsLieElsewhere) {
  const auto plan = std::make_shared<MemoryPlan>();
  std::vector<Block> results;
  for (int i = 0; i < 5; ++i)
    run(plan, [&] {
      Block scratch;
      results.emplace_back(kBlock, i);
    });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(results[static_cast<std::size_t>(i)].holds(i));
  EXPECT_EQ(plan->arena_bytes(), static_cast<int64_t>(kBlock + 63) / 64 * 64);
  EXPECT_EQ(num_arenas.load(), 0);
}

TEST(MemoryPlan, ABlockThatIsKeptKeepsItsArena) {
  const auto plan = std::make_shared<MemoryPlan>();
  std::vector<Block> kept;
  for (int i = 0; i < 5; ++i)
    run(plan, [&] {
      Block first(kBlock, i), second;
      if (i >= 3) kept.push_back(std::move(first));
    });
  EXPECT_EQ(num_arenas.load(), 2);
  EXPECT_TRUE(kept[0].holds(3) && kept[1].holds(4));
  std::thread([&] { kept.clear(); }).join();
  EXPECT_EQ(num_arenas.load(), 0);
}

TEST(MemoryPlan, APlaceThatIsTakenIsNotGivenTwice) {
  const auto plan = std::make_shared<MemoryPlan>();
  for (int i = 0; i < 4; ++i)
    run(plan, [&] {
      std::vector<Block> kept;
      {
        Block first(kBlock, 5);
        if (i == 3) kept.push_back(std::move(first));
      }
      Block second(kBlock, 6);
      if (i == 3) EXPECT_TRUE(kept[0].holds(5) && second.holds(6));
    });
}

TEST(MemoryPlan, OtherBlocksThanExpectedLieElsewhereAndTheRunIsRecordedAgain) {
  const auto plan = std::make_shared<MemoryPlan>();
  const auto two = [](std::size_t n) {
    return [n] {
      Block first(n, 2);
      Block second(2 * n, 3);
      EXPECT_TRUE(first.holds(2) && second.holds(3));
    };
  };
  for (int i = 0; i < 3; ++i) run(plan, two(kBlock));
  const int64_t before = plan->arena_bytes();
  run(plan, two(2 * kBlock));
  EXPECT_EQ(plan->arena_bytes(), 0);
  run(plan, two(2 * kBlock));
  EXPECT_GT(plan->arena_bytes(), 3 * before / 2);
  for (std::size_t n = 1; n < 8; ++n) run(plan, two(n * kBlock));  // never alike: it gives up
  EXPECT_EQ(plan->arena_bytes(), 0);
  run(plan, two(kBlock));
  run(plan, two(kBlock));
  EXPECT_EQ(plan->arena_bytes(), 0);
}

TEST(MemoryPlan, ARunThatEndsByAnExceptionIsNoRecord) {
  const auto plan = std::make_shared<MemoryPlan>();
  run(plan, chain);
  EXPECT_THROW(run(plan,
                   [] {
                     Block block;
                     throw std::runtime_error("stop");
                   }),
               std::runtime_error);
  EXPECT_EQ(plan->arena_bytes(), 0);
  run(plan, chain);
  EXPECT_GT(plan->arena_bytes(), 0);
}

TEST(MemoryPlan, ARunInsideOfAnotherIsPartOfIt) {
  const auto outer = std::make_shared<MemoryPlan>(), inner = std::make_shared<MemoryPlan>();
  for (int i = 0; i < 4; ++i)
    run(outer, [&] {
      Block block;
      run(inner, chain);
    });
  EXPECT_EQ(inner->arena_bytes(), 0);
  EXPECT_GT(outer->block_bytes(), 6 * static_cast<int64_t>(kBlock));
}

TEST(MemoryPlan, BlocksOfPartsOfARegionAreNoneOfTheRun) {
  const auto plan = std::make_shared<MemoryPlan>();
  const int before = get_num_threads();
  set_num_threads(3);
  for (int i = 0; i < 40; ++i)
    run(plan, [] {
      Block whole(kBlock, 7);
      parallel_for(0, 6, 1, [](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) Block part(kBlock + static_cast<std::size_t>(j) * 64, 8);
      });
      EXPECT_TRUE(whole.holds(7));
    });
  set_num_threads(before);
  EXPECT_EQ(plan->block_bytes(), static_cast<int64_t>(kBlock));
}

TEST(MemoryPlan, ThreadsHaveArenasOfTheirOwn) {
  const auto plan = std::make_shared<MemoryPlan>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) run(plan, chain);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_GT(plan->arena_bytes(), 0);
  EXPECT_EQ(num_arenas.load(), 0);
}

}  // namespace
}  // namespace cresset::detail
