// Reductions: from folds to results.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include <cresset/base/warn_always.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/reduce_fold.h"
#include "backends/cpu/walk.h"
#include "cpu/cpu_decl_reduce.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

namespace {

uint64_t all_dims(const Tensor& self) { return ops::reduce_mask(std::nullopt, self.dim()); }
uint64_t one_dim(const Tensor& self, int64_t dim) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  return self.dim() == 0 ? 0 : uint64_t{1} << d;
}
int64_t reduced_numel(const Tensor& self, uint64_t mask) {
  int64_t n = 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (mask >> d & 1) n *= self.size(d);
  return n;
}

// Stores acc -> finish(acc) as elements of out's type (real types).
template <class Acc, class F>
void store_as(const Tensor& out, const Fold& fold, const Tensor& self, uint64_t mask, const F& finish) {
  CRESSET_DISPATCH(out.scalar_type(), "reduce", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    reduce_with<Acc>(fold, self, mask, out, [&](const Acc* acc, int64_t n, int64_t offset, int64_t stride) {
      for (int64_t i = 0; i < n; ++i) {
        const auto v = finish(acc[i]);
        if constexpr (std::is_same_v<scalar_t, bool>)
          to[offset + i * stride] = v != 0;
        else
          to[offset + i * stride] = static_cast<scalar_t>(static_cast<opmath_type<scalar_t>>(v));
      }
    });
  });
}

// Complex tensors are summed as pairs of real numbers: one more kept dimension of size 2.
Tensor as_pairs(const Tensor& t) {
  if (!t.is_complex()) return t;
  DimVector sizes(t.sizes()), strides;
  for (int64_t s : t.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  return ops::make_view(t, sizes, strides, 2 * t.storage_offset(), toRealValueType(t.scalar_type()));
}

// Values that a fold may take in the place of values cast to `to`: the cast would not change them or their sum.
bool folds_without_cast(ScalarType from, ScalarType to) {
  if (from == to) return true;
  if (is_stored_type(from)) return false;
  if (isIntegralType(from, true))
    return to == kLong || (to == kBool && from == kBool) || (isIntegralType(to, false) && element_size(to) >= element_size(from));
  return isFloatingType(from) && (to == kDouble || (to == kFloat && from != kDouble));
}

void fold_sum(FoldKind kind, const char* name, const Tensor& self, uint64_t mask, const Tensor& out, double divisor) {
  const ScalarType type = out.scalar_type();
  if (self.is_complex() || isComplexType(type)) {
    const Tensor from = self.scalar_type() == type ? self : self.to(type);
    // The one dimension that a number may be reduced over is not the one of the pairs.
    fold_sum(kind, name, as_pairs(from), from.dim() == 0 ? 0 : mask, as_pairs(out), divisor);
    return;
  }
  if (kind == FoldKind::NanSum && isFloatingType(self.scalar_type()) && isIntegralType(type, true)) {
    // No integer says that it was not a number: zeros take their place before the cast.
    return fold_sum(FoldKind::Sum, name, self.masked_fill(self.isnan(), 0), mask, out, divisor);
  }
  const Tensor from = folds_without_cast(self.scalar_type(), type) ? standard_bools(self) : self.to(type);
  const bool integers = isIntegralType(from.scalar_type(), true);
  if (kind == FoldKind::NanSum && integers) kind = FoldKind::Sum;
  const Fold& fold = find_fold(kind, from.scalar_type(), name);
  if (integers)
    store_as<int64_t>(out, fold, from, mask, [](int64_t v) { return v; });
  else
    store_as<double>(out, fold, from, mask, [divisor](double v) { return v / divisor; });
}

}  // namespace

void sum(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>, const Tensor& out) {
  fold_sum(FoldKind::Sum, "sum_cpu", self, ops::reduce_mask(dim, self.dim()), out, 1);
}
void mean(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>, const Tensor& out) {
  const uint64_t mask = ops::reduce_mask(dim, self.dim());
  fold_sum(FoldKind::Sum, "mean_cpu", self, mask, out, static_cast<double>(reduced_numel(self, mask)));
  // The count of a complex mean is a complex number: a part that is not finite makes the other one NaN, as division does.
  if (out.is_complex()) out.div_(Scalar(1));
}
void nansum(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>, const Tensor& out) {
  fold_sum(FoldKind::NanSum, "nansum_cpu", self, ops::reduce_mask(dim, self.dim()), out, 1);
}

