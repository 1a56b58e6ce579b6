// Gradient helpers of the softmax family.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

Tensor softmax_jvp(const Tensor& self_t, const Tensor& result, int64_t dim);
Tensor log_softmax_jvp(const Tensor& self_t, const Tensor& result, int64_t dim);
/// Gradient of _softmax_backward_data by its output argument.
Tensor softmax_backward_jvp(const Tensor& grad, const Tensor& grad_t, const Tensor& output, const Tensor& output_t, int64_t dim);
Tensor log_softmax_backward_jvp(const Tensor& grad, const Tensor& grad_t, const Tensor& output, const Tensor& output_t, int64_t dim);
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, int64_t dim, const Tensor& output);
/// Gradients of _log_softmax_backward_data by its two tensors.
Tensor log_softmax_grad_backward(const Tensor& grad, const Tensor& output, int64_t dim);
Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output, int64_t dim, const Tensor& output);

}  // namespace cresset::autograd::formulas
