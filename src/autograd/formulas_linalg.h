// Derivatives of functions of matrices.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// The gradients of a and of b in a.mm(b), laid out as those are: a leaf keeps such a gradient without a copy. sizes and strides are
/// those of the factor whose gradient is wanted.
Tensor left_factor_gradient(const Tensor& grad, const Tensor& b, IntArrayRef sizes, IntArrayRef strides);
Tensor right_factor_gradient(const Tensor& grad, const Tensor& a, IntArrayRef sizes, IntArrayRef strides);

/// pinv is the pseudo-inverse of a, whose rank must not change nearby (Golub and Pereyra 1973, (4.12)).
Tensor pinv_backward(const Tensor& grad, const Tensor& pinv, const Tensor& a);
Tensor pinv_jvp(const Tensor& a, const Tensor& pinv, const Tensor& a_t);

}  // namespace cresset::autograd::formulas