namespace {

// Products of complex numbers, one result after the other.
void complex_prod(const Tensor& self, uint64_t mask, const Tensor& out) {
  const Tensor from = self.scalar_type() == out.scalar_type() ? self : self.to(out.scalar_type());
  // Reduced dimensions last; each result is one run of a contiguous copy.
  DimVector order;
  for (int64_t d = 0; d < from.dim(); ++d)
    if (!(mask >> d & 1)) order.push_back(d);
  for (int64_t d = 0; d < from.dim(); ++d)
    if (mask >> d & 1) order.push_back(d);
  const Tensor rows = from.permute(order).contiguous();
  const int64_t n = reduced_numel(from, mask), results = out.numel();
  CRESSET_DISPATCH(out.scalar_type(), "prod_cpu", CRESSET_CASES_COMPLEX, [&] {
    const scalar_t* p = rows.const_data_ptr<scalar_t>();
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    for (int64_t r = 0; r < results; ++r, p += n) {
      std::complex<double> v = 1;
      for (int64_t i = 0; i < n; ++i) v *= std::complex<double>(p[i]);
      to[r] = scalar_t(v);
    }
  });
}

void fold_prod(const Tensor& self, uint64_t mask, const Tensor& out) {
  const ScalarType type = out.scalar_type();
  if (self.is_complex() && !isComplexType(type)) return fold_prod(self.to(type), mask, out);
  if (isComplexType(type)) return complex_prod(self, mask, out);
  const Tensor from = folds_without_cast(self.scalar_type(), type) ? standard_bools(self) : self.to(type);
  const Fold& fold = find_fold(FoldKind::Prod, from.scalar_type(), "prod_cpu");
  if (isIntegralType(from.scalar_type(), true))
    store_as<int64_t>(out, fold, from, mask, [](int64_t v) { return v; });
  else
    store_as<double>(out, fold, from, mask, [](double v) { return v; });
}

// Max, Min: the accumulator has the element type.
void fold_extreme(FoldKind kind, const char* name, const Tensor& given, uint64_t mask, const Tensor& out) {
  const Tensor self = standard_bools(given);
  const Fold& fold = find_fold(kind, self.scalar_type(), name);
  CRESSET_DISPATCH(self.scalar_type(), name, CRESSET_REAL_AND_BOOL_TYPES, [&] {
    using Acc = std::conditional_t<std::is_same_v<scalar_t, bool>, uint8_t, opmath_type<scalar_t>>;
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    reduce_with<Acc>(fold, self, mask, out, [&](const Acc* acc, int64_t n, int64_t offset, int64_t stride) {
      for (int64_t i = 0; i < n; ++i) to[offset + i * stride] = static_cast<scalar_t>(acc[i]);
    });
  });
}

// ArgMax, ArgMin over one dimension, or over a tensor flattened before. values may be undefined.
void fold_index(FoldKind kind, const char* name, const Tensor& given, uint64_t mask, const Tensor& values, const Tensor& indices) {
  const Tensor self = standard_bools(given);
  const Fold& fold = find_fold(kind, self.scalar_type(), name);
  int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
  CRESSET_DISPATCH(self.scalar_type(), name, CRESSET_REAL_AND_BOOL_TYPES, [&] {
    scalar_t* const to = values.defined() ? values.mutable_data_ptr<scalar_t>() : nullptr;
    reduce_with<FoldIndexed>(fold, self, mask, indices, [&](const FoldIndexed* acc, int64_t n, int64_t offset, int64_t stride) {
      for (int64_t i = 0; i < n; ++i) {
        to_index[offset + i * stride] = acc[i].index;
        if (!to) continue;
        if constexpr (std::is_integral_v<scalar_t>)
          to[offset + i * stride] = static_cast<scalar_t>(acc[i].exact);
        else
          to[offset + i * stride] = static_cast<scalar_t>(static_cast<opmath_type<scalar_t>>(acc[i].value));
      }
    });
  });
}

// A single element per result: dimension of a 0-dim tensor, whose index is 0.
void index_of_scalar(const Tensor& self, const Tensor& values, const Tensor& indices) {
  if (values.defined()) ops::copy_data(self, values);
  *indices.mutable_data_ptr<int64_t>() = 0;
}

void arg_reduce(FoldKind kind, const char* name, const Tensor& self, std::optional<int64_t> dim, const Tensor& out) {
  if (self.dim() == 0) return index_of_scalar(self, Tensor(), out);
  if (dim) return fold_index(kind, name, self, one_dim(self, *dim), Tensor(), out);
  const Tensor flat = self.contiguous().view({-1}), result = out.dim() == 0 ? out : out.view(IntArrayRef());
  fold_index(kind, name, flat, 1, Tensor(), result);
}
void dim_reduce(FoldKind kind, const char* name, const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  if (self.dim() == 0) return index_of_scalar(self, values, indices);
  fold_index(kind, name, self, one_dim(self, dim), values, indices);
}

}  // namespace

