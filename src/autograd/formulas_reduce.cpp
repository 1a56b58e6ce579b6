// Gradients of reductions and running totals.
#include "autograd/formulas_reduce.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include <cmath>
#include <limits>

#include "autograd/formulas.h"
#include "ops/shared/lifted.h"

namespace cresset::autograd::formulas {

int64_t reduced_count(IntArrayRef sizes, OptionalIntArrayRef dims) {
  int64_t n = 1;
  if (!dims || dims->empty())
    for (int64_t s : sizes) n *= s;
  else
    for (int64_t d : *dims) n *= sizes.empty() ? 1 : sizes[maybe_wrap_dim(d, static_cast<int64_t>(sizes.size()))];
  return n;
}

Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim) {
  return cresset::div(sum_backward(grad, sizes, dims, keepdim), reduced_count(sizes, dims));
}

// ---- products --------------------------------------------------------------------------------------------------------

namespace {
// Along the last dimension: (product of the elements before) * (product of those after).
Tensor product_of_others(const Tensor& self, int64_t dim) {
  const int64_t n = self.size(dim);
  DimVector one(self.sizes());
  one[maybe_wrap_dim(dim, self.dim())] = 1;
  const Tensor ones = cresset::ones(one, self.options());
  if (n == 1) return cresset::ones_like(self);
  const Tensor before = cresset::cumprod(cresset::cat({ones, cresset::narrow(self, dim, 0, n - 1)}, dim), dim);
  const Tensor after =
      cresset::flip(cresset::cumprod(cresset::cat({ones, cresset::flip(cresset::narrow(self, dim, 1, n - 1), {dim})}, dim), dim), {dim});
  return cresset::mul(before, after);
}
}  // namespace

Tensor prod_dim_backward(const Tensor& grad, const Tensor& given, int64_t dim, bool keepdim) {
  const Tensor self = given.scalar_type() == grad.scalar_type() ? given : cresset::to(given, grad.scalar_type());  // `dtype`
  if (self.dim() == 0) return grad;
  if (self.size(dim) == 0) return cresset::zeros_like(self);
  const Tensor wide = keepdim ? grad : cresset::unsqueeze(grad, maybe_wrap_dim(dim, self.dim()));
  const Tensor others = product_of_others(self, dim);
  return cresset::mul(wide, conjugate(others));
}
Tensor prod_backward(const Tensor& grad, const Tensor& self) {
  if (self.dim() == 0) return grad;
  if (self.numel() == 0) return cresset::zeros_like(self);
  return cresset::reshape(prod_dim_backward(grad, cresset::reshape(self, {-1}), 0, false), self.sizes());
}

// ---- extremes --------------------------------------------------------------------------------------------------------

namespace {
// Where self equals the result, as 1 / (number of such places), zero elsewhere.
Tensor shares(const Tensor& self, const Tensor& wide_result, IntArrayRef dims) {
  Tensor is = cresset::eq(self, wide_result);
  if (self.is_floating_point()) is = cresset::logical_or(is, cresset::logical_and(cresset::isnan(self), cresset::isnan(wide_result)));
  const Tensor mask = cresset::to(is, self.scalar_type());
  return cresset::div(mask, self.dim() == 0 ? mask : cresset::sum(mask, dims, true));
}
DimVector as_dims(std::optional<int64_t> dim) { return dim ? DimVector{*dim} : DimVector(); }
}  // namespace

Tensor extreme_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dims, bool keepdim) {
  const Tensor wide = restore_reduced_dims(result, self.sizes(), dims, keepdim);
  return cresset::mul(restore_reduced_dims(grad, self.sizes(), dims, keepdim), shares(self, wide, dims));
}
Tensor extreme_jvp(const Tensor& self_t, const Tensor& self, const Tensor& result, IntArrayRef dims, bool keepdim) {
  const Tensor wide = restore_reduced_dims(result, self.sizes(), dims, keepdim);
  const Tensor weighted = cresset::mul(self_t, shares(self, wide, dims));
  return self.dim() == 0 ? weighted : cresset::sum(weighted, dims, keepdim);
}
Tensor aminmax_backward(const std::vector<Tensor>& grads, const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& min,
                        const Tensor& max) {
  const DimVector dims = as_dims(dim);
  Tensor out;
  for (int i = 0; i < 2; ++i) {
    if (!grads[i].defined()) continue;
    const Tensor part = extreme_backward(grads[i], self, i == 0 ? min : max, dims, keepdim);
    out = out.defined() ? cresset::add(out, part) : part;
  }
  return out;
}
Tensor aminmax_jvp(const Tensor& self_t, const Tensor& self, const Tensor& result, std::optional<int64_t> dim, bool keepdim) {
  return extreme_jvp(self_t, self, result, as_dims(dim), keepdim);
}

