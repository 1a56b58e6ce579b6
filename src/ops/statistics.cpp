// Quantiles, covariance and correlation as compositions.
#include <algorithm>
#include <string_view>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_rounding.h>
#include <cresset/ops/functions_sort.h>
#include <cresset/ops/functions_statistics.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_statistics.h"
#include "ops/shared/lifted.h"
#include "ops/shared/seen_values.h"

namespace cresset::ops {

// ---- quantiles -------------------------------------------------------------------------------------------------------

namespace {

void check_quantile(const Tensor& self, const Tensor& q, std::string_view interpolation) {
  CRESSET_CHECK(self.numel() > 0, "quantile() input tensor must be non-empty");
  CRESSET_CHECK(q.dim() <= 1, "quantile() q must be a scalar or 1D tensor");
  CRESSET_CHECK(self.scalar_type() == kFloat || self.scalar_type() == kDouble,
                "quantile() input tensor must be either float or double dtype");
  CRESSET_CHECK(self.scalar_type() == q.scalar_type(), "quantile() q tensor must be same dtype as the input tensor");
  CRESSET_CHECK(interpolation == "linear" || interpolation == "lower" || interpolation == "higher" || interpolation == "midpoint" ||
                    interpolation == "nearest",
                "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", interpolation);
  CRESSET_CHECK(!has_seen_values(q) || modes_look() || cresset::logical_and(cresset::ge(q, 0), cresset::le(q, 1)).all().item<bool>(),
                "quantile() q values must be in the range [0, 1]");
}

// The largest rank of each sorted row. NaNs sort last: a row with one answers with its last element, which is NaN, or
// they do not count; a row of NaNs alone answers with its first element.
Tensor ranks_of(const Tensor& sorted, const Tensor& q, bool ignore_nan) {
  const int64_t last = sorted.size(-1) - 1;
  if (ignore_nan) {
    const Tensor counted = cresset::sum(cresset::logical_not(cresset::isnan(sorted)), -1, true);
    return cresset::mul(q, cresset::clamp_min(cresset::sub(counted, 1), 0));
  }
  const Tensor has_nan = cresset::isnan(cresset::slice(sorted, -1, last, last + 1, 1));
  return cresset::where(has_nan, cresset::full_like(has_nan, last, sorted.options()), cresset::mul(q, last));
}

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation,
                bool ignore_nan) {
  check_quantile(self, q, interpolation);
  const int64_t d = dim ? maybe_wrap_dim(*dim, self.dim()) : 0;
  const Tensor moved = !dim || self.dim() == 0 ? self.reshape({-1}) : cresset::movedim(self, d, -1);
  const Tensor sorted = std::get<0>(moved.sort(-1, false));
  const Tensor ranks = ranks_of(sorted, q.reshape({-1}), ignore_nan);
  Tensor at = ranks;
  if (interpolation == "lower")
    at = cresset::floor(ranks);
  else if (interpolation == "higher")
    at = cresset::ceil(ranks);
  else if (interpolation == "nearest")
    at = cresset::round(ranks);
  Tensor values = sorted.gather(-1, cresset::floor(at).to(kLong));
  if (interpolation == "linear" || interpolation == "midpoint") {
    const Tensor upper = sorted.gather(-1, cresset::ceil(ranks).to(kLong));
    const Tensor weight = interpolation == "midpoint" ? cresset::full_like(ranks, 0.5) : cresset::sub(ranks, cresset::floor(ranks));
    values = cresset::lerp(values, upper, weight);
  }
  // The quantiles come first, as a dimension only when q has one.
  if (keepdim) {
    if (!dim)
      for (int64_t i = 0; i < self.dim(); ++i) values = values.unsqueeze(0);
    else if (self.dim() > 0)
      values = values.unsqueeze(d < self.dim() ? d : -2);
  }
  if (q.dim() > 0) return cresset::movedim(values, -1, 0);
  return cresset::_unsafe_view(values, values.sizes().slice(0, values.sizes().size() - 1));  // one value a row: the same elements, no view
}

Tensor quantile_at(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation,
                   bool ignore_nan) {
  CRESSET_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got ", q);
  return quantile(self, cresset::full({}, q, self.options()), dim, keepdim, interpolation, ignore_nan);
}

}  // namespace

