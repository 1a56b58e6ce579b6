// Shape rules and compositions on triangular factors: Cholesky, LU, LDL, determinants, least squares.
#include <algorithm>
#include <limits>

#include <cresset/base/warn_always.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_view.h>

#include "ops/decomposition.h"
#include "ops/ops_decl_decomposition.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

// ---- Cholesky --------------------------------------------------------------------------------------------------------

std::array<TensorSpec, 2> cholesky_ex_shape(const Tensor& self, bool, bool) {
  check_square(self, "linalg.cholesky");
  check_floating(self, "linalg.cholesky");
  return {column_major_spec(self, self.sizes()), spec_like(self, batch_of(self), kInt)};
}

Tensor linalg_cholesky_impl(const Tensor& self, bool upper) {
  const auto [L, info] = cresset::linalg_cholesky_ex(self, upper, false);
  cresset::_linalg_check_errors(info, "linalg.cholesky", self.dim() == 2);
  return L;
}

Tensor cholesky_impl(const Tensor& self, bool upper) {
  CRESSET_WARN_FIRST(
      "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release.\n"
      "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, upper=True)\n"
      "should be replaced with\nU = torch.linalg.cholesky(A).mH\n"
      "This transform will produce equivalent results for all valid (symmetric positive definite) inputs.");
  check_square(self, "cholesky");
  if (!self.is_floating_point() && !self.is_complex()) cresset::detail::raise_dtype_not_implemented("cholesky_cpu", self.scalar_type());
  const auto [L, info] = cresset::linalg_cholesky_ex(self, upper, false);
  cresset::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return L;
}

TensorSpec cholesky_inverse_shape(const Tensor& self, bool) {
  check_square(self, "cholesky_inverse");
  return column_major_spec(self, self.sizes());
}

namespace {
// The older solvers take the right-hand side first and have texts of their own.
SolveSizes check_old_solve(const char* op, const Tensor& b, const Tensor& a) {
  CRESSET_CHECK(a.device() == b.device(), "Expected b and A to be on the same device, but found b on ", b.device(), " and A on ",
                a.device(), " instead.");
  CRESSET_CHECK(a.scalar_type() == b.scalar_type(), "Expected b and A to have the same dtype, but found b of type ", b.scalar_type(),
                " and A of type ", a.scalar_type(), " instead.");
  CRESSET_CHECK(a.size(-1) == a.size(-2), "A must be batches of square matrices, but they are ", a.size(-2), " by ", a.size(-1),
                " matrices");
  CRESSET_CHECK(a.size(-1) == b.size(-2), "Incompatible matrix sizes for ", op, ": each A matrix is ", a.size(-1), " by ", a.size(-1),
                " but each b matrix is ", b.size(-2), " by ", b.size(-1));
  return broadcast_solve(a, b, op, true);
}
}  // namespace

TensorSpec cholesky_solve_shape(const Tensor& self, const Tensor& input2, bool) {
  CRESSET_CHECK(self.dim() >= 2, "b should have at least 2 dimensions, but has ", self.dim(), " dimensions instead");
  CRESSET_CHECK(input2.dim() >= 2, "u should have at least 2 dimensions, but has ", input2.dim(), " dimensions instead");
  return column_major_spec(self, check_old_solve("cholesky_solve", self, input2).b);
}

// ---- LU --------------------------------------------------------------------------------------------------------------

std::array<TensorSpec, 3> lu_factor_ex_shape(const Tensor& A, bool, bool) {
  CRESSET_CHECK(A.dim() >= 2, "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: ", A.sizes(), " instead");
  const IntArrayRef batch = batch_of(A);
  return {column_major_spec(A, A.sizes()), spec_like(A, batch_and(batch, {std::min(A.size(-2), A.size(-1))}), kInt),
          spec_like(A, batch, kInt)};
}

