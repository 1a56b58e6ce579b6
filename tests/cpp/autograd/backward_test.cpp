// backward and grad through operators: values, accumulation, second order, arguments and their errors.
#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

TEST(Backward, ProductAndSum) {
  const Tensor x = leaf({1, 2, 3}), y = leaf({4, 5, 6});
  (x * y).sum().backward();
  expect_values(x.grad(), {4, 5, 6});
  expect_values(y.grad(), {1, 2, 3});
}

TEST(Backward, BroadcastInputsGetSummedGradients) {
  const Tensor x = leaf_of({2, 3}), row = leaf({1, 1, 1}), one = leaf({2});
  ((x + row) * one).sum().backward();
  expect_values(row.grad(), {4, 4, 4});
  expect_values(one.grad(), {21 + 6});
  EXPECT_EQ(row.grad().sizes(), IntArrayRef({3}));
}

TEST(Backward, MixedDtypesGetTheirOwnGradientType) {
  Tensor f = cresset::ones({2}, TensorOptions(kFloat));
  f.requires_grad_();
  const Tensor d = leaf({3, 4});
  (f * d).sum().backward();
  EXPECT_EQ(f.grad().scalar_type(), kFloat);
  expect_values(f.grad(), {3, 4});
}

TEST(Backward, AccumulatesIntoTheSameObject) {
  const Tensor x = leaf({1, 2});
  (x * 2.0).sum().backward();
  TensorImpl* first = x.grad().unsafeGetTensorImpl();
  (x * 3.0).sum().backward();
  EXPECT_EQ(x.grad().unsafeGetTensorImpl(), first);
  expect_values(x.grad(), {5, 5});
}

TEST(Backward, GradientsOfTwoLeavesNeverShareMemory) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  (x + y).sum().backward();
  EXPECT_FALSE(x.grad().is_alias_of(y.grad()));
  const Tensor a = leaf_of({2, 2}), b = leaf_of({4});
  const Tensor g = vec({1, 2, 3, 4});
  (a.view({4}) + b).backward(g);
  EXPECT_FALSE(a.grad().is_alias_of(b.grad()));
  EXPECT_FALSE(b.grad().is_alias_of(g));
}

TEST(Backward, FirstGradientKeepsTheLeafsLayout) {
  Tensor x = cresset::empty_strided({2, 3}, {1, 2}, TensorOptions(kDouble));
  cresset::fill_(x, 1.0);
  x.requires_grad_();
  const Tensor w = leaf_of({2, 3});
  (x * w).sum().backward();
  EXPECT_EQ(x.grad().strides(), IntArrayRef({1, 2}));
  expect_values(x.grad(), {1, 2, 3, 4, 5, 6});
}

TEST(Backward, SecondOrder) {
  const Tensor x = leaf({2, 3});
  const Tensor y = (x * x * x).sum();
  const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
  expect_values(g, {12, 27});
  EXPECT_TRUE(g.requires_grad());
  const Tensor h = grad({g.sum()}, {x}, {}, std::nullopt, true)[0];
  expect_values(h, {12, 18});
  expect_values(grad({h.sum()}, {x})[0], {6, 6});
}

TEST(Backward, GradDoesNotTouchLeaves) {
  const Tensor x = leaf({2}), y = leaf({3});
  const auto g = grad({x * y}, {x});
  expect_values(g[0], {3});
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(y.grad().defined());
}

TEST(Backward, GradOfIntermediate) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3.0;
  const Tensor y = h * h;
  expect_values(grad({y}, {h})[0], {12});
  expect_values(grad({h * h}, {h, x})[1], {36});
}

TEST(Backward, InputsLimitsWhatAccumulates) {
  const Tensor x = leaf({2}), y = leaf({3});
  const Tensor h = x * y;
  backward({h * 5.0}, {}, std::nullopt, false, {x, h});
  expect_values(x.grad(), {15});
  expect_values(h.grad(), {5});
  EXPECT_FALSE(y.grad().defined());
}

TEST(Backward, DuplicateRootsAndRootsBelowRoots) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3.0, y = h * 2.0;
  backward({y, y, h}, {vec({1}), vec({1}), vec({1})});
  expect_values(x.grad(), {15});
}

TEST(Backward, GraphIsFreedUnlessRetained) {
  const Tensor x = leaf({2});
  const Tensor y = x.exp();
  y.backward({}, true);
  y.backward();
  expect_error([&] { y.backward(); }, "Trying to backward through the graph a second time");
  const Tensor z = x + x;  // saves nothing
  z.backward();
  z.backward();
}

TEST(Backward, ArgumentErrors) {
  const Tensor x = leaf({1, 2});
  expect_error([&] { (x * 2.0).backward(); }, "grad can be implicitly created only for scalar outputs");
  expect_error([&] { vec({1}).backward(); }, "element 0 of tensors does not require grad and does not have a grad_fn");
  expect_error([&] { (x * 2.0).backward(vec({1})); },
               "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([2]).");
  expect_error([&] { grad({x.sum()}, {vec({1})}); }, "element 0 of the input tensors does not require grad");
  expect_error([&] { grad({x.sum()}, {leaf({1})}); }, "The differentiated Tensor at index 0 appears to not have been used in the graph.");
  EXPECT_FALSE(grad({x.sum()}, {leaf({1})}, {}, std::nullopt, false, true)[0].defined());
  expect_error([&] { x.sum().backward({}, std::nullopt, false, TensorList()); }, "`inputs` argument to `backward()` cannot be empty.");
}

