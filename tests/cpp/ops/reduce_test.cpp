// Reductions, running totals and softmax against plain loops, over types and memory layouts.
#include <cresset/ops/tensor_literal.h>

#include "ops/naive.h"

using namespace cresset;
using namespace cresset::testing;

namespace {

double tolerance(ScalarType t) { return t == kHalf ? 2e-3 : t == kBFloat16 ? 1.6e-2 : t == kFloat ? 1e-6 : 1e-13; }

std::vector<DimVector> dim_lists(int64_t n) {
  std::vector<DimVector> out;
  for (uint64_t mask = 1; mask < uint64_t{1} << n; ++mask) {
    DimVector dims;
    for (int64_t d = 0; d < n; ++d)
      if (mask >> d & 1) dims.push_back(d);
    out.push_back(dims);
  }
  return out;
}
uint64_t mask_of(const DimVector& dims) {
  uint64_t m = 0;
  for (int64_t d : dims) m |= uint64_t{1} << d;
  return m;
}
template <class F>
std::vector<double> reference(const Tensor& t, uint64_t mask, const F& f) {
  std::vector<double> out;
  for_each_reduced(t, mask, [&](const std::vector<double>& row) { out.push_back(f(row)); });
  return out;
}
double sum_of(const std::vector<double>& v) {
  long double s = 0;
  for (double x : v) s += x;
  return static_cast<double>(s);
}
double variance(const std::vector<double>& v) {
  long double mean = 0, s = 0;
  for (double x : v) mean += x;
  mean /= static_cast<long double>(v.size());
  for (double x : v) s += (x - mean) * (x - mean);
  return static_cast<double>(s / static_cast<long double>(v.size() - 1));
}

class Reduce : public ::testing::TestWithParam<ScalarType> {};

void check_all(const Tensor& t, const DimVector& dims) {
  const ScalarType type = t.scalar_type();
  const uint64_t mask = mask_of(dims);
  const std::string what = to_string(t) + " over " + to_string(IntArrayRef(dims)) + " strides " + to_string(t.strides());
  const bool floating = isFloatingType(type);
  const double tol = tolerance(type);
  const IntArrayRef d(dims);
  expect_close(values(sum(t, d)), reference(t, mask, sum_of), tol, "sum " + what);
  EXPECT_EQ(sum(t, d).scalar_type(), floating ? type : kLong);
  expect_close(values(amax(t, d)), reference(t, mask, [](auto& v) { return *std::max_element(v.begin(), v.end()); }), 0, "amax " + what);
  expect_close(values(amin(t, d, true)), reference(t, mask, [](auto& v) { return *std::min_element(v.begin(), v.end()); }), 0,
               "amin " + what);
  expect_close(values(any(t, d, false)),
               reference(t, mask, [](auto& v) { return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; }); }), 0,
               "any " + what);
  expect_close(values(all(t, d, true)),
               reference(t, mask, [](auto& v) { return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; }); }), 0,
               "all " + what);
  expect_close(
      values(count_nonzero(t, d)),
      reference(t, mask, [](auto& v) { return static_cast<double>(std::count_if(v.begin(), v.end(), [](double x) { return x != 0; })); }),
      0, "count " + what);
  if (dims.size() == 1) {
    const auto [largest, at] = max(t, dims[0], false);
    expect_close(values(largest), reference(t, mask, [](auto& v) { return *std::max_element(v.begin(), v.end()); }), 0, "max " + what);
    expect_close(values(at),
                 reference(t, mask, [](auto& v) { return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin()); }), 0,
                 "max index " + what);
    const auto [smallest, at_min] = min(t, dims[0], true);
    expect_close(values(at_min),
                 reference(t, mask, [](auto& v) { return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin()); }), 0,
                 "min index " + what);
  }
  if (!floating) return;
  expect_close(values(mean(t, d)), reference(t, mask, [](auto& v) { return sum_of(v) / static_cast<double>(v.size()); }), tol,
               "mean " + what);
  expect_close(values(linalg_vector_norm(t, 2, d)),
               reference(t, mask,
                         [](auto& v) {
                           double s = 0;
                           for (double x : v) s += x * x;
                           return std::sqrt(s);
                         }),
               tol, "norm 2 " + what);
  expect_close(values(linalg_vector_norm(t, 1, d)),
               reference(t, mask,
                         [](auto& v) {
                           double s = 0;
                           for (double x : v) s += std::abs(x);
                           return s;
                         }),
               tol, "norm 1 " + what);
  expect_close(values(linalg_vector_norm(t, INFINITY, d)),
               reference(t, mask,
                         [](auto& v) {
                           double s = 0;
                           for (double x : v) s = std::max(s, std::abs(x));
                           return s;
                         }),
               tol, "norm inf " + what);
  if (reference(t, mask, [](auto& v) { return static_cast<double>(v.size()); })[0] > 1) {
    const auto [v, m] = var_mean(t, d, std::nullopt, true);
    expect_close(values(v), reference(t, mask, variance), tol, "var " + what);
    expect_close(values(m), values(mean(t, d)), tol, "mean of var_mean " + what);
  }
}

