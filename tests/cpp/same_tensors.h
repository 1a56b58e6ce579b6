// Comparisons of tensors for EXPECT_TRUE.
#pragma once

#include <cresset/cresset.h>

inline bool same(const cresset::Tensor& a, const cresset::Tensor& b) { return a.sizes() == b.sizes() && a.eq(b).all().item<bool>(); }
inline bool close(const cresset::Tensor& a, const cresset::Tensor& b, double tolerance = 1e-5) {
  return a.sizes() == b.sizes() && (a - b).abs().max().item<double>() <= tolerance;
}
