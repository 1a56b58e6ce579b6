// Derivatives of normalisations beyond the first order, written with differentiable operators.
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// `moves`: do input, weight or bias have a tangent? Then the running statistics that are used may have none: RuntimeError.
Tensor batch_norm_jvp(bool moves, const Tensor& x, const Tensor& x_t, const Tensor& weight_p, const Tensor& weight_t, const Tensor& bias_t,
                      const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, const Tensor& mean,
                      const Tensor& invstd, bool training, double eps);
Tensor layer_norm_jvp(const Tensor& x, const Tensor& x_t, const Tensor& weight_p, const Tensor& weight_t, const Tensor& bias_t,
                      IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd);
/// Gradients for (grad_out, input, weight) given those of the three results of the backward operator (any may be undefined).
/// Tangents of the gradients of batch_norm and layer_norm for input, weight and bias, as far as the mask asks for them.
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_jvp(const Tensor& gy, const Tensor& gy_t, const Tensor& x, const Tensor& x_t,
                                                           const Tensor& weight, const Tensor& weight_t,
                                                           const std::optional<Tensor>& running_mean,
                                                           const std::optional<Tensor>& running_var, bool train, double eps,
                                                           std::array<bool, 3> mask);
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_jvp(const Tensor& gy, const Tensor& gy_t, const Tensor& x, const Tensor& x_t,
                                                           IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd,
                                                           const Tensor& weight, const Tensor& weight_t, std::array<bool, 3> mask);
std::tuple<Tensor, Tensor, Tensor> batch_norm_double_backward(const Tensor& ggx, const Tensor& ggw, const Tensor& ggb, const Tensor& gy,
                                                              const Tensor& x, const std::optional<Tensor>& weight,
                                                              const std::optional<Tensor>& running_mean,
                                                              const std::optional<Tensor>& running_var, const std::optional<Tensor>& mean,
                                                              const std::optional<Tensor>& invstd, bool train, double eps,
                                                              std::array<bool, 3> mask);
std::tuple<Tensor, Tensor, Tensor> layer_norm_double_backward(const Tensor& ggx, const Tensor& ggw, const Tensor& ggb, const Tensor& gy,
                                                              const Tensor& x, IntArrayRef normalized_shape, const Tensor& mean,
                                                              const Tensor& rstd, const std::optional<Tensor>& weight,
                                                              std::array<bool, 3> mask);
/// grads: of the result, of mean and of rstd; the statistics have derivatives, as they are what a second derivative sees of the input.
std::tuple<Tensor, Tensor, Tensor> group_norm_backward(const std::vector<Tensor>& grads, const Tensor& input, const Tensor& mean,
                                                       const Tensor& rstd, const std::optional<Tensor>& weight, int64_t n, int64_t c,
                                                       int64_t hxw, int64_t group, std::array<bool, 3> mask);

}  // namespace cresset::autograd::formulas