Tensor select_index_backward(const Tensor& grad, int64_t dim, const Tensor& indices, IntArrayRef sizes, bool keepdim) {
  const Tensor zeros = cresset::new_zeros(grad, sizes);  // an index along dim names each place at most once
  if (keepdim || sizes.empty()) return cresset::scatter(zeros, dim, indices, grad);
  const int64_t d = maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  return cresset::scatter(zeros, d, cresset::unsqueeze(indices, d), cresset::unsqueeze(grad, d));
}
Tensor gather_index(const Tensor& self, int64_t dim, const Tensor& indices, bool keepdim) {
  if (keepdim || self.dim() == 0) return cresset::gather(self, dim, indices);
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  return cresset::squeeze(cresset::gather(self, d, cresset::unsqueeze(indices, d)), d);
}

// ---- moments ---------------------------------------------------------------------------------------------------------

namespace {
double freedom(const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction) {
  return static_cast<double>(reduced_count(self.sizes(), dims)) - (correction ? correction->toDouble() : 1);
}
Tensor centred(const Tensor& self, OptionalIntArrayRef dims) { return cresset::sub(self, cresset::mean(self, dims, true)); }
}  // namespace

Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction,
                    bool keepdim) {
  const double n = freedom(self, dims, correction);
  const Tensor wide = restore_reduced_dims(grad, self.sizes(), dims, keepdim);
  if (n <= 0) {  // the variance is NaN or infinite
    const Tensor factor =
        cresset::where(cresset::eq(wide, 0), cresset::full({}, std::nan(""), self.options()), cresset::full({}, INFINITY, self.options()));
    return cresset::mul(factor, centred(self, dims));
  }
  return cresset::mul(cresset::mul(wide, 2.0 / n), centred(self, dims));
}
Tensor std_backward(const Tensor& result, const Tensor& grad, const Tensor& self, OptionalIntArrayRef dims,
                    const std::optional<Scalar>& correction, bool keepdim) {
  const Tensor scaled = cresset::masked_fill(cresset::div(grad, cresset::mul(result, 2)), cresset::eq(result, 0), 0);
  return var_backward(scaled, self, dims, correction, keepdim);
}
namespace {
Tensor with_mean(Tensor out, const Tensor& grad_mean, const Tensor& self, OptionalIntArrayRef dims, bool keepdim) {
  if (!grad_mean.defined()) return out;
  const Tensor part = mean_backward(grad_mean, self.sizes(), dims, keepdim);
  return out.defined() ? cresset::add(out, part) : part;
}
}  // namespace
Tensor var_mean_backward(const std::vector<Tensor>& grads, const Tensor& self, OptionalIntArrayRef dims,
                         const std::optional<Scalar>& correction, bool keepdim) {
  const Tensor out = grads[0].defined() ? var_backward(grads[0], self, dims, correction, keepdim) : Tensor();
  return with_mean(out, grads[1], self, dims, keepdim);
}
Tensor std_mean_backward(const std::vector<Tensor>& grads, const Tensor& result, const Tensor& self, OptionalIntArrayRef dims,
                         const std::optional<Scalar>& correction, bool keepdim) {
  const Tensor out = grads[0].defined() ? std_backward(result, grads[0], self, dims, correction, keepdim) : Tensor();
  return with_mean(out, grads[1], self, dims, keepdim);
}
Tensor var_jvp(const Tensor& self_t, const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction, bool keepdim) {
  const Tensor c = centred(self, dims);
  Tensor product = cresset::mul(self_t, conjugate(c));
  if (self.is_complex()) product = cresset::real(product);
  return cresset::mul(cresset::sum(product, dims, keepdim), 2.0 / freedom(self, dims, correction));
}
Tensor std_jvp(const Tensor& result, const Tensor& self_t, const Tensor& self, OptionalIntArrayRef dims,
               const std::optional<Scalar>& correction, bool keepdim) {
  const Tensor d = cresset::div(var_jvp(self_t, self, dims, correction, keepdim), cresset::mul(result, 2));
  return cresset::masked_fill(d, cresset::eq(result, 0), 0);
}

// ---- norms -----------------------------------------------------------------------------------------------------------

