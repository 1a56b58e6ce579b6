// Checks and layouts that the operators of the decomposition family share.
#pragma once

#include <string_view>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// Strides of matrices stored column by column, one after the other.
CRESSET_API DimVector column_major_strides(IntArrayRef sizes);
/// A result like `like` that is stored column by column.
TensorSpec column_major_spec(const Tensor& like, IntArrayRef sizes, std::optional<ScalarType> dtype = std::nullopt);

/// `linalg.inv: The input tensor A must have at least 2 dimensions.`
void check_matrix(const Tensor& a, std::string_view op, std::string_view name = "A");
/// `linalg.inv: A must be batches of square matrices, but they are 3 by 4 matrices`
void check_square(const Tensor& a, std::string_view op, std::string_view name = "A");
/// `linalg.inv: Expected a floating point or complex tensor as input. Got Long`; half types too unless allowed.
void check_floating(const Tensor& a, std::string_view op, bool allow_half = true);

/// The sizes with the last `n` dimensions replaced.
CRESSET_API DimVector batch_and(IntArrayRef batch, std::initializer_list<int64_t> last);
/// Sizes without the last two.
IntArrayRef batch_of(const Tensor& a);

/// What a nonzero `info` of LAPACK means.
enum class Factor { Cholesky, CholeskyInverse, Inverse, Solve, Lu, Eigh, Svd, Ldl, Lstsq };
/// Raises for the first nonzero info: `linalg.inv: (Batch element 0): The diagonal element 1 is zero, …`.
CRESSET_API void check_info(Factor kind, std::string_view op, const int32_t* info, int64_t count, bool batched);
/// The same for a tensor of infos on the CPU.
CRESSET_API void check_info(Factor kind, std::string_view op, const Tensor& info);

/// Is B a vector (or a batch of vectors, whose sizes are those of A without its last) for solve(A, B)?
CRESSET_API bool is_vector_rhs(const Tensor& a, const Tensor& b);
/// B as matrices, broadcast against A: sizes of A and B after that.
struct SolveSizes {
  DimVector a, b;
};
SolveSizes broadcast_solve(const Tensor& a, const Tensor& b, std::string_view op, bool left);

/// What linalg_lstsq was asked for, after checks.
struct LstsqPlan {
  bool vector = false;  // b is a vector, or a batch of them
  std::string_view driver;
  int64_t m = 0, n = 0, nrhs = 0;
  DimVector batch;
  DimVector own;  // the batch of the matrices as they were given, of which ranks and singular values are
  bool with_values() const { return driver == "gelsd" || driver == "gelss"; }
};
CRESSET_API LstsqPlan plan_lstsq(const Tensor& self, const Tensor& b, std::optional<std::string_view> driver);

}  // namespace cresset::ops
