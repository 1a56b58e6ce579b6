// Adjoints of the real Fourier transforms.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

Tensor fft_r2c_backward(const Tensor& grad, IntArrayRef sizes, IntArrayRef dim, int64_t normalization, bool onesided);
Tensor fft_c2r_backward(const Tensor& grad, IntArrayRef sizes, IntArrayRef dim, int64_t normalization);

}  // namespace cresset::autograd::formulas
