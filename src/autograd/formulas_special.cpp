#include "autograd/formulas_special.h"

#include <complex>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_special.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {

// i1' = i0 - i1 / x, and 1/2 at 0. The divisor avoids 0 so that no NaN arises, not in the second derivative either.
Tensor special_i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor zero = self == Scalar(0), safe = self.masked_fill(zero, 1);
  return grad * (i0(self) - result / safe).masked_fill(zero, 0.5);
}
Tensor special_i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor zero = self == Scalar(0), safe = self.masked_fill(zero, 1);
  return grad * (special_i0e(self) - result * (self.sgn() + 1 / safe)).masked_fill(zero, 0.5);
}

// The density over the area: sqrt(2/pi) / erfcx(-x/sqrt(2)) holds far to the left, exp(-x^2/2 - log_ndtr(x)) / sqrt(2 pi) far to the right.
// Each is asked only where it is finite, so that no NaN arises in its own derivative.
Tensor log_ndtr_slope(const Tensor& self) {
  const Tensor left = self.clamp_max(0), right = self.clamp_min(0);
  return where(self < Scalar(0), 0.7978845608028654 / special_erfcx(left * -0.7071067811865476),
               exp(right * right * -0.5 - special_log_ndtr(right)) * 0.3989422804014327);
}

Tensor zeta_slope(const Tensor& self, const Tensor& other) { return -self * special_zeta(self + 1, other); }
Tensor zeta_slope(const Scalar& self, const Tensor& other) {
  const double s = self.toDouble();
  return special_zeta(Scalar(s + 1), other) * -s;
}

Tensor igamma_slope(const Tensor& self, const Tensor& other) { return exp((self - 1) * log(other) - other - lgamma(self)); }

Tensor mvlgamma_backward(const Tensor& grad, const Tensor& self, int64_t p) {
  Tensor slope = digamma(self);
  for (int64_t i = 1; i < p; ++i) slope = slope + digamma(self - static_cast<double>(i) / 2);
  return grad * slope;
}

// result = abs exp(i angle)
Tensor polar_backward_abs(const Tensor& grad, const Tensor& angle) { return real(grad.conj() * polar(ones_like(angle), angle)); }
Tensor polar_backward_angle(const Tensor& grad, const Tensor& result) {
  return real(grad.conj() * result * Scalar(std::complex<double>(0, 1)));
}

namespace {
[[noreturn]] void raise_no_derivative(const char* of) {
  CRESSET_THROW(NotImplementedError, "the derivative for '", of, "' is not implemented.");
}
}  // namespace

Tensor zeta_backward_self() { raise_no_derivative("zeta"); }
Tensor igamma_backward_self() { raise_no_derivative("igamma: input"); }
Tensor igammac_backward_self() { raise_no_derivative("igammac: input"); }

}  // namespace cresset::autograd::formulas