void prod_all(const Tensor& self, std::optional<ScalarType>, const Tensor& out) { fold_prod(self, all_dims(self), out); }
void prod(const Tensor& self, int64_t dim, bool, std::optional<ScalarType>, const Tensor& out) { fold_prod(self, one_dim(self, dim), out); }

void amax(const Tensor& self, IntArrayRef dim, bool, const Tensor& out) {
  fold_extreme(FoldKind::Max, "max_values_cpu", self, ops::reduce_mask(dim, self.dim()), out);
}
void amin(const Tensor& self, IntArrayRef dim, bool, const Tensor& out) {
  fold_extreme(FoldKind::Min, "min_values_cpu", self, ops::reduce_mask(dim, self.dim()), out);
}
void max_all(const Tensor& self, const Tensor& out) { fold_extreme(FoldKind::Max, "max_all", self, all_dims(self), out); }
void min_all(const Tensor& self, const Tensor& out) { fold_extreme(FoldKind::Min, "min_all", self, all_dims(self), out); }
void aminmax(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& min, const Tensor& max) {
  const uint64_t mask = dim ? one_dim(self, *dim) : all_dims(self);
  fold_extreme(FoldKind::Min, "aminmax_cpu", self, mask, min);
  fold_extreme(FoldKind::Max, "aminmax_cpu", self, mask, max);
}
void max_dim(const Tensor& self, int64_t dim, bool, const Tensor& max, const Tensor& max_values) {
  dim_reduce(FoldKind::ArgMax, "max_cpu", self, dim, max, max_values);
}
void min_dim(const Tensor& self, int64_t dim, bool, const Tensor& min, const Tensor& min_indices) {
  dim_reduce(FoldKind::ArgMin, "min_cpu", self, dim, min, min_indices);
}
void argmax(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  arg_reduce(FoldKind::ArgMax, "argmax_cpu", self, dim, out);
}
void argmin(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  arg_reduce(FoldKind::ArgMin, "argmin_cpu", self, dim, out);
}

// ---- counting --------------------------------------------------------------------------------------------------------

namespace {

// decide(number of nonzero elements, number of elements) for every result.
template <class F>
void count_with(const Tensor& self, uint64_t mask, const Tensor& out, const F& decide) {
  const Tensor from = self.is_complex() || is_stored_type(self.scalar_type()) ? cresset::ne(self, 0) : self;
  const int64_t n = reduced_numel(self, mask);
  store_as<int64_t>(out, find_fold(FoldKind::CountNonzero, from.scalar_type(), "count_nonzero_cpu"), from, mask,
                    [&](int64_t count) { return decide(count, n); });
}
void any_of(const Tensor& self, uint64_t mask, const Tensor& out) {
  count_with(self, mask, out, [](int64_t count, int64_t) { return static_cast<int64_t>(count > 0); });
}
void all_of(const Tensor& self, uint64_t mask, const Tensor& out) {
  count_with(self, mask, out, [](int64_t count, int64_t n) { return static_cast<int64_t>(count == n); });
}
uint64_t listed(const Tensor& self, OptionalIntArrayRef dim) { return dim ? ops::dim_mask(*dim, self.dim()) : all_dims(self); }

}  // namespace

void any_all(const Tensor& self, const Tensor& out) { any_of(self, all_dims(self), out); }
void any_dim(const Tensor& self, int64_t dim, bool, const Tensor& out) { any_of(self, one_dim(self, dim), out); }
void any_dims(const Tensor& self, OptionalIntArrayRef dim, bool, const Tensor& out) { any_of(self, listed(self, dim), out); }
void all_all(const Tensor& self, const Tensor& out) { all_of(self, all_dims(self), out); }
void all_dim(const Tensor& self, int64_t dim, bool, const Tensor& out) { all_of(self, one_dim(self, dim), out); }
void all_dims(const Tensor& self, OptionalIntArrayRef dim, bool, const Tensor& out) { all_of(self, listed(self, dim), out); }
void count_nonzero_dims(const Tensor& self, IntArrayRef dim, const Tensor& out) {
  count_with(self, ops::reduce_mask(dim, self.dim()), out, [](int64_t count, int64_t) { return count; });
}
void count_nonzero(const Tensor& self, std::optional<int64_t> dim, const Tensor& out) {
  count_with(self, dim ? one_dim(self, *dim) : all_dims(self), out, [](int64_t count, int64_t) { return count; });
}

