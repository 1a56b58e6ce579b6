// Derivatives of factorisations. Sources, besides the plain rules of matrix calculus (Giles 2008, "Collected matrix derivative
// results for forward and reverse mode algorithmic differentiation"): Murray 2016 for Cholesky, Walter and Lehmann 2010 for QR,
// Boeddeker et al. 2017 for the complex convention and for eig, Townsend 2016 for the singular value decomposition.
//
// <X, Y> = Re tr(X^H Y) throughout. A gradient gX of X means: the loss moves by <gX, dX>.
#include "autograd/formulas_decomposition.h"

#include "autograd/formulas.h"
#include "autograd/generated_support.h"
#include "ops/shared/lifted.h"
#include "ops/shared/seen_values.h"

#include <algorithm>
#include <complex>

#include <cresset/core/grad_mode.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {
namespace {

Tensor H(const Tensor& x) { return cresset::adjoint(x); }
Tensor times(const Tensor& a, const Tensor& b) { return cresset::matmul(a, b); }
Tensor times(const Tensor& a, const Tensor& b, const Tensor& c) { return times(times(a, b), c); }
Tensor diagonal_of(const Tensor& x) { return cresset::diagonal(x, 0, -2, -1); }
Tensor embed(const Tensor& x) { return cresset::diag_embed(x); }
/// Columns scaled by s, that is x diag(s); and rows, diag(s) x.
Tensor columns(const Tensor& x, const Tensor& s) { return x * s.unsqueeze(-2); }
Tensor rows(const Tensor& s, const Tensor& x) { return s.unsqueeze(-1) * x; }
Tensor real_part(const Tensor& x) { return x.is_complex() ? cresset::real(x) : x; }
/// i times the imaginary part of a complex tensor.
Tensor imaginary(const Tensor& x) {
  const Tensor part = cresset::imag(x);
  return cresset::complex(cresset::zeros_like(part), part);
}
Tensor hermitian_part(const Tensor& x) { return (x + H(x)) * 0.5; }
Tensor trace_of(const Tensor& x) { return cresset::sum(diagonal_of(x), {-1}, false); }

void add_to(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; }

/// Lower triangle with half of the diagonal: phi(X) + phi(X)^H = X for Hermitian X.
Tensor phi(const Tensor& x) { return cresset::tril(x) - embed(diagonal_of(x) * 0.5); }
Tensor phi_upper(const Tensor& x) { return cresset::triu(x) - embed(diagonal_of(x) * 0.5); }

Tensor identity_like(const Tensor& x) { return cresset::eye(x.size(-1), x.options()); }

/// a_j - a_i, with 1 on the diagonal: what differences of eigenvectors are divided by.
Tensor gaps(const Tensor& a) { return a.unsqueeze(-2) - a.unsqueeze(-1) + cresset::eye(a.size(-1), a.options()); }
Tensor without_diagonal(const Tensor& x) { return x - embed(diagonal_of(x)); }

/// Raises when a loss depends on the phase of complex vectors; `phase` holds what must vanish. Where no values are to be asked for (under
/// vmap, in a trace), nothing is known.
void check_gauge(const char* op, const char* what, const Tensor& phase) {
  if (!ops::has_seen_values(phase) || ops::modes_look() || phase.numel() == 0) return;
  AutoGradMode off(false);
  const double worst = cresset::abs(cresset::to(phase.detach(), kDouble)).max().item<double>();
  CRESSET_CHECK(!(worst > 1e-2), op, ": The ", what,
                " in the complex case are specified up to multiplication by e^{i phi}. The specified loss function depends on this "
                "quantity, so it is ill-defined.");
}

}  // namespace

// ---- Cholesky: dL = L phi(L^-1 dA L^-H) --------------------------------------------------------------------------------

Tensor cholesky_backward(const Tensor& grad, bool upper, const Tensor& L) {
  const Tensor l = upper ? H(L) : L, g = upper ? H(grad) : grad;
  // L^-H X L^-1 for the Hermitian X made of phi(L^H gL). As in PyTorch its diagonal keeps an imaginary part, which no Hermitian
  // direction sees.
  const Tensor y = times(H(l), g);
  const Tensor x = (cresset::tril(y) + H(cresset::tril(y, -1))) * 0.5;
  return cresset::linalg_solve_triangular(l, cresset::linalg_solve_triangular(H(l), x, true), false, false);
}

Tensor cholesky_jvp(const Tensor& A_t, bool upper, const Tensor& L) {
  const Tensor l = upper ? H(L) : L;
  const Tensor left = cresset::linalg_solve_triangular(l, A_t, false);
  const Tensor dl = times(l, phi(cresset::linalg_solve_triangular(H(l), left, true, false)));
  return upper ? H(dl) : dl;
}

namespace {
// d(L L^H), of which `g` is the gradient: what reaches L.
Tensor through_product(const Tensor& g, const Tensor& L, bool upper) { return upper ? times(L, g + H(g)) : times(g + H(g), L); }
Tensor product_jvp(const Tensor& L_t, const Tensor& L, bool upper) {
  const Tensor half = upper ? times(H(L), L_t) : times(L_t, H(L));
  return half + H(half);
}
}  // namespace

Tensor cholesky_inverse_backward(const Tensor& grad, const Tensor& L, bool upper, const Tensor& inverse) {
  return through_product(-times(inverse, grad, inverse), L, upper);
}

