// Operators with a CPU kernel and no autograd kernel.
#include <cresset/autograd/fallback.h>
#include <cresset/autograd/forward_ad.h>
#include <cresset/dispatch/library.h>

#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

Tensor opaque_double(const Tensor& x) { return vec({x.data_ptr<double>()[0] * 2}); }
Tensor composed_double(const Tensor& x) { return x * 2.0; }
std::tuple<Tensor, Tensor> two(const Tensor& x) { return {vec({x.data_ptr<double>()[0]}), cresset::ones({1}, TensorOptions(kLong))}; }

Tensor& opaque_zero(Tensor& self, const Tensor&) {
  const NoGradGuard no_grad;
  return self.zero_();
}

CRESSET_LIBRARY(autograd_fallback_test, m) {
  m.def("opaque_(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  m.def("opaque(Tensor x) -> Tensor");
  m.def("composed(Tensor x) -> Tensor");
  m.def("two(Tensor x) -> (Tensor, Tensor)");
}
CRESSET_LIBRARY_IMPL(autograd_fallback_test, CPU, m) {
  m.impl("opaque", &opaque_double);
  m.impl("opaque_", &opaque_zero);
  m.impl("composed", &composed_double);
  m.impl("two", &two);
}

template <class F>
auto op(const char* name) {
  return Dispatcher::singleton().findSchemaOrThrow((std::string("autograd_fallback_test::") + name).c_str(), "").typed<F>();
}

struct Mode {
  explicit Mode(AutogradFallbackMode m) : saved(get_autograd_fallback_mode()) { set_autograd_fallback_mode(m); }
  ~Mode() { set_autograd_fallback_mode(saved); }
  AutogradFallbackMode saved;
};

TEST(Fallback, WarnsInBackward) {
  const Warnings warnings;
  const Tensor x = leaf({3});
  const Tensor y = op<Tensor(const Tensor&)>("opaque").call(x);
  expect_values(y, {6});
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(warnings.messages().empty());
  y.backward();
  ASSERT_EQ(warnings.messages().size(), 1u);
  EXPECT_NE(warnings.messages()[0].find("autograd_fallback_test::opaque: an autograd kernel was not registered to the Autograd key(s)"),
            std::string::npos);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Fallback, NoWarningWithoutGradients) {
  const Warnings warnings;
  const Tensor y = op<Tensor(const Tensor&)>("opaque").call(vec({3}));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(warnings.messages().empty());
}

TEST(Fallback, GradientsFlowThroughComposedKernels) {
  const Warnings warnings;
  const Tensor x = leaf({3});
  op<Tensor(const Tensor&)>("composed").call(x).backward();
  expect_values(x.grad(), {2});
  EXPECT_EQ(warnings.messages().size(), 1u);
}

TEST(Fallback, IntegralResultsStayOutside) {
  const auto [a, b] = op<std::tuple<Tensor, Tensor>(const Tensor&)>("two").call(leaf({3}));
  EXPECT_TRUE(a.requires_grad());
  EXPECT_FALSE(b.requires_grad());
}

TEST(Fallback, NothingAndErrorModes) {
  const Tensor x = leaf({3});
  {
    const Mode mode(AutogradFallbackMode::Nothing);
    EXPECT_FALSE(op<Tensor(const Tensor&)>("opaque").call(x).requires_grad());
  }
  const Mode mode(AutogradFallbackMode::Error);
  const Tensor y = op<Tensor(const Tensor&)>("opaque").call(x);
  expect_error<NotImplementedError>([&] { y.backward(); }, "derivative for autograd_fallback_test::opaque is not implemented");
}

TEST(Fallback, WritesWarnWhereTheyShow) {
  const auto call = [](Tensor& self, const Tensor& other) { op<Tensor&(Tensor&, const Tensor&)>("opaque_").call(self, other); };
  const Tensor x = leaf({1, 2}), other = vec({1});
  const Tensor base = x * 1.0;
  Tensor view = base.select(0, 0);
  call(view, other);
  for (const Tensor& t : {base, view}) {
    const Warnings warnings;
    t.sum().backward({}, true);
    EXPECT_FALSE(warnings.messages().empty());
  }
  // What needs no gradient goes on without one.
  Tensor plain = vec({1});
  call(plain, leaf({1}));
  EXPECT_FALSE(plain.requires_grad());
}

TEST(Fallback, TangentsAreNotLostSilently) {
  const forward_ad::DualLevel level;
  const Tensor d = forward_ad::make_dual(vec({1}), vec({1}));
  expect_error<NotImplementedError>([&] { op<Tensor(const Tensor&)>("opaque").call(d); },
                                    "Trying to use forward AD with opaque that does not support it");
  expect_values(forward_ad::tangent(op<Tensor(const Tensor&)>("composed").call(d)), {2});
}

}  // namespace
}  // namespace cresset::autograd::test
