// With d = |x - y|_p, the slope of d in direction k is s = sign(u) |u|^(p-1) d^(1-p) for u = x_k - y_k; taking d as
// independent, ds/du = (p-1) |u|^(p-2) d^(1-p) and ds/dd = (1-p) s / d. Where d or u is zero all three are zero,
// but for p = 2, where ds/du = 1/d also at u = 0.
#include "autograd/formulas_distance.h"

#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_distance.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {
namespace {

Tensor zero_where(const Tensor& condition, const Tensor& t) { return cresset::masked_fill(t, condition, 0); }
// 1/d, zero where d is.
Tensor inverse_or_zero(const Tensor& d) {
  const Tensor zero = cresset::eq(d, 0);
  return zero_where(zero, cresset::reciprocal(cresset::masked_fill(d, zero, 1)));
}
bool flat(double p) { return p == 0 || p == 1 || std::isinf(p); }

// |u|^e d^(1-p), zero where u or d is.
Tensor powers(const Tensor& u, const Tensor& d, double e, double p) {
  const Tensor zero = cresset::logical_or(cresset::eq(u, 0), cresset::eq(d, 0));
  const Tensor safe_u = cresset::masked_fill(cresset::abs(u), zero, 1), safe_d = cresset::masked_fill(d.expand_as(u), zero, 1);
  return zero_where(zero, cresset::mul(cresset::pow(safe_u, e), cresset::pow(safe_d, 1 - p)));
}

// d has a last dimension of size 1.
Tensor slope(const Tensor& u, const Tensor& d, double p) {
  if (p == 0) return cresset::zeros_like(u);
  if (p == 1) return cresset::sign(u);
  if (p == 2) return cresset::mul(u, inverse_or_zero(d));
  if (std::isinf(p)) return cresset::mul(cresset::sign(u), cresset::eq(cresset::abs(u), d));
  return cresset::mul(cresset::sign(u), powers(u, d, p - 1, p));
}
Tensor slope_by_difference(const Tensor& u, const Tensor& d, double p) {
  if (flat(p)) return cresset::zeros_like(u);
  if (p == 2) return inverse_or_zero(d).expand_as(u);
  return cresset::mul(powers(u, d, p - 2, p), p - 1);
}
Tensor slope_by_distance(const Tensor& u, const Tensor& d, double p) {
  return flat(p) ? cresset::zeros_like(u) : cresset::mul(cresset::mul(slope(u, d, p), inverse_or_zero(d)), 1 - p);
}

// Tangent of grad * slope, for tangents of all three; grad and d have a last dimension of size 1.
Tensor slopes_tangent(const Tensor& grad_t, const Tensor& grad, const Tensor& u_t, const Tensor& u, double p, const Tensor& d_t,
                      const Tensor& d) {
  const Tensor moved = cresset::add(cresset::mul(slope_by_difference(u, d, p), u_t), cresset::mul(slope_by_distance(u, d, p), d_t));
  return cresset::add(cresset::mul(grad_t, slope(u, d, p)), cresset::mul(grad, moved));
}

Tensor row_differences(const Tensor& x1, const Tensor& x2) { return cresset::sub(x1.unsqueeze(-2), x2.unsqueeze(-3)); }

Tensor to_size(const Tensor& t, IntArrayRef sizes) { return t.sizes() == sizes ? t : cresset::sum_to_size(t, sizes); }

// The rows of each pair (i, j), i < j, in their order.
struct Pairs {
  Tensor first, second;
  explicit Pairs(const Tensor& self) {
    const int64_t n = self.size(0);
    const Tensor indices = cresset::triu_indices(n, n, 1, self.options().dtype(kLong));
    first = indices.select(0, 0);
    second = indices.select(0, 1);
  }
  Tensor differences(const Tensor& rows) const {
    return cresset::sub(cresset::index_select(rows, 0, first), cresset::index_select(rows, 0, second));
  }
  // Adds what a pair's difference gets to its rows.
  Tensor to_rows(const Tensor& by_pair, const Tensor& self) const {
    const Tensor zeros = cresset::zeros_like(self);
    return cresset::sub(cresset::index_add(zeros, 0, first, by_pair), cresset::index_add(zeros, 0, second, by_pair));
  }
};

}  // namespace

