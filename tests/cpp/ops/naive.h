// Plain references for operator tests: values in logical order, deterministic test data.
#pragma once

#include <cresset/ops/functions.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace cresset::testing {

/// All elements in logical order, as double.
inline std::vector<double> values(const Tensor& t) {
  const Tensor d = t.to(kDouble).contiguous();
  const double* p = static_cast<const double*>(d.const_data_ptr());
  return std::vector<double>(p, p + d.numel());
}

inline Tensor tensor(const std::vector<double>& v, IntArrayRef sizes, ScalarType dtype = kFloat) {
  Tensor t = cresset::empty(sizes, kDouble);
  std::copy(v.begin(), v.end(), static_cast<double*>(t.mutable_data_ptr()));
  return t.to(dtype);
}
inline Tensor vector(const std::vector<double>& v, ScalarType dtype = kFloat) { return tensor(v, {static_cast<int64_t>(v.size())}, dtype); }

/// Reproducible values: integers of a small range for integral types, multiples of 1/64 in (-4, 4) otherwise.
inline Tensor noise(IntArrayRef sizes, ScalarType dtype, uint64_t seed = 1) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& x : v) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const int64_t k = static_cast<int64_t>(seed >> 33) % 512 - 256;
    x = dtype == kBool ? (k & 3) == 0 : dtype == kByte ? (k & 7) : isIntegralType(dtype) ? k % 8 : static_cast<double>(k) / 64;
  }
  return tensor(v, sizes, dtype);
}

/// Views of one tensor that differ in memory order: as it is, transposed, every second element, expanded, reversed dimensions.
inline std::vector<Tensor> layouts(IntArrayRef sizes, ScalarType dtype) {
  std::vector<Tensor> out = {noise(sizes, dtype)};
  const int64_t n = static_cast<int64_t>(sizes.size());
  if (n >= 2) {
    DimVector swapped(sizes), order(n);
    std::swap(swapped[0], swapped[n - 1]);
    out.push_back(noise(swapped, dtype).transpose(0, n - 1));
    DimVector reversed(n);
    for (int64_t d = 0; d < n; ++d) reversed[d] = sizes[n - 1 - d], order[d] = n - 1 - d;
    out.push_back(noise(reversed, dtype).permute(order));
    DimVector one(sizes);
    one[0] = 1;
    out.push_back(noise(one, dtype).expand(sizes));
  }
  if (n >= 1) {
    DimVector wide(sizes);
    wide[n - 1] = 2 * wide[n - 1] + 1;
    out.push_back(cresset::slice(noise(wide, dtype), n - 1, 1, wide[n - 1], 2));
  }
  return out;
}

/// Runs f(row) for every result of reducing `mask`: row has the reduced elements in logical order.
template <class F>
void for_each_reduced(const Tensor& t, uint64_t mask, const F& f) {
  DimVector order, kept;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (!(mask >> d & 1)) order.push_back(d), kept.push_back(t.size(d));
  int64_t n = 1;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (mask >> d & 1) order.push_back(d), n *= t.size(d);
  const std::vector<double> all = values(t.permute(order));
  int64_t results = 1;
  for (int64_t s : kept) results *= s;
  for (int64_t r = 0; r < results; ++r) f(std::vector<double>(all.begin() + r * n, all.begin() + (r + 1) * n));
}

inline void expect_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << " element " << i;
      continue;
    }
    if (got[i] == want[i]) continue;
    ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << " element " << i;
  }
}

/// EXPECTs that the statement raises E with `text` in its message.
#define EXPECT_RAISES(E, statement, text)                                               \
  try {                                                                                 \
    (void)(statement);                                                                  \
    ADD_FAILURE() << #statement << " did not raise";                                    \
  } catch (const E& error) {                                                            \
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what(); \
  }

}  // namespace cresset::testing
