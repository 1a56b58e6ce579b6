// Gradient helpers of the concat family.
#pragma once

#include <cresset/core/tensor.h>

#include <vector>

namespace cresset::autograd::formulas {

/// The pieces of a joined gradient, each in its tensor's type.
std::vector<Tensor> cat_backward(const Tensor& grad, const std::vector<DimVector>& sizes, const std::vector<ScalarType>& types,
                                 int64_t dim);
std::vector<Tensor> stack_backward(const Tensor& grad, const std::vector<ScalarType>& types, int64_t dim);
/// Copies added up.
Tensor repeat_backward(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes);
Tensor roll_backward(const Tensor& grad, IntArrayRef shifts, IntArrayRef dims);
Tensor constant_pad_nd_backward(const Tensor& grad, IntArrayRef pad);

}  // namespace cresset::autograd::formulas
