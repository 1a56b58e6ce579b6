// Checks, shape rules and compositions of factorisations. Results that LAPACK writes are column-major.
#include "ops/decomposition.h"

#include <algorithm>
#include <string>
#include <utility>

#include <cresset/base/warn_always.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_decomposition.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

// ---- layouts and checks ----------------------------------------------------------------------------------------------

DimVector column_major_strides(IntArrayRef sizes) {
  DimVector turned(sizes);
  const std::size_t n = sizes.size();
  std::swap(turned[n - 1], turned[n - 2]);
  DimVector strides = contiguous_strides(turned);
  std::swap(strides[n - 1], strides[n - 2]);
  return strides;
}

TensorSpec column_major_spec(const Tensor& like, IntArrayRef sizes, std::optional<ScalarType> dtype) {
  TensorSpec spec = spec_like(like, sizes, dtype);
  spec.strides = column_major_strides(sizes);
  return spec;
}

void check_matrix(const Tensor& a, std::string_view op, std::string_view name) {
  CRESSET_CHECK(a.dim() >= 2, op, ": The input tensor ", name, " must have at least 2 dimensions.");
}

void check_square(const Tensor& a, std::string_view op, std::string_view name) {
  check_matrix(a, op, name);
  CRESSET_CHECK(a.size(-1) == a.size(-2), op, ": ", name, " must be batches of square matrices, but they are ", a.size(-2), " by ",
                a.size(-1), " matrices");
}

void check_floating(const Tensor& a, std::string_view op, bool allow_half) {
  CRESSET_CHECK(a.is_floating_point() || a.is_complex(), op, ": Expected a floating point or complex tensor as input. Got ",
                a.scalar_type());
  CRESSET_CHECK(allow_half || (a.scalar_type() != kHalf && a.scalar_type() != kBFloat16), op, ": Low precision dtypes not supported. Got ",
                a.scalar_type());
}

IntArrayRef batch_of(const Tensor& a) { return a.sizes().slice(0, a.sizes().size() - 2); }

DimVector batch_and(IntArrayRef batch, std::initializer_list<int64_t> last) {
  DimVector sizes(batch);
  for (int64_t n : last) sizes.push_back(n);
  return sizes;
}