Tensor cholesky_inverse_jvp(const Tensor& L_t, const Tensor& L, bool upper, const Tensor& inverse) {
  return -times(inverse, product_jvp(L_t, L, upper), inverse);
}

std::tuple<Tensor, Tensor> cholesky_solve_backward(const Tensor& grad, const Tensor& L, bool upper, const Tensor& result,
                                                   std::array<bool, 2> mask) {
  const Tensor gB = cresset::cholesky_solve(grad, L, upper);
  return {gB, mask[1] ? through_product(-times(gB, H(result)), L, upper) : Tensor()};
}

Tensor cholesky_solve_jvp(const Tensor& B_t, const Tensor& L_t, const Tensor& L, bool upper, const Tensor& result) {
  return cresset::cholesky_solve(B_t - times(product_jvp(L_t, L, upper), result), L, upper);
}

// ---- LU: A = P L U. With the square parts L1 (k x k) and U1, X = L1^-1 (P^T dA) U1^-1 splits into L1^-1 dL1 and dU1 U1^-1 ----

namespace {
struct Factors {
  Tensor P, L, U, L1, U1;
  int64_t m, n, k;
};
Factors unpack(const Tensor& LU, const Tensor& pivots) {
  Factors f;
  std::tie(f.P, f.L, f.U) = cresset::lu_unpack(LU, pivots, true, true);
  f.m = LU.size(-2);
  f.n = LU.size(-1);
  f.k = std::min(f.m, f.n);
  f.L1 = f.L.narrow(-2, 0, f.k);
  f.U1 = f.U.narrow(-1, 0, f.k);
  return f;
}
Tensor solve_lower(const Tensor& L1, const Tensor& b) { return cresset::linalg_solve_triangular(L1, b, false, true, true); }
Tensor solve_lower_adjoint(const Tensor& L1, const Tensor& b) { return cresset::linalg_solve_triangular(H(L1), b, true, true, true); }
/// b U1^-1 and b U1^-H.
Tensor divide_upper(const Tensor& U1, const Tensor& b) { return cresset::linalg_solve_triangular(U1, b, true, false); }
Tensor divide_upper_adjoint(const Tensor& U1, const Tensor& b) { return cresset::linalg_solve_triangular(H(U1), b, false, false); }
}  // namespace

Tensor lu_factor_backward(const Tensor& grad, const Tensor& LU, const Tensor& pivots) {
  const Factors f = unpack(LU, pivots);
  const int64_t k = f.k;
  const Tensor square = grad.narrow(-2, 0, k).narrow(-1, 0, k);
  Tensor lower = times(H(f.L1), cresset::tril(square, -1)), upper = times(cresset::triu(square), H(f.U1));
  Tensor g;
  if (f.n > k) {
    // The columns beyond the square: U2 = L1^-1 A2.
    const Tensor gU2 = grad.narrow(-1, k, f.n - k), U2 = f.U.narrow(-1, k, f.n - k);
    lower = lower - times(gU2, H(U2));
    const Tensor first = divide_upper_adjoint(f.U1, cresset::tril(lower, -1) + cresset::triu(upper));
    g = solve_lower_adjoint(f.L1, cresset::cat({first, gU2}, -1));
  } else if (f.m > k) {
    // The rows below the square: L2 = A2 U1^-1.
    const Tensor gL2 = grad.narrow(-2, k, f.m - k), L2 = f.L.narrow(-2, k, f.m - k);
    upper = upper - times(H(L2), gL2);
    const Tensor first = solve_lower_adjoint(f.L1, cresset::tril(lower, -1) + cresset::triu(upper));
    g = divide_upper_adjoint(f.U1, cresset::cat({first, gL2}, -2));
  } else {
    g = divide_upper_adjoint(f.U1, solve_lower_adjoint(f.L1, cresset::tril(lower, -1) + cresset::triu(upper)));
  }
  return times(f.P, g);
}

Tensor lu_factor_jvp(const Tensor& A_t, const Tensor& LU, const Tensor& pivots) {
  const Factors f = unpack(LU, pivots);
  const int64_t k = f.k;
  const Tensor a = times(H(f.P), A_t);
  const Tensor x = divide_upper(f.U1, solve_lower(f.L1, a.narrow(-2, 0, k).narrow(-1, 0, k)));
  const Tensor dL1 = times(f.L1, cresset::tril(x, -1)), dU1 = times(cresset::triu(x), f.U1);
  const Tensor square = dL1 + dU1;
  if (f.n > k) {
    const Tensor U2 = f.U.narrow(-1, k, f.n - k);
    return cresset::cat({square, solve_lower(f.L1, a.narrow(-1, k, f.n - k) - times(dL1, U2))}, -1);
  }
  if (f.m > k) {
    const Tensor L2 = f.L.narrow(-2, k, f.m - k);
    return cresset::cat({square, divide_upper(f.U1, a.narrow(-2, k, f.m - k) - times(L2, dU1))}, -2);
  }
  return square;
}

Tensor lu_unpack_backward(const std::vector<Tensor>& grads, IntArrayRef sizes, bool unpack_data) {
  if (!unpack_data) return Tensor();
  const int64_t m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1], k = std::min(m, n);
  // L fills the first k columns, U the first k rows; zeros for the rest.
  const auto padded = [&](const Tensor& part, int64_t dim, int64_t missing) {
    if (missing == 0) return part;
    DimVector rest(part.sizes());
    rest[maybe_wrap_dim(dim, part.dim())] = missing;
    return cresset::cat({part, cresset::zeros(rest, part.options())}, dim);
  };
  Tensor g;
  if (grads[0].defined()) add_to(g, padded(cresset::tril(grads[0], -1), -1, n - k));
  if (grads[1].defined()) add_to(g, padded(cresset::triu(grads[1]), -2, m - k));
  return g;
}

