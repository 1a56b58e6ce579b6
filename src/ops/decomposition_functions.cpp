// Functions of matrices: the exponential, the polar decomposition, the square root.
#include <algorithm>
#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_rounding.h>
#include <cresset/ops/functions_view.h>

#include "ops/decomposition.h"
#include "ops/ops_decl_decomposition.h"

namespace cresset::ops {
namespace {

Tensor times(const Tensor& a, const Tensor& b) { return cresset::matmul(a, b); }

// The Pade approximant [13/13] of exp, for 1-norms below 5.4 (Higham 2005, "The scaling and squaring method for the matrix
// exponential revisited", coefficients of table 2.3 divided by the first).
Tensor pade13(const Tensor& a, const Tensor& identity) {
  double b[14] = {1};
  for (int j = 1; j <= 13; ++j) b[j] = b[j - 1] * (14 - j) / ((27 - j) * j);
  const Tensor a2 = times(a, a), a4 = times(a2, a2), a6 = times(a4, a2);
  const Tensor odd = times(a, times(a6, a6 * b[13] + a4 * b[11] + a2 * b[9]) + a6 * b[7] + a4 * b[5] + a2 * b[3] + identity * b[1]);
  const Tensor even = times(a6, a6 * b[12] + a4 * b[10] + a2 * b[8]) + a6 * b[6] + a4 * b[4] + a2 * b[2] + identity * b[0];
  return std::get<0>(cresset::_linalg_solve_ex(even - odd, even + odd, true, false));
}

}  // namespace

Tensor matrix_exp_impl(const Tensor& self) {
  check_square(self, "linalg.matrix_exp");
  check_floating(self, "linalg.matrix_exp");
  const impl::ExcludeDispatchKeyGuard no_autocast(autocast_dispatch_keyset);  // its products are steps of one factorisation
  if (self.is_meta() || self.numel() == 0) return cresset::empty(self.sizes(), self.options());
  if (self.size(-1) == 1) return cresset::exp(self).contiguous();
  // Where the norm is near the bound the denominator cancels, which in float would cost a tenth of its digits.
  if (self.scalar_type() != kDouble && self.scalar_type() != kComplexDouble)
    return cresset::to(matrix_exp_impl(cresset::to(self, self.is_complex() ? kComplexDouble : kDouble)), self.scalar_type());
  constexpr double kTheta = 5.371920351148152;
  const int64_t n = self.size(-1);
  const Tensor a = self.reshape({-1, n, n});
  // Halved until the norm is small, then squared as often; matrices that are not finite stay as they are.
  const Tensor norm = cresset::to(cresset::amax(cresset::sum(cresset::abs(a), {-2}, false), {-1}), kDouble);
  const Tensor halvings = cresset::clamp_min(cresset::ceil(cresset::log2(norm / kTheta)), 0);
  const Tensor rounds = cresset::where(cresset::isfinite(halvings), halvings, cresset::zeros_like(halvings)).view({-1, 1, 1});
  Tensor x = pade13(a * cresset::to(cresset::exp2(-rounds), a.scalar_type()), cresset::eye(n, a.options()));
  const auto most = static_cast<int64_t>(rounds.max().item<double>());
  for (int64_t i = 0; i < most; ++i) x = cresset::where(cresset::gt(rounds, i), times(x, x), x);
  return x.reshape(self.sizes()).contiguous();
}

std::tuple<Tensor, Tensor> polar_decomposition_impl(const Tensor& A) {
  check_matrix(A, "linalg.polar");
  check_floating(A, "linalg.polar");
  const auto [W, S, Vh] = cresset::_linalg_svd(A, false, true, std::nullopt);
  return {times(W, Vh), times(cresset::adjoint(Vh), S.unsqueeze(-1) * Vh)};
}

Tensor matrix_sqrth_impl(const Tensor& A) {
  check_square(A, "linalg.matrix_sqrth");
  check_floating(A, "linalg.matrix_sqrth");
  const auto [values, V] = cresset::_linalg_eigh(A, "L", true);
  if (values.numel() == 0) return cresset::empty(A.sizes(), A.options());
  // Rounding may leave eigenvalues of a semidefinite matrix slightly below zero; others have no Hermitian root.
  const double eps = (values.scalar_type() == kFloat ? 1.1920929e-7 : 2.220446049250313e-16) * static_cast<double>(A.size(-1));
  const Tensor noise = cresset::amax(cresset::abs(values), {-1}, true) * -eps;
  const Tensor root = cresset::sqrt(cresset::where(cresset::ge(values, noise), cresset::clamp_min(values, 0), values));
  return times(V * root.unsqueeze(-2), cresset::adjoint(V));
}

}  // namespace cresset::ops