namespace {
// d norm / d self for real or complex self (its conjugate direction), with size-1 dimensions in `norm`.
Tensor norm_slope(const Tensor& self, const Scalar& p_, const Tensor& norm, OptionalIntArrayRef dims) {
  const double p = p_.toDouble();
  if (p == 0) return cresset::zeros_like(self);
  if (p == 1) return cresset::sgn(self);
  const Tensor zero = cresset::eq(norm, 0);
  if (p == 2) return cresset::masked_fill(cresset::div(self, norm), zero, 0);
  if (std::isinf(p)) {
    const Tensor size = cresset::abs(self), is = cresset::eq(size, norm);
    const Tensor mask = cresset::to(is, norm.scalar_type());
    return cresset::mul(cresset::sgn(self), cresset::div(mask, self.dim() == 0 ? mask : cresset::sum(mask, dims, true)));
  }
  // sgn(x) * (|x| / norm)^(p - 1), with the ratio taken first so that powers stay in range.
  const Tensor size = cresset::abs(self);
  Tensor ratio = cresset::pow(cresset::div(size, norm), p - 1);
  if (p < 1) ratio = cresset::masked_fill(ratio, cresset::eq(size, 0), 0);
  return cresset::masked_fill(cresset::mul(cresset::sgn(self), ratio), zero, 0);
}
}  // namespace

Tensor norm_backward(const Tensor& grad, const Tensor& self, const Scalar& p, const Tensor& norm, OptionalIntArrayRef dims, bool keepdim) {
  // The number of elements that are not zero does not change.
  if (p.toDouble() == 0) return Tensor();
  const Tensor wide_norm = restore_reduced_dims(norm, self.sizes(), dims, keepdim);
  return cresset::mul(restore_reduced_dims(grad, self.sizes(), dims, keepdim), norm_slope(self, p, wide_norm, dims));
}
Tensor norm_jvp(const Tensor& self_t, const Tensor& self, const Scalar& p, const Tensor& norm, OptionalIntArrayRef dims, bool keepdim) {
  const Tensor slope = norm_slope(self, p, restore_reduced_dims(norm, self.sizes(), dims, keepdim), dims);
  Tensor product = cresset::mul(self_t, conjugate(slope));
  if (self.is_complex()) product = cresset::real(product);
  return self.dim() == 0 ? product : cresset::sum(product, dims, keepdim);
}

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dims, bool keepdim) {
  const Tensor wide = restore_reduced_dims(result, self.sizes(), dims, keepdim);
  // Where the result is -inf every element is, and none of them can change it.
  const Tensor shift = cresset::masked_fill(wide, cresset::eq(wide, -std::numeric_limits<double>::infinity()), 0);
  const Tensor weights = cresset::exp(cresset::sub(self, shift));
  return cresset::mul(restore_reduced_dims(grad, self.sizes(), dims, keepdim), conjugate(weights));
}
Tensor logsumexp_jvp(const Tensor& self_t, const Tensor& self, IntArrayRef dims, bool keepdim) {
  if (self.dim() == 0) return self_t;
  const Tensor wide = cresset::logsumexp(self, dims, true);
  const Tensor shift = cresset::masked_fill(wide, cresset::eq(wide, -std::numeric_limits<double>::infinity()), 0);
  return cresset::sum(cresset::mul(cresset::exp(cresset::sub(self, shift)), self_t), dims, keepdim);
}

// ---- running totals --------------------------------------------------------------------------------------------------

Tensor cumsum_backward(const Tensor& grad, int64_t dim) {
  if (grad.numel() <= 1) return grad;
  return cresset::flip(cresset::cumsum(cresset::flip(grad, {dim}), dim), {dim});
}

Tensor cumprod_backward(const Tensor& grad, const Tensor& given, int64_t dim, const Tensor& result) {
  const Tensor self = given.scalar_type() == grad.scalar_type() ? given : cresset::to(given, grad.scalar_type());  // `dtype`
  if (self.numel() <= 1) return grad;
  const Tensor g = conjugate(self);
  const Tensor r = conjugate(result);
  // A mode of Python, which may trace, is not to see a question for values.
  if (!ops::modes_look()) {
    const Tensor zero = cresset::eq(g, 0);
    const Tensor plain = cresset::div(cumsum_backward(cresset::mul(grad, r), dim), cresset::masked_fill(g, zero, 1));
    if (!cresset::any(zero).item<bool>()) return plain;
  }
  // With zeros on the way: d result[j] / d self[i] is the product of self[..j] without self[i], added up one i at a time.
  std::vector<Tensor> columns;
  const int64_t n = self.size(dim);
  for (int64_t i = 0; i < n; ++i) {
    Tensor product = i == 0 ? cresset::ones_like(cresset::select(g, dim, 0)) : cresset::prod(cresset::narrow(g, dim, 0, i), dim);
    Tensor sum = cresset::mul(product, cresset::select(grad, dim, i));
    if (i + 1 < n) {
      const Tensor rest = cresset::cumprod(cresset::narrow(g, dim, i + 1, n - i - 1), dim);
      const Tensor tail = cresset::sum(cresset::mul(rest, cresset::narrow(grad, dim, i + 1, n - i - 1)), dim);
      sum = cresset::add(sum, cresset::mul(product, tail));
    }
    columns.push_back(sum);
  }
  return cresset::stack(columns, maybe_wrap_dim(dim, self.dim()));
}