Tensor lu_unpack_jvp(const Tensor& LU_t, bool lower, bool unpack_data) {
  if (!unpack_data) return cresset::zeros({0}, LU_t.options());
  const int64_t k = std::min(LU_t.size(-2), LU_t.size(-1));
  return lower ? cresset::tril(LU_t.narrow(-1, 0, k), -1) : cresset::triu(LU_t.narrow(-2, 0, k));
}

std::tuple<Tensor, Tensor> lu_solve_backward(const Tensor& grad, const Tensor& LU, const Tensor& pivots, const Tensor& result, bool left,
                                             bool adjoint, std::array<bool, 2> mask) {
  const Tensor gB = cresset::linalg_lu_solve(LU, pivots, grad, left, !adjoint);
  if (!mask[0]) return {Tensor(), gB};
  Tensor gA = left ? -times(gB, H(result)) : -times(H(result), gB);
  if (adjoint) gA = H(gA);
  const Factors f = unpack(LU, pivots);
  const Tensor g = times(H(f.P), gA);
  return {cresset::tril(times(g, H(f.U)), -1) + cresset::triu(times(H(f.L), g)), gB};
}

Tensor lu_solve_jvp(const Tensor& LU_t, const Tensor& B_t, const Tensor& LU, const Tensor& pivots, const Tensor& result, bool left,
                    bool adjoint) {
  const Factors f = unpack(LU, pivots);
  Tensor dA = times(f.P, times(cresset::tril(LU_t, -1), f.U) + times(f.L, cresset::triu(LU_t)));
  if (adjoint) dA = H(dA);
  return cresset::linalg_lu_solve(LU, pivots, B_t - (left ? times(dA, result) : times(result, dA)), left, adjoint);
}

// ---- systems ---------------------------------------------------------------------------------------------------------

namespace {
// The stored factors serve when nobody differentiates again; they carry no history and no tangent.
bool factors_serve(const Tensor& A) { return !GradMode::is_enabled() && !fw_grad(A).defined(); }
// A^-H b, or b A^-H.
Tensor solve_adjoint(const Tensor& A, const Tensor& LU, const Tensor& pivots, const Tensor& b, bool left) {
  if (factors_serve(A)) return cresset::linalg_lu_solve(LU, pivots, b, left, true);
  return std::get<0>(cresset::_linalg_solve_ex(H(A), b, left, false));
}
Tensor solve_again(const Tensor& A, const Tensor& LU, const Tensor& pivots, const Tensor& b, bool left) {
  if (factors_serve(A)) return cresset::linalg_lu_solve(LU, pivots, b, left, false);
  return std::get<0>(cresset::_linalg_solve_ex(A, b, left, false));
}
}  // namespace

std::tuple<Tensor, Tensor> solve_backward(const Tensor& grad, const Tensor& A, const Tensor& result, const Tensor& LU, const Tensor& pivots,
                                          bool left, std::array<bool, 2> mask) {
  const bool vector = result.dim() == LU.dim() - 1;
  const Tensor g = vector ? grad.unsqueeze(-1) : grad, x = vector ? result.unsqueeze(-1) : result;
  const Tensor gB = solve_adjoint(A, LU, pivots, g, left);
  const Tensor gA = !mask[0] ? Tensor() : left ? -times(gB, H(x)) : -times(H(x), gB);
  return {gA, vector ? gB.squeeze(-1) : gB};
}

Tensor solve_jvp(const Tensor& A_t, const Tensor& B_t, const Tensor& A, const Tensor& result, const Tensor& LU, const Tensor& pivots,
                 bool left) {
  const bool vector = result.dim() == LU.dim() - 1;
  const Tensor b = vector ? B_t.unsqueeze(-1) : B_t, x = vector ? result.unsqueeze(-1) : result;
  const Tensor dx = solve_again(A, LU, pivots, b - (left ? times(A_t, x) : times(x, A_t)), left);
  return vector ? dx.squeeze(-1) : dx;
}

namespace {
Tensor triangle(const Tensor& x, bool upper, bool unitriangular) {
  return upper ? cresset::triu(x, unitriangular ? 1 : 0) : cresset::tril(x, unitriangular ? -1 : 0);
}
}  // namespace

std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& A, const Tensor& result, bool upper, bool left,
                                                     bool unitriangular, std::array<bool, 2> mask) {
  const Tensor gB = cresset::linalg_solve_triangular(H(A), grad, !upper, left, unitriangular);
  if (!mask[0]) return {Tensor(), gB};
  return {triangle(left ? -times(gB, H(result)) : -times(H(result), gB), upper, unitriangular), gB};
}

Tensor solve_triangular_jvp(const Tensor& A_t, const Tensor& B_t, const Tensor& A, const Tensor& result, bool upper, bool left,
                            bool unitriangular) {
  const Tensor dA = triangle(A_t, upper, unitriangular);
  return cresset::linalg_solve_triangular(A, B_t - (left ? times(dA, result) : times(result, dA)), upper, left, unitriangular);
}