TEST_P(Reduce, MatchesPlainLoopsInEveryLayout) {
  for (const DimVector& sizes : {DimVector{7}, DimVector{3, 5}, DimVector{4, 1, 33}, DimVector{2, 3, 4, 5}})
    for (const Tensor& t : layouts(sizes, GetParam()))
      for (const DimVector& dims : dim_lists(t.dim())) check_all(t, dims);
}

TEST_P(Reduce, MatchesPlainLoopsForLongRowsAndColumns) {
  for (const DimVector& sizes : {DimVector{70001}, DimVector{3, 40009}, DimVector{40009, 3}, DimVector{400, 1500}})
    for (const Tensor& t : layouts(sizes, GetParam()))
      for (const DimVector& dims : dim_lists(t.dim())) {
        // Sums of many halves leave the range of exact comparison; extremes and counts do not.
        if (GetParam() == kHalf || GetParam() == kBFloat16) {
          expect_close(values(amax(t, IntArrayRef(dims))),
                       reference(t, mask_of(dims), [](auto& v) { return *std::max_element(v.begin(), v.end()); }), 0, "amax");
          expect_close(values(mean(t, IntArrayRef(dims))),
                       reference(t, mask_of(dims), [](auto& v) { return sum_of(v) / static_cast<double>(v.size()); }), 1e-2, "mean");
          continue;
        }
        check_all(t, dims);
      }
}

INSTANTIATE_TEST_SUITE_P(Types, Reduce, ::testing::Values(kFloat, kDouble, kHalf, kBFloat16, kLong, kInt, kByte, kBool),
                         [](const auto& info) { return std::string(toString(info.param)); });

// Ten additions in float at most stand between an element and the sums in double: each may lose half a unit, 6e-8. Equal
// elements are the worst case, because all of them err in the same direction.
TEST(ReduceTest, FloatSumLosesNoMoreThanAFewUnits) {
  const Tensor t = cresset::full({1 << 20}, 0.1, kFloat);
  const double want = static_cast<double>(0.1f) * (1 << 20), bound = want * 10 * 0x1p-24;
  EXPECT_NEAR(sum(t).item<float>(), want, bound);
  EXPECT_NEAR(sum(t.view({1024, 1024}), IntArrayRef({0})).sum().item<float>(), want, bound);
}

TEST(ReduceTest, TypesOfResults) {
  const Tensor i = vector({1, 2, 3}, kInt);
  EXPECT_EQ(sum(i).scalar_type(), kLong);
  EXPECT_EQ(prod(i).scalar_type(), kLong);
  EXPECT_EQ(sum(i, kFloat).scalar_type(), kFloat);
  EXPECT_EQ(cumsum(i, 0).scalar_type(), kLong);
  EXPECT_EQ(any(i.to(kByte)).scalar_type(), kByte);
  EXPECT_EQ(any(i).scalar_type(), kBool);
  EXPECT_RAISES(Error, mean(i), "mean(): could not infer output dtype");
  EXPECT_EQ(sum(vector({0.6, 0.6}), kLong).item<int64_t>(), 0);  // converted before it is added
}

TEST(ReduceTest, EmptyTensors) {
  const Tensor none = cresset::empty({0, 3}, kFloat);
  EXPECT_EQ(sum(none).item<float>(), 0);
  EXPECT_EQ(prod(none).item<float>(), 1);
  EXPECT_TRUE(std::isnan(mean(none).item<float>()));
  EXPECT_TRUE(all(none).item<bool>());
  EXPECT_FALSE(any(none).item<bool>());
  EXPECT_EQ(values(sum(none, IntArrayRef({0}))), std::vector<double>({0, 0, 0}));
  EXPECT_EQ(sum(none, IntArrayRef({1})).sizes(), IntArrayRef({0}));
  EXPECT_RAISES(Error, amax(none), "amax(): Expected reduction dim to be specified for input.numel() == 0");
  EXPECT_RAISES(IndexError, amax(none, IntArrayRef({0})), "amax(): Expected reduction dim 0 to have non-zero size");
  EXPECT_EQ(amax(none, IntArrayRef({1})).sizes(), IntArrayRef({0}));
  EXPECT_RAISES(IndexError, argmax(none, 0), "argmax(): Expected reduction dim 0 to have non-zero size");
  EXPECT_RAISES(IndexError, sum(none, IntArrayRef({2})), "Dimension out of range");
  EXPECT_RAISES(Error, sum(none, IntArrayRef({0, -2})), "dim 0 appears multiple times");
}

