// Products of vectors and chains of matrices: checks, shape rule and compositions.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <cresset/base/warn_always.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_linalg.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_linalg.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

// ---- vectors -----------------------------------------------------------------------------------------------------------

TensorSpec cross_shape(const Tensor& self, const Tensor& other, int64_t dim) {
  CRESSET_CHECK(self.dim() == other.dim(), "linalg.cross: inputs must have the same number of dimensions.");
  CRESSET_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK(self.size(d) == 3 && other.size(d) == 3, "linalg.cross: inputs dimension ", dim, " must have length 3. Got ", self.size(d),
                " and ", other.size(d));
  check_same_device("linalg.cross", self, other, "other");
  CRESSET_CHECK(self.scalar_type() == other.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", other.scalar_type());
  CRESSET_CHECK_NOT_IMPLEMENTED(self.scalar_type() != kBool, "\"cross\" not implemented for 'Bool'");
  return spec_like(self, infer_broadcast(self.sizes(), other.sizes()));
}

Tensor cross_impl(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return cresset::linalg_cross(self, other, *dim);
  CRESSET_WARN_FIRST(
      "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use "
      "torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release.");
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) == 3) return cresset::linalg_cross(self, other, d);
  CRESSET_THROW(Error, "no dimension of size 3 in input");
}

Tensor vecdot_impl(const Tensor& x, const Tensor& y, int64_t dim) {
  CRESSET_CHECK(isDifferentiableType(x.scalar_type()), "linalg.vecdot: Expected a floating point or complex tensor as input. Got ",
                x.scalar_type());
  CRESSET_CHECK(x.scalar_type() == y.scalar_type(), "linalg.vecdot: Expected x and y to have the same dtype, but found x of type ",
                x.scalar_type(), " and y of type ", y.scalar_type(), " instead");
  if (x.dim() == 1 && y.dim() == 1) return cresset::vdot(x, y);
  return cresset::sum(cresset::mul(cresset::conj(x), y), dim);
}

Tensor linalg_vander_impl(const Tensor& x, std::optional<int64_t> N) {
  const ScalarType type = x.scalar_type();
  CRESSET_CHECK(type == kFloat || type == kDouble || isComplexType(type) || isIntegralType(type, false),
                "linalg.vander supports floating point, complex, and integer tensors, but got ", type);
  const int64_t n = N ? *N : x.dim() > 0 ? x.size(-1) : 1;
  CRESSET_CHECK(n > 1, "N must be greater than 1.");
  DimVector sizes(x.sizes());
  if (N && sizes.empty()) sizes.push_back(1);  // PyTorch makes a number a vector when N is given
  sizes.push_back(n - 1);
  const Tensor powers = cresset::cumprod(x.unsqueeze(-1).expand(sizes), -1);
  sizes.back() = 1;
  return cresset::cat({cresset::ones(sizes, powers.options()), powers}, -1);
}

Tensor vander_impl(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  CRESSET_CHECK(x.dim() == 1, "x must be a one-dimensional tensor.");
  const int64_t rows = x.size(0), n = N.value_or(rows);
  CRESSET_CHECK(n >= 0, "N must be non-negative.");
  const ScalarType type = isIntegralType(x.scalar_type(), true) ? kLong : x.scalar_type();
  const Tensor ones = cresset::ones({rows, n < 1 ? n : 1}, x.options().dtype(type));
  if (n <= 1) return ones;
  const Tensor powers = cresset::cumprod(x.to(type).unsqueeze(1).expand({rows, n - 1}), 1);
  return increasing ? cresset::cat({ones, powers}, 1) : cresset::cat({cresset::flip(powers, {1}), ones}, 1);
}

// ---- chains of matrices ----------------------------------------------------------------------------------------------------

namespace {

// Where to split the chain of matrices p[i] x p[i+1] between i and j for the fewest multiplications: dynamic programming
// over sub-chains by length (Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, 15.2).
std::vector<std::vector<std::size_t>> best_splits(const std::vector<int64_t>& p) {
  const std::size_t n = p.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<std::size_t>> split(n, std::vector<std::size_t>(n, 0));
  for (std::size_t length = 1; length < n; ++length)
    for (std::size_t i = 0; i + length < n; ++i) {
      const std::size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (std::size_t k = i; k < j; ++k) {
        const double q =
            cost[i][k] + cost[k + 1][j] + static_cast<double>(p[i]) * static_cast<double>(p[k + 1]) * static_cast<double>(p[j + 1]);
        if (q < cost[i][j]) {
          cost[i][j] = q;
          split[i][j] = k;
        }
      }
    }
  return split;
}

Tensor multiply_chain(const std::vector<Tensor>& matrices, const std::vector<std::vector<std::size_t>>& split, std::size_t i,
                      std::size_t j) {
  if (i == j) return matrices[i];
  const std::size_t k = split[i][j];
  return cresset::mm(multiply_chain(matrices, split, i, k), multiply_chain(matrices, split, k + 1, j));
}

}  // namespace

