// Function<T>: custom operations with hand-written gradients in C++.
#include <cresset/autograd/forward_ad.h>
#include <cresset/base/warn_always.h>
#include <cresset/dispatch/library.h>

#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

struct LinearFunction : Function<LinearFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt) {
    ctx->save_for_backward({input, weight});
    Tensor output = input.mm(weight.t());
    if (bias) output = output + *bias;
    return output;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& g = grads[0];
    return {g.mm(saved[1]), g.t().mm(saved[0]), g.sum(0)};
  }
};

TEST(Function, GradientsOfTensorArguments) {
  const Tensor x = leaf_of({2, 3}), w = leaf_of({4, 3});
  const Tensor b = leaf({0, 0, 0, 0});
  const Tensor y = LinearFunction::apply(x, w, std::optional<Tensor>(b));
  EXPECT_TRUE(y.requires_grad());
  EXPECT_NE(y.grad_fn()->name().find("LinearFunction"), std::string::npos);
  y.sum().backward();
  expect_values(b.grad(), {2, 2, 2, 2});
  expect_values(x.grad(), {22, 26, 30, 22, 26, 30});
}

struct MulConstant : Function<MulConstant> {
  static Tensor forward(AutogradContext* ctx, Tensor t, double by, const std::string& name) {
    ctx->saved_data["by"] = by;
    ctx->saved_data["name"] = name;
    EXPECT_FALSE(GradMode::is_enabled());
    return t * by;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    EXPECT_EQ(ctx->saved_data["name"].toStringRef(), "five");
    return {grads[0] * ctx->saved_data["by"].toDouble(), Tensor(), Tensor()};
  }
};

TEST(Function, OtherArgumentsAndSavedData) {
  const Tensor x = leaf({1, 2});
  MulConstant::apply(x, 5.0, "five").sum().backward();
  expect_values(x.grad(), {5, 5});
  EXPECT_FALSE(MulConstant::apply(vec({1}), 5.0, "five").requires_grad());
}

struct Several : Function<Several> {
  static variable_list forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->save_for_backward({a, b});
    const Tensor flag = a > b;
    ctx->mark_non_differentiable({flag});
    return {a * b, a + b, flag};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    EXPECT_EQ(grads.size(), 3u);
    for (const Tensor& g : grads) EXPECT_TRUE(g.defined());
    EXPECT_TRUE(ctx->needs_input_grad(0));
    EXPECT_FALSE(ctx->needs_input_grad(1));
    const auto saved = ctx->get_saved_variables();
    return {grads[0] * saved[1] + grads[1], Tensor()};
  }
};

TEST(Function, SeveralResultsAndMaterializedZeros) {
  const Tensor a = leaf({3}), b = vec({4});
  const auto r = Several::apply(a, b);
  EXPECT_TRUE(r[0].requires_grad());
  EXPECT_FALSE(r[2].requires_grad());
  r[0].sum().backward();
  expect_values(a.grad(), {4});
}

struct NoMaterialize : Function<NoMaterialize> {
  static std::tuple<Tensor, Tensor> forward(AutogradContext* ctx, const Tensor& a) {
    ctx->set_materialize_grads(false);
    return {a * 2.0, a * 3.0};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    EXPECT_FALSE(grads[1].defined());
    return {grads[0] * 2.0};
  }
};

TEST(Function, TupleResultAndUndefinedGradients) {
  const Tensor a = leaf({3});
  const auto [first, second] = NoMaterialize::apply(a);
  EXPECT_TRUE(second.requires_grad());
  first.backward();
  expect_values(a.grad(), {2});
}

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a) {
    ctx->save_for_backward({a});
    return a * a * a;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor a = ctx->get_saved_variables()[0];
    return {grads[0] * a * a * 3.0};
  }
};

TEST(Function, SecondOrderAndRelease) {
  const Tensor x = leaf({2});
  const Tensor g = grad({Cube::apply(x)}, {x}, {}, std::nullopt, true)[0];
  expect_values(g, {12});
  expect_values(grad({g}, {x})[0], {12});
  const Tensor y = Cube::apply(x);
  y.backward();
  expect_error([&] { y.backward(); }, "Trying to backward through the graph a second time");
}

