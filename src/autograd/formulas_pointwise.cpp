// Gradient formulas of pointwise operators and copies that do not fit on one line. Made of differentiable operators, so that
// they can be differentiated again.
#include <cmath>

#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_view.h>

#include "autograd/formulas.h"

namespace cresset::autograd::formulas {
namespace {

bool is_zero(const Scalar& s) { return s.equal(0); }
Tensor zero_of(const Tensor& grad) { return zeros_like(grad); }

// Second derivatives need no kernel of their own: they are rare, so they are written with plain operators.
Tensor second(const Tensor& grad, const Tensor& grad_output, const Tensor& curvature) { return grad * grad_output * curvature; }

}  // namespace

Tensor scalar_like(const Scalar& value, const Tensor& like) { return scalar_tensor(value, like.options()); }

Tensor div_mode_backward_self(const Tensor& grad, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  return rounding_mode ? zero_of(grad) : grad / other.conj();
}

Tensor div_mode_backward_self(const Tensor& grad, const Scalar& other, std::optional<std::string_view> rounding_mode) {
  return rounding_mode ? zero_of(grad) : grad / other.conj();
}

Tensor div_mode_backward_other(const Tensor& grad, const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  return rounding_mode ? zero_of(grad) : -grad * ((self / other) / other).conj();
}

Tensor pow_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (is_zero(exponent)) return zero_of(grad);
  // Recorded, the slope stays a power: its derivative, a constant, then has a place in the graph like any other.
  if (exponent.equal(2) && !GradMode::is_enabled()) return grad * (self * 2).conj();
  const Scalar less = exponent.isComplex()         ? Scalar(exponent.toComplexDouble() - 1.0)
                      : exponent.isFloatingPoint() ? Scalar(exponent.toDouble() - 1)
                                                   : Scalar(exponent.toLong() - 1);
  return grad * (exponent * self.pow(less)).conj();
}

Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  return where(exponent == Scalar(0), Scalar(0), grad * (exponent * self.pow(exponent - 1)).conj());
}

Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result) {
  // 0 to the power of 0 or of a positive number does not change with the exponent.
  const Tensor flat = exponent.is_complex() ? (self == Scalar(0)).logical_and(real(exponent) >= Scalar(0))
                                            : (self == Scalar(0)).logical_and(exponent >= Scalar(0));
  // A negative base has a logarithm where the power is complex.
  const Tensor base = result.is_complex() && !self.is_complex() ? self.to(result.scalar_type()) : self;
  return grad * where(flat, Scalar(0), (result * base.log()).conj());
}

Tensor pow_backward_exponent(const Tensor& grad, const Scalar& base, const Tensor& exponent, const Tensor& result) {
  const std::complex<double> number = base.toComplexDouble();
  if (number == 0.0) {
    const Tensor flat = (exponent.is_complex() ? real(exponent) : exponent) >= Scalar(0);
    return grad * where(flat, Scalar(0), result * Scalar(-std::numeric_limits<double>::infinity()));
  }
  if (base.isComplex() || (number.real() < 0 && result.is_complex())) return grad * (result * Scalar(std::log(number))).conj();
  return grad * (result * std::log(number.real())).conj();
}

Tensor abs_jvp(const Tensor& self_t, const Tensor& self_p) {
  const Tensor product = self_t * self_p.sgn().conj();
  return product.is_complex() ? real(product) : product;
}

Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!self.is_complex()) return zero_of(grad);
  const Tensor size = abs(self);
  const Tensor along = real(grad / result) * result;
  return ((grad - along) / size).masked_fill(size == Scalar(0), 0);
}

Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor ratio = result / self;
  return grad * ratio.masked_fill(self == Scalar(0), 0);
}

Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  if (min && max) return where((self >= *min).logical_and(self <= *max), grad, 0);
  if (min) return where(self >= *min, grad, 0);
  return max ? where(self <= *max, grad, 0) : grad;
}

Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max) {
  if (min && max) return where((self >= *min).logical_and(self <= *max), grad, 0);
  if (min) return where(self >= *min, grad, 0);
  return max ? where(self <= *max, grad, 0) : grad;
}

std::tuple<Tensor, Tensor> clamp_backward_min_max(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& min,
                                                  const std::optional<Tensor>& max, std::array<bool, 2> grad_input_mask) {
  Tensor for_min, for_max;
  if (min && grad_input_mask[0]) {
    const Tensor below = self < *min;
    for_min = where(max ? below.logical_and(*min < *max) : below, grad, 0);
  }
  if (max && grad_input_mask[1]) {
    const Tensor above = self > *max;
    for_max = where(min ? above.logical_or(*max < *min) : above, grad, 0);
  }
  return {for_min, for_max};
}

Tensor clamp_jvp(const Tensor& self_t, const Tensor& self_p, const Tensor& min_t, const Tensor& min_p, const Tensor& max_t,
                 const Tensor& max_p) {
  Tensor tangent = self_t, primal = self_p;
  if (min_p.defined()) {
    tangent = where(primal >= min_p, tangent, min_t);
    primal = clamp_min(primal, min_p);
  }
  return max_p.defined() ? where(primal <= max_p, tangent, max_t) : tangent;
}

Tensor masked_fill_backward(const Tensor& grad, const Tensor& mask) { return where(mask, grad, 0).sum(); }

Tensor copy_backward(const Tensor& grad, const TensorOptions& options) {
  const ScalarType type = options.dtype();
  const Tensor same_kind = grad.is_complex() && !isComplexType(type) ? real(grad) : grad;
  return same_kind.to(type, std::nullopt, options.device(), std::nullopt, false, false, std::nullopt);
}