TEST(ReduceTest, NanWinsAndTiesGoToTheFirst) {
  const double nan = std::nan("");
  for (int64_t n : {5, 600, 5000}) {
    std::vector<double> v(static_cast<std::size_t>(n), 1);
    EXPECT_EQ(argmax(vector(v)).item<int64_t>(), 0);
    v[n - 2] = 7;
    v[n - 1] = 7;
    EXPECT_EQ(argmax(vector(v)).item<int64_t>(), n - 2);
    v[n / 2] = nan;
    v[n / 2 + 1] = nan;
    EXPECT_EQ(argmax(vector(v)).item<int64_t>(), n / 2);
    EXPECT_EQ(std::get<1>(min(vector(v), 0, false)).item<int64_t>(), n / 2);
    EXPECT_TRUE(std::isnan(max(vector(v)).item<float>()));
    EXPECT_TRUE(std::isnan(amin(vector(v)).item<float>()));
    EXPECT_TRUE(std::isnan(linalg_vector_norm(vector(v), INFINITY).item<float>()));
    EXPECT_EQ(std::get<1>(max(tensor(v, {n, 1}).expand({n, 3}), 0, false)).max().item<int64_t>(), n / 2);
    double rest = 0;
    for (double x : v) rest += std::isnan(x) ? 0 : x;
    EXPECT_EQ(nansum(vector(v)).item<float>(), rest);
  }
}