// ---- moments ---------------------------------------------------------------------------------------------------------

namespace {

// var (or its root) and, when wanted, the mean. A complex variance is the sum of those of the two parts.
void moments(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool root, const Tensor& spread,
             const Tensor& mean) {
  const uint64_t mask = ops::reduce_mask(dim, self.dim());
  const double minus = correction ? correction->toDouble() : 1;
  const auto variance = [minus](const FoldMoments& m) { return m.n == 0 ? std::nan("") : m.m2 / std::max(0.0, m.n - minus); };
  if (self.is_complex()) {
    const Tensor pairs = as_pairs(self);
    const Tensor parts = detail::empty_cpu(ops::reduced_sizes(pairs.sizes(), mask, spread.dim() == self.dim()), pairs.scalar_type());
    store_as<FoldMoments>(parts, find_fold(FoldKind::Moments, pairs.scalar_type(), "var_cpu"), pairs, mask, variance);
    const Tensor both = cresset::sum(parts, IntArrayRef({-1}));
    ops::copy_data(root ? cresset::sqrt(both) : both, spread);
    if (mean.defined()) ops::copy_data(cresset::mean(self, dim, mean.dim() == self.dim()), mean);
    return;
  }
  if (reduced_numel(self, mask) <= minus && minus > 0 && self.numel() > 0)
    cresset::warn(
        str(root ? "std" : "var", mean.defined() ? "_mean" : "",
            "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by output "
            "numel)."));
  const Fold& fold = find_fold(FoldKind::Moments, self.scalar_type(), "var_cpu");
  CRESSET_DISPATCH(self.scalar_type(), "var_cpu", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    scalar_t* const to = spread.mutable_data_ptr<scalar_t>();
    scalar_t* const to_mean = mean.defined() ? mean.mutable_data_ptr<scalar_t>() : nullptr;
    reduce_with<FoldMoments>(fold, self, mask, spread, [&](const FoldMoments* acc, int64_t n, int64_t offset, int64_t stride) {
      using C = opmath_type<scalar_t>;
      for (int64_t i = 0; i < n; ++i) {
        const double v = variance(acc[i]);
        to[offset + i * stride] = static_cast<scalar_t>(static_cast<C>(root ? std::sqrt(v) : v));
        if (to_mean) to_mean[offset + i * stride] = static_cast<scalar_t>(static_cast<C>(acc[i].n == 0 ? std::nan("") : acc[i].mean));
      }
    });
  });
}

}  // namespace

void var(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool, const Tensor& out) {
  moments(self, dim, correction, false, out, Tensor());
}
void std_deviation(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool, const Tensor& out) {
  moments(self, dim, correction, true, out, Tensor());
}
void var_mean(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool, const Tensor& out0,
              const Tensor& out1) {
  moments(self, dim, correction, false, out0, out1);
}
void std_mean(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool, const Tensor& out0,
              const Tensor& out1) {
  moments(self, dim, correction, true, out0, out1);
}

// ---- norms -----------------------------------------------------------------------------------------------------------

