// Derivatives of functions of matrices.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// pinv is the pseudo-inverse of a, whose rank must not change nearby (Golub and Pereyra 1973, (4.12)).
Tensor pinv_backward(const Tensor& grad, const Tensor& pinv, const Tensor& a);
Tensor pinv_jvp(const Tensor& a, const Tensor& pinv, const Tensor& a_t);

}  // namespace cresset::autograd::formulas