TEST(ReduceTest, KeptDimensionsOfWholeReductions) {
  const Tensor t = tensor({1, 9, 3, 4}, {2, 2});
  EXPECT_EQ(argmax(t, std::nullopt, true).sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(argmax(t, std::nullopt, true).item<int64_t>(), 1);
  EXPECT_EQ(sum(t, OptionalIntArrayRef(), true).sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(std::get<1>(aminmax(t, std::nullopt, true)).sizes(), IntArrayRef({1, 1}));
}

TEST(ReduceTest, Complex) {
  const Tensor t = complex(noise({3, 4}, kDouble, 1), noise({3, 4}, kDouble, 2));
  const Tensor parts = view_as_real(t);
  EXPECT_EQ(values(view_as_real(sum(t, IntArrayRef({0})))), values(sum(parts, IntArrayRef({0}))));
  EXPECT_EQ(values(view_as_real(mean(t))), values(mean(parts.view({12, 2}), IntArrayRef({0}))));
  expect_close(values(linalg_vector_norm(t, 2, IntArrayRef({1}))), values(linalg_vector_norm(parts.view({3, 8}), 2, IntArrayRef({1}))),
               1e-14, "norm");
  expect_close(values(var(t, IntArrayRef({0}))), values(sum(var(parts, IntArrayRef({0})), IntArrayRef({1}))), 1e-14, "var");
}

TEST(ReduceTest, MedianTakesTheLowerMiddle) {
  EXPECT_EQ(median(vector({4, 1, 3, 2})).item<float>(), 2);
  const auto [v, i] = median(tensor({4, 1, 3, 2, 9, 9, 8, 7}, {2, 4}), 1, false);
  EXPECT_EQ(values(v), std::vector<double>({2, 8}));
  EXPECT_EQ(values(i), std::vector<double>({3, 2}));
  EXPECT_TRUE(std::isnan(median(vector({1, std::nan(""), 2})).item<float>()));
  EXPECT_EQ(nanmedian(vector({1, std::nan(""), 2})).item<float>(), 1);
}

TEST(ReduceTest, RunningTotals) {
  for (const Tensor& t : layouts({3, 4, 5}, kDouble))
    for (int64_t d = 0; d < 3; ++d) {
      Tensor want = cresset::zeros({3, 4, 5}, kDouble);
      for (int64_t i = 0; i < t.size(d); ++i) want.select(d, i).copy_(sum(narrow(t, d, 0, i + 1), IntArrayRef({d})));
      expect_close(values(cumsum(t, d)), values(want), 1e-13, "cumsum");
    }
  const auto [v, i] = cummax(vector({1, 3, 3, std::nan(""), 2}), 0);
  EXPECT_EQ(values(i), std::vector<double>({0, 1, 2, 3, 3}));
  EXPECT_TRUE(std::isnan(values(v)[4]));
  EXPECT_EQ(values(cumprod(vector({2, 3, 4}, kInt), 0)), std::vector<double>({2, 6, 24}));
}

TEST(ReduceTest, LogsumexpOfInfinities) {
  const double inf = INFINITY;
  EXPECT_EQ(logsumexp(vector({-inf, -inf}), IntArrayRef({0})).item<float>(), -inf);
  EXPECT_EQ(logsumexp(vector({inf, 1}), IntArrayRef({0})).item<float>(), inf);
  EXPECT_NEAR(logsumexp(vector({1000, 1000}), IntArrayRef({0})).item<float>(), 1000 + std::log(2.0), 1e-3);
}

TEST(ReduceTest, OutArgumentsAreResizedAndConverted) {
  Tensor out = cresset::empty({0}, kDouble);
  sum_out(out, noise({3, 4}, kFloat), IntArrayRef({0}));
  EXPECT_EQ(out.sizes(), IntArrayRef({4}));
  // Without a dtype the type of out is the one that adds up.
  const Tensor x = noise({3, 4}, kFloat) * 5;
  Tensor whole = cresset::empty({4}, kLong);
  sum_out(whole, x, IntArrayRef({0}));
  EXPECT_TRUE(equal(whole, sum(x.to(kLong), IntArrayRef({0}))));
  EXPECT_RAISES(Error, sum_out(whole, x, IntArrayRef({0}), false, kFloat), "Expected out tensor to have dtype float, but got long int");
}

TEST(ReduceTest, OneNumberIsADimensionNotUnbiased) {
  // By hand: the columns are {1, 5} and {2, 9}, the rows {1, 2} and {5, 9}; the mean of all is 4.25.
  const Tensor x = cresset::tensor({1.0, 2.0, 5.0, 9.0}, kDouble).reshape({2, 2});
  expect_close(values(x.var(0)), {8, 24.5}, 1e-14, "var(0)");
  expect_close(values(var(x, 1)), {0.5, 8}, 1e-14, "var(x, 1)");
  expect_close(values(x.var(false)), {9.6875}, 1e-14, "var(false)");
  expect_close(values(x.var()), {38.75 / 3}, 1e-13, "var()");
  expect_close(values(std::get<1>(var_mean(x, 0))), {3, 5.5}, 1e-14, "var_mean(x, 0)");
  EXPECT_EQ(x.std(0).sizes(), IntArrayRef({2}));
  EXPECT_EQ(std::get<0>(std_mean(x, 1)).sizes(), IntArrayRef({2}));
}

TEST(SoftmaxTest, MatchesPlainLoops) {
  for (ScalarType type : {kFloat, kDouble, kHalf})
    for (const DimVector& sizes : {DimVector{5}, DimVector{3, 40}, DimVector{2, 7, 300}, DimVector{2, 1, 3}})
      for (const Tensor& t : layouts(sizes, type))
        for (int64_t d = 0; d < t.dim(); ++d) {
          const Tensor x = t.to(kDouble), e = exp(x - amax(x, IntArrayRef({d}), true)), want = e / sum(e, IntArrayRef({d}), true);
          const double tol = type == kHalf ? 1e-3 : type == kFloat ? 1e-6 : 1e-14;
          expect_close(values(softmax(t, d)), values(want), tol, "softmax");
          expect_close(values(log_softmax(t, d)), values(log(want)), tol, "log_softmax");
          const Tensor g = noise(sizes, kDouble, 9);
          if (type != kDouble) continue;
          expect_close(values(_softmax_backward_data(g, want, d, kDouble)), values(want * (g - sum(g * want, IntArrayRef({d}), true))),
                       1e-13, "softmax gradient");
          expect_close(values(_log_softmax_backward_data(g, log(want), d, kDouble)), values(g - want * sum(g, IntArrayRef({d}), true)),
                       1e-13, "log_softmax gradient");
        }
  EXPECT_RAISES(NotImplementedError, softmax(vector({1, 2}, kLong), 0), "not implemented for 'Long'");
  EXPECT_EQ(softmax(cresset::full({}, 3.0, kFloat), 0).item<float>(), 1);
}

}  // namespace