Tensor inv_backward(const Tensor& grad, const Tensor& inverse) { return -times(H(inverse), grad, H(inverse)); }
Tensor inv_jvp(const Tensor& A_t, const Tensor& inverse) { return -times(inverse, A_t, inverse); }

// ---- determinants: d det = det tr(A^-1 dA) -----------------------------------------------------------------------------

namespace {
// Modes of Python, which may trace, see the formula that holds for all matrices.
bool any_singular(const Tensor& det) { return ops::modes_look() || (!det.is_meta() && cresset::any(cresset::eq(det, 0)).item<bool>()); }

// The gradient of det without its inverse, for singular matrices: conj(det U det Vh) U diag(products of the other singular values) Vh.
Tensor cofactors(const Tensor& A) {
  const auto [U, S, Vh] = cresset::_linalg_svd(A, false, true, std::nullopt);
  const int64_t n = S.size(-1);
  const Tensor own = cresset::eye(n, S.options().dtype(kBool));
  const Tensor others = cresset::prod(cresset::where(own, cresset::ones_like(S).unsqueeze(-2), S.unsqueeze(-2)), -1);
  const Tensor unit = conjugate(cresset::linalg_det(U) * cresset::linalg_det(Vh));
  return unit.unsqueeze(-1).unsqueeze(-1) * times(columns(U, others), Vh);
}
}  // namespace

Tensor det_backward(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU, const Tensor& pivots) {
  if (A.size(-1) == 0) return cresset::zeros_like(A);
  if (any_singular(det)) return grad.unsqueeze(-1).unsqueeze(-1) * cofactors(A);
  const Tensor d = (grad * conjugate(det)).unsqueeze(-1).unsqueeze(-1) * identity_like(A);
  return solve_adjoint(A, LU, pivots, d, true);
}

Tensor det_jvp(const Tensor& A_t, const Tensor& A, const Tensor& det, const Tensor& LU, const Tensor& pivots) {
  if (A.size(-1) == 0) return cresset::zeros_like(det);
  if (any_singular(det)) return cresset::sum(conjugate(cofactors(A)) * A_t, {-2, -1}, false);
  return det * trace_of(solve_again(A, LU, pivots, A_t, true));
}

Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_logabsdet, const Tensor& A, const Tensor& sign, const Tensor& LU,
                        const Tensor& pivots) {
  // log|det| = Re t and d sign = i sign Im t for t = tr(A^-1 dA).
  Tensor g = grad_logabsdet;
  if (A.is_complex()) g = cresset::complex(g, cresset::imag(conjugate(sign) * grad_sign));
  return solve_adjoint(A, LU, pivots, g.unsqueeze(-1).unsqueeze(-1) * identity_like(A), true);
}

std::tuple<Tensor, Tensor> slogdet_jvp(const Tensor& A_t, const Tensor& A, const Tensor& sign, const Tensor& LU, const Tensor& pivots) {
  const Tensor t = trace_of(solve_again(A, LU, pivots, A_t, true));
  return {A.is_complex() ? sign * imaginary(t) : cresset::zeros_like(sign), real_part(t)};
}

// ---- least squares: X = P B with the pseudo-inverse P (Golub and Pereyra 1973) -----------------------------------------

namespace {
Tensor pseudo_inverse(const Tensor& A) {
  const auto [U, S, Vh] = cresset::_linalg_svd(A, false, true, std::nullopt);
  if (S.size(-1) == 0) return H(A);
  const double eps =
      (S.scalar_type() == kFloat ? 1.1920929e-7 : 2.220446049250313e-16) * static_cast<double>(std::max(A.size(-1), A.size(-2)));
  const Tensor kept = cresset::gt(S, S.narrow(-1, 0, 1) * eps);
  const Tensor inverted = cresset::where(kept, cresset::reciprocal(cresset::where(kept, S, cresset::ones_like(S))), cresset::zeros_like(S));
  return times(columns(H(Vh), inverted), H(U));
}
bool is_vector_case(const Tensor& A, const Tensor& B) { return B.dim() == A.dim() - 1; }
}  // namespace

std::tuple<Tensor, Tensor> lstsq_backward(const std::vector<Tensor>& grads, const Tensor& A, const Tensor& B, const Tensor& solution,
                                          std::array<bool, 2> mask) {
  const bool vector = is_vector_case(A, B);
  const auto matrix = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  const Tensor b = matrix(B), x = matrix(solution);
  Tensor gA, gB;
  if (grads[0].defined()) {
    const Tensor P = pseudo_inverse(A), g = matrix(grads[0]);
    gB = times(H(P), g);
    if (mask[0]) {
      // dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P
      const Tensor gP = times(g, H(b)), Ph = H(P), gPh = H(gP);
      const Tensor second = times(gPh, P, Ph), third = times(times(Ph, P), gPh);
      gA = -times(Ph, gP, Ph) + (second - times(A, times(P, second))) + (third - times(times(third, P), A));
    }
  }
  if (grads[1].defined() && grads[1].numel() > 0) {
    // residuals = |A X - B|^2 by columns; X minimises them, so only A and B themselves move them.
    const Tensor g = times(A, x) - b, scaled = g * (2 * grads[1]).unsqueeze(-2);
    if (mask[0]) add_to(gA, times(scaled, H(x)));
    add_to(gB, -scaled);
  }
  if (gB.defined() && vector) gB = gB.squeeze(-1);
  return {gA, gB};
}

