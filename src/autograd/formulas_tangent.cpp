#include "autograd/formulas_tangent.h"

#include <complex>

#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_linalg.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_special.h>

#include "autograd/formulas.h"
#include "autograd/formulas_scale.h"
#include "autograd/generated_support.h"

namespace cresset::autograd::formulas {
namespace {

/// A product that is linear in `t`, whose result has these sizes when t is nothing.
template <class Product>
Tangent product(const Tangent& t, const Tensor& other, std::initializer_list<int64_t> sizes, const Product& multiply) {
  if (!t.is_nothing() || compute_requires_grad(other)) return Tangent(multiply(static_cast<const Tensor&>(t)));
  return Tangent::nothing(IntArrayRef(sizes), t.options());
}

}  // namespace

Tangent scaled(const Tangent& t, const Scalar& factor) {
  return t.is_nothing() ? t : Tangent(formulas::scaled(static_cast<const Tensor&>(t), factor));
}

Tangent mm(const Tangent& a, const Tensor& b) {
  return product(a, b, {a.sizes()[0], b.size(1)}, [&](const Tensor& t) { return cresset::mm(t, b); });
}
Tangent mm(const Tensor& a, const Tangent& b) {
  return product(b, a, {a.size(0), b.sizes()[1]}, [&](const Tensor& t) { return cresset::mm(a, t); });
}
Tangent mv(const Tangent& a, const Tensor& b) {
  return product(a, b, {a.sizes()[0]}, [&](const Tensor& t) { return cresset::mv(t, b); });
}
Tangent mv(const Tensor& a, const Tangent& b) {
  return product(b, a, {a.size(0)}, [&](const Tensor& t) { return cresset::mv(a, t); });
}
Tangent bmm(const Tangent& a, const Tensor& b) {
  return product(a, b, {a.sizes()[0], a.sizes()[1], b.size(2)}, [&](const Tensor& t) { return cresset::bmm(t, b); });
}
Tangent bmm(const Tensor& a, const Tangent& b) {
  return product(b, a, {a.size(0), a.size(1), b.sizes()[2]}, [&](const Tensor& t) { return cresset::bmm(a, t); });
}
Tangent dot(const Tangent& a, const Tensor& b) {
  return product(a, b, {}, [&](const Tensor& t) { return cresset::dot(t, b); });
}
Tangent dot(const Tensor& a, const Tangent& b) {
  return product(b, a, {}, [&](const Tensor& t) { return cresset::dot(a, t); });
}
Tangent linalg_cross(const Tangent& a, const Tensor& b, int64_t dim) {
  return a.is_nothing() ? a * b : Tangent(cresset::linalg_cross(a, b, dim));
}
Tangent linalg_cross(const Tensor& a, const Tangent& b, int64_t dim) {
  return b.is_nothing() ? a * b : Tangent(cresset::linalg_cross(a, b, dim));
}

Tangent div_mode_jvp(const Tangent& self_t, const Tensor& self_p, const Tangent& other_t, const Tensor& other_p,
                     std::optional<std::string_view> rounding_mode) {
  const Tangent tangent = (self_t - other_t * (self_p / other_p)) / other_p;
  return rounding_mode ? Tangent(zeros_like(tangent)) : tangent;
}

Tangent pow_jvp(const Tangent& self_t, const Tensor& self_p, const Tangent& exponent_t, const Tensor& exponent_p, const Tensor& result) {
  Tensor sum;
  if (!self_t.is_nothing()) sum = pow_backward_self(self_t.conj(), self_p, exponent_p);
  if (!exponent_t.is_nothing()) add_tangent(sum, pow_backward_exponent(exponent_t.conj(), self_p, exponent_p, result));
  return Tangent(sum.conj());
}

Tangent polar_jvp(const Tangent& abs_t, const Tangent& angle_t, const Tensor& angle_p, const Tensor& result) {
  return abs_t * polar(ones_like(angle_p), angle_p) + angle_t * result * Scalar(std::complex<double>(0, 1));
}

}  // namespace cresset::autograd::formulas