Tensor sinc_backward(const Tensor& grad, const Tensor& self) {
  const Tensor x = self * M_PI;
  const Tensor square = x * self;  // zero for small numbers too
  const Tensor slope = (x * x.cos() - x.sin()) / square;
  return grad * slope.masked_fill(square == Scalar(0), 0).conj();
}

Tensor xlogy_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other) {
  const double number = other.toDouble(), slope = std::log(number);
  return number > 0 ? grad * slope : grad * where(self == Scalar(0), Scalar(0.0), Scalar(slope));
}

Tensor angle_backward(const Tensor& grad, const Tensor& self) {
  if (!self.is_complex()) return where(self.isnan(), self.detach(), Scalar(0.0)) * grad;
  const Tensor size = abs(self);
  const Tensor slope = (self / (size * size)) * Scalar(std::complex<double>(0, 1));
  return grad * slope.masked_fill(size == Scalar(0), 0);
}

Tensor angle_jvp(const Tensor& self_t, const Tensor& self_p) {
  if (!self_p.is_complex()) return angle_backward(self_t, self_p);
  return real(self_t * angle_backward(ones_like(abs(self_p)), self_p).conj());
}

Tensor at_real(const Tensor& grad) { return grad.is_complex() ? real(grad) : grad; }
Tensor at_imag(const Tensor& grad) { return grad.is_complex() ? imag(grad) : zeros_like(grad); }
Tensor make_complex_jvp(const Tensor& real_t, const Tensor& imag_t) { return complex(real_t, imag_t); }

Tensor hardswish_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
  return where((self > Scalar(-3)).logical_and(self < Scalar(3)), grad * grad_output / 3, 0);
}

Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, std::string_view approximate) {
  if (approximate != "tanh") {
    const Tensor density = exp(self * self * -0.5) * 0.3989422804014327;
    return second(grad, grad_output, density * (2 - self * self));
  }
  constexpr double kBeta = 0.7978845608028654, kCubic = 0.044715;
  const Tensor square = self * self;
  const Tensor t = tanh(kBeta * (self + kCubic * square * self));
  const Tensor first = kBeta * (1 + 3 * kCubic * square), slope = 1 - t * t;
  const Tensor curvature = slope * (first + 0.5 * self * (6 * kBeta * kCubic * self) - self * t * first * first);
  return second(grad, grad_output, curvature);
}

// silu_backward multiplies by the conjugate of a complex slope: its own derivative in grad_output multiplies by the slope, and
// that in self goes through the conjugate of self, so reverse and forward mode agree.
Tensor silu_jvp(const Tensor& self_t, const Tensor& self) { return silu_backward(self_t.conj(), self).conj(); }
// The results are self > 0 ? grad_output : weight * grad_output and self > 0 ? 0 : self * grad_output.
std::tuple<Tensor, Tensor, Tensor> prelu_double_backward(const Tensor& grad_self, const Tensor& grad_weight, const Tensor& grad_output,
                                                         const Tensor& self, const Tensor& weight) {
  const Tensor positive = self >= Scalar(0);
  const auto below = [&](const Tensor& t) { return cresset::where(positive, Scalar(0), t); };
  std::tuple<Tensor, Tensor, Tensor> found;
  auto& [for_grad, for_self, for_weight] = found;
  if (grad_self.defined()) {
    for_grad = cresset::where(positive, grad_self, weight * grad_self);
    for_weight = below(grad_output * grad_self);
  }
  if (grad_weight.defined()) {
    const Tensor more = below(self * grad_weight);
    for_grad = for_grad.defined() ? for_grad + more : more;
    for_self = below(grad_output * grad_weight);
  }
  return found;
}
std::tuple<Tensor, Tensor> prelu_backward_jvp(const Tensor& grad_output_p, const Tensor& grad_output_t, const Tensor& self_p,
                                              const Tensor& self_t, const Tensor& weight_p, const Tensor& weight_t) {
  const Tensor positive = self_p >= Scalar(0);
  const std::vector<Tensor> all = cresset::broadcast_tensors({positive, grad_output_p, weight_p});
  return {cresset::where(positive, grad_output_t, weight_p * grad_output_t + weight_t * grad_output_p),
          cresset::where(all[0], Scalar(0), self_p * grad_output_t + self_t * all[1])};
}

Tensor silu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
  const Tensor s = sigmoid(self);
  return second(grad.conj(), grad_output, (s * (1 - s) * (2 + self * (1 - 2 * s))).conj());
}

Tensor mish_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
  const Tensor s = sigmoid(self), t = tanh(softplus(self)), u = 1 - t * t;
  return second(grad, grad_output, s * u * (2 + self * (1 - s) - 2 * self * t * s));
}

Tensor softplus_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Scalar& beta,
                                const Scalar& threshold) {
  const Tensor z = self * beta, s = sigmoid(z);
  return second(grad, grad_output, (s * (1 - s) * beta).masked_fill(z > threshold, 0));
}

Tensor elu_double_backward(const Tensor& grad, const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  const double factor = alpha.toDouble() * scale.toDouble(), rate = input_scale.toDouble();
  const Tensor curvature = is_result ? scalar_like(rate, self_or_result) : exp(self_or_result * rate) * (factor * rate * rate);
  return where(self_or_result >= Scalar(0), Scalar(0), second(grad, grad_output, curvature));
}

Tensor log_sigmoid_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
  const Tensor s = sigmoid(self);
  return second(grad, grad_output, s * (s - 1));
}

Tensor logit_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, std::optional<double> eps) {
  const Tensor slope = 1 / (self * (1 - self));
  const Tensor curvature = (2 * self - 1) * slope * slope;
  if (!eps) return second(grad, grad_output, curvature);
  return second(grad, grad_output, curvature.masked_fill((self < Scalar(*eps)).logical_or(self > Scalar(1 - *eps)), 0));
}

}  // namespace cresset::autograd::formulas
