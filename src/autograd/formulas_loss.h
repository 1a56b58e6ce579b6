// Derivatives of losses.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// The loss of a tangent: none, mean or sum.
Tensor reduced(const Tensor& t, int64_t reduction);
/// For a backward of the form grad_output * slope / n: its gradient for grad_output.
Tensor pointwise_loss_double_grad_output(const Tensor& grad, const Tensor& slope, int64_t reduction);
/// The same for self, where the slope's derivative is the constant `curvature`.
Tensor pointwise_loss_double_self(const Tensor& grad, const Tensor& grad_output, double curvature, const Tensor& self, const Tensor& target,
                                  int64_t reduction);
/// The same where the loss is a parabola within `limit`, of slope distance / scale, and straight beyond.
Tensor distance_loss_double_self(const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                                 double limit, double scale);
Tensor binary_cross_entropy_target_backward(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& weight, int64_t reduction);

}  // namespace cresset::autograd::formulas