struct Exp : Function<Exp> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a) {
    Tensor r = a.exp();
    ctx->save_for_backward({r});
    return r;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) { return {grads[0] * ctx->get_saved_variables()[0]}; }
};

TEST(Function, SavedOutputHasItsHistoryAndNoCycle) {
  const Tensor x = leaf({2});
  std::weak_ptr<Node> node;
  {
    const Tensor y = Exp::apply(x);
    node = y.grad_fn();
    const Tensor g = grad({y}, {x}, {}, true, true)[0];
    expect_values(grad({g}, {x}, {}, true)[0], {std::exp(2.0)});
  }
  EXPECT_TRUE(node.expired());
}

struct InPlace : Function<InPlace> {
  static Tensor forward(AutogradContext* ctx, Tensor a) {
    a.mul_(2.0);
    ctx->mark_dirty({a});
    return a;
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2.0}; }
};
struct InPlaceSecond : Function<InPlaceSecond> {
  static Tensor forward(AutogradContext* ctx, const Tensor& scale, Tensor a) {
    a.mul_(scale);
    ctx->mark_dirty({a});
    ctx->save_for_backward({scale});
    return a;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) { return {Tensor(), grads[0] * ctx->get_saved_variables()[0]}; }
};

TEST(Function, DirtyInputsAreRebased) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3.0;
  const Tensor r = InPlace::apply(y);
  EXPECT_TRUE(r.is_same(y));
  r.sum().backward();
  expect_values(x.grad(), {6, 6});
  Tensor l = leaf({1});
  expect_error([&] { InPlace::apply(l); }, "a leaf Variable that requires grad has been used in an in-place operation.");
}

TEST(Function, DirtyViewsSplitTheGradient) {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = x * 1.0;
  Tensor v = y.narrow(0, 0, 2);
  InPlace::apply(v);
  EXPECT_EQ(y.grad_fn()->name(), "torch::autograd::CopySlices");
  y.sum().backward();
  expect_values(x.grad(), {2, 2, 1});
}

TEST(Function, DirtyViewThatIsNotTheFirstArgument) {
  const Tensor x = leaf({1, 2, 3}), s = leaf({4, 5});
  Tensor y = x * 1.0;
  Tensor v = y.narrow(0, 1, 2);
  InPlaceSecond::apply(s.detach(), v);
  y.sum().backward();
  expect_values(x.grad(), {1, 4, 5});
}

TEST(Function, DirtyOneOfSeveralViewsIsRefused) {
  const Tensor x = leaf({1, 2});
  auto parts = (x * 1.0).split(1);
  expect_error([&] { InPlace::apply(parts[0]); }, "Output 0 of Split is a view and is being modified inplace.");
}

struct DirtyNotReturned : Function<DirtyNotReturned> {
  static Tensor forward(AutogradContext* ctx, Tensor a) {
    ctx->mark_dirty({a});
    return a * 2.0;
  }
  static variable_list backward(AutogradContext*, variable_list g) { return g; }
};
struct AsIs : Function<AsIs> {
  static Tensor forward(AutogradContext*, const Tensor& a) { return a; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 100.0}; }
};

TEST(Function, InputsReturnedAsTheyAre) {
  const Tensor x = leaf({1});
  Tensor y = AsIs::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_TRUE(y.is_view());
  y.backward();
  expect_values(x.grad(), {100});
  Tensor z = AsIs::apply(x * 1.0);
  expect_error([&] { z.add_(1.0); }, "This view was created inside a custom Function (or because an input was returned as-is)");
  expect_error([&] { DirtyNotReturned::apply(x * 1.0); },
               "Some elements marked as dirty during the forward method were not returned as output.");
}

