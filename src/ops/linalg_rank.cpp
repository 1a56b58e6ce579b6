// Condition numbers, ranks and pseudo-inverses: what singular values and eigenvalues tell.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_linalg.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/decomposition.h"
#include "ops/ops_decl_linalg.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

// ---- condition -----------------------------------------------------------------------------------------------------------

namespace {

Tensor batch_zeros(const Tensor& self, ScalarType dtype) { return cresset::zeros(batch_of(self), self.options().dtype(dtype)); }

// norm(self) * norm(inverse), infinite where there is no inverse.
template <class Ord>
Tensor cond_by_inverse(const Tensor& self, const Ord& ord) {
  CRESSET_CHECK(self.size(-1) == self.size(-2), "linalg.cond(ord=", ord, "): A must be batches of square matrices, but they are ",
                self.size(-2), " by ", self.size(-1), " matrices");
  if (self.numel() == 0) return batch_zeros(self, toRealValueType(self.scalar_type()));
  check_floating(self, "linalg.inv", /*allow_half=*/false);
  const auto [inverse, info] = cresset::linalg_inv_ex(self, /*check_errors=*/false);
  const Tensor product = cresset::mul(cresset::linalg_matrix_norm(self, ord), cresset::linalg_matrix_norm(inverse, ord));
  return cresset::masked_fill(product, cresset::gt(info, 0), std::numeric_limits<double>::infinity());
}

void check_cond(const Tensor& self) { CRESSET_CHECK(self.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions."); }

}  // namespace

Tensor cond_impl(const Tensor& self, const std::optional<Scalar>& p) {
  check_cond(self);
  const Scalar ord = p.value_or(2);
  CRESSET_CHECK(!ord.isComplex(), "linalg.cond got an invalid norm type: ", ord);
  const double order = ord.toDouble(), size = std::abs(order);
  CRESSET_CHECK(size == 1 || size == 2 || std::isinf(size), "linalg.cond got an invalid norm type: ", ord);
  if (size != 2) return cond_by_inverse(self, ord);
  if (self.numel() == 0) return batch_zeros(self, toRealValueType(self.scalar_type()));
  const Tensor values = cresset::linalg_svdvals(self);
  const Tensor largest = values.select(-1, 0), smallest = values.select(-1, -1);
  return order > 0 ? cresset::div(largest, smallest) : cresset::div(smallest, largest);
}

Tensor cond_str(const Tensor& self, std::string_view p) {
  check_cond(self);
  CRESSET_CHECK(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  if (p == "fro") return cond_by_inverse(self, p);
  CRESSET_CHECK(self.size(-1) == self.size(-2), "linalg.cond(ord=nuc): A must be batches of square matrices, but they are ", self.size(-2),
                " by ", self.size(-1), " matrices");
  if (self.numel() == 0) return batch_zeros(self, toRealValueType(self.scalar_type()));
  // The inverse's singular values are the reciprocals.
  const Tensor values = cresset::linalg_svdvals(self);
  return cresset::mul(cresset::sum(values, -1), cresset::sum(cresset::reciprocal(values), -1));
}

// ---- tolerances ------------------------------------------------------------------------------------------------------------

namespace {

double epsilon(ScalarType type) {
  const ScalarType real = toRealValueType(type);
  CRESSET_CHECK(real == kFloat || real == kDouble, "This function doesn't handle types other than float and double");
  return real == kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

struct Tolerances {
  Tensor atol, rtol;
  // The value that counts as zero, for the largest value of each matrix (with a last dimension of 1).
  Tensor zero(const Tensor& largest) const { return cresset::maximum(atol.unsqueeze(-1), cresset::mul(rtol.unsqueeze(-1), largest)); }
};

Tensor number(const Tensor& self, double value) {
  const ScalarType type = isIntegralType(self.scalar_type(), true) ? kDouble : toRealValueType(self.scalar_type());
  return cresset::full({}, value, self.options().dtype(type));
}
double default_rtol(const Tensor& self) {
  return epsilon(self.scalar_type()) * static_cast<double>(std::max(self.size(-1), self.size(-2)));
}

// Without rtol, and with an atol that leaves a matrix without tolerance, rounding of the decomposition decides.
Tolerances tolerances(const char* op, const Tensor& self, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol) {
  const auto checked = [&](const char* name, const std::optional<Tensor>& t) {
    CRESSET_CHECK(!t->is_complex(), "torch.", op, ": ", name, " tensor of complex type is not supported. Got ", t->scalar_type());
    return *t;
  };
  Tolerances out;
  const bool has_atol = atol && atol->defined();
  out.atol = has_atol ? checked("atol", atol) : number(self, 0);
  if (rtol && rtol->defined()) {
    out.rtol = checked("rtol", rtol);
  } else {
    out.rtol = number(self, default_rtol(self));
    if (has_atol) out.rtol = cresset::where(cresset::gt(out.atol, 0), number(self, 0), out.rtol);
  }
  return out;
}
Tolerances tolerances(const Tensor& self, std::optional<double> atol, std::optional<double> rtol) {
  const double absolute = atol.value_or(0);
  return {number(self, absolute), number(self, rtol ? *rtol : absolute > 0 ? 0 : default_rtol(self))};
}

}  // namespace

// ---- rank ------------------------------------------------------------------------------------------------------------------

namespace {

void check_rank(const Tensor& self) {
  CRESSET_CHECK(self.dim() >= 2, "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.");
}

Tensor rank(const Tensor& self, const Tolerances& t, bool hermitian) {
  if (self.numel() == 0) return batch_zeros(self, kLong);
  const Tensor values = hermitian ? cresset::abs(cresset::linalg_eigvalsh(self)) : cresset::linalg_svdvals(self);
  return cresset::sum(cresset::gt(values, t.zero(cresset::amax(values, -1, true))), -1);
}

}  // namespace

Tensor matrix_rank_tol(const Tensor& self, double tol, bool hermitian) {
  check_rank(self);
  return rank(self, tolerances(self, tol, 0.0), hermitian);
}
Tensor matrix_rank_tol_tensor(const Tensor& input, const Tensor& tol, bool hermitian) {
  check_rank(input);
  return rank(input, tolerances("linalg.matrix_rank", input, tol, number(input, 0)), hermitian);
}
Tensor matrix_rank_tensors(const Tensor& input, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol, bool hermitian) {
  check_rank(input);
  return rank(input, tolerances("linalg.matrix_rank", input, atol, rtol), hermitian);
}
Tensor matrix_rank_floats(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  check_rank(self);
  return rank(self, tolerances(self, atol, rtol), hermitian);
}

// ---- pseudo-inverses -------------------------------------------------------------------------------------------------------

namespace {

void check_pinv(const Tensor& self) {
  CRESSET_CHECK(
      self.dim() >= 2 && isDifferentiableType(self.scalar_type()) && self.scalar_type() != kHalf && self.scalar_type() != kBFloat16,
      "linalg.pinv(", self.scalar_type(), "{", self.sizes(),
      "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
}

// 1/values, zero where they count as zero.
Tensor inverse_values(const Tensor& values, const Tensor& magnitudes, const Tensor& zero) {
  return cresset::where(cresset::gt(magnitudes, zero), cresset::reciprocal(values), cresset::zeros_like(values));
}

}  // namespace

Tensor pinv_tensors(const Tensor& self, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol, bool hermitian) {
  check_pinv(self);
  const Tolerances t = tolerances("linalg.pinv", self, atol, rtol);
  if (self.numel() == 0) return cresset::empty(batch_and(batch_of(self), {self.size(-1), self.size(-2)}), self.options());
  if (hermitian) {
    const auto [values, vectors] = cresset::linalg_eigh(self);
    const Tensor magnitudes = cresset::abs(values);
    const Tensor inverse = inverse_values(values, magnitudes, t.zero(cresset::amax(magnitudes, -1, true)));
    return cresset::matmul(cresset::mul(vectors, inverse.unsqueeze(-2)), vectors.mH());
  }
  const auto [u, values, vh] = cresset::linalg_svd(self, /*full_matrices=*/false);
  const Tensor inverse = inverse_values(values, values, t.zero(cresset::slice(values, -1, 0, 1, 1)));
  return cresset::matmul(cresset::mul(vh.mH(), inverse.unsqueeze(-2)), u.mH());
}

Tensor pinv_floats(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  check_pinv(self);
  const Tolerances t = tolerances(self, atol, rtol);
  return cresset::linalg_pinv(self, t.atol, t.rtol, hermitian);
}
Tensor pinv_rcond(const Tensor& self, double rcond, bool hermitian) { return pinv_floats(self, 0.0, rcond, hermitian); }
Tensor pinv_rcond_tensor(const Tensor& self, const Tensor& rcond, bool hermitian) {
  check_pinv(self);
  return cresset::linalg_pinv(self, number(self, 0), rcond, hermitian);
}

}  // namespace cresset::ops