std::tuple<Tensor, Tensor> lstsq_jvp(const Tensor& A_t, const Tensor& B_t, const Tensor& A, const Tensor& B, const Tensor& solution,
                                     const Tensor& residuals) {
  const bool vector = is_vector_case(A, B);
  const auto matrix = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  const Tensor b = matrix(B), db = matrix(B_t), x = matrix(solution), P = pseudo_inverse(A), Ph = H(P), dAh = H(A_t);
  const Tensor misfit = b - times(A, x);
  const Tensor left = times(dAh, times(Ph, x));
  const Tensor dx = times(P, db - times(A_t, x)) + times(P, times(Ph, times(dAh, misfit))) + left - times(P, times(A, left));
  Tensor dr = cresset::zeros_like(residuals);
  if (residuals.numel() > 0) dr = 2 * cresset::sum(real_part(conjugate(misfit) * (db - times(A_t, x))), {-2}, false);
  return {vector ? dx.squeeze(-1) : dx, dr};
}

// ---- QR: with Q^H dA R^-1 = Q^H dQ + dR R^-1, skew plus triangular with a real diagonal ----------------------------------

namespace {
void check_qr_mode(const Tensor& Q, const Tensor& R, std::string_view mode) {
  CRESSET_CHECK(mode != "r",
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if "
                "you are going to differentiate through linalg.qr.");
  CRESSET_CHECK(mode != "complete" || Q.size(-2) <= R.size(-1),
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
}
Tensor divide_r(const Tensor& R, const Tensor& b) { return cresset::linalg_solve_triangular(R, b, true, false); }
Tensor divide_r_adjoint(const Tensor& R, const Tensor& b) { return cresset::linalg_solve_triangular(H(R), b, false, false); }
}  // namespace

Tensor qr_backward(const std::vector<Tensor>& grads, const Tensor& Q, const Tensor& R, std::string_view mode) {
  check_qr_mode(Q, R, mode);
  const int64_t k = Q.size(-1), n = R.size(-1);
  Tensor gQ = grads[0], gR = grads[1], beyond;
  const Tensor R1 = R.narrow(-1, 0, k);
  if (n > k) {
    // The columns beyond the square: R2 = Q^H A2.
    const Tensor R2 = R.narrow(-1, k, n - k);
    if (gR.defined()) {
      const Tensor gR2 = gR.narrow(-1, k, n - k);
      beyond = times(Q, gR2);
      // A2 = Q R2, because Q is square here.
      add_to(gQ, times(Q, times(R2, H(gR2))));
      gR = gR.narrow(-1, 0, k);
    } else {
      beyond = cresset::zeros_like(times(Q, R2));
    }
  }
  Tensor t;
  if (gR.defined()) add_to(t, times(gR, H(R1)));
  if (gQ.defined()) add_to(t, -times(H(Q), gQ));
  const Tensor half = phi_upper(t);
  Tensor g = times(Q, half + H(half));
  if (gQ.defined()) g = g + gQ;
  g = divide_r_adjoint(R1, g);
  return beyond.defined() ? cresset::cat({g, beyond}, -1) : g;
}

std::tuple<Tensor, Tensor> qr_jvp(const Tensor& A_t, const Tensor& Q, const Tensor& R, std::string_view mode) {
  check_qr_mode(Q, R, mode);
  const int64_t k = Q.size(-1), n = R.size(-1);
  const Tensor R1 = R.narrow(-1, 0, k);
  const Tensor scaled = divide_r(R1, A_t.narrow(-1, 0, k)), c = times(H(Q), scaled);
  const Tensor dT = phi_upper(c + H(c));
  const Tensor dQ = scaled - times(Q, dT), dR1 = times(dT, R1);
  if (n == k) return {dQ, dR1};
  const Tensor R2 = R.narrow(-1, k, n - k);
  return {dQ, cresset::cat({dR1, times(H(dQ), times(Q, R2)) + times(H(Q), A_t.narrow(-1, k, n - k))}, -1)};
}

// ---- products of reflections: Y = F_1 ... F_k C with F = I - t v v^H -----------------------------------------------------

namespace {
struct Reflections {
  std::vector<Tensor> v, t;  // (m, 1) and (1, 1), in the order in which they stand in the product
  bool adjoint;

