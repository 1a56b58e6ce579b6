// Rules of matrix products: the physical product is a batched matmul, which folds what it can.
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_linalg.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include <algorithm>

#include "batching/batch_call.h"

namespace cresset::batching {
namespace {

Tensor mm_rule(const Tensor& self, const Tensor& mat2) {
  const Batch b(self, mat2);
  CRESSET_CHECK(self.dim() == 2, "self must be a matrix");
  CRESSET_CHECK(mat2.dim() == 2, "mat2 must be a matrix");
  CRESSET_CHECK(self.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", self.size(0), "x", self.size(1), " and ",
                mat2.size(0), "x", mat2.size(1), ")");
  return b.wrap(cresset::matmul(b.front(self), b.front(mat2)));
}

Tensor bmm_rule(const Tensor& self, const Tensor& mat2) {
  const Batch b(self, mat2);
  CRESSET_CHECK(self.dim() == 3, "batch1 must be a 3D tensor");
  CRESSET_CHECK(mat2.dim() == 3, "batch2 must be a 3D tensor");
  CRESSET_CHECK(self.size(0) == mat2.size(0) && self.size(2) == mat2.size(1),
                "Expected size for first two dimensions of batch2 tensor to be: [", self.size(0), ", ", self.size(2), "] but got: [",
                mat2.size(0), ", ", mat2.size(1), "].");
  return b.wrap(cresset::matmul(b.front(self), b.front(mat2)));
}

Tensor mv_rule(const Tensor& self, const Tensor& vec) {
  const Batch b(self, vec);
  CRESSET_CHECK(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got ", vec.dim(), ", ", self.dim(), ", ", vec.dim());
  CRESSET_CHECK(self.size(1) == vec.size(0), "size mismatch, got input (", self.size(0), "), mat (", self.size(0), "x", self.size(1),
                "), vec (", vec.size(0), ")");
  if (!b.has(vec)) return b.wrap(cresset::matmul(b.front(self), vec));
  if (!b.has(self)) return b.wrap(cresset::matmul(b.front(vec), cresset::transpose(self, 0, 1)));
  return b.wrap(cresset::squeeze(cresset::matmul(b.front(self), cresset::unsqueeze(b.front(vec), -1)), -1));
}

Tensor dot_rule(const Tensor& self, const Tensor& other) {
  const Batch b(self, other);
  CRESSET_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(), "D tensors");
  CRESSET_CHECK(self.size(0) == other.size(0), "inconsistent tensor size, expected tensor [", self.size(0), "] and src [", other.size(0),
                "] to have the same number of elements, but got ", self.size(0), " and ", other.size(0), " elements respectively");
  if (!b.has(other)) return b.wrap(cresset::matmul(b.front(self), other));
  if (!b.has(self)) return b.wrap(cresset::matmul(b.front(other), self));
  const Tensor product = cresset::matmul(cresset::unsqueeze(b.front(self), 1), cresset::unsqueeze(b.front(other), 2));
  return b.wrap(cresset::flatten(product, 0, -1));
}

/// beta * self + alpha * product, all of them tensors of one example.
Tensor plus(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  if (beta.equal(0)) return alpha.equal(1) ? product : cresset::mul(product, alpha);
  return cresset::add(beta.equal(1) ? self : cresset::mul(self, beta), product, alpha);
}

Tensor addmm_rule(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  const Batch b(self, mat1, mat2);
  // Rows of all examples in one matrix: what a linear layer is.
  if (b.has(mat1) && !b.has(mat2) && !b.has(self) && self.dim() == 1 && mat1.dim() == 2)
    return b.wrap(split_dim(cresset::addmm(self, merge_dims(b.front(mat1), 0), mat2, beta, alpha), 0, b.size()));
  return plus(self, cresset::mm(mat1, mat2), beta, alpha);
}
Tensor addmv_rule(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) {
  return plus(self, cresset::mv(mat, vec), beta, alpha);
}
Tensor baddbmm_rule(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  return plus(self, cresset::bmm(batch1, batch2), beta, alpha);
}

// --- linear equations: a right side may be a vector --------------------------------------------------------------------------

bool is_vector(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes() == a.sizes().slice(0, static_cast<std::size_t>(a.dim()) - 1));
}
/// (A, B) of all examples, B with columns.
std::pair<Tensor, Tensor> equations(const Batch& b, const Tensor& left, const Tensor& right) {
  const Tensor columns = is_vector(left, right) ? cresset::unsqueeze(right, -1) : right;
  const int64_t rank = std::max(left.dim(), columns.dim());
  return {b.aligned(left, rank), b.aligned(columns, rank)};
}

Tensor solve_rule(const Tensor& a, const Tensor& right, bool left) {
  const Batch b(a, right);
  const auto [matrices, columns] = equations(b, a, right);
  const Tensor x = cresset::linalg_solve(matrices, columns, left);
  return b.wrap(is_vector(a, right) ? cresset::squeeze(x, -1) : x);
}
std::tuple<Tensor, Tensor, Tensor, Tensor> solve_ex_rule(const Tensor& a, const Tensor& right, bool left, bool check_errors) {
  const Batch b(a, right);
  const auto [matrices, columns] = equations(b, a, right);
  const auto [x, lu, pivots, info] = cresset::_linalg_solve_ex(matrices, columns, left, check_errors);
  const auto of_matrices = [&](const Tensor& t, int64_t dropped) {  // the sizes of one example's matrices, whatever the right side's are
    return b.wrap(cresset::reshape(t, with_front(b.size(), a.sizes().slice(0, static_cast<std::size_t>(a.dim() - dropped)))));
  };
  return {b.wrap(is_vector(a, right) ? cresset::squeeze(x, -1) : x), of_matrices(lu, 0), of_matrices(pivots, 1), of_matrices(info, 2)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq_rule(const Tensor& a, const Tensor& right, std::optional<double> rcond,
                                                      std::optional<std::string_view> driver) {
  CRESSET_CHECK(a.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  const Batch b(a, right);
  const bool vector = right.dim() == a.dim() - 1 && right.sizes() == a.sizes().slice(0, static_cast<std::size_t>(a.dim() - 1));
  const int64_t rank = std::max(a.dim(), right.dim());
  const auto [solution, residuals, matrix_rank, singular] =
      cresset::linalg_lstsq(b.aligned(a, rank), vector ? b.full(right) : b.aligned(right, rank), rcond, driver);
  // What the driver does not compute is an empty vector, for every example.
  const auto wrapped = [&](const Tensor& t) { return b.wrap(t.dim() == 1 && t.numel() == 0 ? cresset::expand(t, {b.size(), 0}) : t); };
  return {b.wrap(solution), wrapped(residuals), wrapped(matrix_rank), wrapped(singular)};
}

// Tolerances are for each matrix, broadcast.
Tensor pinv_rule(const Tensor& self, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol, bool hermitian) {
  const Batch b(self, atol, rtol);
  if (self.dim() < 2)
    return b.wrap(cresset::linalg_pinv(cresset::select(b.full(self), 0, 0), std::optional<double>(0), std::nullopt,
                                       hermitian));  // has the words for it
  const auto rank_of = [](const std::optional<Tensor>& t) { return t ? t->dim() : 0; };
  const int64_t rank = std::max({self.dim() - 2, rank_of(atol), rank_of(rtol)});
  const auto tolerance = [&](const std::optional<Tensor>& t) { return t ? std::optional<Tensor>(b.aligned(*t, rank)) : std::nullopt; };
  return b.wrap(cresset::linalg_pinv(b.aligned(self, rank + 2), tolerance(atol), tolerance(rtol), hermitian));
}

Tensor lu_solve_rule(const Tensor& lu, const Tensor& pivots, const Tensor& right, bool left, bool adjoint) {
  const Batch b(lu, pivots, right);
  const int64_t rank = std::max(lu.dim(), right.dim());
  return b.wrap(cresset::linalg_lu_solve(b.aligned(lu, rank), b.aligned(pivots, rank - 1), b.aligned(right, rank), left, adjoint));
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  m.impl("mm", CRESSET_FN(mm_rule));
  m.impl("bmm", CRESSET_FN(bmm_rule));
  m.impl("mv", CRESSET_FN(mv_rule));
  m.impl("dot", CRESSET_FN(dot_rule));
  m.impl("addmm", CRESSET_FN(addmm_rule));
  m.impl("addmv", CRESSET_FN(addmv_rule));
  m.impl("baddbmm", CRESSET_FN(baddbmm_rule));
  m.impl("linalg_solve", CRESSET_FN(solve_rule));
  m.impl("linalg_pinv.atol_rtol_tensor", CRESSET_FN(pinv_rule));
  m.impl("linalg_lstsq", CRESSET_FN(lstsq_rule));
  m.impl("linalg_lu_solve", CRESSET_FN(lu_solve_rule));
  m.impl("_linalg_solve_ex", CRESSET_FN(solve_ex_rule));
}

}  // namespace cresset::batching
