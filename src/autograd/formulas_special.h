// Derivatives of special functions that do not fit on one line.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

Tensor special_i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor special_i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
/// The derivative of special_log_ndtr, and what its own derivative is made of.
Tensor log_ndtr_slope(const Tensor& self);
/// The derivative of special_zeta(self, other) in other.
Tensor zeta_slope(const Tensor& self, const Tensor& other);
Tensor zeta_slope(const Scalar& self, const Tensor& other);
/// The derivative of igamma(self, other) in other.
Tensor igamma_slope(const Tensor& self, const Tensor& other);
Tensor mvlgamma_backward(const Tensor& grad, const Tensor& self, int64_t p);
Tensor polar_backward_abs(const Tensor& grad, const Tensor& angle);
Tensor polar_backward_angle(const Tensor& grad, const Tensor& result);

/// Derivatives that no one has: they raise NotImplementedError when backward reaches them, as in PyTorch.
[[noreturn]] Tensor zeta_backward_self();
[[noreturn]] Tensor igamma_backward_self();
[[noreturn]] Tensor igammac_backward_self();

}  // namespace cresset::autograd::formulas