struct TooFew : Function<TooFew> {
  static Tensor forward(AutogradContext*, const Tensor& a, const Tensor& b) { return a + b; }
  static variable_list backward(AutogradContext*, variable_list g) { return g; }
};
struct ForNonTensor : Function<ForNonTensor> {
  static Tensor forward(AutogradContext*, const Tensor& a, int64_t) { return a * 1.0; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0], g[0]}; }
};
struct WrongShape : Function<WrongShape> {
  static Tensor forward(AutogradContext*, const Tensor& a) { return a * 1.0; }
  static variable_list backward(AutogradContext*, variable_list) { return {vec({1, 2, 3, 4, 5})}; }
};
struct Larger : Function<Larger> {
  static Tensor forward(AutogradContext*, const Tensor& a) { return a * 1.0; }
  static variable_list backward(AutogradContext*, variable_list) { return {cresset::ones({4, 2}, TensorOptions(kFloat))}; }
};
struct Extra : Function<Extra> {
  static Tensor forward(AutogradContext*, const Tensor& a) { return a * 1.0; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0], Tensor(), Tensor()}; }
};

TEST(Function, GradientsAreChecked) {
  const Tensor x = leaf({1, 2});
  expect_error([&] { TooFew::apply(x, x).sum().backward(); }, "returned an incorrect number of gradients (expected 2, got 1)");
  expect_error([&] { ForNonTensor::apply(x, 3).sum().backward(); }, "returned a gradient different than None at position 2");
  expect_error([&] { WrongShape::apply(x).sum().backward(); },
               "returned an invalid gradient at index 0 - got [5] but expected shape compatible with [2]");
  Larger::apply(x).sum().backward();
  expect_values(x.grad(), {4, 4});
  EXPECT_EQ(x.grad().scalar_type(), kDouble);
  Extra::apply(x).sum().backward();
  expect_values(x.grad(), {5, 5});
}

struct WithJvp : Function<WithJvp> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a, double by) {
    ctx->saved_data["by"] = by;
    return a * by;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) { return {g[0] * ctx->saved_data["by"].toDouble(), Tensor()}; }
  static Tensor jvp(AutogradContext* ctx, variable_list tangents) { return tangents[0] * ctx->saved_data["by"].toDouble(); }
};

TEST(Function, ForwardMode) {
  const forward_ad::DualLevel level;
  const Tensor dual = forward_ad::make_dual(vec({1, 2}), vec({1, 10}));
  expect_values(forward_ad::tangent(WithJvp::apply(dual, 3.0)), {3, 30});
  expect_error<NotImplementedError>([&] { Cube::apply(dual); }, "You must implement the jvp function for custom autograd.Function");
}

// Two inputs and two results; says which tangents and gradients arrive.
struct SumAndDifference : Function<SumAndDifference> {
  static variable_list forward(AutogradContext* ctx, const Tensor& a, const std::optional<Tensor>& b, bool materialize) {
    ctx->set_materialize_grads(materialize);
    ctx->save_for_backward({a});
    return {a + *b, a - *b};
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] + g[1], g[0] - g[1], Tensor()}; }
  static variable_list jvp(AutogradContext* ctx, variable_list t) {
    EXPECT_EQ(ctx->get_saved_variables().size(), 1u);
    seen = {t[0].defined(), t[1].defined()};
    if (!t[1].defined()) return {t[0], t[0]};
    return {t[0] + t[1], t[0] - t[1]};
  }
  static inline std::vector<bool> seen;
};

TEST(Function, ForwardModeWithSeveralResults) {
  const forward_ad::DualLevel level;
  const Tensor a = forward_ad::make_dual(vec({1, 2}), vec({1, 10})), b = vec({3, 4});
  variable_list out = SumAndDifference::apply(a, std::optional<Tensor>(b), true);
  EXPECT_EQ(SumAndDifference::seen, (std::vector<bool>{true, true}));
  expect_values(forward_ad::tangent(out[0]), {1, 10});
  out = SumAndDifference::apply(a, std::optional<Tensor>(b), false);
  EXPECT_EQ(SumAndDifference::seen, (std::vector<bool>{true, false}));
  expect_values(forward_ad::tangent(out[1]), {1, 10});
}

// The tangent of a result can be differentiated backward.
struct CubeBothModes : Function<CubeBothModes> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {g[0] * x * x * 3.0};
  }
  static Tensor jvp(AutogradContext* ctx, variable_list t) {
    const Tensor x = ctx->get_saved_variables()[0];
    return t[0] * x * x * 3.0;
  }
};

