// Accuracy of vectorised functions in float and double, for every instruction set of this machine (the caller chooses with CRESSET_ISA).
#include <gtest/gtest.h>

#include <cresset/ops/functions.h>

#include <cmath>

namespace cresset {
namespace {

struct Function {
  const char* name;
  Tensor (*op)(const Tensor&);
  double (*exact)(double);
  double low, high;
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_of(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double rsqrt_of(double x) { return 1 / std::sqrt(x); }
Tensor gelu_none(const Tensor& x) { return gelu(x, "none"); }

const Function kFunctions[] = {
    {"exp", exp, std::exp, -80, 80},         {"exp2", exp2, std::exp2, -80, 80},     {"expm1", expm1, std::expm1, -2, 20},
    {"log", log, std::log, 1e-6, 1e6},       {"log2", log2, std::log2, 1e-6, 1e6},   {"log10", log10, std::log10, 1e-6, 1e6},
    {"log1p", log1p, std::log1p, -0.9, 10},  {"sin", sin, std::sin, -3, 3},          {"cos", cos, std::cos, -1.5, 1.5},
    {"tan", tan, std::tan, -1.5, 1.5},       {"asin", asin, std::asin, -1, 1},       {"acos", acos, std::acos, -1, 0.99},
    {"atan", atan, std::atan, -10, 10},      {"sinh", sinh, std::sinh, -20, 20},     {"cosh", cosh, std::cosh, -20, 20},
    {"tanh", tanh, std::tanh, -5, 5},        {"asinh", asinh, std::asinh, -20, 20},  {"acosh", acosh, std::acosh, 1.01, 20},
    {"atanh", atanh, std::atanh, -0.9, 0.9}, {"erf", erf, std::erf, -3, 3},          {"erfc", erfc, std::erfc, -3, 5},
    {"sqrt", sqrt, std::sqrt, 0, 1e6},       {"rsqrt", rsqrt, rsqrt_of, 1e-6, 1e6},  {"sigmoid", sigmoid, sigmoid_of, -20, 20},
    {"gelu", gelu_none, gelu_of, -0.5, 8},   {"lgamma", lgamma, std::lgamma, 3, 50},
};

TEST(ScalarMath, FloatAndDoubleAreAccurate) {
  constexpr int64_t n = 4003;
  for (const Function& f : kFunctions) {
    const Tensor x = linspace(f.low, f.high, n, TensorOptions(kDouble));
    const Tensor single = f.op(x.to(kFloat)), twice = f.op(x);
    const Tensor x32 = x.to(kFloat);
    for (int64_t i = 0; i < n; ++i) {
      const double from32 = f.exact(static_cast<double>(x32.const_data_ptr<float>()[i])), from64 = f.exact(x.const_data_ptr<double>()[i]);
      const double got32 = static_cast<double>(single.const_data_ptr<float>()[i]), got64 = twice.const_data_ptr<double>()[i];
      ASSERT_NEAR(got32, from32, 1e-6 * std::abs(from32) + 1e-38) << f.name << " of " << x32.const_data_ptr<float>()[i];
      ASSERT_NEAR(got64, from64, 4e-15 * std::abs(from64) + 1e-300) << f.name << " of " << x.const_data_ptr<double>()[i];
    }
  }
}

// Exact values from mpmath with 50 digits, also where a residual of erf has no digits left.
TEST(ScalarMath, ErfinvIsAccurateUpToItsEnds) {
  const std::pair<double, double> kExact[] = {{0.1, 0.088855990494257691974},       {0.75, 0.81341984759761854169},
                                              {1 - 0x1p-10, 2.3314677736219476723}, {1 - 0x1p-20, 3.4655050258033307173},
                                              {1 - 0x1p-40, 5.0512540852493899671}, {1 - 0x1p-53, 5.8635847487551679272},
                                              {0x1p-30, 8.2536314190622234144e-10}};
  for (const auto& [y, x] : kExact)
    for (const double sign : {1.0, -1.0}) {
      EXPECT_NEAR(erfinv(full({20}, sign * y, TensorOptions(kDouble)))[19].item<double>(), sign * x, 6e-16 * x) << y;
      if (y > 1 - 0x1p-24) continue;  // one as a float
      EXPECT_NEAR(erfinv(full({20}, sign * y, TensorOptions(kFloat)))[19].item<double>(), sign * x, 1e-7 * x) << y;
    }
}

TEST(ScalarMath, HalfTypesComputeInFloat) {
  const Tensor x = linspace(-4, 4, 257, TensorOptions(kHalf));
  const Tensor y = tanh(x), reference = tanh(x.to(kFloat)).to(kHalf);
  for (int64_t i = 0; i < 257; ++i) ASSERT_EQ(y.const_data_ptr<Half>()[i].x, reference.const_data_ptr<Half>()[i].x);
}

TEST(ScalarMath, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (int64_t n : {1, 40}) {
    const auto of = [n](Tensor (*op)(const Tensor&), double v) { return op(full({n}, v, TensorOptions(kFloat)))[n - 1].item<double>(); };
    EXPECT_EQ(of(exp, -inf), 0);
    EXPECT_EQ(of(exp, inf), inf);
    EXPECT_EQ(of(exp, 89), inf);
    EXPECT_TRUE(std::isnan(of(exp, nan)));
    EXPECT_EQ(of(log, 0), -inf);
    EXPECT_TRUE(std::isnan(of(log, -1)));
    EXPECT_EQ(of(tanh, inf), 1);
    EXPECT_TRUE(std::isnan(of(sin, inf)));
    EXPECT_EQ(of(erfinv, 1), inf);
    EXPECT_TRUE(std::isnan(of(erfinv, 2)));
    EXPECT_EQ(of(digamma, 0), -inf);
    EXPECT_TRUE(std::isnan(of(digamma, -1)));
    EXPECT_EQ(of(sign, nan), 0);
    EXPECT_EQ(of(round, 2.5), 2);
    EXPECT_EQ(of(round, 3.5), 4);
    EXPECT_EQ(of(sinc, 0), 1);
  }
}

TEST(ScalarMath, GammaFamilyAndErfinv) {
  const auto value = [](const Tensor& t) { return t.item<double>(); };
  const auto number = [](double v) { return full({1}, v, TensorOptions(kDouble)); };
  EXPECT_NEAR(value(digamma(number(1))), -0.57721566490153286, 1e-14);
  EXPECT_NEAR(value(digamma(number(-0.5))), 0.03648997397857652, 1e-13);
  EXPECT_NEAR(value(polygamma(1, number(1))), 1.6449340668482264, 1e-13);
  EXPECT_NEAR(value(polygamma(1, number(0.25))), 17.19732915450712, 1e-11);
  EXPECT_NEAR(value(polygamma(2, number(2))), -0.4041138063191886, 1e-13);
  EXPECT_NEAR(value(special_zeta(number(3), number(1))), 1.2020569031595942, 1e-14);
  EXPECT_NEAR(value(erfinv(number(0.5))), 0.4769362762044699, 1e-15);
  EXPECT_NEAR(value(erfinv(number(-0.999999))), -3.4589107372795, 1e-9);
}

}  // namespace
}  // namespace cresset
