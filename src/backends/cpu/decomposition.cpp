// Factorisations: LU, inverse and determinant, spectra, QR. Outputs are column-major, so LAPACK writes into them.
#include "backends/cpu/decomposition.h"

#include <algorithm>
#include <vector>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>

#include "cpu/cpu_decl_decomposition.h"

namespace cresset::cpu {
namespace {

using lapack::Int;
using lapack::to_int;

template <class T>
void set_identity(int64_t n, T* a) {
  std::fill(a, a + n * n, T(0));
  for (int64_t i = 0; i < n; ++i) a[i * n + i] = T(1);
}

// LU factors of square matrices that already stand in `lu`.
template <class T>
void factor_in_place(const Tensor& lu, const Tensor& pivots, Int* info) {
  const Matrices<T> a(lu);
  Int* p = pivots.mutable_data_ptr<Int>();
  const int64_t k = std::min(a.rows, a.columns);
  const Int m = to_int(a.rows), n = to_int(a.columns);
  for (int64_t i = 0, count = matrix_count(lu); i < count; ++i) info[i] = k == 0 ? 0 : lapack::getrf<T>(m, n, a[i], a.ld, p + i * k);
}

}  // namespace

// ---- systems ---------------------------------------------------------------------------------------------------------

void solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors, const Tensor& result, const Tensor& LU, const Tensor& pivots,
              const Tensor& info) {
  const bool vector = ops::is_vector_rhs(A, B);
  const int64_t n = LU.size(-1);
  // A right-hand side is always a column-major matrix here; X A = B is A^T X^T = B^T, and X^T column-major is X row-major.
  const Tensor b = vector ? B.unsqueeze(-1) : B;
  const Tensor x = vector ? result.unsqueeze(-1) : result;
  const Tensor wanted = left ? x : x.transpose(-2, -1);
  const Tensor target = column_major_copy(left ? b : b.transpose(-2, -1), wanted.sizes());  // before LU, which may lie where B is
  Tensor(LU).copy_(A);
  const IntArrayRef batch = target.sizes().slice(0, target.sizes().size() - 2);
  const Tensor of = cresset::arange(matrix_count(LU), LU.options().dtype(kLong)).reshape(info.sizes()).expand(batch).contiguous();
  CRESSET_DISPATCH(A.scalar_type(), "lu_cpu", CRESSET_LAPACK_TYPES, [&] {
    Int* status = info.mutable_data_ptr<Int>();
    const Int* p = pivots.const_data_ptr<Int>();
    factor_in_place<scalar_t>(LU, pivots, status);
    const Matrices<scalar_t> lu(LU), rhs(target);
    const Int order = to_int(n), count = to_int(rhs.columns);
    if (target.numel() > 0)
      for (int64_t i = 0, batches = matrix_count(target); i < batches; ++i) {
        const int64_t a = of.const_data_ptr<int64_t>()[i];
        lapack::getrs<scalar_t>(left ? 'N' : 'T', order, count, lu[a], lu.ld, p + a * n, rhs[i], rhs.ld);
      }
    if (check_errors) ops::check_info(ops::Factor::Solve, "torch.linalg.solve_ex", info);
  });
  Tensor(wanted).copy_(target);
}

void inv_ex(const Tensor& A, bool check_errors, const Tensor& inverse, const Tensor& info) {
  const Tensor factors = column_major_copy(A);
  const int64_t n = A.size(-1);
  std::vector<int64_t> sizes(A.sizes().begin(), A.sizes().end() - 1);
  const Tensor pivots = detail::empty_cpu(sizes, kInt);
  CRESSET_DISPATCH(A.scalar_type(), "linalg_inv_cpu", CRESSET_LAPACK_TYPES, [&] {
    Int* status = info.mutable_data_ptr<Int>();
    const Int* p = pivots.const_data_ptr<Int>();
    factor_in_place<scalar_t>(factors, pivots, status);
    const Matrices<scalar_t> lu(factors), x(inverse);
    if (n > 0)
      for (int64_t i = 0, count = matrix_count(factors); i < count; ++i) {
        set_identity(n, x[i]);
        lapack::getrs<scalar_t>('N', to_int(n), to_int(n), lu[i], lu.ld, p + i * n, x[i], x.ld);
      }
    if (check_errors) ops::check_info(ops::Factor::Inverse, "linalg.inv_ex", info);
  });
}

void det(const Tensor& A, const Tensor& result, const Tensor& LU, const Tensor& pivots) {
  Tensor(LU).copy_(A);
  const int64_t n = A.size(-1);
  std::vector<Int> info(static_cast<std::size_t>(matrix_count(A)));
  CRESSET_DISPATCH(A.scalar_type(), "lu_cpu", CRESSET_LAPACK_TYPES, [&] {
    factor_in_place<scalar_t>(LU, pivots, info.data());
    const Matrices<scalar_t> lu(LU);
    const Int* p = pivots.const_data_ptr<Int>();
    auto* out = result.mutable_data_ptr<scalar_t>();
    for (int64_t b = 0, count = matrix_count(A); b < count; ++b) {
      scalar_t product(1);
      for (int64_t i = 0; i < n; ++i) {
        product *= lu[b][i * n + i];
        if (p[b * n + i] != i + 1) product = -product;
      }
      out[b] = product;
    }
  });
}

// ---- spectra ---------------------------------------------------------------------------------------------------------

