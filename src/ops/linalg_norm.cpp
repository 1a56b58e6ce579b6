// Norms of matrices.
#include <algorithm>
#include <cmath>
#include <string_view>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_linalg.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_linalg.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

std::string spaced(IntArrayRef dims) {
  std::string out;
  for (int64_t d : dims) out += (out.empty() ? "" : " ") + std::to_string(d);
  return out;
}

// Checks what all orders share, and gives the dimensions of rows and columns.
std::pair<int64_t, int64_t> matrix_dims(const Tensor& self, IntArrayRef dim, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(self.dim() >= 2, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
  CRESSET_CHECK(isDifferentiableType(self.scalar_type()), "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got ",
                self.scalar_type());
  CRESSET_CHECK(dim.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", spaced(dim));
  const int64_t rows = maybe_wrap_dim(dim[0], self.dim()), columns = maybe_wrap_dim(dim[1], self.dim());
  CRESSET_CHECK(rows != columns, "linalg.matrix_norm: dims must be different. Got (", dim[0], ", ", dim[1], ")");
  if (dtype) {
    CRESSET_CHECK(isDifferentiableType(*dtype), "linalg.matrix_norm: dtype should be floating point or complex, but got ", *dtype);
    CRESSET_CHECK(isComplexType(*dtype) == self.is_complex(), "linalg.matrix_norm: dtype should be ",
                  self.is_complex() ? "complex" : "real", " for ", self.is_complex() ? "complex" : "real", " inputs, but got ", *dtype);
    CRESSET_CHECK(promote_types(self.scalar_type(), *dtype) == *dtype, "linalg.matrix_norm: the dtype of the input (", self.scalar_type(),
                  ") should be convertible without narrowing to the specified dtype (", *dtype, ")");
  }
  return {rows, columns};
}

// Singular values along a new last dimension.
Tensor singular_values(const Tensor& self, int64_t rows, int64_t columns, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(self.scalar_type() != kHalf && self.scalar_type() != kBFloat16,
                "linalg.matrix_norm: Low precision dtypes not supported. Got ", self.scalar_type());
  const Tensor a = dtype ? self.to(*dtype) : self;
  return cresset::linalg_svdvals(cresset::movedim(a, {rows, columns}, {-2, -1}));
}

// A result without the matrix dimensions, with them as 1 when keepdim.
Tensor with_dims(const Tensor& t, int64_t rows, int64_t columns, bool keepdim) {
  if (!keepdim) return t;
  return cresset::movedim(t.unsqueeze(-1).unsqueeze(-1), {-2, -1}, {rows, columns});
}

}  // namespace

Tensor matrix_norm_impl(const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(!ord.isComplex(), "linalg.matrix_norm: Expected a non-complex scalar as the order of norm.");
  const double order = ord.toDouble(), size = std::abs(order);
  CRESSET_CHECK(size == 1 || size == 2 || std::isinf(size), "linalg.matrix_norm: Order ", ord, " not supported.");
  const auto [rows, columns] = matrix_dims(self, dim, dtype);
  const auto extreme = [&](const Tensor& t, int64_t d, bool keep) {
    return order > 0 ? cresset::amax(t, d, keep) : cresset::amin(t, d, keep);
  };
  // An empty maximum of absolute values is 0; an empty minimum does not exist.
  const int64_t ranged = std::isinf(size) ? self.size(rows)
                         : size == 1      ? self.size(columns)
                                          : std::min(self.size(rows), self.size(columns));
  if (ranged == 0 && order > 0) {
    const uint64_t reduced = uint64_t{1} << rows | uint64_t{1} << columns;
    return cresset::zeros(reduced_sizes(self.sizes(), reduced, keepdim),
                          self.options().dtype(toRealValueType(dtype.value_or(self.scalar_type()))));
  }
  if (size == 2) return with_dims(extreme(singular_values(self, rows, columns, dtype), -1, false), rows, columns, keepdim);
  // The largest (smallest) absolute sum over rows, or over columns for inf.
  const int64_t summed = std::isinf(size) ? columns : rows, rest = std::isinf(size) ? rows : columns;
  const Tensor sums = cresset::linalg_vector_norm(self, 1, summed, keepdim, dtype);
  return extreme(sums, !keepdim && rest > summed ? rest - 1 : rest, keepdim);
}

Tensor matrix_norm_str(const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(ord == "fro" || ord == "nuc", "linalg.matrix_norm: Order ", ord, " not supported.");
  const auto [rows, columns] = matrix_dims(self, dim, dtype);
  if (ord == "fro") return cresset::linalg_vector_norm(self, 2, {rows, columns}, keepdim, dtype);
  return with_dims(cresset::sum(singular_values(self, rows, columns, dtype), -1), rows, columns, keepdim);
}

Tensor nuclear_norm_dims(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return cresset::linalg_matrix_norm(self, std::string_view("nuc"), dim, keepdim);
}
Tensor nuclear_norm_impl(const Tensor& self, bool keepdim) { return nuclear_norm_dims(self, {-2, -1}, keepdim); }

Tensor linalg_norm_impl(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim,
                        std::optional<ScalarType> dtype) {
  CRESSET_CHECK(!dim || dim->size() == 1 || dim->size() == 2, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ",
                dim.value_or(IntArrayRef()));
  if (!ord) return cresset::linalg_vector_norm(self, 2, dim, keepdim, dtype);
  CRESSET_CHECK(dim || self.dim() == 1 || self.dim() == 2,
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", self.dim(), "D.");
  const bool matrix = dim ? dim->size() == 2 : self.dim() == 2;
  if (!matrix) return cresset::linalg_vector_norm(self, *ord, dim, keepdim, dtype);
  return cresset::linalg_matrix_norm(self, *ord, dim ? DimVector(*dim) : DimVector{0, 1}, keepdim, dtype);
}

Tensor linalg_norm_str(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(!dim || dim->size() == 1 || dim->size() == 2, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ",
                dim.value_or(IntArrayRef()));
  CRESSET_CHECK(dim || self.dim() == 1 || self.dim() == 2,
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", self.dim(), "D.");
  return cresset::linalg_matrix_norm(self, ord, dim ? DimVector(*dim) : DimVector{-2, -1}, keepdim, dtype);
}

}  // namespace cresset::ops