namespace {

std::string info_text(Factor kind, int32_t info) {
  switch (kind) {
    case Factor::Cholesky:
      return str("The factorization could not be completed because the input is not positive-definite (the leading minor of order ", info,
                 " is not positive-definite).");
    case Factor::CholeskyInverse:
    case Factor::Inverse:
      return str("The diagonal element ", info, " is zero, the inversion could not be completed because the input matrix is singular.");
    case Factor::Solve: return "The solver failed because the input matrix is singular.";
    case Factor::Lu:
      return str("U[", info, ",", info,
                 "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, "
                 "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
    case Factor::Eigh:
      return str(
          "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues "
          "(error code: ",
          info, ").");
    case Factor::Svd:
      if (info < 0) return "The algorithm failed to converge because the input matrix contained non-finite values.";
      return str(
          "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values "
          "(error code: ",
          info, ").");
    case Factor::Ldl: return str("The diagonal block ", info, " is zero, so that the factors cannot solve a system.");
    case Factor::Lstsq:
      return str("The least squares solution could not be computed because the input matrix does not have full rank (error code: ", info,
                 ").");
  }
  return {};
}

}  // namespace

void check_info(Factor kind, std::string_view op, const int32_t* info, int64_t count, bool batched) {
  for (int64_t i = 0; i < count; ++i) {
    if (info[i] == 0) continue;
    const std::string text =
        batched ? str(op, ": (Batch element ", i, "): ", info_text(kind, info[i])) : str(op, ": ", info_text(kind, info[i]));
    // Factors with a zero pivot are still usable factors: PyTorch has no LinAlgError for them.
    CRESSET_CHECK(kind != Factor::Lu && kind != Factor::Ldl, text);
    CRESSET_THROW(LinAlgError, text);
  }
}

void check_info(Factor kind, std::string_view op, const Tensor& info) {
  const Tensor in_order = info.contiguous();
  check_info(kind, op, in_order.const_data_ptr<int32_t>(), in_order.numel(), in_order.dim() > 0);
}

namespace {
// PyTorch's rule: what was computed is read from the name of the function.
Factor factor_of(std::string_view api_name, int32_t info) {
  constexpr std::pair<std::string_view, Factor> words[] = {
      {"inv", Factor::Inverse},  {"solve", Factor::Solve}, {"cholesky", Factor::Cholesky},
      {"svd", Factor::Svd},      {"eig", Factor::Eigh},    {"syevd", Factor::Eigh},
      {"lu_factor", Factor::Lu}, {"lstsq", Factor::Lstsq}, {"ldl_factor", Factor::Ldl},
  };
  for (const auto& [word, kind] : words)
    if (api_name.find(word) != std::string_view::npos) return kind;
  CRESSET_THROW(Error, api_name, ": Unknown error code: ", info, ".");
}
}  // namespace

void check_errors_impl(const Tensor& info, std::string_view api_name, bool is_matrix) {
  CRESSET_CHECK(info.scalar_type() == kInt, "_linalg_check_errors: info must be a tensor of int32; ", info.scalar_type(), " was given.");
  if (info.is_meta()) return;
  const Tensor host = info.to(Device(kCPU)).contiguous();
  const int32_t* values = host.const_data_ptr<int32_t>();
  const int32_t* first = std::find_if(values, values + host.numel(), [](int32_t v) { return v != 0; });
  if (first == values + host.numel()) return;
  check_info(factor_of(api_name, *first), api_name, values, host.numel(), !is_matrix || host.dim() > 0);
}

bool is_vector_rhs(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  return a.dim() - 1 == b.dim() && b.sizes() == a.sizes().slice(0, a.sizes().size() - 1);
}

SolveSizes broadcast_solve(const Tensor& a, const Tensor& b, std::string_view op, bool left) {
  CRESSET_CHECK(b.dim() >= 2, op, ": The input tensor B must have at least 2 dimensions.");
  const int64_t n = a.size(-1);
  CRESSET_CHECK(b.size(left ? -2 : -1) == n, op, ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
                a.size(-2), "x", n, " and ", b.size(-2), "x", b.size(-1), ")");
  const DimVector batch = infer_broadcast(batch_of(b), batch_of(a));
  return {batch_and(batch, {n, n}), batch_and(batch, {b.size(-2), b.size(-1)})};
}

// ---- systems ---------------------------------------------------------------------------------------------------------

std::array<TensorSpec, 4> solve_ex_shape(const Tensor& A, const Tensor& B, bool left, bool) {
  check_floating(A, "linalg.solve");
  CRESSET_CHECK(A.scalar_type() == B.scalar_type(), "linalg.solve: Expected A and B to have the same dtype, but found A of type ",
                A.scalar_type(), " and B of type ", B.scalar_type(), " instead");
  check_square(A, "linalg.solve");
  const bool vector = is_vector_rhs(A, B);
  check_same_device("linalg.solve", A, B, "B");
  const SolveSizes sizes = broadcast_solve(A, vector ? B.unsqueeze(-1) : B, "linalg.solve", left);
  DimVector result(sizes.b), pivots(A.sizes()), batch(A.sizes());
  pivots.pop_back();
  batch.resize(batch.size() - 2);
  if (vector) result.pop_back();
  TensorSpec x = spec_like(A, result);
  // X A = B is solved as A^T X^T = B^T, which leaves X row-major.
  if (left && result.size() >= 2) x.strides = column_major_strides(result);
  return {x, column_major_spec(A, A.sizes()), spec_like(A, pivots, kInt), spec_like(A, batch, kInt)};
}

Tensor solve_impl(const Tensor& A, const Tensor& B, bool left) {
  const auto [result, lu, pivots, info] = cresset::_linalg_solve_ex(A, B, left, false);
  cresset::_linalg_check_errors(info, "torch.linalg.solve", A.dim() == 2);
  return result;
}

std::tuple<Tensor, Tensor> solve_ex_impl(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  auto [result, lu, pivots, info] = cresset::_linalg_solve_ex(A, B, left, check_errors);
  return {result, info};
}

std::array<TensorSpec, 2> inv_ex_shape(const Tensor& A, bool) {
  check_floating(A, "linalg.inv", false);
  check_square(A, "linalg.inv");
  return {column_major_spec(A, A.sizes()), spec_like(A, batch_of(A), kInt)};
}

Tensor inv_impl(const Tensor& A) {
  const auto [inverse, info] = cresset::linalg_inv_ex(A, false);
  cresset::_linalg_check_errors(info, "linalg.inv", A.dim() == 2);
  return inverse;
}

std::array<TensorSpec, 3> det_shape(const Tensor& A) {
  check_floating(A, "linalg.det");
  check_square(A, "linalg.det");
  DimVector pivots(A.sizes());
  pivots.pop_back();
  return {spec_like(A, batch_of(A)), column_major_spec(A, A.sizes()), spec_like(A, pivots, kInt)};
}

// ---- spectra ---------------------------------------------------------------------------------------------------------

std::array<TensorSpec, 2> eigh_shape(const Tensor& A, std::string_view UPLO, bool compute_v) {
  check_square(A, "linalg.eigh");
  CRESSET_CHECK(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u", "Expected UPLO argument to be 'L' or 'U', but got ", UPLO);
  DimVector values(A.sizes());
  values.pop_back();
  return {spec_like(A, values, toRealValueType(A.scalar_type())), compute_v ? column_major_spec(A, A.sizes()) : spec_like(A, {0})};
}

std::tuple<Tensor, Tensor> eigh_impl(const Tensor& self, std::string_view UPLO) { return cresset::_linalg_eigh(self, UPLO, true); }
Tensor eigvalsh_impl(const Tensor& self, std::string_view UPLO) { return std::get<0>(cresset::_linalg_eigh(self, UPLO, false)); }

namespace {
DimVector check_eig(const Tensor& self, std::string_view op) {
  check_square(self, op);
  CRESSET_CHECK(self.is_floating_point() || self.is_complex(), op, ": Expected a floating point or complex tensor as input. Got ",
                self.scalar_type());
  DimVector values(self.sizes());
  values.pop_back();
  return values;
}
}  // namespace

std::array<TensorSpec, 2> eig_shape(const Tensor& self) {
  const DimVector values = check_eig(self, "linalg.eig");
  const ScalarType type = toComplexType(self.scalar_type());
  return {spec_like(self, values, type), column_major_spec(self, self.sizes(), type)};
}

TensorSpec eigvals_shape(const Tensor& self) {
  return spec_like(self, check_eig(self, "linalg.eigvals"), toComplexType(self.scalar_type()));
}

std::array<TensorSpec, 3> svd_shape(const Tensor& A, bool full_matrices, bool compute_uv, std::optional<std::string_view> driver) {
  check_floating(A, "linalg.svd");
  check_matrix(A, "linalg.svd");
  CRESSET_CHECK(!driver, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const IntArrayRef batch = batch_of(A);
  const TensorSpec s = spec_like(A, batch_and(batch, {k}), toRealValueType(A.scalar_type()));
  if (!compute_uv) return {spec_like(A, {0}), s, spec_like(A, {0})};
  return {column_major_spec(A, batch_and(batch, {m, full_matrices ? m : k})), s,
          column_major_spec(A, batch_and(batch, {full_matrices ? n : k, n}))};
}

std::tuple<Tensor, Tensor, Tensor> svd_full_impl(const Tensor& A, bool full_matrices, std::optional<std::string_view> driver) {
  return cresset::_linalg_svd(A, full_matrices, true, driver);
}
Tensor svdvals_impl(const Tensor& A, std::optional<std::string_view> driver) {
  return std::get<1>(cresset::_linalg_svd(A, false, false, driver));
}

// ---- QR --------------------------------------------------------------------------------------------------------------

std::array<TensorSpec, 2> qr_shape(const Tensor& A, std::string_view mode) {
  check_matrix(A, "linalg.qr");
  check_floating(A, "linalg.qr");
  CRESSET_CHECK(mode == "reduced" || mode == "r" || mode == "complete", "qr received unrecognized mode '", mode,
                "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = A.size(-2), n = A.size(-1), columns = mode == "complete" ? m : std::min(m, n);
  const TensorSpec r = column_major_spec(A, batch_and(batch_of(A), {columns, n}));
  if (mode == "r") return {spec_like(A, {0}), r};
  return {column_major_spec(A, batch_and(batch_of(A), {m, columns})), r};
}

std::tuple<Tensor, Tensor> qr_impl(const Tensor& self, bool some) {
  CRESSET_WARN_FIRST(
      "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
      "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\n"
      "should be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')");
  return cresset::linalg_qr(self, some ? "reduced" : "complete");
}
std::tuple<Tensor, Tensor, Tensor> lu_with_info(const Tensor& self, bool pivot, bool) {
  CRESSET_WARN_FIRST(
      "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future PyTorch "
      "release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
      "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\n"
      "should be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)");
  return cresset::linalg_lu_factor_ex(self, pivot, false);
}
Tensor lu_solve_impl(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  CRESSET_WARN_FIRST(
      "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.\n"
      "Note that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
      "X = torch.linalg.lu_solve(LU, pivots, B)");
  return cresset::linalg_lu_solve(LU_data, LU_pivots, self);
}

std::array<TensorSpec, 2> geqrf_shape(const Tensor& self) {
  CRESSET_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  return {column_major_spec(self, self.sizes()), spec_like(self, batch_and(batch_of(self), {std::min(self.size(-2), self.size(-1))}))};
}

namespace {
// Reflections: tau has one dimension less than the matrix and its batch sizes.
void check_tau(const char* op, const Tensor& input, const Tensor& tau) {
  CRESSET_CHECK(tau.dim() == input.dim() - 1, op, ": Expected tau to have one dimension less than input, but got tau.ndim equal to ",
                tau.dim(), " and input.ndim is equal to ", input.dim());
  const IntArrayRef batch = tau.sizes().slice(0, tau.sizes().size() - 1);
  CRESSET_CHECK(batch == batch_of(input), op, ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", batch);
}
}  // namespace

TensorSpec householder_product_shape(const Tensor& input, const Tensor& tau) {
  const char* op = "torch.linalg.householder_product";
  CRESSET_CHECK(input.dim() >= 2, op, ": input must have at least 2 dimensions.");
  CRESSET_CHECK(input.size(-2) >= input.size(-1), op, ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  CRESSET_CHECK(tau.dim() >= 1 && input.size(-1) >= tau.size(-1), op, ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  check_tau(op, input, tau);
  CRESSET_CHECK(tau.scalar_type() == input.scalar_type(), op, ": tau dtype ", tau.scalar_type(), " does not match input dtype ",
                input.scalar_type());
  check_same_device(op, input, tau, "tau");
  return column_major_spec(input, input.sizes());
}

TensorSpec ormqr_shape(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool) {
  const char* op = "torch.ormqr";
  CRESSET_CHECK(self.dim() >= 2, op, ": input must have at least 2 dimensions.");
  CRESSET_CHECK(input3.dim() >= 2, op, ": other must have at least 2 dimensions.");
  const int64_t side = left ? -2 : -1;
  CRESSET_CHECK(input3.size(side) == self.size(-2), op, ": other.shape[", side, "] must be equal to input.shape[-2]");
  CRESSET_CHECK(input2.dim() >= 1 && input2.size(-1) == std::min(input3.size(side), self.size(-1)), op,
                ": tau.shape[-1] must be equal to min(other.shape[", side, "], input.shape[-1])");
  check_tau(op, self, input2);
  CRESSET_CHECK(input3.dim() == self.dim(), op,
                ": Expected other to have the same number of dimensions as input, but got other.ndim equal to ", input3.dim(),
                " and input.ndim is equal to ", self.dim());
  CRESSET_CHECK(batch_of(input3) == batch_of(self), op, ": Expected batch dimensions of other to be equal to input.shape[:-2], but got ",
                batch_of(input3));
  CRESSET_CHECK(input2.scalar_type() == self.scalar_type(), op, ": Expected input and tau to have the same dtype, but input has dtype ",
                self.scalar_type(), " and tau has dtype ", input2.scalar_type());
  CRESSET_CHECK(input3.scalar_type() == self.scalar_type(), op, ": Expected input and other to have the same dtype, but input has dtype ",
                self.scalar_type(), " and other has dtype ", input3.scalar_type());
  check_same_device(op, self, input2, "tau");
  check_same_device(op, self, input3, "other");
  return column_major_spec(input3, input3.sizes());
}

std::tuple<Tensor, Tensor, Tensor> svd_some_impl(const Tensor& self, bool some, bool compute_uv) {
  CRESSET_CHECK(self.dim() >= 2, "linalg.svd: input should have at least 2 dimensions, but has ", self.dim(), " dimensions instead");
  auto [U, S, Vh] = cresset::_linalg_svd(self, !some, compute_uv, std::nullopt);
  if (compute_uv) return {U, S, cresset::adjoint(Vh)};
  const int64_t m = self.size(-2), n = self.size(-1);
  return {cresset::zeros(batch_and(batch_of(self), {m, m}), self.options()), S,
          cresset::zeros(batch_and(batch_of(self), {n, n}), self.options()).transpose(-2, -1)};
}

}  // namespace cresset::ops
