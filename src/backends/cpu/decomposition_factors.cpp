// Kernels on triangular factors: Cholesky, LU, LDL, reflections, determinants, least squares.
#include <algorithm>
#include <limits>
#include <vector>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/decomposition.h"
#include "cpu/cpu_decl_decomposition.h"

namespace cresset::cpu {
namespace {

using lapack::Int;
using lapack::to_int;

}  // namespace

// ---- Cholesky --------------------------------------------------------------------------------------------------------

void cholesky_ex(const Tensor& self, bool upper, bool check_errors, const Tensor& L, const Tensor& info) {
  Tensor(L).copy_(self);
  const char uplo = upper ? 'U' : 'L';
  const int64_t n = self.size(-1);
  CRESSET_DISPATCH(self.scalar_type(), "cholesky_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(L);
    Int* status = info.mutable_data_ptr<Int>();
    for (int64_t i = 0, count = matrix_count(L); i < count; ++i) {
      status[i] = n == 0 ? 0 : lapack::potrf<scalar_t>(uplo, to_int(n), a[i], a.ld);
      // Not every potrf stops at a diagonal element that is not a number.
      for (int64_t j = 0; j < n && status[i] == 0; ++j)
        if (std::isnan(std::abs(a[i][j * n + j]))) status[i] = to_int(j + 1);
      keep_triangle(uplo, n, n, a[i]);
    }
    if (check_errors) ops::check_info(ops::Factor::Cholesky, "linalg.cholesky_ex", info);
  });
}

void cholesky_inverse(const Tensor& self, bool upper, const Tensor& out) {
  Tensor(out).copy_(self);
  const int64_t n = self.size(-1), count = matrix_count(self);
  std::vector<Int> info(static_cast<std::size_t>(count));
  CRESSET_DISPATCH(self.scalar_type(), "cholesky_inverse_out_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(out);
    for (int64_t b = 0; b < count && n > 0; ++b) {
      scalar_t* x = a[b];
      info[b] = lapack::potri<scalar_t>(upper ? 'U' : 'L', to_int(n), x, a.ld);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < j; ++i) {
          scalar_t &above = x[i + j * n], &below = x[j + i * n];
          (upper ? below : above) = conjugate(upper ? above : below);
        }
    }
    ops::check_info(ops::Factor::CholeskyInverse, "cholesky_inverse", info.data(), count, self.dim() > 2);
  });
}

void cholesky_solve(const Tensor& self, const Tensor& input2, bool upper, const Tensor& out) {
  Tensor(out).copy_(self.expand(out.sizes()));
  DimVector sizes(out.sizes());
  sizes[sizes.size() - 1] = input2.size(-1);
  const Tensor factor = column_major(input2, sizes);
  CRESSET_DISPATCH(self.scalar_type(), "cholesky_solve_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(factor), x(out);
    if (out.numel() == 0) return;
    for (int64_t i = 0, count = matrix_count(out); i < count; ++i)
      lapack::potrs<scalar_t>(upper ? 'U' : 'L', to_int(a.columns), to_int(x.columns), a[i], a.ld, x[i], x.ld);
  });
}

// ---- LU --------------------------------------------------------------------------------------------------------------