Tensor quantile_tensor(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  return quantile(self, q, dim, keepdim, interpolation, false);
}
Tensor quantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  return quantile_at(self, q, dim, keepdim, interpolation, false);
}
Tensor nanquantile_tensor(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  return quantile(self, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  return quantile_at(self, q, dim, keepdim, interpolation, true);
}

// ---- second moments ----------------------------------------------------------------------------------------------------

namespace {

void check_weights(const char* name, const Tensor& weights, int64_t observations) {
  CRESSET_CHECK(weights.dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", name, " with ", weights.dim(),
                " dimensions");
  CRESSET_CHECK(weights.numel() == observations, "cov(): expected ", name,
                " to have the same numel as there are observations in the input but got ", weights.numel(), " != ", observations);
  CRESSET_CHECK(observations == 0 || weights.is_meta() || cresset::min(weights).item<double>() >= 0, "cov(): ", name,
                " cannot be negative");
}

void warn_degrees_of_freedom() {
  cresset::warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
}

}  // namespace

Tensor cov_impl(const Tensor& self, int64_t correction, const std::optional<Tensor>& fweights, const std::optional<Tensor>& aweights) {
  CRESSET_CHECK(self.dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ", self.dim(), " dimensions");
  CRESSET_CHECK(self.scalar_type() != kBool, "cov(): bool dtype is not supported for input");
  const Tensor in = self.dim() < 2 ? self.reshape({1, -1}) : self;
  const int64_t observations = in.size(1);
  Tensor weights;
  if (fweights && fweights->defined()) {
    CRESSET_CHECK(fweights->dim() <= 1, "cov(): expected fweights to have one or fewer dimensions but got fweights with ", fweights->dim(),
                  " dimensions");
    CRESSET_CHECK(isIntegralType(fweights->scalar_type(), false), "cov(): expected fweights to have integral dtype but got fweights with ",
                  fweights->scalar_type(), " dtype");
    check_weights("fweights", *fweights, observations);
    weights = *fweights;
  }
  if (aweights && aweights->defined()) {
    CRESSET_CHECK(aweights->dim() <= 1, "cov(): expected aweights to have one or fewer dimensions but got aweights with ", aweights->dim(),
                  " dimensions");
    CRESSET_CHECK(aweights->is_floating_point(), "cov(): expected aweights to have floating point dtype but got aweights with ",
                  aweights->scalar_type(), " dtype");
    check_weights("aweights", *aweights, observations);
    weights = weights.defined() ? cresset::mul(weights, *aweights) : *aweights;
  }

  if (!weights.defined()) {
    const int64_t freedom = observations - correction;
    if (freedom <= 0) warn_degrees_of_freedom();
    const Tensor centred = cresset::sub(in, cresset::div(cresset::sum(in, 1, true), observations));
    return cresset::div(cresset::mm(centred, cresset::conj(centred.t())), std::max<int64_t>(freedom, 0)).squeeze();
  }
  const Tensor total = cresset::sum(weights);
  CRESSET_CHECK(total.is_meta() || cresset::ne(total, 0).item<bool>(), "cov(): weights sum to zero, can't be normalized");
  Tensor freedom = total;
  if (correction != 0) {
    const bool importance = aweights && aweights->defined();
    freedom = importance
                  ? cresset::sub(total, cresset::mul(cresset::div(cresset::sum(cresset::mul(weights, *aweights)), total), correction))
                  : cresset::sub(total, correction);
  }
  if (!freedom.is_meta() && cresset::le(freedom, 0).item<bool>()) {
    warn_degrees_of_freedom();
    freedom = cresset::zeros_like(freedom);
  }
  // Products of small integers need more bits than they have.
  const Tensor wide = isIntegralType(in.scalar_type(), false) ? in.to(kLong) : in;
  const Tensor centred = cresset::sub(in, cresset::div(cresset::sum(cresset::mul(wide, weights), 1, true), total));
  const Tensor weighted = cresset::mul(centred, weights);
  const ScalarType type = promote_types(centred.scalar_type(), weighted.scalar_type());
  return cresset::div(cresset::mm(centred.to(type), cresset::conj(weighted.to(type).t())), freedom).squeeze();
}

Tensor corrcoef_impl(const Tensor& self) {
  CRESSET_CHECK(self.dim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with ", self.dim(),
                " dimensions");
  const Tensor c = cresset::cov(self);
  if (c.dim() == 0) return cresset::div(c, c);
  const Tensor variances = cresset::diagonal(c);
  const Tensor deviations = cresset::sqrt(c.is_complex() ? cresset::real(variances) : variances);
  const Tensor out = cresset::div(cresset::div(c, deviations.unsqueeze(1)), deviations.unsqueeze(0));
  // Rounding may leave [-1, 1].
  if (!out.is_complex()) return cresset::clamp(out, -1, 1);
  return cresset::complex(cresset::clamp(cresset::real(out), -1, 1), cresset::clamp(cresset::imag(out), -1, 1));
}

}  // namespace cresset::ops