  Reflections(const Tensor& input, const Tensor& tau, bool adjoint) : adjoint(adjoint) {
    const int64_t m = input.size(-2), k = tau.size(-1);
    const Tensor all = cresset::tril(input.narrow(-1, 0, k), -1) + cresset::eye(m, k, input.options());
    for (int64_t j = 0; j < k; ++j) {
      const int64_t i = adjoint ? k - 1 - j : j;
      const Tensor factor = tau.narrow(-1, i, 1).unsqueeze(-1);
      v.push_back(all.narrow(-1, i, 1));
      t.push_back(adjoint ? conjugate(factor) : factor);
    }
  }
  int64_t count() const { return static_cast<int64_t>(v.size()); }
};

/// Gradients for (input, tau, C).
std::tuple<Tensor, Tensor, Tensor> reflect_backward(const Reflections& f, const Tensor& grad, const Tensor& input, const Tensor& C) {
  const int64_t k = f.count();
  std::vector<Tensor> right(static_cast<std::size_t>(k) + 1);  // F_{j+1} ... F_k C
  right[k] = C;
  for (int64_t j = k; j-- > 0;) right[j] = right[j + 1] - f.t[j] * times(f.v[j], times(H(f.v[j]), right[j + 1]));
  std::vector<Tensor> gv(static_cast<std::size_t>(k)), gt(static_cast<std::size_t>(k));
  Tensor g = grad;
  for (int64_t j = 0; j < k; ++j) {
    const Tensor a = times(H(right[j + 1]), f.v[j]), b = times(H(g), f.v[j]);
    const int64_t place = f.adjoint ? k - 1 - j : j;
    gv[place] = -(conjugate(f.t[j]) * times(g, a) + f.t[j] * times(right[j + 1], b));
    const Tensor dt = -times(H(b), a).squeeze(-1);
    gt[place] = f.adjoint ? conjugate(dt) : dt;
    g = g - conjugate(f.t[j]) * times(f.v[j], H(b));
  }
  Tensor gI, gTau;  // without reflections nothing reaches them
  if (k > 0) {
    const Tensor below = cresset::tril(cresset::cat(gv, -1), -1);
    const int64_t rest = input.size(-1) - k;
    DimVector sizes(below.sizes());
    sizes[sizes.size() - 1] = rest;
    gI = rest == 0 ? below : cresset::cat({below, cresset::zeros(sizes, input.options())}, -1);
    gTau = cresset::cat(gt, -1);
  }
  return {gI, gTau, g};
}

Tensor reflect_jvp(const Reflections& f, const Reflections& df, const Tensor& C, const Tensor& C_t) {
  Tensor y = C, dy = C_t;
  for (int64_t j = f.count(); j-- > 0;) {
    const Tensor &v = f.v[j], &t = f.t[j], vh = H(v);
    const Tensor dv = df.v[j], vy = times(vh, y);
    const Tensor moved = df.t[j] * times(v, vy) + t * (times(dv, vy) + times(v, times(H(dv), y)) + times(v, times(vh, dy)));
    y = y - t * times(v, vy);
    dy = dy - moved;
  }
  return dy;
}

// Tangents of v and t: those of the input below the diagonal, where v is not fixed to 1.
Reflections tangents(const Tensor& input_t, const Tensor& tau_t, bool adjoint) {
  Reflections d(input_t, tau_t, adjoint);
  const int64_t k = d.count();
  const Tensor below = cresset::tril(input_t.narrow(-1, 0, k), -1);
  for (int64_t j = 0; j < k; ++j) d.v[j] = below.narrow(-1, adjoint ? k - 1 - j : j, 1);
  return d;
}

Tensor first_columns(const Tensor& input) {
  DimVector sizes(input.sizes());
  return cresset::eye(input.size(-2), input.size(-1), input.options()).expand(sizes);
}
}  // namespace

std::tuple<Tensor, Tensor> householder_product_backward(const Tensor& grad, const Tensor& input, const Tensor& tau) {
  auto [gI, gTau, gC] = reflect_backward(Reflections(input, tau, false), grad, input, first_columns(input));
  return {gI, gTau};
}

Tensor householder_product_jvp(const Tensor& input_t, const Tensor& tau_t, const Tensor& input, const Tensor& tau) {
  const Tensor C = first_columns(input);
  return reflect_jvp(Reflections(input, tau, false), tangents(input_t, tau_t, false), C, cresset::zeros_like(C));
}

std::tuple<Tensor, Tensor, Tensor> ormqr_backward(const Tensor& grad, const Tensor& input, const Tensor& tau, const Tensor& other,
                                                  bool left, bool transpose) {
  if (input.numel() == 0) return {Tensor(), Tensor(), cresset::ormqr(input, tau, grad, left, !transpose)};
  // C op(Q) is (op(Q)^H C^H)^H.
  const Reflections f(input, tau, left ? transpose : !transpose);
  auto [gI, gTau, gC] = reflect_backward(f, left ? grad : H(grad), input, left ? other : H(other));
  return {gI, gTau, left ? gC : H(gC)};
}

Tensor ormqr_jvp(const Tensor& input_t, const Tensor& tau_t, const Tensor& other_t, const Tensor& input, const Tensor& tau,
                 const Tensor& other, bool left, bool transpose) {
  const bool adjoint = left ? transpose : !transpose;
  const Tensor dy = reflect_jvp(Reflections(input, tau, adjoint), tangents(input_t, tau_t, adjoint), left ? other : H(other),
                                left ? other_t : H(other_t));
  return left ? dy : H(dy);
}

// ---- Hermitian eigenvalues: dw = diag(V^H dA V), dV = V ((V^H dA V) / (w_j - w_i)) ---------------------------------------

Tensor eigh_backward(const std::vector<Tensor>& grads, const Tensor& A, std::string_view uplo, bool compute_v, const Tensor& eigenvalues,
                     const Tensor& eigenvectors) {
  Tensor w = eigenvalues, V = eigenvectors;
  if (!compute_v) std::tie(w, V) = cresset::_linalg_eigh(A, uplo, true);
  Tensor inner;
  if (compute_v && grads[1].defined()) {
    const Tensor c = times(H(V), grads[1]);
    if (A.is_complex()) check_gauge("linalg_eigh_backward", "eigenvectors", cresset::imag(diagonal_of(c)));
    inner = without_diagonal(c) / gaps(w);
  }
  Tensor g;
  if (grads[0].defined()) g = times(columns(V, grads[0]), H(V));
  if (inner.defined()) add_to(g, hermitian_part(times(V, inner, H(V))));
  return g;
}

std::tuple<Tensor, Tensor> eigh_jvp(const Tensor& A_t, const Tensor& A, std::string_view uplo, bool compute_v, const Tensor& eigenvalues,
                                    const Tensor& eigenvectors) {
  Tensor w = eigenvalues, V = eigenvectors;
  if (!compute_v) std::tie(w, V) = cresset::_linalg_eigh(A, uplo, true);
  const Tensor c = times(H(V), hermitian_part(A_t), V);
  return {real_part(diagonal_of(c)), compute_v ? times(V, without_diagonal(c) / gaps(w)) : cresset::zeros_like(eigenvectors)};
}

// ---- general eigenvalues: dP = V^-1 dA V; vectors of length 1 -------------------------------------------------------------

Tensor eig_backward(const std::vector<Tensor>& grads, const Tensor& eigenvalues, const Tensor& eigenvectors, bool is_complex) {
  const Tensor &w = eigenvalues, &V = eigenvectors;
  Tensor inner;
  if (grads[0].defined()) inner = embed(grads[0]);
  if (grads[1].defined()) {
    const Tensor c = times(H(V), grads[1]), d = diagonal_of(c);
    check_gauge("linalg_eig_backward", "eigenvectors", cresset::imag(d));
    const Tensor kept = c - columns(times(H(V), V), cresset::real(d));
    add_to(inner, without_diagonal(kept) / cresset::conj(gaps(w)));
  }
  const Tensor g = std::get<0>(cresset::_linalg_solve_ex(H(V), times(inner, H(V)), true, false));
  return is_complex ? g : cresset::real(g);
}

std::tuple<Tensor, Tensor> eig_jvp(const Tensor& A_t, const Tensor& eigenvalues, const Tensor& eigenvectors) {
  const Tensor& V = eigenvectors;
  const Tensor dP = std::get<0>(cresset::_linalg_solve_ex(V, times(cresset::to(A_t, V.scalar_type()), V), true, false));
  const Tensor dX = times(V, without_diagonal(dP) / gaps(eigenvalues));
  return {diagonal_of(dP), dX - columns(V, cresset::real(diagonal_of(times(H(V), dX))))};
}

Tensor eigvals_backward(const Tensor& grad, const Tensor& A) {
  const auto [w, V] = cresset::linalg_eig(A);
  return eig_backward({grad, Tensor()}, w, V, A.is_complex());
}

Tensor eigvals_jvp(const Tensor& A_t, const Tensor& A) {
  const auto [w, V] = cresset::linalg_eig(A);
  return std::get<0>(eig_jvp(A_t, w, V));
}

// ---- singular values -------------------------------------------------------------------------------------------------
// With dP = U^H dA V: dS = Re diag(dP), dU = U X + (I - U U^H) dA V / S, dV = V Y + (I - V V^H) dA^H U / S, and off the diagonal
// X = (dP S + S dP^H) / E, Y = (S dP + dP^H S) / E with E_ij = S_j^2 - S_i^2. The phase is given to U: X_ii = i Im dP_ii / S_i.

namespace {
Tensor square_gaps(const Tensor& S) {
  return (S.unsqueeze(-2) - S.unsqueeze(-1)) * (S.unsqueeze(-2) + S.unsqueeze(-1)) + cresset::eye(S.size(-1), S.options());
}
Tensor skew(const Tensor& x) { return x - H(x); }
}  // namespace

Tensor svd_backward(const std::vector<Tensor>& grads, const Tensor& A, bool compute_uv, const Tensor& U_, const Tensor& S,
                    const Tensor& Vh_) {
  Tensor U = U_, Vh = Vh_, gU, gV;
  const int64_t k = S.size(-1);
  if (!compute_uv) {
    std::tie(U, std::ignore, Vh) = cresset::_linalg_svd(A, false, true, std::nullopt);
  } else {
    // The vectors that only full_matrices has are an arbitrary basis: no gradient goes through them.
    U = U.narrow(-1, 0, k);
    Vh = Vh.narrow(-2, 0, k);
    if (grads[0].defined()) gU = grads[0].narrow(-1, 0, k);
    if (grads[2].defined()) gV = H(grads[2].narrow(-2, 0, k));
  }
  const Tensor V = H(Vh);
  const int64_t m = U.size(-2), n = V.size(-2);
  Tensor inner, left, right;
  if (grads[1].defined()) inner = embed(grads[1]);
  if (gU.defined() || gV.defined()) {
    const Tensor E = square_gaps(S), inverse = cresset::reciprocal(S);
    Tensor phase;
    if (gU.defined()) {
      const Tensor c = times(H(U), gU);
      add_to(inner, columns(without_diagonal(skew(c)) / E, S));
      if (A.is_complex()) add_to(phase, cresset::imag(diagonal_of(c)));
      if (m > k) left = times(columns(gU - times(U, c), inverse), Vh);
      if (A.is_complex()) add_to(inner, embed(imaginary(diagonal_of(c)) * inverse));
    }
    if (gV.defined()) {
      const Tensor c = times(Vh, gV);
      add_to(inner, rows(S, without_diagonal(skew(c)) / E));
      if (A.is_complex()) add_to(phase, cresset::imag(diagonal_of(c)));
      if (n > k) right = times(U, rows(inverse, H(gV - times(V, c))));
    }
    if (phase.defined()) check_gauge("svd_backward", "singular vectors", phase);
  }
  Tensor g = times(U, inner.is_complex() == A.is_complex() ? inner : cresset::to(inner, A.scalar_type()), Vh);
  if (left.defined()) g = g + left;
  if (right.defined()) g = g + right;
  return g;
}

std::tuple<Tensor, Tensor, Tensor> svd_jvp(const Tensor& A_t, const Tensor& A, bool compute_uv, const Tensor& U_, const Tensor& S,
                                           const Tensor& Vh_) {
  const int64_t k = S.size(-1);
  Tensor U = U_, Vh = Vh_;
  if (!compute_uv) std::tie(U, std::ignore, Vh) = cresset::_linalg_svd(A, false, true, std::nullopt);
  const Tensor U1 = U.narrow(-1, 0, k), V1 = H(Vh.narrow(-2, 0, k));
  const Tensor dP = times(H(U1), A_t, V1), dPh = H(dP);
  const Tensor dS = real_part(diagonal_of(dP));
  if (!compute_uv) return {cresset::zeros_like(U_), dS, cresset::zeros_like(Vh_)};
  const Tensor E = square_gaps(S), inverse = cresset::reciprocal(S);
  Tensor X = without_diagonal(columns(dP, S) + rows(S, dPh)) / E;
  const Tensor Y = without_diagonal(rows(S, dP) + columns(dPh, S)) / E;
  if (A.is_complex()) X = X + embed(imaginary(diagonal_of(dP)) * inverse);
  Tensor dU = times(U1, X), dV = times(V1, Y);
  const Tensor au = columns(times(A_t, V1), inverse), av = columns(times(H(A_t), U1), inverse);
  if (U1.size(-2) > k) dU = dU + au - times(U1, times(H(U1), au));
  if (V1.size(-2) > k) dV = dV + av - times(V1, times(H(V1), av));
  // The rest of a full basis turns so that it stays orthogonal.
  const auto completed = [&](const Tensor& full, const Tensor& first, const Tensor& d) {
    const int64_t rest = full.size(-1) - k;
    return rest == 0 ? d : cresset::cat({d, -times(first, times(H(d), full.narrow(-1, k, rest)))}, -1);
  };
  return {completed(U, U1, dU), dS, H(completed(H(Vh), V1, dV))};
}

// ---- functions of matrices -------------------------------------------------------------------------------------------

Tensor matrix_exp_jvp(const Tensor& A_t, const Tensor& A) {
  // exp of [[A, dA], [0, A]] has the derivative in its corner (Al-Mohy and Higham 2009).
  const int64_t n = A.size(-1);
  const Tensor top = cresset::cat({A, A_t}, -1), bottom = cresset::cat({cresset::zeros_like(A), A}, -1);
  return cresset::linalg_matrix_exp(cresset::cat({top, bottom}, -2)).narrow(-2, 0, n).narrow(-1, n, n);
}
Tensor matrix_exp_backward(const Tensor& grad, const Tensor& A) { return matrix_exp_jvp(grad, H(A)); }

namespace {
// A = W S V^H, U = W V^H: dU = W ((M - M^H) / (S_i + S_j)) V^H + what leaves the spaces of W and V, for M = W^H dA V.
struct Polar {
  Tensor W, V, sums, inverse;
  explicit Polar(const Tensor& A) {
    const auto [w, s, vh] = cresset::_linalg_svd(A, false, true, std::nullopt);
    W = w;
    V = H(vh);
    sums = s.unsqueeze(-1) + s.unsqueeze(-2);
    inverse = cresset::reciprocal(s);
  }
  /// The derivative of U in direction x; it is its own adjoint.
  Tensor turn(const Tensor& x) const {
    const Tensor xv = times(x, V), wx = times(H(W), x), m = times(H(W), xv);
    Tensor out = times(W, skew(m) / sums, H(V));
    if (W.size(-2) > W.size(-1)) out = out + times(columns(xv - times(W, m), inverse), H(V));
    if (V.size(-2) > V.size(-1)) out = out + times(W, rows(inverse, wx - times(m, H(V))));
    return out;
  }
};
}  // namespace

Tensor polar_backward(const std::vector<Tensor>& grads, const Tensor& A, const Tensor& U) {
  // P = U^H A.
  Tensor g, gU = grads[0];
  if (grads[1].defined()) {
    const Tensor gP = hermitian_part(grads[1]);
    g = times(U, gP);
    add_to(gU, times(A, gP));
  }
  if (gU.defined()) add_to(g, Polar(A).turn(gU));
  return g;
}

std::tuple<Tensor, Tensor> polar_jvp(const Tensor& A_t, const Tensor& A, const Tensor& U) {
  const Tensor dU = Polar(A).turn(A_t);
  return {dU, hermitian_part(times(H(dU), A) + times(H(U), A_t))};
}

Tensor matrix_sqrth_jvp(const Tensor& A_t, const Tensor& A) {
  // X dX + dX X = dA, solved in the eigenvectors of A.
  const auto [w, V] = cresset::_linalg_eigh(A, "L", true);
  const Tensor s = cresset::sqrt(cresset::clamp_min(w, 0));
  return times(V, times(H(V), hermitian_part(A_t), V) / (s.unsqueeze(-1) + s.unsqueeze(-2)), H(V));
}
Tensor matrix_sqrth_backward(const Tensor& grad, const Tensor& A) { return matrix_sqrth_jvp(grad, A); }

}  // namespace cresset::autograd::formulas