void eigh(const Tensor& A, std::string_view UPLO, bool compute_v, const Tensor& eigenvalues, const Tensor& eigenvectors) {
  const char uplo = UPLO == "U" || UPLO == "u" ? 'U' : 'L';
  const Tensor work = compute_v ? eigenvectors : column_major_copy(A);
  if (compute_v) Tensor(work).copy_(A);
  const int64_t n = A.size(-1), count = matrix_count(A);
  std::vector<Int> info(static_cast<std::size_t>(count));
  CRESSET_DISPATCH(A.scalar_type(), "linalg_eigh_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(work);
    auto* w = eigenvalues.mutable_data_ptr<lapack::Real<scalar_t>>();
    if (n > 0)
      for (int64_t i = 0; i < count; ++i) {
        // LAPACK may not end for values that are not finite; only one triangle is read, so the other may hold anything.
        keep_triangle(uplo, n, n, a[i]);
        info[i] = all_finite(a[i], n * n) ? lapack::syevd<scalar_t>(compute_v, uplo, to_int(n), a[i], a.ld, w + i * n) : 1;
      }
    ops::check_info(ops::Factor::Eigh, "linalg.eigh", info.data(), count, A.dim() > 2);
  });
}

namespace {
void general_eigen(const Tensor& self, const Tensor& values, const Tensor* vectors) {
  const Tensor work = column_major_copy(self);
  const int64_t n = self.size(-1);
  CRESSET_DISPATCH(self.scalar_type(), "linalg_eig_out_cpu", CRESSET_LAPACK_TYPES, [&] {
    using complex_t = std::complex<lapack::Real<scalar_t>>;
    const Matrices<scalar_t> a(work);
    CRESSET_CHECK(all_finite(a.data, work.numel()), "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    auto* w = values.mutable_data_ptr<complex_t>();
    auto* v = vectors ? vectors->mutable_data_ptr<complex_t>() : nullptr;
    if (n > 0)
      for (int64_t i = 0, count = matrix_count(self); i < count; ++i) {
        const Int info = lapack::geev<scalar_t>(to_int(n), a[i], a.ld, w + i * n, v ? v + i * n * n : nullptr);
        CRESSET_CHECK_AS(LinAlgError, info == 0, "linalg.eig: ", self.dim() > 2 ? str("(Batch element ", i, "): ") : std::string(),
                         "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
                         "eigenvalues (error code: ",
                         info, ").");
      }
  });
}
}  // namespace

void eig(const Tensor& self, const Tensor& eigenvalues, const Tensor& eigenvectors) { general_eigen(self, eigenvalues, &eigenvectors); }
void eigvals(const Tensor& self, const Tensor& out) { general_eigen(self, out, nullptr); }

void svd(const Tensor& A, bool full_matrices, bool compute_uv, std::optional<std::string_view>, const Tensor& U, const Tensor& S,
         const Tensor& Vh) {
  const Tensor work = column_major_copy(A);
  const int64_t k = S.size(-1), count = matrix_count(A);
  std::vector<Int> info(static_cast<std::size_t>(count));
  CRESSET_DISPATCH(A.scalar_type(), "linalg_svd_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(work);
    auto* s = S.mutable_data_ptr<lapack::Real<scalar_t>>();
    if (k == 0) {
      // No singular values: the bases that full_matrices asks for are arbitrary.
      if (!compute_uv || !full_matrices) return;
      for (int64_t i = 0; i < count; ++i) {
        set_identity(a.rows, Matrices<scalar_t>(U)[i]);
        set_identity(a.columns, Matrices<scalar_t>(Vh)[i]);
      }
      return;
    }
    const Int m = to_int(a.rows), n = to_int(a.columns);
    scalar_t none{};
    for (int64_t i = 0; i < count; ++i) {
      if (!all_finite(a[i], a.rows * a.columns))
        info[i] = -4;
      else if (compute_uv) {
        const Matrices<scalar_t> u(U), vh(Vh);
        info[i] = lapack::gesdd<scalar_t>(full_matrices ? 'A' : 'S', m, n, a[i], a.ld, s + i * k, u[i], u.ld, vh[i], vh.ld);
      } else {
        info[i] = lapack::gesdd<scalar_t>('N', m, n, a[i], a.ld, s + i * k, &none, 1, &none, 1);
      }
    }
    ops::check_info(ops::Factor::Svd, "linalg.svd", info.data(), count, A.dim() > 2);
  });
}

// ---- QR --------------------------------------------------------------------------------------------------------------

void qr(const Tensor& A, std::string_view mode, const Tensor& Q, const Tensor& R) {
  const Tensor work = column_major_copy(A);
  const bool with_q = mode != "r";
  CRESSET_DISPATCH(A.scalar_type(), "geqrf_cpu", CRESSET_LAPACK_TYPES, [&] {
    const Matrices<scalar_t> a(work), r(R);
    const int64_t m = a.rows, n = a.columns, k = std::min(m, n), columns = r.rows;
    std::vector<scalar_t> tau(static_cast<std::size_t>(std::max<int64_t>(1, k)));
    for (int64_t i = 0, count = matrix_count(A); i < count; ++i) {
      if (k > 0) lapack::geqrf<scalar_t>(to_int(m), to_int(n), a[i], a.ld, tau.data());
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < columns; ++l) r[i][l + j * columns] = l <= j ? a[i][l + j * m] : scalar_t(0);
      if (!with_q) continue;
      const Matrices<scalar_t> q(Q);
      if (k == 0) {
        if (mode == "complete") set_identity(m, q[i]);
        continue;
      }
      // Q starts as the reflections below the diagonal; columns beyond them are made by orgqr.
      std::copy(a[i], a[i] + m * std::min(n, columns), q[i]);
      lapack::orgqr<scalar_t>(to_int(m), to_int(columns), to_int(k), q[i], q.ld, tau.data());
    }
  });
}

}  // namespace cresset::cpu
