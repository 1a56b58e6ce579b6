// Activations made of other operators.
#include <limits>

#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_activation.h"

namespace cresset::ops {

// For devices that have the parts only.
Tensor mish_backward_by_parts(const Tensor& grad_output, const Tensor& self) {
  const Tensor s = cresset::sigmoid(self), t = cresset::tanh(cresset::softplus(self));
  return grad_output * (t + self * s * (1 - t * t));
}

Tensor softshrink_impl(const Tensor& self, const Scalar& lambd) {
  const ScalarType type = self.scalar_type();
  if (isFloatingType(type)) {
    const double shift = lambd.toDouble();
    const double largest = CRESSET_DISPATCH(type, "softshrink_check", CRESSET_FLOATING_AND_HALF_TYPES,
                                            [&] { return static_cast<double>(std::numeric_limits<scalar_t>::max()); });
    CRESSET_CHECK(shift >= 0 && shift <= largest, "lambda must be in range [0, ", largest, "] for input dtype ", type, ", but found ",
                  shift);
  }
  return cresset::softshrink_elements(self, lambd);
}

Tensor prelu_impl(const Tensor& self, const Tensor& weight) {
  CRESSET_CHECK(self.scalar_type() == weight.scalar_type(), "prelu: Type promoting not supported. Got ", self.scalar_type(), " and ",
                weight.scalar_type());
  const bool one = weight.numel() == 1;
  const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  CRESSET_CHECK(one || self.dim() > 0, "Not allow zero-dim input tensor.");
  CRESSET_CHECK(one || channels == weight.numel(),
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel(),
                " and channel size = ", channels, ".");
  CRESSET_CHECK(weight.dim() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  if (one) return cresset::_prelu_kernel(self, weight.dim() == 0 || self.dim() == 0 ? weight.reshape({}) : weight.reshape({1}));
  DimVector shape(static_cast<std::size_t>(self.dim()));
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = d == 1 ? channels : 1;
  return cresset::_prelu_kernel(self, weight.reshape(shape));
}

std::tuple<Tensor, Tensor> prelu_kernel_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& weight) {
  for (const Tensor* other : {&grad_output, &weight})
    CRESSET_CHECK(other->scalar_type() == self.scalar_type(), "Found dtype ", other->scalar_type(), " but expected ", self.scalar_type());
  const Tensor positive = self > Scalar(0);
  const std::vector<Tensor> all = cresset::broadcast_tensors({positive, grad_output, weight});
  return {cresset::where(positive, grad_output, weight * grad_output), cresset::where(all[0], Scalar(0), self * all[1])};
}

namespace {
// alpha, of which True is 1, and its inverse.
std::pair<double, double> celu_scales(const Scalar& alpha) {
  CRESSET_CHECK(alpha.toDouble() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return {alpha.toDouble(), 1 / alpha.toDouble()};
}
}  // namespace

Tensor celu_impl(const Tensor& self, const Scalar& alpha) {
  const auto [factor, inverse] = celu_scales(alpha);
  return cresset::elu(self, factor, 1, inverse);
}

Tensor& celu_inplace(Tensor& self, const Scalar& alpha) {
  const auto [factor, inverse] = celu_scales(alpha);
  return cresset::elu_(self, factor, 1, inverse);
}

std::tuple<Tensor, Tensor> log_sigmoid_forward_impl(const Tensor& self) {
  return {cresset::log_sigmoid_elements(self), cresset::empty({0}, self.options())};
}

Tensor log_sigmoid_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor&) {
  return cresset::log_sigmoid_backward_elements(grad_output, self);
}

namespace {

// Both halves of self along dim.
std::pair<Tensor, Tensor> halves(const Tensor& self, int64_t dim) {
  CRESSET_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t size = self.size(dim);
  CRESSET_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", maybe_wrap_dim(dim, self.dim()), " is size ", size);
  return {self.narrow(dim, 0, size / 2), self.narrow(dim, size / 2, size / 2)};
}
// The tangents ask for as many places as the gated numbers have, whatever else is there.
Tensor upper_part(const Tensor& self, int64_t dim, int64_t size) { return self.narrow(dim, size, size); }

}  // namespace

Tensor glu_impl(const Tensor& self, int64_t dim) {
  const auto [a, b] = halves(self, dim);
  return a * cresset::sigmoid(b);
}

Tensor glu_backward_impl(const Tensor& grad_output, const Tensor& self, int64_t dim) {
  const auto [a, b] = halves(self, dim);
  CRESSET_CHECK(grad_output.sizes() == a.sizes(), "glu_backward: a gradient of size ", a.sizes(), " was required; ", grad_output.sizes(),
                " was given.");
  const Tensor gate = cresset::sigmoid(b), slope = a * gate * (1 - gate);
  if (self.is_complex()) return cresset::cat({grad_output * gate.conj(), grad_output * slope.conj()}, dim);
  return cresset::cat({grad_output * gate, grad_output * slope}, dim);
}

void check_hardtanh(const PointwiseOp& op, const PointwiseCall& call, ScalarType common) {
  for (int i = 0; i < call.num_checked && common == kByte; ++i)
    CRESSET_CHECK(call.checked[i].value->toDouble() > -1, "cannot do hardtanh on an unsigned type with negative limits");
  check_numbers_fit(op, call, common);
}

Tensor glu_jvp_impl(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
  const int64_t size = glu.size(dim);
  const Tensor gate = cresset::sigmoid(upper_part(x, dim, size)), db = upper_part(dx, dim, size);
  return dx.narrow(dim, 0, size) * gate + glu * (1 - gate) * db;
}
// Of grad_x = (g s, g a s (1 - s)), where s = sigmoid(b); g s is read from grad_x.
Tensor glu_backward_jvp_impl(const Tensor& grad_x, const Tensor& grad_glu, const Tensor& x, const Tensor& dgrad_glu, const Tensor& dx,
                             int64_t dim) {
  const int64_t size = grad_glu.size(dim);
  const Tensor gate = cresset::sigmoid(upper_part(x, dim, size)), rest = 1 - gate, db = upper_part(dx, dim, size);
  const Tensor a = x.narrow(dim, 0, size), da = dx.narrow(dim, 0, size), ga = grad_x.narrow(dim, 0, size);
  const Tensor first = dgrad_glu * gate + ga * rest * db;
  const Tensor second = (dgrad_glu * a * gate + ga * da + ga * a * (1 - 2 * gate) * db) * rest;
  return cresset::cat({first, second}, dim);
}

}  // namespace cresset::ops