void vector_norm(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool, std::optional<ScalarType> dtype, const Tensor& out) {
  const uint64_t mask = ops::reduce_mask(dim, self.dim());
  const double p = ord.toDouble();
  Tensor from = self;
  if (dtype && !folds_without_cast(self.scalar_type(), *dtype)) from = self.to(*dtype);
  if (from.is_complex()) {
    if (p == 2) {  // squares of both parts: the pair is one more reduced dimension
      const Tensor numbers = from;
      from = as_pairs(numbers);
      const uint64_t pairs = mask | uint64_t{1} << self.dim();
      const Tensor result = out.dim() == self.dim() ? out.unsqueeze(-1) : out;
      store_as<double>(result, find_fold(FoldKind::SumSquares, from.scalar_type(), "norm"), from, pairs,
                       [](double v) { return std::sqrt(v); });
      // The length of a number with an infinite part is infinite, also where the other part is NaN.
      if (!cresset::isnan(out).any().item().toBool()) return;
      from = numbers;
    }
    from = cresset::abs(from);
  }
  const ScalarType type = from.scalar_type();
  const auto identity = [](double v) { return v; };
  if (p != 0 && !std::isnan(p) && from.numel() == out.numel())  // of single elements: no power could overflow
    return store_as<double>(out, find_fold(FoldKind::SumAbs, type, "norm"), from, mask, identity);
  if (p == 2)
    return store_as<double>(out, find_fold(FoldKind::SumSquares, type, "norm"), from, mask, [](double v) { return std::sqrt(v); });
  if (p == 1) return store_as<double>(out, find_fold(FoldKind::SumAbs, type, "norm"), from, mask, identity);
  if (p == 0)
    return store_as<int64_t>(out, find_fold(FoldKind::CountNonzero, type, "norm"), from, mask,
                             [](int64_t v) { return static_cast<double>(v); });
  if (std::isinf(p)) {
    const Fold& fold = find_fold(p > 0 ? FoldKind::MaxAbs : FoldKind::MinAbs, type, "norm");
    return store_as<double>(out, fold, from, mask, [](double v) { return v == -1 ? 0.0 : v; });
  }
  const Tensor powers = cresset::pow(cresset::abs(from.to(kDouble)), p);
  store_as<double>(out, find_fold(FoldKind::Sum, kDouble, "norm"), powers, mask, [p](double v) { return std::pow(v, 1 / p); });
}

void logsumexp(const Tensor& self, IntArrayRef dim, bool, const Tensor& out) {
  const uint64_t mask = ops::reduce_mask(dim, self.dim());
  const Tensor from = isDifferentiableType(self.scalar_type()) ? self : self.to(out.scalar_type());
  if (from.numel() == 0) {
    return ops::copy_data(cresset::full({}, -std::numeric_limits<double>::infinity(), TensorOptions(out.scalar_type())), out);
  }
  DimVector dims;
  for (int64_t d = 0; d < from.dim(); ++d)
    if (mask >> d & 1) dims.push_back(d);
  const Tensor size = from.is_complex() ? cresset::real(from) : from;
  const Tensor largest = from.dim() == 0 ? size : cresset::amax(size, IntArrayRef(dims), true);
  // Infinite maxima are not subtracted: inf - inf would be NaN.
  const Tensor shift = cresset::masked_fill(largest, cresset::eq(cresset::abs(largest), std::numeric_limits<double>::infinity()), 0);
  const Tensor exponentials = cresset::exp(cresset::sub(from, shift));
  const Tensor total = from.dim() == 0 ? exponentials : cresset::sum(exponentials, IntArrayRef(dims), true);
  ops::copy_data(cresset::add(cresset::log(total), shift).view(out.sizes()), out);
}

// ---- equal -----------------------------------------------------------------------------------------------------------

template <class T>
bool equal_elements(T a, T b) {
  if constexpr (is_complex_v<T>)
    return a == b;
  else
    return static_cast<opmath_type<T>>(a) == static_cast<opmath_type<T>>(b);
}

bool equal(const Tensor& self, const Tensor& other) {
  ops::check_same_device("equal", self, other, "other");
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  const ScalarType type = promote_types(self.scalar_type(), other.scalar_type());
  const Tensor a = standard_bools(self.to(type)), b = standard_bools(other.to(type));
  const Walk<2> walk(a.sizes(), {a.strides(), b.strides()}, true);
  return CRESSET_DISPATCH(type, "equal_cpu", CRESSET_STORED_AND_ALL_TYPES, [&] {
    const scalar_t *const x = a.const_data_ptr<scalar_t>(), *const y = b.const_data_ptr<scalar_t>();
    bool same = true;
    walk.run([&](const std::array<int64_t, 2>& at) {
      if (!same) return;
      const int64_t n = walk.row_size(), s = walk.stride(0), t = walk.stride(1);
      // Blocks, so that a difference near the front ends the work.
      for (int64_t i = 0; i < n && same; i += 4096) {
        bool block = true;
        for (int64_t k = i; k < std::min(n, i + 4096); ++k) block &= equal_elements(x[at[0] + k * s], y[at[1] + k * t]);
        same = block;
      }
    });
    return same;
  });
}

}  // namespace cresset::cpu
