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
/// The tangent of nll_loss_backward, whose result is divided by the total weight when the loss is a mean.
Tensor nll_loss_backward_jvp(const Tensor& grad_output_t, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                             int64_t reduction, int64_t ignore_index, const Tensor& total_weight_t, const Tensor& total_weight,
                             const Tensor& result);
/// The gradient of nll_loss_backward for the total weight.
Tensor nll_loss_backward_total_weight(const Tensor& grad, const Tensor& result, int64_t reduction, const Tensor& total_weight);
Tensor binary_cross_entropy_target_backward(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& weight, int64_t reduction);
/// Of binary_cross_entropy_with_logits: for self, and for target.
Tensor bce_with_logits_backward(const Tensor& grad, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                const std::optional<Tensor>& pos_weight, int64_t reduction);
Tensor bce_with_logits_target_backward(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& weight,
                                       const std::optional<Tensor>& pos_weight, int64_t reduction);

}  // namespace cresset::autograd::formulas