void lu_factor_ex(const Tensor& A, bool pivot, bool check_errors, const Tensor& LU, const Tensor& pivots, const Tensor& info) {
  CRESSET_DISPATCH(A.scalar_type(), "lu_cpu", CRESSET_LAPACK_TYPES, [&] {
    CRESSET_CHECK(pivot || A.numel() == 0, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
    Tensor(LU).copy_(A);
    const Matrices<scalar_t> a(LU);
    Int *p = pivots.mutable_data_ptr<Int>(), *status = info.mutable_data_ptr<Int>();
    const int64_t k = pivots.size(-1);
    for (int64_t i = 0, count = matrix_count(A); i < count; ++i)
      status[i] = k == 0 ? 0 : lapack::getrf<scalar_t>(to_int(a.rows), to_int(a.columns), a[i], a.ld, p + i * k);
    if (check_errors) ops::check_info(ops::Factor::Lu, "torch.linalg.lu_factor_ex", info);
  });
}

void lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots, const Tensor& P, const Tensor& L,
               const Tensor& U) {
  const int64_t m = LU_data.size(-2), n = LU_data.size(-1), k = std::min(m, n), count = matrix_count(LU_data);
  const Tensor packed = LU_data.contiguous();
  const Tensor pivots = LU_pivots.contiguous();
  CRESSET_DISPATCH(LU_data.scalar_type(), "lu_unpack_cpu", CRESSET_ALL_TYPES, [&] {
    if (unpack_pivots) {
      const Int* p = pivots.const_data_ptr<Int>();
      for (int64_t i = 0; i < count * k; ++i)
        CRESSET_CHECK(p[i] >= 1 && p[i] <= m,
                      "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                      "Did you properly pass the result of lu_factor?");
      auto* to = P.mutable_data_ptr<scalar_t>();
      std::fill(to, to + P.numel(), scalar_t(0));
      std::vector<int64_t> order(static_cast<std::size_t>(m));
      for (int64_t b = 0; b < count; ++b) {
        for (int64_t i = 0; i < m; ++i) order[i] = i;
        for (int64_t i = 0; i < k; ++i) std::swap(order[i], order[p[b * k + i] - 1]);
        // Row i of L U is row order[i] of A = P L U.
        for (int64_t i = 0; i < m; ++i) to[b * m * m + order[i] * m + i] = scalar_t(1);
      }
    }
    if (!unpack_data) return;
    const auto* from = packed.const_data_ptr<scalar_t>();
    auto *l = L.mutable_data_ptr<scalar_t>(), *u = U.mutable_data_ptr<scalar_t>();
    for (int64_t b = 0; b < count; ++b) {
      const auto* a = from + b * m * n;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < k; ++j) l[b * m * k + i * k + j] = i > j ? a[i * n + j] : scalar_t(i == j);
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) u[b * k * n + i * n + j] = i <= j ? a[i * n + j] : scalar_t(0);
    }
  });
}

void lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint, const Tensor& out) {
  // X op(A) = B is A^T X^T = B^T, and for the adjoint A X^H = B^H.
  const auto turned = [&](const Tensor& t) { return left ? t : adjoint ? cresset::adjoint(t) : t.transpose(-2, -1); };
  const Tensor x = column_major_copy(turned(B.expand(out.sizes())));
  const int64_t n = LU.size(-1);
  DimVector sizes(x.sizes());
  sizes[sizes.size() - 1] = n;
  const Tensor factors = column_major(LU, sizes);
  sizes.pop_back();
  const Tensor rows = pivots.expand(sizes).contiguous();
  const char trans = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
  CRESSET_DISPATCH(LU.scalar_type(), "linalg.lu_solve_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(factors), b(x);
    const Int* p = rows.const_data_ptr<Int>();
    for (int64_t i = 0; i < rows.numel(); ++i) {
      CRESSET_CHECK(p[i] >= 1,
                    "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?");
      CRESSET_CHECK(p[i] <= n,
                    "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of lu_factor?");
    }
    if (x.numel() > 0)
      for (int64_t i = 0, count = matrix_count(x); i < count; ++i)
        lapack::getrs<scalar_t>(trans, to_int(n), to_int(b.columns), a[i], a.ld, p + i * n, b[i], b.ld);
  });
  Tensor(out).copy_(turned(x));
}

void solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular, const Tensor& out) {
  Tensor(out).copy_(B.expand(out.sizes()));
  DimVector sizes(out.sizes());
  sizes[sizes.size() - 1] = sizes[sizes.size() - 2] = self.size(-1);
  const Tensor factor = column_major(self, sizes);
  CRESSET_DISPATCH(self.scalar_type(), "triangular_solve_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(factor), x(out);
    if (out.numel() == 0) return;
    for (int64_t i = 0, count = matrix_count(out); i < count; ++i)
      lapack::trsm<scalar_t>(left ? 'L' : 'R', upper ? 'U' : 'L', 'N', unitriangular ? 'U' : 'N', to_int(x.rows), to_int(x.columns), a[i],
                             a.ld, x[i], x.ld);
  });
}

void slogdet(const Tensor& A, const Tensor& sign, const Tensor& logabsdet, const Tensor& LU, const Tensor& pivots) {
  Tensor(LU).copy_(A);
  const int64_t n = A.size(-1);
  CRESSET_DISPATCH(A.scalar_type(), "lu_cpu", CRESSET_LAPACK_TYPES, [&] {
    using real_t = lapack::Real<scalar_t>;
    const Matrices<scalar_t> lu(LU);
    Int* p = pivots.mutable_data_ptr<Int>();
    auto* s = sign.mutable_data_ptr<scalar_t>();
    auto* l = logabsdet.mutable_data_ptr<real_t>();
    for (int64_t b = 0, count = matrix_count(A); b < count; ++b) {
      if (n > 0) lapack::getrf<scalar_t>(to_int(n), to_int(n), lu[b], lu.ld, p + b * n);
      scalar_t unit(1);
      real_t total(0);
      for (int64_t i = 0; i < n; ++i) {
        const scalar_t u = lu[b][i * n + i];
        const real_t size = std::abs(u);
        unit *= size == real_t(0) ? scalar_t(0) : u / size;
        if (p[b * n + i] != i + 1) unit = -unit;
        total += std::log(size);
      }
      s[b] = unit;
      l[b] = total;
    }
  });
}

// ---- LDL -------------------------------------------------------------------------------------------------------------

void ldl_factor_ex(const Tensor& self, bool hermitian, bool check_errors, const Tensor& LD, const Tensor& pivots, const Tensor& info) {
  Tensor(LD).copy_(self);
  const int64_t n = self.size(-1);
  CRESSET_DISPATCH(self.scalar_type(), "ldl_factor_kernel_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(LD);
    Int *p = pivots.mutable_data_ptr<Int>(), *status = info.mutable_data_ptr<Int>();
    for (int64_t i = 0, count = matrix_count(LD); i < count; ++i) {
      keep_triangle('L', n, n, a[i]);
      status[i] = n == 0 ? 0 : lapack::sytrf<scalar_t>(hermitian, 'L', to_int(n), a[i], a.ld, p + i * n);
    }
    if (check_errors) ops::check_info(ops::Factor::Ldl, "torch.linalg.ldl_factor_ex", info);
  });
}

namespace {
// sytrs follows the pivots: a negative one names a block of two rows, which must both exist.
bool ldl_pivots_fit(const Int* p, int64_t n) {
  for (int64_t i = 0; i < n;) {
    const int64_t row = p[i] < 0 ? -int64_t{p[i]} : int64_t{p[i]};
    const int64_t block = p[i] < 0 ? 2 : 1;
    if (row < 1 || row > n || i + block > n) return false;
    i += block;
  }
  return true;
}
}  // namespace

void ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian, const Tensor& out) {
  const int64_t n = LD.size(-1), count = matrix_count(out);
  DimVector sizes(out.sizes());
  sizes[sizes.size() - 1] = n;
  const Tensor factor = column_major(LD, sizes);
  sizes.pop_back();
  const Tensor rows = cresset::to(pivots, kInt).expand(sizes).contiguous();
  const Int* const p = rows.const_data_ptr<Int>();
  for (int64_t i = 0; i < count; ++i)  // all, before anything is written
    CRESSET_CHECK(ldl_pivots_fit(p + i * n, n),
                  "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass the result of ldl_factor?");
  Tensor(out).copy_(B.expand(out.sizes()));
  CRESSET_DISPATCH(LD.scalar_type(), "ldl_solve_kernel_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(factor), x(out);
    if (out.numel() == 0) return;
    for (int64_t i = 0; i < count; ++i)
      lapack::sytrs<scalar_t>(hermitian, 'L', to_int(n), to_int(x.columns), a[i], a.ld, p + i * n, x[i], x.ld);
  });
}

