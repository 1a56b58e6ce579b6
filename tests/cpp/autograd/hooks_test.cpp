// Hooks on tensors and leaves, saved-tensor hooks, anomaly mode.
#include <cresset/autograd/anomaly_mode.h>

#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

TEST(TensorHook, SeesAndReplacesTheGradient) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3.0;
  std::vector<double> seen;
  y.register_hook([&](const Tensor& g) { seen = values_of(g); });
  y.register_hook([](const Tensor& g) { return g * 10.0; });
  (y * 2.0).sum().backward();
  EXPECT_EQ(seen, (std::vector<double>{2, 2}));
  expect_values(x.grad(), {60, 60});
}

TEST(TensorHook, OnLeavesAndRemoval) {
  const Tensor x = leaf({1});
  int calls = 0;
  const unsigned id = x.register_hook([&](const Tensor&) { ++calls; });
  x.register_hook([](const Tensor& g) { return g * 2.0; });
  (x * 3.0).backward();
  expect_values(x.grad(), {6});
  x.remove_hook(id);
  (x * 3.0).backward();
  EXPECT_EQ(calls, 1);
  expect_values(x.grad(), {12});
  expect_error([&] { x.remove_hook(7); }, "Invalid index, no hook at position 7");
}

TEST(TensorHook, Errors) {
  expect_error([] { vec({1}).register_hook([](const Tensor&) {}); }, "cannot register a hook on a tensor that doesn't require gradient");
  const Tensor x = leaf({1});
  Tensor y = x * 1.0;
  y.register_hook([](const Tensor&) { return vec({1, 2}); });
  expect_error([&] { y.backward(); }, "has changed the size of value");
  Tensor z = x * 1.0;
  z.register_hook([](const Tensor& g) { return cresset::to(g, kFloat); });
  expect_error([&] { z.backward(); }, "has changed the type of value");
}

TEST(TensorHook, BelongsToTheValueBeforeAnInPlaceChange) {
  const Tensor x = leaf({1});
  Tensor y = x * 1.0;
  std::vector<double> before, after;
  y.register_hook([&](const Tensor& g) { before = values_of(g); });
  y.mul_(5.0);
  y.register_hook([&](const Tensor& g) { after = values_of(g); });
  (y * 2.0).backward();
  EXPECT_EQ(before, std::vector<double>{10});
  EXPECT_EQ(after, std::vector<double>{2});
}

TEST(TensorHook, RetainedGradientIsTakenAfterAllHooks) {
  const Tensor x = leaf({1});
  const Tensor y = x * 1.0;
  y.retain_grad();
  y.register_hook([](const Tensor& g) { return g * 7.0; });
  (y * 1.0).backward();
  expect_values(y.grad(), {7});
}

TEST(TensorHook, RunsForGradToo) {
  const Tensor x = leaf({1});
  x.register_hook([](const Tensor& g) { return g * 7.0; });
  expect_values(grad({x * 2.0}, {x})[0], {14});
}

struct CountAccumulations : PostAccumulateGradHook {
  explicit CountAccumulations(int* n) : n(n) {}
  void operator()(const Tensor& t) override {
    ++*n;
    t.mutable_grad() = Tensor();
  }
  int* n;
};

TEST(PostAccumulateHook, GetsTheLeafAfterItsGradientWasSet) {
  const Tensor x = leaf({1});
  int n = 0;
  impl::set_post_acc_grad_hooks(x, std::make_unique<CountAccumulations>(&n));
  (x * 2.0).backward();
  EXPECT_EQ(n, 1);
  EXPECT_FALSE(x.grad().defined());
  grad({x * 2.0}, {x});
  EXPECT_EQ(n, 1);
}

/// Keeps the saved tensor's values doubled and counts.
struct Doubling : SavedVariableHooks {
  explicit Doubling(int* packs, int* unpacks) : packs(packs), unpacks(unpacks) {}
  void call_pack_hook(const Tensor& t) override {
    ++*packs;
    EXPECT_FALSE(t.requires_grad());
    kept = t * 2.0;
  }
  Tensor call_unpack_hook() override {
    ++*unpacks;
    return kept;
  }
  Tensor kept;
  int* packs;
  int* unpacks;
};

