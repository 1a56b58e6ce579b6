// The inter-op pool. One test, as the number of threads can be set once in a process.
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <cresset/base/error.h>
#include <cresset/base/interop.h>

#include "error_of.h"

namespace cresset {
namespace {

TEST(Interop, TasksRunBesideTheCallerAndBesideEachOther) {
  EXPECT_EQ(error_of([] { set_num_interop_threads(0); }), "Expected positive number of threads");
  EXPECT_EQ(error_of([] { launch(nullptr); }), "launch: a function was required; an empty one was given.");
  EXPECT_GE(get_num_interop_threads(), 1);
  set_num_interop_threads(2);
  EXPECT_EQ(get_num_interop_threads(), 2);
  EXPECT_NE(error_of([] { set_num_interop_threads(3); }).find("cannot set number of interop threads after parallel work has started"),
            std::string::npos);

  // Each of two tasks waits for the other: they run at the same time, and neither on this thread.
  std::promise<std::thread::id> first, second;
  const std::shared_future<std::thread::id> a = first.get_future().share(), b = second.get_future().share();
  launch([&first, b] {
    b.wait();
    first.set_value(std::this_thread::get_id());
  });
  launch([&second] { second.set_value(std::this_thread::get_id()); });
  EXPECT_EQ((std::set{a.get(), b.get(), std::this_thread::get_id()}).size(), 3u);

  // All of many tasks run; an exception ends only its own.
  testing::internal::CaptureStderr();
  std::mutex mutex;
  std::condition_variable changed;
  int done = 0;
  launch([] { throw ValueError("of a task"); });
  for (int i = 0; i < 500; ++i)
    launch([&] {
      const std::lock_guard lock(mutex);
      if (++done == 500) changed.notify_one();
    });
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return done == 500; }));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "Exception in a task of the inter-op pool: of a task\n");
}

}  // namespace
}  // namespace cresset