Tensor cdist_backward_x1(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& result) {
  return to_size(cresset::_cdist_backward(grad, x1, x2, p, result), x1.sizes());
}

Tensor cdist_backward_x2(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& result) {
  return to_size(cresset::_cdist_backward(grad.mT(), x2, x1, p, result.mT()), x2.sizes());
}

Tensor cdist_jvp(const Tensor& x1_t, const Tensor& x1, const Tensor& x2_t, const Tensor& x2, double p, const Tensor& result) {
  return cresset::sum(cresset::mul(slope(row_differences(x1, x2), result.unsqueeze(-1), p), row_differences(x1_t, x2_t)), -1);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> cdist_double_backward(const Tensor& gg, const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                                                 double p, const Tensor& cdist, std::array<bool, 4> mask) {
  const Tensor u = row_differences(x1, x2), d = cdist.unsqueeze(-1), v = gg.unsqueeze(-2);
  Tensor by_grad, by_x1, by_x2, by_distance;
  if (mask[0]) by_grad = cresset::sum(cresset::mul(slope(u, d, p), v), -1);
  if (mask[1] || mask[2]) {
    const Tensor by_difference = cresset::mul(cresset::mul(slope_by_difference(u, d, p), v), grad.unsqueeze(-1));
    if (mask[1]) by_x1 = to_size(cresset::sum(by_difference, -2), x1.sizes());
    if (mask[2]) by_x2 = to_size(cresset::neg(cresset::sum(by_difference, -3)), x2.sizes());
  }
  if (mask[3]) by_distance = cresset::mul(cresset::sum(cresset::mul(slope_by_distance(u, d, p), v), -1), grad);
  return {by_grad, by_x1, by_x2, by_distance};
}

Tensor cdist_slopes_jvp(const Tensor& grad_t, const Tensor& grad, const Tensor& x1_t, const Tensor& x1, const Tensor& x2_t,
                        const Tensor& x2, double p, const Tensor& cdist_t, const Tensor& cdist) {
  const auto last = [](const Tensor& t) { return t.unsqueeze(-1); };
  return cresset::sum(
      slopes_tangent(last(grad_t), last(grad), row_differences(x1_t, x2_t), row_differences(x1, x2), p, last(cdist_t), last(cdist)), -2);
}

Tensor pdist_jvp(const Tensor& self_t, const Tensor& self, double p, const Tensor& result) {
  const Pairs pairs(self);
  return cresset::sum(cresset::mul(slope(pairs.differences(self), result.unsqueeze(-1), p), pairs.differences(self_t)), -1);
}

std::tuple<Tensor, Tensor, Tensor> pdist_double_backward(const Tensor& gg, const Tensor& grad, const Tensor& self, double p,
                                                         const Tensor& pdist, std::array<bool, 3> mask) {
  const Pairs pairs(self);
  const Tensor u = pairs.differences(self), d = pdist.unsqueeze(-1), v = pairs.differences(gg);
  Tensor by_grad, by_self, by_distance;
  if (mask[0]) by_grad = cresset::sum(cresset::mul(slope(u, d, p), v), -1);
  if (mask[1]) by_self = pairs.to_rows(cresset::mul(cresset::mul(slope_by_difference(u, d, p), v), grad.unsqueeze(-1)), self);
  if (mask[2]) by_distance = cresset::mul(cresset::sum(cresset::mul(slope_by_distance(u, d, p), v), -1), grad);
  return {by_grad, by_self, by_distance};
}

Tensor pdist_slopes_jvp(const Tensor& grad_t, const Tensor& grad, const Tensor& self_t, const Tensor& self, double p, const Tensor& pdist_t,
                        const Tensor& pdist) {
  const Pairs pairs(self);
  const auto last = [](const Tensor& t) { return t.unsqueeze(-1); };
  const Tensor by_pair =
      slopes_tangent(last(grad_t), last(grad), pairs.differences(self_t), pairs.differences(self), p, last(pdist_t), last(pdist));
  return pairs.to_rows(by_pair, self);
}

}  // namespace cresset::autograd::formulas