TEST(Backward, RequiresGradRules) {
  expect_error([] { cresset::ones({1}, TensorOptions(kLong)).requires_grad_(); },
               "only Tensors of floating point dtype can require gradients");
  const Tensor x = leaf({1});
  expect_error([&] { (x * 2.0).requires_grad_(false); }, "you can only change requires_grad flags of leaf variables.");
  {
    NoGradGuard no_grad;
    EXPECT_FALSE((x * 2.0).requires_grad());
  }
  EXPECT_TRUE((x * 2.0).requires_grad());
  EXPECT_FALSE((x * 2.0).detach().requires_grad());
  EXPECT_TRUE((x * 2.0).detach().is_leaf());
}

TEST(Backward, IntegralResultsStayOutside) {
  const Tensor x = leaf({1, 5, 3});
  EXPECT_FALSE(x.argmax().requires_grad());
  EXPECT_FALSE((x > 2.0).requires_grad());
}

TEST(Backward, RetainGradGivesTheIntermediate) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3.0;
  h.retain_grad();
  EXPECT_TRUE(h.retains_grad());
  (h * h).backward();
  expect_values(h.grad(), {12});
  expect_error([] { vec({1}).retain_grad(); }, "can't retain_grad on Tensor that has requires_grad=False");
}

TEST(Backward, DeepChainOfOperators) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 150'000; ++i) y = y + 1.0;
  y.backward();
  expect_values(x.grad(), {1});
}

TEST(Backward, DeepChainThatSavesItsInputs) {
  const Tensor x = leaf({1}), w = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 150'000; ++i) y = y * w;
  y.backward();
  expect_values(x.grad(), {1});
  expect_values(w.grad(), {150'000});
  y = x;
  for (int i = 0; i < 150'000; ++i) y = y * w;
  y = Tensor();  // freed without ever running
}

TEST(Backward, CreateGraphMakesTheGradientDifferentiable) {
  const Warnings warnings;
  const Tensor x = leaf({3});
  (x * x).backward({}, std::nullopt, true);
  EXPECT_TRUE(x.grad().requires_grad());
  const Tensor g = x.grad();
  expect_values(grad({g}, {x})[0], {2});
  x.mutable_grad() = Tensor();
  (x * 2.0).backward();
  TensorImpl* plain = x.grad().unsafeGetTensorImpl();
  (x * x).backward({}, std::nullopt, true);
  EXPECT_NE(x.grad().unsafeGetTensorImpl(), plain);
  expect_values(x.grad(), {8});
  x.mutable_grad() = Tensor();
}

TEST(Backward, ReadingGradOfAnIntermediateWarns) {
  const Warnings warnings;
  const Tensor x = leaf({3});
  const Tensor y = x * 2.0;
  EXPECT_FALSE(y.grad().defined());
  ASSERT_EQ(warnings.messages().size(), 1u);
  EXPECT_NE(warnings.messages()[0].find("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."), std::string::npos);
}

TEST(Backward, ComplexGradientOfRealInputIsItsRealPart) {
  const Tensor x = leaf({3});
  const Tensor z = x * std::complex<double>(2, 5);
  EXPECT_TRUE(z.is_complex());
  cresset::real(z).sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), kDouble);
  expect_values(x.grad(), {2});
}

TEST(Backward, FreedDuringThePass) {
  // The tensors of the graph go while it runs: only the engine keeps it.
  const Tensor x = leaf({1});
  Tensor y = x.exp();
  Tensor z = y.exp();
  z.register_hook([&](const Tensor&) { y = Tensor(); });
  z.backward();
  EXPECT_FALSE(y.defined());
  EXPECT_TRUE(x.grad().defined());
}

TEST(Backward, OutArgumentsRefuseGradients) {
  const Tensor x = leaf({1});
  Tensor out = vec({0});
  expect_error([&] { cresset::add_out(out, x, x); }, "add(): functions with out=... arguments don't support automatic differentiation");
}

TEST(Backward, UndefinedGradientsPass) {
  const Tensor x = leaf({1, 2, 3, 4});
  const auto parts = x.split(2);
  parts[1].sum().backward();
  expect_values(x.grad(), {0, 0, 1, 1});
}

TEST(Backward, InferenceTensorsCannotBeSaved) {
  Tensor t;
  {
    InferenceMode guard;
    t = vec({1});
    EXPECT_TRUE(t.is_inference());
  }
  const Tensor x = leaf({1});
  expect_error([&] { (x * t); }, "Inference tensors cannot be saved for backward.");
  expect_error([&] { t.requires_grad_(); }, "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
}

TEST(Options, OfAConversionSayNothingAboutGradients) {
  for (const Tensor& x : {leaf({1}), vec({1})}) {
    expect_error([&] { x.to(TensorOptions().requires_grad(true)); },
                 "to(options): options without requires_grad were required; got requires_grad=true.");
    EXPECT_TRUE(x.to(TensorOptions()).is_same(x) && x.to(TensorOptions().requires_grad(false)).is_same(x));
    EXPECT_EQ(x.to(kDouble).requires_grad(), x.requires_grad());
  }
}

}  // namespace
}  // namespace cresset::autograd::test
