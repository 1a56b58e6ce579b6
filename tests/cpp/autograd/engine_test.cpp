// The engine under strain: reentrant passes, many threads, other devices' threads.
#include <atomic>
#include <thread>

#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

/// backward runs a whole pass of its own, depth times nested.
struct Reentrant : Function<Reentrant> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t depth) {
    ctx->saved_data["depth"] = depth;
    return x * 1.0;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const int64_t depth = ctx->saved_data["depth"].toInt();
    if (depth > 0) {
      const AutoGradMode grad_on(true);
      const Tensor inner = leaf({1});
      Reentrant::apply(inner, depth - 1).sum().backward();
      return {grads[0] + inner.grad() - 1.0, Tensor()};
    }
    return {grads[0], Tensor()};
  }
};

TEST(Engine, ReentrantPassesDeeplyNested) {
  const Tensor x = leaf({1});
  Reentrant::apply(x, 1000).backward();
  expect_values(x.grad(), {1});
}

struct ReentrantThrows : Function<ReentrantThrows> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t depth) {
    ctx->saved_data["depth"] = depth;
    return x * 1.0;
  }
  static variable_list backward(AutogradContext* ctx, variable_list) {
    const int64_t depth = ctx->saved_data["depth"].toInt();
    if (depth == 0) throw ValueError("from the depth");
    const AutoGradMode grad_on(true);
    ReentrantThrows::apply(leaf({1}), depth - 1).backward();
    return {Tensor(), Tensor()};
  }
};

TEST(Engine, ErrorsOfInnerPassesReachTheOuterOne) {
  expect_error<ValueError>([] { ReentrantThrows::apply(leaf({1}), 200).backward(); }, "from the depth");
  EXPECT_EQ(get_current_graph_task_id(), -1);
  EXPECT_TRUE(GradMode::is_enabled());
}

/// Runs a pass over the same graph from inside the pass.
TEST(Engine, InnerPassOverTheSameGraph) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3.0;
  const Tensor y = h * 5.0;
  bool inner = false;
  Tensor seen;
  y.register_hook([&](const Tensor&) {
    if (inner) return;
    inner = true;
    seen = grad({y}, {x}, {}, true)[0];
  });
  y.backward();
  expect_values(seen, {15});
  expect_values(x.grad(), {15});
}

TEST(Engine, ManyThreadsAccumulateExactly) {
  const Tensor x = leaf({1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) (x * 2.0).backward();
    });
  for (auto& t : threads) t.join();
  expect_values(x.grad(), {1600});
}

TEST(Engine, ThreadsShareOneGraph) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = (x * x).exp() * 0.5;
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        const auto g = grad({y.sum()}, {x}, {}, true);
        if (std::abs(values_of(g[0])[0] - std::exp(1.0)) < 1e-9) ++done;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(done, 400);
}

TEST(Engine, ThreadsThatFreeOneGraphGetAnError) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = leaf({1});
    const Tensor y = (x * x).exp();
    std::atomic<int> fine{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        try {
          grad({y}, {x});
          ++fine;
        } catch (const Error&) {
          ++refused;
        }
      });
    for (auto& t : threads) t.join();
    EXPECT_GE(fine, 1);
    EXPECT_EQ(fine + refused, 4);
  }
}

/// A node that says it works on PrivateUse1, and notes its thread.
struct OnDevice : Node {
  OnDevice(std::thread::id* where, edge_list&& e, bool fails) : Node(std::move(e)), where_(where), fails_(fails) {
    Tensor t(make_intrusive<TensorImpl>(key_set_for_device(kPrivateUse1), ScalarType::Double, Device(kPrivateUse1, 0)));
    metadata = InputMetadata(t);
  }
  std::string name() const override { return "OnDevice"; }
  InputMetadata metadata;

 protected:
  variable_list apply(variable_list&&) override {
    *where_ = std::this_thread::get_id();
    if (fails_) throw ValueError("on the device");
    return {vec({42})};
  }

 private:
  std::thread::id* where_;
  bool fails_;
};

struct ToDevice : Node {
  using Node::Node;
  std::string name() const override { return "ToDevice"; }

 protected:
  variable_list apply(variable_list&&) override {
    return {Tensor(make_intrusive<TensorImpl>(key_set_for_device(kPrivateUse1), ScalarType::Double, Device(kPrivateUse1, 0)))};
  }
};

std::shared_ptr<Node> device_graph(const Tensor& x, std::thread::id* where, bool fails) {
  auto inner = make_node<OnDevice>(where, edge_list{impl::gradient_edge(x)}, fails);
  inner->add_input_metadata(inner->metadata);
  auto root = make_node<ToDevice>(edge_list{Edge(inner, 0)});
  root->add_input_metadata(vec({0}));
  return root;
}

TEST(Engine, DeviceNodesRunOnTheirThread) {
  const Tensor x = leaf({1});
  std::thread::id where, again;
  Engine::get_default_engine().execute({Edge(device_graph(x, &where, false), 0)}, {vec({1})}, {});
  expect_values(x.grad(), {42});
  EXPECT_NE(where, std::thread::id());
  EXPECT_NE(where, std::this_thread::get_id());
  Engine::get_default_engine().execute({Edge(device_graph(x, &again, false), 0)}, {vec({1})}, {});
  EXPECT_EQ(where, again);
  expect_values(x.grad(), {84});
}

TEST(Engine, PassesOfSeveralThreadsShareADevice) {
  const Tensor x = leaf({1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::thread::id where;
      for (int k = 0; k < 20; ++k) Engine::get_default_engine().execute({Edge(device_graph(x, &where, false), 0)}, {vec({1})}, {});
    });
  for (auto& t : threads) t.join();
  expect_values(x.grad(), {80 * 42});
}

TEST(Engine, DeviceThreadsCanBeForbidden) {
  const Tensor x = leaf({1});
  std::thread::id where;
  set_multithreading_enabled(false);
  Engine::get_default_engine().execute({Edge(device_graph(x, &where, false), 0)}, {vec({1})}, {});
  set_multithreading_enabled(true);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Engine, ErrorsOfDeviceThreadsKeepTheirType) {
  const Tensor x = leaf({1});
  std::thread::id where;
  expect_error<ValueError>([&] { Engine::get_default_engine().execute({Edge(device_graph(x, &where, true), 0)}, {vec({1})}, {}); },
                           "on the device");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, ExecutionOrderOfThePass) {
  const Tensor x = leaf({1});
  const Tensor y = x.exp() * 2.0;
  std::vector<std::string> names;
  y.register_hook([&](const Tensor&) {
    for (const auto& n : get_current_graph_task_execution_order()) names.push_back(n->name());
  });
  y.backward();
  EXPECT_EQ(names, (std::vector<std::string>{y.grad_fn()->name(), "ExpBackward0", "torch::autograd::AccumulateGrad"}));
}

}  // namespace
}  // namespace cresset::autograd::test
