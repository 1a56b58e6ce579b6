// Views and in-place changes: shared versions, rebased histories, refused changes.
#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

TEST(View, BaseIsTheRoot) {
  const Tensor x = cresset::zeros({2, 3}, TensorOptions(kDouble));
  const Tensor v = x.view({6}), w = v.select(0, 1);
  EXPECT_TRUE(w.is_view());
  EXPECT_TRUE(w._base().is_same(x));
  EXPECT_FALSE(x.detach().is_view());
  EXPECT_FALSE(x.is_view());
}

TEST(View, VersionsAreShared) {
  Tensor x = vec({1, 2});
  Tensor v = x.view({2, 1});
  const auto before = x._version();
  v.add_(1.0);
  EXPECT_EQ(x._version(), before + 1);
  EXPECT_EQ(x.detach()._version(), before + 1);
  EXPECT_EQ(x.data()._version(), 0);
}

TEST(View, InPlaceOnBaseRebuildsTheView) {
  const Tensor w = leaf({2, 3, 4});
  Tensor base = vec({1, 1, 1});
  const Tensor v = base.narrow(0, 0, 2);
  base.mul_(w);
  EXPECT_TRUE(v.requires_grad());
  EXPECT_EQ(v.grad_fn()->name(), "AsStridedBackward0");
  v.sum().backward();
  expect_values(w.grad(), {1, 1, 0});
}

TEST(View, InPlaceOnViewMakesCopySlices) {
  const Tensor w = leaf({2, 3});
  Tensor base = vec({1, 1, 1, 1});
  Tensor v = base.narrow(0, 1, 2);
  v.mul_(w);
  EXPECT_EQ(base.grad_fn()->name(), "torch::autograd::CopySlices");
  EXPECT_EQ(v.grad_fn()->name(), "AsStridedBackward0");
  (base * base).sum().backward();
  expect_values(w.grad(), {4, 6});
}

TEST(View, InPlaceOnViewOfComputedTensor) {
  const Tensor x = leaf({1, 2, 3, 4});
  Tensor y = x * 1.0;
  Tensor v = y.narrow(0, 0, 2);
  v.mul_(v.detach() * 0.0 + 5.0);
  y.sum().backward();
  expect_values(x.grad(), {5, 5, 1, 1});
}

TEST(View, NestedAndOverlappingViews) {
  const Tensor x = leaf_of({3, 3});
  Tensor y = x * 1.0;
  Tensor rows = y.narrow(0, 0, 2);
  Tensor block = rows.narrow(1, 1, 2);
  block.mul_(2.0);
  Tensor column = y.select(1, 1);
  column.mul_(3.0);
  (y * 1.0).sum().backward();
  expect_values(x.grad(), {1, 6, 2, 1, 6, 2, 1, 3, 1});
}

TEST(View, ViewMadeBeforeTheChangeSeesIt) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 1.0;
  const Tensor before = y.view({2, 1});
  y.mul_(4.0);
  before.sum().backward();
  expect_values(x.grad(), {4, 4});
}

TEST(View, CopyIntoViewOfPlainTensorMakesBaseRequireGrad) {
  const Tensor x = leaf({7, 8});
  Tensor base = cresset::zeros({4}, TensorOptions(kDouble));
  Tensor part = base.narrow(0, 2, 2);
  part.copy_(x);
  EXPECT_TRUE(base.requires_grad());
  expect_values(base, {0, 0, 7, 8});
  (base * 3.0).sum().backward();
  expect_values(x.grad(), {3, 3});
}

TEST(View, TransposedViewInPlace) {
  const Tensor x = leaf_of({2, 3}), w = leaf_of({3, 2});
  Tensor y = x * 1.0;
  Tensor t = y.t();
  t.mul_(w);
  y.sum().backward();
  expect_values(x.grad(), {1, 3, 5, 2, 4, 6});
  expect_values(w.grad(), {1, 4, 2, 5, 3, 6});
}

TEST(View, SecondOrderThroughCopySlices) {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = x * 1.0;
  Tensor v = y.narrow(0, 0, 2);
  v.mul_(x.narrow(0, 1, 2));
  const Tensor g = grad({(y * y).sum()}, {x}, {}, std::nullopt, true)[0];
  // y = (x0 x1, x1 x2, x2)
  expect_values(g, {2 * 1 * 4, 2 * 2 * 1 + 2 * 2 * 9, 2 * 3 * 4 + 2 * 3});
  expect_values(grad({g.sum()}, {x})[0], {8 + 8, 8 + 2 + 18 + 24, 24 + 8 + 2});
}

TEST(View, LeavesRefuseInPlaceChanges) {
  Tensor x = leaf({1, 2});
  expect_error([&] { x.add_(1.0); }, "a leaf Variable that requires grad is being used in an in-place operation.");
  Tensor v = x.view({2, 1});
  expect_error([&] { v.add_(1.0); }, "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  {
    NoGradGuard no_grad;
    x.add_(1.0);
  }
  expect_values(x, {2, 3});
}

TEST(View, ViewsOfSeveralRefuseInPlaceChanges) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 1.0;
  auto parts = y.split(1);
  expect_error(
      [&] { parts[0].mul_(2.0); },
      "Output 0 of Split is a view and is being modified inplace. This view is the output of a function that returns multiple views.");
}

TEST(View, ViewsMadeWithoutRecordingRefuseInPlaceChanges) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 1.0;
  Tensor v;
  {
    NoGradGuard no_grad;
    v = y.view({2, 1});
  }
  expect_error([&] { v.mul_(2.0); }, "A view was created in no_grad mode and is being modified inplace with grad mode enabled.");
  {
    InferenceMode guard;
    v = y.view({2, 1});
  }
  expect_error([&] { v.mul_(2.0); }, "A view was created in inference mode and is being modified inplace in normal mode.");
}

TEST(View, SavedTensorsAreCheckedForChanges) {
  const Tensor x = leaf({1, 2});
  Tensor y = x.exp();
  y.add_(1.0);
  expect_error(
      [&] { y.sum().backward(); },
      "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.DoubleTensor [2]], which is "
      "output 0 of Exp, is at version 1; expected version 0 instead. Hint: enable anomaly detection");
  Tensor z = x * 1.0;
  const Tensor q = z * z;
  z.add_(1.0);
  expect_error([&] { q.sum().backward(); }, "which is output 0 of Add, is at version 1; expected version 0 instead.");
}

TEST(View, InPlaceOnOrdinaryResult) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2.0;
  y.mul_(3.0).add_(x);
  y.sum().backward();
  expect_values(x.grad(), {7, 7});
}

TEST(View, DetachInPlace) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2.0;
  y.detach_();
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.requires_grad());
  Tensor v = (x * 1.0).view({2, 1});
  expect_error([&] { v.detach_(); }, "Can't detach views in-place. Use detach() instead.");
  Tensor r = leaf({1});
  expect_error([&] { r.resize_({3}); }, "cannot resize variables that require grad");
}

TEST(View, RetainGradMovesWithInPlaceChanges) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2.0;
  y.retain_grad();
  y.mul_(5.0);
  y.sum().backward();
  expect_values(y.grad(), {1, 1});
  expect_values(x.grad(), {10, 10});
}

}  // namespace
}  // namespace cresset::autograd::test
