// layer_norm and its gradient, for every instruction set of this machine (the caller chooses with CRESSET_ISA), against the
// definition in double.
#include <gtest/gtest.h>

#include <cresset/ops/functions.h>

#include <cmath>
#include <vector>

namespace cresset {
namespace {

std::vector<double> values_of(const Tensor& t) {
  const Tensor wide = t.to(kDouble).contiguous();
  const double* const p = wide.const_data_ptr<double>();
  return {p, p + wide.numel()};
}

TEST(Norm, LayerNormOfEveryLength) {
  for (ScalarType type : {kFloat, kDouble, kHalf, kBFloat16})
    for (int64_t n : {1, 7, 15, 16, 17, 64, 100, 1030}) {
      const int64_t rows = 3;
      const double tolerance = type == kDouble ? 1e-12 : type == kFloat ? 1e-5 : type == kHalf ? 5e-3 : 4e-2;
      const Tensor x = randn({rows, n}, TensorOptions(kFloat)).to(type), weight = randn({n}, TensorOptions(kFloat)).to(type),
                   bias = randn({n}, TensorOptions(kFloat)).to(type);
      const auto [y, mean, rstd] = native_layer_norm(x, {n}, weight, bias, 0.5);
      const auto px = values_of(x), pw = values_of(weight), pb = values_of(bias), py = values_of(y), pm = values_of(mean),
                 pr = values_of(rstd);
      const Tensor grad = randn({rows, n}, TensorOptions(kFloat)).to(type);
      const auto [gx, gw, gb] = native_layer_norm_backward(grad, x, {n}, mean, rstd, weight, bias, {true, true, true});
      const auto pg = values_of(grad), pgx = values_of(gx), pgw = values_of(gw), pgb = values_of(gb);
      std::vector<double> sum_w(n), sum_b(n);
      for (int64_t r = 0; r < rows; ++r) {
        double m = 0, squares = 0, sum = 0, dot = 0;
        for (int64_t i = 0; i < n; ++i) m += px[r * n + i] / static_cast<double>(n);
        for (int64_t i = 0; i < n; ++i) squares += std::pow(px[r * n + i] - m, 2) / static_cast<double>(n);
        const double s = 1 / std::sqrt(squares + 0.5);
        EXPECT_NEAR(pm[r], m, tolerance) << n;
        EXPECT_NEAR(pr[r], s, tolerance) << n;
        for (int64_t i = 0; i < n; ++i) {
          const double hat = (px[r * n + i] - m) * s, g = pg[r * n + i];
          EXPECT_NEAR(py[r * n + i], hat * pw[i] + pb[i], tolerance * 4) << toString(type) << " " << n << " at " << i;
          sum += g * pw[i] / static_cast<double>(n);
          dot += g * pw[i] * hat / static_cast<double>(n);
          sum_w[i] += g * hat;
          sum_b[i] += g;
        }
        for (int64_t i = 0; i < n; ++i) {
          const double hat = (px[r * n + i] - m) * s;
          EXPECT_NEAR(pgx[r * n + i], s * (pg[r * n + i] * pw[i] - sum - hat * dot), tolerance * 8)
              << toString(type) << " " << n << " at " << i;
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_NEAR(pgw[i], sum_w[i], tolerance * 8) << toString(type) << " " << n << " at " << i;
        EXPECT_NEAR(pgb[i], sum_b[i], tolerance * 8) << toString(type) << " " << n << " at " << i;
      }
    }
}

TEST(Norm, LayerNormOfNothing) {
  const auto [y, mean, rstd] = native_layer_norm(ones({2, 0}), {0}, {}, {}, 1e-5);
  EXPECT_EQ(y.numel(), 0);
  EXPECT_TRUE(mean.eq(0).all().item<bool>());
  EXPECT_TRUE(isnan(rstd).all().item<bool>());
}

}  // namespace
}  // namespace cresset