// ---- reflections -----------------------------------------------------------------------------------------------------

void geqrf(const Tensor& self, const Tensor& a, const Tensor& tau) {
  Tensor(a).copy_(self);
  CRESSET_DISPATCH(self.scalar_type(), "geqrf_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> x(a);
    auto* t = tau.mutable_data_ptr<scalar_t>();
    const int64_t k = tau.size(-1);
    for (int64_t i = 0, count = matrix_count(self); i < count && k > 0; ++i)
      lapack::geqrf<scalar_t>(to_int(x.rows), to_int(x.columns), x[i], x.ld, t + i * k);
  });
}

void householder_product(const Tensor& input, const Tensor& tau, const Tensor& out) {
  Tensor(out).copy_(input);
  const Tensor factors = tau.contiguous();
  CRESSET_DISPATCH(input.scalar_type(), "orgqr_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> q(out);
    const auto* t = factors.const_data_ptr<scalar_t>();
    const int64_t k = tau.size(-1);
    if (out.numel() == 0) return;
    for (int64_t i = 0, count = matrix_count(out); i < count; ++i)
      lapack::orgqr<scalar_t>(to_int(q.rows), to_int(q.columns), to_int(k), q[i], q.ld, t + i * k);
  });
}

void ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose, const Tensor& out) {
  Tensor(out).copy_(input3);
  // LAPACK writes into the reflections for a moment, so they are always a copy.
  const Tensor reflections = column_major_copy(self);
  const Tensor factors = input2.contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "ormqr_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(reflections), c(out);
    const auto* t = factors.const_data_ptr<scalar_t>();
    const int64_t k = input2.size(-1);
    if (out.numel() == 0 || k == 0) return;
    for (int64_t i = 0, count = matrix_count(out); i < count; ++i)
      lapack::ormqr<scalar_t>(left ? 'L' : 'R', transpose, to_int(c.rows), to_int(c.columns), to_int(k), a[i], a.ld, t + i * k, c[i], c.ld);
  });
}

// ---- least squares ---------------------------------------------------------------------------------------------------