TEST(SavedTensorHooks, PackOnceAndUnpackPerUse) {
  const Tensor x = leaf({3});
  int packs = 0, unpacks = 0;
  SavedTensorDefaultHooks::push_hooks([&] { return std::make_unique<Doubling>(&packs, &unpacks); });
  const Tensor y = x * vec({5});
  SavedTensorDefaultHooks::pop_hooks();
  EXPECT_EQ(packs, 1);
  y.backward({}, true);
  EXPECT_EQ(unpacks, 1);
  expect_values(x.grad(), {10});
}

TEST(SavedTensorHooks, LeafGivenBackAccumulatesInTheOriginal) {
  struct Same : SavedVariableHooks {
    void call_pack_hook(const Tensor& t) override { kept = t; }
    Tensor call_unpack_hook() override { return kept; }
    Tensor kept;
  };
  const Tensor x = leaf({3});
  SavedTensorDefaultHooks::push_hooks([] { return std::make_unique<Same>(); });
  const Tensor y = x * x;
  SavedTensorDefaultHooks::pop_hooks();
  const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
  expect_values(g, {6});
  g.backward();
  expect_values(x.grad(), {2});
}

TEST(SavedTensorHooks, ChangingTheInputOfPackRaises) {
  struct Changes : SavedVariableHooks {
    void call_pack_hook(const Tensor& t) override { Tensor(t).add_(1.0); }
    Tensor call_unpack_hook() override { return {}; }
  };
  const Tensor x = leaf({3});
  const Tensor y = x * 1.0;
  SavedTensorDefaultHooks::push_hooks([] { return std::make_unique<Changes>(); });
  expect_error([&] { y* y; }, "A saved tensor pack hook is modifying its input in place.");
  SavedTensorDefaultHooks::pop_hooks();
}

TEST(SavedTensorHooks, CanBeDisabled) {
  const auto before = SavedTensorDefaultHooks::set_disabled_message("not here");
  expect_error([] { SavedTensorDefaultHooks::push_hooks([] { return nullptr; }); }, "not here");
  SavedTensorDefaultHooks::set_disabled_message(before);
}

TEST(SavedVariable, OwnHooksOnlyOnce) {
  struct Same : SavedVariableHooks {
    void call_pack_hook(const Tensor& t) override { kept = t; }
    Tensor call_unpack_hook() override { return kept; }
    Tensor kept;
  };
  SavedVariable s(vec({4}), false);
  s.register_hooks(std::make_unique<Same>());
  expect_values(s.unpack(), {4});
  expect_error([&] { s.register_hooks(std::make_unique<Same>()); },
               "Calling register_hooks on a saved tensor whose hooks have already been set.");
  s.reset_data();
  expect_error([&] { s.unpack(); }, "Trying to backward through the graph a second time");
}

TEST(SavedVariable, InputComesBackIdenticalAndOutputWithItsNode) {
  const Tensor x = leaf({4});
  EXPECT_TRUE(SavedVariable(x, false).unpack().is_same(x));
  const Tensor y = x.exp();
  SavedVariable s(y, true);
  EXPECT_EQ(y.use_count(), 1u);  // no cycle
  const Tensor back = s.unpack(y.grad_fn());
  EXPECT_EQ(back.grad_fn(), y.grad_fn());
  expect_values(back, values_of(y));
  EXPECT_FALSE(SavedVariable(Tensor(), false).unpack().defined());
}

TEST(AnomalyMode, NanNamesTheNode) {
  const Warnings warnings;
  const DetectAnomalyGuard guard;
  const Tensor x = leaf({0});
  const Tensor y = x.sqrt() * 0.0;
  expect_error([&] { y.backward(); }, "Function 'SqrtBackward0' returned nan values in its 0th output.");
  EXPECT_TRUE(std::any_of(warnings.messages().begin(), warnings.messages().end(),
                          [](const std::string& m) { return m.find("Error detected in SqrtBackward0.") != std::string::npos; }));
}

TEST(AnomalyMode, TraceOfForwardIsShown) {
  set_forward_trace_function([] { return std::string("here it ran"); });
  {
    const Warnings warnings;
    const DetectAnomalyGuard guard;
    const Tensor x = leaf({0});
    const Tensor y = x.sqrt() * 0.0;
    EXPECT_THROW(y.backward(), Error);
    EXPECT_TRUE(std::any_of(warnings.messages().begin(), warnings.messages().end(),
                            [](const std::string& m) { return m.find("here it ran") != std::string::npos; }));
  }
  set_forward_trace_function(nullptr);
}

}  // namespace
}  // namespace cresset::autograd::test
