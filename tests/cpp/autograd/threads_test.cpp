// What threads may do at the same time: exact results here, and no data races under ThreadSanitizer (`make tsan`).
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <cresset/autograd/anomaly_mode.h>
#include <cresset/autograd/forward_ad.h>
#include <cresset/dispatch/profiler.h>

#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

/// Runs f(0) … f(n - 1), each in a thread of its own, all begun at the same moment.
template <class F>
void together(int n, const F& f) {
  std::barrier<> start(n);
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      f(i);
    });
  for (std::thread& t : threads) t.join();
}

TEST(Threads, BackwardOfOwnGraphsOnSharedLeaves) {
  const Tensor x = leaf({1, 2, 3}), w = leaf({2, 3, 4});
  std::atomic<int> hooked{0};
  x.register_hook([&](const Tensor&) { ++hooked; });
  together(4, [&](int) {
    for (int k = 0; k < 50; ++k) ((x * w).sum() + (x * 2.0).sum()).backward();
  });
  expect_values(x.grad(), {800, 1000, 1200});
  expect_values(w.grad(), {200, 400, 600});
  EXPECT_EQ(hooked, 200);
}

TEST(Threads, LeafSeenForTheFirstTimeByAll) {
  for (int round = 0; round < 50; ++round) {
    const Tensor x = leaf({1});
    together(4, [&](int i) { (x * static_cast<double>(i + 1)).backward(); });
    expect_values(x.grad(), {10});
  }
}

TEST(Threads, ForwardWhileAnotherThreadRunsBackward) {
  for (int round = 0; round < 10; ++round) {
    const Tensor x = leaf({0, 0}), shared = x.exp() * 2.0;
    std::atomic<bool> right{true};
    together(4, [&](int i) {
      for (int k = 0; k < 20; ++k) {
        if (i % 2) {
          const Tensor y = (shared * 3.0).view({2, 1}).sum() + shared.detach().sum();
          right = right && y.requires_grad() && !shared.is_leaf() && shared.grad_fn() != nullptr && values_of(y)[0] == 16;
        } else {
          right = right && values_of(grad({shared.sum()}, {x}, {}, true)[0]) == std::vector<double>{2, 2};
        }
      }
    });
    EXPECT_TRUE(right);
  }
}

TEST(Threads, BackwardThatFreesWhileForwardAddsToTheGraph) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = leaf({1, 2}), middle = x * x;
    std::vector<Tensor> added(2);
    together(3, [&](int i) {
      if (i == 0)
        middle.sum().backward();
      else
        added[static_cast<std::size_t>(i - 1)] = middle * 2.0 + 1.0;
    });
    expect_values(x.grad(), {2, 4});
    expect_error([&] { added[0].sum().backward(); }, "Trying to backward through the graph a second time");
  }
}

/// A view whose base has changed gets its new history from whoever asks first.
TEST(Threads, HistoryOfAViewIsRebuiltOnce) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = leaf({1, 2}), base = x * 1.0, view = base.view({2, 1});
    base.mul_(3.0);
    std::vector<std::shared_ptr<Node>> seen(4);
    together(4, [&](int i) { seen[static_cast<std::size_t>(i)] = view.grad_fn(); });
    for (const auto& node : seen) EXPECT_EQ(node, seen[0]);
    view.sum().backward();
    expect_values(x.grad(), {3, 3});
  }
}

TEST(Threads, GraphsMadeHereAndRunOrDroppedThere) {
  const Tensor x = leaf({1});
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Tensor> queue;
  constexpr int kGraphs = 200;
  together(3, [&](int i) {
    if (i == 0) {
      for (int k = 0; k < kGraphs; ++k) {
        Tensor y = x * 2.0;
        for (int step = 0; step < 20; ++step) y = y + 0.5;
        {
          const std::lock_guard lock(mutex);
          queue.push_back(std::move(y));
        }
        changed.notify_one();
      }
      return;
    }
    for (int k = 0; k < kGraphs / 2; ++k) {
      Tensor y;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !queue.empty(); });
        y = std::move(queue.front());
        queue.pop_front();
      }
      if (i == 1) y.backward();
    }
  });
  expect_values(x.grad(), {kGraphs});
}

TEST(Threads, HooksThatRegisterHooksAndRemoveThem) {
  const Tensor x = leaf({1});
  std::atomic<int> inner{0};
  together(4, [&](int) {
    for (int k = 0; k < 30; ++k) {
      const Tensor h = x * 2.0, y = h * 3.0;
      y.register_hook([&](const Tensor&) {
        const auto number = h.register_hook([&](const Tensor&) { inner += 1000; });
        h.remove_hook(number);
        h.register_hook([&](const Tensor& g) {
          ++inner;
          return g * 0.5;
        });
      });
      y.backward();
    }
  });
  EXPECT_EQ(inner, 120);
  expect_values(x.grad(), {360});
}

/// Hooks of a leaf and of a node come and go while other threads run backward through both.
TEST(Threads, HooksOnSharedTensors) {
  const Tensor x = leaf({1, 2}), h = x * 2.0;
  std::atomic<int> calls{0};
  together(4, [&](int i) {
    for (int k = 0; k < 50; ++k) {
      if (i < 2) {
        (void)grad({h.sum()}, {x}, {}, true);
        (x * 2.0).sum().backward();
        continue;
      }
      const Tensor& t = i == 2 ? x : h;
      const unsigned id = t.register_hook([&](const Tensor&) { ++calls; });
      if (i == 3) h.retain_grad();
      t.remove_hook(id);
    }
  });
  expect_values(x.grad(), {200, 200});
}

TEST(Threads, SecondOrderFromAllThreads) {
  const Tensor x = leaf({2});
  std::atomic<bool> right{true};
  together(4, [&](int) {
    for (int k = 0; k < 20; ++k) {
      const Tensor first = grad({x * x * x}, {x}, {}, true, true)[0];
      right = right && values_of(grad({first}, {x})[0])[0] == 12;
    }
  });
  EXPECT_TRUE(right);
}

TEST(Threads, ModesOfOneThreadAreItsOwn) {
  const Tensor x = leaf({1, 2});
  std::atomic<bool> right{true};
  together(4, [&](int i) {
    for (int k = 0; k < 50; ++k) {
      if (i == 0) {
        const NoGradGuard off;
        right = right && !(x * 2.0).requires_grad();
      } else if (i == 1) {
        const InferenceMode mode;
        right = right && (x * 2.0).is_inference();
      } else if (i == 2) {
        AnomalyMode::set_enabled(k % 2 == 0);  // of the whole process, and safe to switch
      } else {
        right = right && values_of(grad({(x * x).sum()}, {x})[0]) == std::vector<double>{2, 4};
      }
    }
  });
  AnomalyMode::set_enabled(false);
  EXPECT_TRUE(right);
}

TEST(Threads, ProfilerStartsAndStopsWhileOthersRunBackward) {
  const Tensor x = leaf({1, 2});
  together(3, [&](int i) {
    for (int k = 0; k < 30; ++k) {
      if (i == 0) profiler::start({.record_shapes = true, .profile_memory = true});
      (x * x).sum().backward();
      if (i == 0) {
        const profiler::Profile p = profiler::stop();
        EXPECT_GE(p.threads.size(), 1u);
      }
    }
  });
  expect_values(x.grad(), {180, 360});
}

}  // namespace
}  // namespace cresset::autograd::test
