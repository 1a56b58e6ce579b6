// The pool behind parallel_for: parts, helpers, regions inside of and beside each other; processors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <cresset/base/error.h>
#include <cresset/base/parallel.h>

#include "base/processors.h"

namespace cresset {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before = get_num_threads();
};

void stay_busy(milliseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

// Each element is visited once, by any number of threads, for sizes around those of parts.
TEST(Parallel, EveryElementIsVisitedOnce) {
  for (int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (int64_t n : {1, 2, 3, 15, 16, 17, 31, 33, 100, 1023, 4097})
      for (int64_t grain : {0, 1, 3, 16, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
        std::atomic<int> most{0};
        parallel_for(7, 7 + n, grain, [&](int64_t b, int64_t e) {
          ASSERT_LT(b, e);
          for (int64_t i = b; i < e; ++i) ++seen[static_cast<std::size_t>(i - 7)];
          for (int now = most; now < get_thread_num() && !most.compare_exchange_weak(now, get_thread_num());) {
          }
        });
        for (const auto& s : seen) ASSERT_EQ(s, 1) << n << " " << grain << " " << threads;
        EXPECT_LT(most, threads);
      }
  }
  EXPECT_FALSE(in_parallel_region());
  EXPECT_EQ(get_thread_num(), 0);
}

// A thread that is held up keeps one piece, not its half: the other does the rest in the meantime.
TEST(Parallel, WhoIsFreeTakesTheParts) {
  const Threads scope(2);
  std::atomic<int> by_others{0}, slow{0};
  std::mutex mutex;
  std::thread::id held;
  for (int attempt = 0; attempt < 50 && by_others < 20; ++attempt) {
    by_others = slow = 0;
    parallel_for(0, 32, 1, [&](int64_t, int64_t) {
      if (slow.fetch_add(1) == 0) {
        {
          const std::lock_guard lock(mutex);
          held = std::this_thread::get_id();
        }
        std::this_thread::sleep_for(milliseconds(30));
      } else {
        const std::lock_guard lock(mutex);
        by_others += std::this_thread::get_id() != held;
      }
    });
  }
  EXPECT_GE(by_others, 20);
}

// Two threads each of which waits for the other inside of a region inside of a region: both take part.
TEST(Parallel, InnerRegionsAreHelpedByIdleThreads) {
  const Threads scope(4);
  bool together = false;
  for (int attempt = 0; attempt < 200 && !together; ++attempt) {
    std::mutex mutex;
    std::set<std::thread::id> ids;
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      parallel_for(0, 8, 1, [&](int64_t, int64_t) {
        EXPECT_TRUE(in_parallel_region());
        stay_busy(milliseconds(1));
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      });
    });
    together = ids.size() > 2;
  }
  EXPECT_TRUE(together);
}

TEST(Parallel, RegionsBesideEachOtherShareThePool) {
  const Threads scope(4);
  std::atomic<int64_t> sum{0};
  std::mutex mutex;
  std::set<std::thread::id> ids;
  const auto caller = [&] {
    for (int round = 0; round < 200; ++round)
      parallel_for(0, 64, 1, [&](int64_t b, int64_t e) {
        sum += e - b;
        if (round % 20 == 0) stay_busy(milliseconds(1));
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      });
  };
  for (int attempt = 0; attempt < 50 && ids.size() <= 2; ++attempt) {  // on a busy machine no worker may come in time
    sum = 0;
    std::thread a(caller), b(caller);
    a.join();
    b.join();
    EXPECT_EQ(sum, 2 * 200 * 64);
  }
  EXPECT_GT(ids.size(), 2u);
}

TEST(Parallel, TheFirstErrorOfAnyThreadReachesItsOwnCaller) {
  const Threads scope(3);
  const auto caller = [](int number) {
    for (int round = 0; round < 100; ++round) {
      try {
        parallel_for(0, 100, 1, [&](int64_t, int64_t e) {
          if (e > 40) CRESSET_THROW(Error, "of ", number);
        });
        FAIL();
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("of " + std::to_string(number)), std::string::npos);
      }
    }
  };
  std::thread a(caller, 1), b(caller, 2);
  a.join();
  b.join();
}

// More neighbours than processors: a region takes no longer than one thread would, but for a margin that holds on busy test machines.
TEST(Parallel, NeighboursDoNotHoldUpTheCaller) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> neighbours;
  for (int i = 0; i < 2 * usable_processors(); ++i)
    neighbours.emplace_back([&] {
      while (!stop) {
      }
    });
  const auto time = [](int threads) {
    const Threads scope(threads);
    const auto start = Clock::now();
    std::atomic<int64_t> sum{0};
    for (int round = 0; round < 300; ++round)
      parallel_for(0, 64, 1, [&](int64_t b, int64_t e) {
        int64_t local = 0;
        for (int64_t i = b * 2000; i < e * 2000; ++i) local += i * i % 7;
        sum += local;
      });
    EXPECT_GT(sum, 0);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double best = 1e9;
  for (int attempt = 0; attempt < 5 && best > 1.5; ++attempt) {
    const double alone = time(1);
    best = std::min(best, time(2) / alone);
  }
  stop = true;
  for (std::thread& t : neighbours) t.join();
  EXPECT_LE(best, 1.5);
}

TEST(Processors, GroupsLimitTheirNumber) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "cresset_groups";
  const auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("a/cpu.max", "400000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/c/cpu.max", "150000 100000\n");
  write("cpu,cpuacct/d/cpu.cfs_quota_us", "50000\n");
  write("cpu,cpuacct/d/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/e/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/e/cpu.cfs_period_us", "100000\n");
  const auto quota = [&](const std::string& groups) { return processor_quota(groups, root.string()); };
  EXPECT_EQ(quota("0::/a\n"), 4);
  EXPECT_EQ(quota("0::/a/b\n"), 4);  // of the group around it
  EXPECT_EQ(quota("0::/a/c\n"), 1.5);
  EXPECT_EQ(quota("0::/\n"), 0);
  EXPECT_EQ(quota("0::/none/at/all\n"), 0);
  EXPECT_EQ(quota("5:memory:/d\n4:cpu,cpuacct:/d\n"), 0.5);
  EXPECT_EQ(quota("4:cpu,cpuacct:/e\n"), 0);
  EXPECT_EQ(quota(""), 0);
  EXPECT_EQ(quota("no such form"), 0);
  fs::remove_all(root);
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace cresset
