// Forward mode: tangents through operators, views, in-place changes, and together with backward.
#include <cresset/autograd/forward_ad.h>

#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

using forward_ad::DualLevel;
using forward_ad::make_dual;
using forward_ad::tangent;

TEST(ForwardAD, TangentsOfOperators) {
  const DualLevel level;
  const Tensor a = make_dual(vec({2, 3}), vec({1, 10}));
  expect_values(tangent(a * a), {4, 60});
  expect_values(tangent(a * vec({5, 7})), {5, 70});
  expect_values(tangent(a.exp()), {std::exp(2.0), 10 * std::exp(3.0)});
  expect_values(tangent(a.sum()), {11});
  EXPECT_FALSE(tangent(vec({1}) * 2.0).defined());
}

TEST(ForwardAD, LevelsAndTheirEnd) {
  EXPECT_EQ(forward_ad::current_level(), -1);
  Tensor d, t = vec({1});
  {
    const DualLevel level;
    d = make_dual(vec({2}), t);
    EXPECT_TRUE(tangent(d).is_same(t));
    expect_error([] { DualLevel nested; }, "Nested forward mode AD is not supported at the moment");
  }
  EXPECT_FALSE(tangent(d).defined());
  EXPECT_EQ(t.use_count(), 1u);
  const DualLevel level;
  EXPECT_FALSE(forward_ad::unpack_dual(d).second.defined());
}

TEST(ForwardAD, MakeDualChecks) {
  const Tensor x = vec({1, 2});
  expect_error([&] { make_dual(x, x); }, "Trying to create a dual Tensor for forward AD but no level exists");
  const DualLevel level;
  expect_error([&] { make_dual(x, vec({1})); },
               "Trying to set a forward gradient that has a different size than that of the original Tensor");
  const Tensor ints = cresset::ones({2}, TensorOptions(kLong));
  expect_error<ValueError>([&] { make_dual(ints, x); }, "Expected primal to be floating point or complex, but got: torch.int64");
  expect_error<ValueError>([&] { make_dual(x, ints); }, "Expected tangent to be floating point or complex, but got: torch.int64");
  const Tensor d = make_dual(x, vec({1, 1}));
  expect_error([&] { make_dual(d, x); }, "already has a forward gradient at the same level 0");
  expect_error([&] { make_dual(x, d); }, "Setting a forward grad that itself has a forward gradient at the same level");
  Tensor out = vec({0, 0});
  expect_error<NotImplementedError>([&] { cresset::add_out(out, d, d); },
                                    "Trying to use forward AD with add_out that does not support it because it is an out= function");
}

TEST(ForwardAD, ViewsOfDuals) {
  const DualLevel level;
  const Tensor d = make_dual(vec({1, 2, 3, 4}), vec({10, 20, 30, 40}));
  expect_values(tangent(d.narrow(0, 1, 2)), {20, 30});
  expect_values(tangent(d.view({2, 2}).t()), {10, 30, 20, 40});
  EXPECT_FALSE(tangent(d.detach()).defined());
}

TEST(ForwardAD, InPlaceDualIntoViewGivesBaseATangent) {
  const DualLevel level;
  Tensor base = cresset::zeros({4}, TensorOptions(kDouble));
  Tensor part = base.narrow(0, 1, 2);
  part.copy_(make_dual(vec({5, 6}), vec({7, 8})));
  expect_values(base, {0, 5, 6, 0});
  expect_values(tangent(base), {0, 7, 8, 0});
  expect_values(tangent(part), {7, 8});
}

TEST(ForwardAD, InPlaceOnViewOfDualUpdatesTheBase) {
  const DualLevel level;
  Tensor d = make_dual(vec({1, 2, 3}), vec({1, 1, 1})) * 1.0;
  Tensor v = d.narrow(0, 0, 2);
  v.mul_(5.0);
  expect_values(tangent(d), {5, 5, 1});
}

TEST(ForwardAD, InPlaceMakesPlainTensorDual) {
  const DualLevel level;
  Tensor t = vec({3});
  t.mul_(make_dual(vec({2}), vec({1})));
  expect_values(t, {6});
  expect_values(tangent(t), {3});
}

TEST(ForwardAD, ResultsDoNotShareTheirTangents) {
  const DualLevel level;
  const Tensor d = make_dual(vec({1, 2}), vec({1, 1})) * 1.0;
  Tensor y = d + 1.0;
  y.mul_(5.0);
  expect_values(tangent(y), {5, 5});
  expect_values(tangent(d), {1, 1});
}

TEST(ForwardAD, ReverseOverForward) {
  const DualLevel level;
  const Tensor x = leaf({3});
  const Tensor d = make_dual(x, vec({1}));
  const Tensor y = d * d * d;
  expect_values(tangent(y), {27});
  const Tensor t = tangent(y);
  EXPECT_TRUE(t.requires_grad());
  expect_values(grad({t}, {x})[0], {18});
}

TEST(ForwardAD, ForwardOverReverse) {
  const DualLevel level;
  Tensor x = leaf({3});
  const Tensor d = make_dual(x, vec({1}));
  const Tensor y = d * d * d;
  const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
  expect_values(g, {27});
  expect_values(tangent(g), {18});
}

TEST(ForwardAD, LevelsThatAreClosedEarlyEndQuietly) {
  {
    const DualLevel level;
    forward_ad::exit_dual_level();
  }
  EXPECT_EQ(forward_ad::current_level(), -1);
  const DualLevel again;
  EXPECT_EQ(forward_ad::current_level(), 0);
}

TEST(ForwardAD, PrimalOfADualIsDifferentiable) {
  const DualLevel level;
  const Tensor x = leaf({3});
  const auto [p, t] = forward_ad::unpack_dual(make_dual(x, vec({2})));
  EXPECT_TRUE(p.is_view());
  EXPECT_FALSE(tangent(p).defined());
  expect_values(t, {2});
  (p * 5.0).backward();
  expect_values(x.grad(), {5});
}

}  // namespace
}  // namespace cresset::autograd::test