TEST(Function, ReverseOverForward) {
  const Tensor x = leaf({2, 3});
  Tensor tangent;
  {
    const forward_ad::DualLevel level;
    tangent = forward_ad::tangent(CubeBothModes::apply(forward_ad::make_dual(x, vec({1, 1}))));
  }
  expect_values(tangent, {12, 27});
  expect_values(grad({tangent.sum()}, {x})[0], {12, 18});
}

struct WrongJvp : Function<WrongJvp> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t kind) {
    ctx->saved_data["kind"] = kind;
    return kind == 0 ? x * 2.0 : x.view({2, 1});
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0], Tensor()}; }
  static variable_list jvp(AutogradContext* ctx, variable_list t) {
    if (ctx->saved_data["kind"].toInt() == 0) return {t[0], t[0]};
    return {cresset::clone(t[0]).view({2, 1})};
  }
};

TEST(Function, TangentsAreChecked) {
  const forward_ad::DualLevel level;
  const Tensor x = forward_ad::make_dual(vec({1, 2}), vec({1, 1}));
  expect_error([&] { WrongJvp::apply(x, int64_t{0}); }, "invalid number of forward gradients (expected 1 but got 2)");
  expect_error([&] { WrongJvp::apply(x, int64_t{1}); }, "the jvp is not returning a view");
}

// A Function as the autograd kernel of an operator, and the kernel it calls below autograd.
Tensor my_add(const Tensor& self, const Tensor& other) {
  static const auto op =
      Dispatcher::singleton().findSchemaOrThrow("autograd_function_test::my_add", "").typed<Tensor(const Tensor&, const Tensor&)>();
  return op.call(self, other);
}
Tensor my_add_cpu(const Tensor& self, const Tensor& other) { return cresset::add(self, other); }
struct MyAddFunction : Function<MyAddFunction> {
  static Tensor forward(AutogradContext*, Tensor self, Tensor other) {
    AutoNonVariableTypeMode guard;
    return my_add(self, other);
  }
  static tensor_list backward(AutogradContext*, tensor_list grads) { return {grads[0], grads[0] * 10.0}; }
};
Tensor my_add_autograd(const Tensor& self, const Tensor& other) { return MyAddFunction::apply(self, other); }

CRESSET_LIBRARY(autograd_function_test, m) { m.def("my_add(Tensor self, Tensor other) -> Tensor"); }
CRESSET_LIBRARY_IMPL(autograd_function_test, CPU, m) { m.impl("my_add", &my_add_cpu); }
CRESSET_LIBRARY_IMPL(autograd_function_test, AutogradCPU, m) { m.impl("my_add", &my_add_autograd); }

TEST(Function, TheOldGuardsNameWarnsOnce) {
  static int warnings;
  const WarningHandler before = set_warning_handler(
      [](std::string_view, const std::string& text) { warnings += text.find("AutoNonVariableTypeMode is deprecated") == 0; });
  const bool always = warn_always();
  set_warn_always(true);
  { AutoNonVariableTypeMode guard; }
  EXPECT_EQ(warnings, 1);
  set_warn_always(false);
  { AutoNonVariableTypeMode guard; }
  EXPECT_EQ(warnings, 1);
  set_warn_always(always);
  set_warning_handler(before);
}

TEST(Function, AsAutogradKernelOfAnOperator) {
  const Tensor a = leaf({1}), b = leaf({2});
  const Tensor y = my_add(a, b);
  expect_values(y, {3});
  EXPECT_NE(y.grad_fn()->name().find("MyAddFunction"), std::string::npos);
  y.backward();
  expect_values(a.grad(), {1});
  expect_values(b.grad(), {10});
  NoGradGuard no_grad;
  EXPECT_FALSE(my_add(a, b).requires_grad());
}

struct Throws : Function<Throws> {
  static Tensor forward(AutogradContext*, const Tensor& a) { return a * 1.0; }
  static variable_list backward(AutogradContext*, variable_list) { throw std::out_of_range("mine"); }
};

TEST(Function, ErrorsOfBackwardKeepTheirType) {
  const Tensor x = leaf({1});
  EXPECT_THROW(Throws::apply(x).backward(), std::out_of_range);
}

}  // namespace
}  // namespace cresset::autograd::test