// What belongs to the matrices of `self` alone, of what was found for all that broadcasting made: each has it at its first place.
Tensor of_own_matrices(Tensor found, const ops::LstsqPlan& plan, std::initializer_list<int64_t> last) {
  if (plan.own == plan.batch) return found;
  if (found.numel() == 0) return cresset::zeros(ops::batch_and(plan.own, last), found.options());
  for (std::size_t extra = plan.batch.size() - plan.own.size(); extra > 0; --extra) found = found.select(0, 0);
  for (std::size_t d = 0; d < plan.own.size(); ++d)
    if (plan.own[d] == 1) found = found.narrow(static_cast<int64_t>(d), 0, 1);
  return found.contiguous();
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& self, const Tensor& b, std::optional<double> rcond,
                                                 std::optional<std::string_view> driver) {
  const ops::LstsqPlan plan = ops::plan_lstsq(self, b, driver);
  const int64_t m = plan.m, n = plan.n, most = std::max(m, n), k = std::min(m, n);
  const ScalarType type = self.scalar_type(), real = toRealValueType(type);
  const Tensor a = column_major_copy(self, ops::batch_and(plan.batch, {m, n}));
  // The right-hand side goes in as the first m rows, the solution comes out as the first n.
  const DimVector buffer = ops::batch_and(plan.batch, {most, plan.nrhs});
  const Tensor x = detail::empty_strided_cpu(buffer, ops::column_major_strides(buffer), type);
  Tensor(x).zero_();
  x.narrow(-2, 0, m).copy_((plan.vector ? b.unsqueeze(-1) : b).expand(ops::batch_and(plan.batch, {m, plan.nrhs})));
  Tensor residuals = detail::empty_cpu({0}, real), rank = detail::empty_cpu({0}, kLong), values = detail::empty_cpu({0}, real);
  if (plan.driver != "gels") rank = cresset::zeros(plan.batch, cresset::TensorOptions(kLong));
  if (plan.with_values()) values = cresset::zeros(ops::batch_and(plan.batch, {k}), cresset::TensorOptions(real));
  const int64_t count = matrix_count(x);
  bool full_rank = true;
  CRESSET_DISPATCH(type, "linalg_lstsq_cpu", CRESSET_LAPACK_TYPES, [&] {
    using real_t = lapack::Real<scalar_t>;
    const Matrices<scalar_t> left(a), right(x);
    const auto limit =
        static_cast<real_t>(rcond.value_or(static_cast<double>(std::numeric_limits<real_t>::epsilon()) * static_cast<double>(most)));
    const Int M = to_int(m), N = to_int(n), nrhs = to_int(plan.nrhs);
    std::vector<Int> info(static_cast<std::size_t>(count));
    real_t* s = plan.with_values() ? values.mutable_data_ptr<real_t>() : nullptr;
    for (int64_t i = 0; i < count; ++i) {
      Int r = 0;
      if (k == 0) {
        // Nothing to fit: the solution of least norm is zero.
        if (n > 0) std::fill(right[i], right[i] + most * plan.nrhs, scalar_t(0));
      } else if (!all_finite(left[i], m * n) || !all_finite(right[i], most * plan.nrhs)) {
        // LAPACK may not end for values that are not finite.
        std::fill(right[i], right[i] + most * plan.nrhs, scalar_t(std::numeric_limits<real_t>::quiet_NaN()));
        if (s) std::fill(s + i * k, s + (i + 1) * k, std::numeric_limits<real_t>::quiet_NaN());
      } else if (plan.driver == "gels") {
        info[i] = lapack::gels<scalar_t>(M, N, nrhs, left[i], left.ld, right[i], right.ld);
      } else if (plan.driver == "gelsy") {
        info[i] = lapack::gelsy<scalar_t>(M, N, nrhs, left[i], left.ld, right[i], right.ld, limit, &r);
      } else {
        info[i] = (plan.driver == "gelsd" ? lapack::gelsd<scalar_t> : lapack::gelss<scalar_t>)(M, N, nrhs, left[i], left.ld, right[i],
                                                                                               right.ld, s + i * k, limit, &r);
      }
      if (plan.driver != "gels") rank.mutable_data_ptr<int64_t>()[i] = r;
      full_rank = full_rank && (plan.driver == "gels" || r == n);
    }
    ops::check_info(ops::Factor::Lstsq, "torch.linalg.lstsq", info.data(), count, plan.batch.size() > 0);
    if (m <= n || plan.driver == "gelsy" || !full_rank) return;
    // The rows that the solution does not need hold what is left of the right-hand side.
    residuals = detail::empty_cpu(ops::batch_and(plan.batch, {plan.nrhs}), real);
    auto* to = residuals.mutable_data_ptr<real_t>();
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < plan.nrhs; ++j) {
        real_t sum(0);
        for (int64_t l = n; l < m; ++l) sum += std::norm(right[i][l + j * most]);
        to[i * plan.nrhs + j] = sum;
      }
  });
  const Tensor solution = x.narrow(-2, 0, n);
  return {plan.vector ? solution.squeeze(-1) : solution, residuals, plan.driver == "gels" ? rank : of_own_matrices(rank, plan, {}),
          plan.with_values() ? of_own_matrices(values, plan, {k}) : values};
}

}  // namespace cresset::cpu