Tensor cumprod_jvp(const Tensor& given_t, const Tensor& given, const Tensor& result, int64_t dim) {
  const Tensor self_t = cresset::to(given_t, result.scalar_type()), self = cresset::to(given, result.scalar_type());
  if (self.numel() <= 1) return self_t;
  if (!ops::modes_look() && !cresset::any(cresset::eq(self, 0)).item<bool>())
    return cresset::mul(result, cresset::cumsum(cresset::div(self_t, self), dim));
  // d[j] = d[j - 1] * self[j] + result[j - 1] * self_t[j]
  std::vector<Tensor> tangents = {cresset::select(self_t, dim, 0)};
  for (int64_t j = 1; j < self.size(dim); ++j)
    tangents.push_back(cresset::add(cresset::mul(tangents.back(), cresset::select(self, dim, j)),
                                    cresset::mul(cresset::select(result, dim, j - 1), cresset::select(self_t, dim, j))));
  return cresset::stack(tangents, maybe_wrap_dim(dim, self.dim()));
}

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Sums of real numbers are kept as logarithms, those of positive and of negative terms apart: no exponent is above that of a result.
Tensor log_of_positive(const Tensor& t) {
  const Tensor positive = t > Scalar(0);
  return cresset::where(positive, cresset::log(cresset::where(positive, t, Scalar(1.0))), Scalar(-kInfinity));
}
// A complex number has a logarithm whatever its sign.
Tensor log_of_complex(const Tensor& t) {
  const Tensor zero = cresset::eq(t, 0);
  return cresset::where(zero, Scalar(-kInfinity), cresset::log(cresset::where(zero, Scalar(1.0), t)));
}
// The result of logcumsumexp is -inf where nothing was added yet.
Tensor is_empty_sum(const Tensor& result) { return cresset::eq(result.is_complex() ? cresset::real(result) : result, Scalar(-kInfinity)); }
}  // namespace

// The sum over j >= i of grad[j] * exp(self[i] - result[j]), conjugate of complex numbers.
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  if (self.numel() == 0) return grad;
  const bool is_complex = self.is_complex();
  const ScalarType type = is_complex ? kComplexDouble : kDouble;
  const Tensor x = cresset::to(self, type), result = cresset::logcumsumexp(x, dim), g = cresset::to(grad, type);
  const auto part = [&](const Tensor& log_of_grad) {
    const Tensor logs = cresset::flip(cresset::where(is_empty_sum(result), Scalar(-kInfinity), log_of_grad - conjugate(result)), {dim});
    return cresset::exp(cresset::flip(cresset::logcumsumexp(logs, dim), {dim}) + conjugate(x));
  };
  if (is_complex) return cresset::to(part(log_of_complex(g)), grad.scalar_type());
  return cresset::to(part(log_of_positive(g)) - part(log_of_positive(cresset::neg(g))), grad.scalar_type());
}
Tensor logcumsumexp_jvp(const Tensor& self_t, const Tensor& self, int64_t dim) {
  if (self.numel() == 0) return self_t;
  const bool is_complex = self.is_complex();
  const ScalarType type = is_complex ? kComplexDouble : kDouble;
  const Tensor x = cresset::to(self, type), result = cresset::logcumsumexp(x, dim), t = cresset::to(self_t, type);
  const auto part = [&](const Tensor& log_of_tangent) {
    const Tensor sums = cresset::logcumsumexp(log_of_tangent + x, dim);
    return cresset::where(is_empty_sum(result), Scalar(0.0), cresset::exp(sums - result));
  };
  if (is_complex) return cresset::to(part(log_of_complex(t)), self_t.scalar_type());
  return cresset::to(part(log_of_positive(t)) - part(log_of_positive(cresset::neg(t))), self_t.scalar_type());
}

Tensor cummaxmin_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& indices, int64_t dim) {
  return cresset::scatter_add(cresset::zeros(sizes, grad.options()), dim, indices, grad);
}

}  // namespace cresset::autograd::formulas