std::tuple<Tensor, Tensor> lu_factor_impl(const Tensor& A, bool pivot) {
  auto [LU, pivots, info] = cresset::linalg_lu_factor_ex(A, pivot, false);
  cresset::_linalg_check_errors(info, "torch.linalg.lu_factor", A.dim() == 2);
  return {LU, pivots};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu_impl(const Tensor& A, bool pivot) {
  CRESSET_CHECK(A.dim() >= 2, "linalg.lu: Expected tensor with 2 or more dimensions. Got size: ", A.sizes(), " instead");
  const auto [LU, pivots, info] = cresset::linalg_lu_factor_ex(A, pivot, false);
  return cresset::lu_unpack(LU, pivots, true, pivot);
}

std::array<TensorSpec, 3> lu_unpack_shape(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots) {
  CRESSET_CHECK(LU_data.dim() >= 2, "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: ", LU_data.sizes(), " instead");
  const IntArrayRef batch = batch_of(LU_data);
  const int64_t m = LU_data.size(-2), n = LU_data.size(-1), k = std::min(m, n);
  TensorSpec P = spec_like(LU_data, {0}), L = P, U = P;
  if (unpack_pivots) {
    CRESSET_CHECK(LU_pivots.scalar_type() == kInt,
                  "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                  "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor");
    CRESSET_CHECK(LU_pivots.sizes() == IntArrayRef(batch_and(batch, {k})), "torch.lu_unpack: pivots of sizes ",
                  IntArrayRef(batch_and(batch, {k})), " were required for LU of sizes ", LU_data.sizes(), "; ", LU_pivots.sizes(),
                  " were given.");
    P = spec_like(LU_data, batch_and(batch, {m, m}));
  }
  if (unpack_data) {
    L = spec_like(LU_data, batch_and(batch, {m, k}));
    U = spec_like(LU_data, batch_and(batch, {k, n}));
  }
  return {P, L, U};
}

TensorSpec lu_solve_shape(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool) {
  check_floating(LU, "torch.linalg.lu_solve");
  CRESSET_CHECK(LU.scalar_type() == B.scalar_type(), "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type ",
                LU.scalar_type(), " and B of type ", B.scalar_type(), " instead");
  CRESSET_CHECK(pivots.scalar_type() == kInt, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
  check_square(LU, "torch.linalg.lu_solve");
  CRESSET_CHECK(B.dim() >= 2, "linalg.lu_solve: The input tensor B must have at least 2 dimensions.");
  CRESSET_CHECK(pivots.dim() >= 1 && LU.size(-1) == pivots.size(-1),
                "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix");
  CRESSET_CHECK(pivots.sizes() == LU.sizes().slice(0, LU.sizes().size() - 1),
                "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", pivots.sizes(),
                " instead");
  check_same_device("linalg.lu_solve", LU, B, "B");
  check_same_device("linalg.lu_solve", LU, pivots, "pivots");
  const SolveSizes sizes = broadcast_solve(LU, B, "linalg.lu_solve", left);
  // X A = B is solved transposed, which leaves X row-major.
  return left ? column_major_spec(B, sizes.b) : spec_like(B, sizes.b);
}

// ---- triangular systems ----------------------------------------------------------------------------------------------

TensorSpec solve_triangular_shape(const Tensor& self, const Tensor& B, bool, bool left, bool) {
  check_square(self, "linalg.solve_triangular");
  const SolveSizes sizes = broadcast_solve(self, B, "linalg.solve_triangular", left);
  CRESSET_CHECK(self.scalar_type() == B.scalar_type(),
                "linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type ", self.scalar_type(),
                " and B of type ", B.scalar_type(), " instead");
  check_same_device("linalg.solve_triangular", self, B, "B");
  return column_major_spec(B, sizes.b);
}

std::tuple<Tensor, Tensor> triangular_solve_impl(const Tensor& self, const Tensor& A, bool upper, bool transpose, bool unitriangular) {
  CRESSET_CHECK(self.dim() >= 2, "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has ", self.dim(),
                " dimensions instead");
  CRESSET_CHECK(A.dim() >= 2, "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has ", A.dim(),
                " dimensions instead");
  const SolveSizes sizes = check_old_solve("triangular_solve", self, A);
  const Tensor x = cresset::linalg_solve_triangular(transpose ? A.transpose(-2, -1) : A, self, upper != transpose, true, unitriangular);
  return {x, A.expand(sizes.a).transpose(-2, -1).clone(MemoryFormat::Contiguous).transpose(-2, -1)};
}

// ---- determinants ----------------------------------------------------------------------------------------------------

std::array<TensorSpec, 4> slogdet_shape(const Tensor& A) {
  check_floating(A, "linalg.slogdet", false);
  check_square(A, "linalg.slogdet");
  DimVector pivots(A.sizes());
  pivots.pop_back();
  const IntArrayRef batch = batch_of(A);
  return {spec_like(A, batch), spec_like(A, batch, toRealValueType(A.scalar_type())), column_major_spec(A, A.sizes()),
          spec_like(A, pivots, kInt)};
}

std::tuple<Tensor, Tensor> slogdet_impl(const Tensor& A) {
  auto [sign, logabsdet, LU, pivots] = cresset::_linalg_slogdet(A);
  return {sign, logabsdet};
}

Tensor logdet_impl(const Tensor& self) {
  check_floating(self, "logdet", false);
  check_square(self, "logdet");
  const auto [sign, logabsdet, LU, pivots] = cresset::_linalg_slogdet(self);
  if (self.is_complex()) return cresset::log(sign) + logabsdet;
  return cresset::where(cresset::eq(sign, -1), Scalar(std::numeric_limits<double>::quiet_NaN()), logabsdet);
}

// ---- LDL -------------------------------------------------------------------------------------------------------------

std::array<TensorSpec, 3> ldl_factor_ex_shape(const Tensor& self, bool, bool) {
  check_square(self, "torch.linalg.ldl_factor_ex");
  check_floating(self, "torch.linalg.ldl_factor_ex");
  DimVector pivots(self.sizes());
  pivots.pop_back();
  return {column_major_spec(self, self.sizes()), spec_like(self, pivots, kInt), spec_like(self, batch_of(self), kInt)};
}

std::tuple<Tensor, Tensor> ldl_factor_impl(const Tensor& self, bool hermitian) {
  auto [LD, pivots, info] = cresset::linalg_ldl_factor_ex(self, hermitian, false);
  cresset::_linalg_check_errors(info, "torch.linalg.ldl_factor", self.dim() == 2);
  return {LD, pivots};
}

TensorSpec ldl_solve_shape(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool) {
  const char* op = "torch.linalg.ldl_solve";
  check_square(LD, op);
  check_floating(LD, op);
  CRESSET_CHECK(B.dim() >= 2, op, ": The input tensor B must have at least 2 dimensions.");
  CRESSET_CHECK(isIntegralType(pivots.scalar_type(), false), op, ": Expected pivots to be integers. Got ", pivots.scalar_type());
  const SolveSizes sizes = check_old_solve(op, B, LD);
  CRESSET_CHECK(pivots.sizes() == LD.sizes().slice(0, LD.sizes().size() - 1), op,
                ": Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", pivots.sizes(), " instead");
  return column_major_spec(B, sizes.b);
}

// ---- least squares ---------------------------------------------------------------------------------------------------

LstsqPlan plan_lstsq(const Tensor& self, const Tensor& b, std::optional<std::string_view> driver) {
  const char* op = "torch.linalg.lstsq";
  CRESSET_CHECK(self.dim() >= 2, op, ": input must have at least 2 dimensions.");
  CRESSET_CHECK(b.dim() >= 1, op, ": other must have at least 1 dimension.");
  CRESSET_CHECK(self.scalar_type() == b.scalar_type(), op, ": Expected input and other to have the same dtype, but got input's dtype ",
                self.scalar_type(), " and other's dtype ", b.scalar_type());
  const int64_t difference = self.dim() - b.dim();
  CRESSET_CHECK(difference == 0 || difference == 1, op,
                ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  LstsqPlan plan;
  plan.vector = difference == 1 && (b.dim() == 1 || b.sizes() == self.sizes().slice(0, static_cast<std::size_t>(b.dim())));
  CRESSET_CHECK(self.size(-2) == b.size(plan.vector ? -1 : -2), op, ": input.size(-2) should match other.size(", plan.vector ? -1 : -2,
                ")");
  check_same_device(op, self, b, "other");
  CRESSET_CHECK(toOpMathType(self.scalar_type()) == self.scalar_type() && (self.is_floating_point() || self.is_complex()),
                "This function doesn't handle types other than float and double");
  plan.driver = driver.value_or("gelsy");
  CRESSET_CHECK(plan.driver == "gels" || plan.driver == "gelsy" || plan.driver == "gelsd" || plan.driver == "gelss", op,
                ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  const Tensor right = plan.vector ? b.unsqueeze(-1) : b;
  plan.m = self.size(-2);
  plan.n = self.size(-1);
  plan.nrhs = right.size(-1);
  const IntArrayRef own = batch_of(self);
  plan.own = DimVector(own.begin(), own.end());
  plan.batch = infer_broadcast(own, batch_of(right));
  return plan;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq_meta(const Tensor& self, const Tensor& b, std::optional<double>,
                                                      std::optional<std::string_view> driver) {
  const LstsqPlan plan = plan_lstsq(self, b, driver);
  const DimVector buffer = batch_and(plan.batch, {std::max(plan.m, plan.n), plan.nrhs});
  Tensor solution = cresset::empty_strided(buffer, column_major_strides(buffer), self.options()).narrow(-2, 0, plan.n);
  if (plan.vector) solution = solution.squeeze(-1);
  const TensorOptions real = self.options().dtype(toRealValueType(self.scalar_type()));
  // Residuals as for full rank, which values alone can tell.
  const bool residuals = plan.m > plan.n && plan.driver != "gelsy";
  return {solution, cresset::empty(residuals ? batch_and(plan.batch, {plan.nrhs}) : DimVector{0}, real),
          cresset::empty(plan.driver == "gels" ? DimVector{0} : plan.own, self.options().dtype(kLong)),
          cresset::empty(plan.with_values() ? batch_and(plan.own, {std::min(plan.m, plan.n)}) : DimVector{0}, real)};
}

}  // namespace cresset::ops