Tensor multi_dot_impl(TensorList tensors) {
  const std::size_t n = tensors.size();
  CRESSET_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  const Tensor &first = tensors[0], &last = tensors[n - 1];
  CRESSET_CHECK(first.dim() == 1 || first.dim() == 2, "multi_dot(): the first tensor must be 1D or 2D but got ", first.dim(), "D");
  CRESSET_CHECK(last.dim() == 1 || last.dim() == 2, "multi_dot(): the last tensor must be 1D or 2D but got ", last.dim(), "D");
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& t = tensors[i];
    CRESSET_CHECK(i == 0 || i + 1 == n || t.dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", t.dim(), "D");
    CRESSET_CHECK(t.scalar_type() == first.scalar_type(), "multi_dot(): all tensors must have be the same dtype but tensor 0 is ",
                  cpp_type_name(first.scalar_type()), " and tensor ", i, " ", cpp_type_name(t.scalar_type()));
    CRESSET_CHECK(t.device() == first.device(), "multi_dot(): all tensors must be on the same device but tensor 0 is on ", first.device(),
                  " and tensor ", i, " on ", t.device());
    if (i > 0)
      CRESSET_CHECK(tensors[i - 1].size(-1) == t.size(0), "multi_dot(): tensors ", i - 1, " and ", i, " with shapes ",
                    tensors[i - 1].sizes(), " and ", t.sizes(), " cannot be multiplied");
  }
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  if (first.dim() == 1) matrices.front() = first.unsqueeze(0);
  if (last.dim() == 1) matrices.back() = last.unsqueeze(-1);
  std::vector<int64_t> sizes{matrices[0].size(0)};
  for (const Tensor& m : matrices) sizes.push_back(m.size(1));
  Tensor out = multiply_chain(matrices, best_splits(sizes), 0, n - 1);
  if (last.dim() == 1) out = out.squeeze(-1);
  return first.dim() == 1 ? out.squeeze(0) : out;
}

Tensor chain_matmul_impl(TensorList matrices) {
  CRESSET_WARN_FIRST(
      "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, which accepts "
      "a list of two or more tensors rather than multiple parameters.");
  CRESSET_CHECK(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
  for (const Tensor& m : matrices) CRESSET_CHECK(m.dim() == 2, "Tensor dimension is ", m.dim(), ", expected 2 instead.");
  return matrices.size() == 1 ? matrices[0].clone() : cresset::linalg_multi_dot(matrices);
}

Tensor matrix_power_impl(const Tensor& self, int64_t n) {
  CRESSET_CHECK(self.dim() >= 2, "linalg.matrix_power: The input tensor A must have at least 2 dimensions.");
  CRESSET_CHECK(self.size(-1) == self.size(-2), "linalg.matrix_power: A must be batches of square matrices, but they are ", self.size(-2),
                " by ", self.size(-1), " matrices");
  if (n == 0) {
    Tensor out = self.clone(MemoryFormat::Contiguous);
    return out.copy_(cresset::eye(self.size(-1), self.options()));
  }
  if (n == 1) return self.clone(MemoryFormat::Contiguous);
  // Squares of self, multiplied where n has a bit; -n as unsigned is right for the smallest integer too.
  uint64_t bits = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  Tensor square = n < 0 ? cresset::linalg_inv(self) : self, out;
  for (; bits > 0; bits >>= 1) {
    if (bits & 1) out = out.defined() ? cresset::matmul(out, square) : square;
    if (bits > 1) square = cresset::matmul(square, square);
  }
  return out;
}

// ---- tensors as matrices -----------------------------------------------------------------------------------------------------

namespace {
int64_t product(IntArrayRef sizes) {
  int64_t out = 1;
  for (int64_t s : sizes) out *= s;
  return out;
}
}  // namespace

Tensor tensorinv_impl(const Tensor& self, int64_t ind) {
  CRESSET_CHECK(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind);
  CRESSET_CHECK(self.dim() > 0, "linalg.tensorinv: a tensor of at least one dimension was required; one without dimensions was given.");
  CRESSET_CHECK(ind <= self.dim(), "linalg.tensorinv: ind must be at most the number of dimensions, ", self.dim(), "; got ", ind);
  const std::size_t split = static_cast<std::size_t>(ind);
  const IntArrayRef head = self.sizes().slice(0, split), tail = self.sizes().slice(split);
  CRESSET_CHECK(product(tail) == product(head),
                "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ", product(tail),
                " != ", product(head));
  DimVector sizes(tail);
  sizes.append(head.begin(), head.end());
  return cresset::linalg_inv(self.reshape({product(head), product(tail)})).reshape(sizes);
}

Tensor tensorsolve_impl(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims) {
  Tensor map = self;
  if (dims) {
    DimVector ends;
    for (int64_t i = 0; i < static_cast<int64_t>(dims->size()); ++i) ends.push_back(i - static_cast<int64_t>(dims->size()));
    map = cresset::movedim(self, *dims, ends);
  }
  const IntArrayRef tail = map.sizes().slice(static_cast<std::size_t>(std::min(other.dim(), map.dim())));
  CRESSET_CHECK(product(tail) == other.numel(),
                "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got ",
                product(tail), " != ", other.numel());
  const Tensor solution = cresset::linalg_solve(map.reshape({other.numel(), product(tail)}), other.reshape({other.numel()}));
  return solution.reshape(tail);
}

}  // namespace cresset::ops
