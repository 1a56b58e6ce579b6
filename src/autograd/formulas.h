// Functions that gradient formulas of the operator table may call. The general ones are below (formulas.cpp); those of
// one family are declared in formulas_<family>.h and defined in formulas_<family>.cpp, namespace cresset::autograd::formulas.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// Gradient of a sum over dimensions (all of them when dims is unset or empty): grad spread over sizes.
Tensor sum_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim);
/// grad with size-1 dimensions where a reduction without keepdim removed them; `sizes` are the reduced tensor's.
Tensor restore_reduced_dims(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim);

/// The conjugate of a complex tensor, others as they are.
Tensor conjugate(const Tensor& t);

// Pointwise operators and copies (formulas_pointwise.cpp). Gradients have broadcast sizes; the engine sums them to the input's.

/// A zero-dimensional tensor of a number, of the type and on the device of `like`.
Tensor scalar_like(const Scalar& value, const Tensor& like);
Tensor div_mode_backward_self(const Tensor& grad, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor div_mode_backward_self(const Tensor& grad, const Scalar& other, std::optional<std::string_view> rounding_mode);
Tensor div_mode_backward_other(const Tensor& grad, const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor pow_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent);
Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result);
Tensor pow_backward_exponent(const Tensor& grad, const Scalar& base, const Tensor& exponent, const Tensor& result);
Tensor abs_jvp(const Tensor& self_t, const Tensor& self_p);
Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max);
std::tuple<Tensor, Tensor> clamp_backward_min_max(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& min,
                                                  const std::optional<Tensor>& max, std::array<bool, 2> grad_input_mask);
Tensor clamp_jvp(const Tensor& self_t, const Tensor& self_p, const Tensor& min_t, const Tensor& min_p, const Tensor& max_t,
                 const Tensor& max_p);
Tensor masked_fill_backward(const Tensor& grad, const Tensor& mask);
/// grad converted to the type and device of what was copied.
Tensor copy_backward(const Tensor& grad, const TensorOptions& options);
Tensor sinc_backward(const Tensor& grad, const Tensor& self);
Tensor xlogy_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other);
Tensor angle_backward(const Tensor& grad, const Tensor& self);
Tensor angle_jvp(const Tensor& self_t, const Tensor& self_p);
Tensor at_real(const Tensor& grad);
Tensor at_imag(const Tensor& grad);
Tensor make_complex_jvp(const Tensor& real_t, const Tensor& imag_t);
Tensor silu_jvp(const Tensor& self_t, const Tensor& self);
/// grad * grad_output * f''(self): the second derivative's part of an activation f.
Tensor hardswish_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, std::string_view approximate);
/// Gradients of _prelu_kernel_backward for its arguments from those of its two results, and its tangents.
std::tuple<Tensor, Tensor, Tensor> prelu_double_backward(const Tensor& grad_self, const Tensor& grad_weight, const Tensor& grad_output,
                                                         const Tensor& self, const Tensor& weight);
std::tuple<Tensor, Tensor> prelu_backward_jvp(const Tensor& grad_output_p, const Tensor& grad_output_t, const Tensor& self_p,
                                              const Tensor& self_t, const Tensor& weight_p, const Tensor& weight_t);
Tensor silu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor mish_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor softplus_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Scalar& beta,
                                const Scalar& threshold);
Tensor elu_double_backward(const Tensor& grad, const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, bool is_result, const Tensor& self_or_result);
Tensor log_sigmoid_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor logit_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, std::optional<double> eps);

}  // namespace cresset::autograd::formulas
