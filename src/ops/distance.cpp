// Distances between rows: checks, shape rules and compositions.
#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_distance.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_distance.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

// Above this many rows a matrix product is faster than its differences are worth.
constexpr int64_t kManyRows = 25;

IntArrayRef batch(const Tensor& t) { return t.sizes().slice(0, static_cast<std::size_t>(t.dim() - 2)); }

DimVector distance_sizes(const Tensor& x1, const Tensor& x2) {
  DimVector sizes = infer_broadcast(batch(x1), batch(x2));
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  return sizes;
}

void check_cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  CRESSET_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  CRESSET_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  CRESSET_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1), " X2: ", x2.size(-1));
  CRESSET_CHECK(x1.is_floating_point(), "cdist only supports floating-point dtypes, X1 got: ", x1.scalar_type());
  CRESSET_CHECK(x2.is_floating_point(), "cdist only supports floating-point dtypes, X2 got: ", x2.scalar_type());
  CRESSET_CHECK(p >= 0, "cdist only supports non-negative p values");
  CRESSET_CHECK(!mode || (*mode >= 0 && *mode <= 2), "possible modes: 0, 1, 2, but was: ", mode.value_or(0));
  check_same_device("cdist", x1, x2, "x2");
  CRESSET_CHECK(x1.scalar_type() == x2.scalar_type(), "expected scalar type ", x1.scalar_type(), " but found ", x2.scalar_type());
}

void check_cdist_type(const Tensor& x1) {
  CRESSET_CHECK_NOT_IMPLEMENTED(x1.scalar_type() == kFloat || x1.scalar_type() == kDouble, "\"cdist\" not implemented for '",
                                x1.scalar_type(), "'");
}

void check_pdist(const Tensor& self, double p) {
  CRESSET_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  CRESSET_CHECK(self.is_floating_point(), "pdist only supports floating-point dtypes");
  CRESSET_CHECK(p >= 0, "pdist only supports non-negative p values");
  CRESSET_CHECK_NOT_IMPLEMENTED(self.scalar_type() == kFloat || self.scalar_type() == kDouble, "\"pdist\" not implemented for '",
                                self.scalar_type(), "'");
}

int64_t pairs(int64_t rows) { return rows < 2 ? 0 : rows * (rows - 1) / 2; }

}  // namespace

Tensor cdist_impl(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  check_cdist(x1, x2, p, compute_mode);
  const int64_t mode = compute_mode.value_or(0);
  const bool many = x1.size(-2) > kManyRows || x2.size(-2) > kManyRows;
  if (p == 2 && (mode == 1 || (mode == 0 && many)) && x1.size(-1) > 0) return cresset::_euclidean_dist(x1, x2);
  return cresset::_cdist_forward(x1, x2, p, compute_mode);
}

TensorSpec cdist_forward_shape(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  check_cdist(x1, x2, p, compute_mode);
  check_cdist_type(x1);
  return spec_like(x1, distance_sizes(x1, x2));
}

TensorSpec cdist_backward_shape(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& cdist) {
  check_cdist(x1, x2, p, std::nullopt);
  check_cdist_type(x1);
  DimVector sizes = distance_sizes(x1, x2);
  for (const Tensor* t : {&grad, &cdist}) {
    CRESSET_CHECK(t->sizes() == IntArrayRef(sizes), "_cdist_backward: grad and cdist of sizes ", sizes, " were required; got ", t->sizes(),
                  ".");
    CRESSET_CHECK(t->scalar_type() == x1.scalar_type(), "expected scalar type ", x1.scalar_type(), " but found ", t->scalar_type());
  }
  sizes.back() = x1.size(-1);
  return spec_like(x1, sizes);
}

// |a - b|^2 = |a|^2 + |b|^2 - 2ab, as one product of rows [-2a, |a|^2, 1] and [b, 1, |b|^2].
Tensor euclidean_dist(const Tensor& x1, const Tensor& x2) {
  const Tensor norm1 = cresset::sum(cresset::square(x1), -1, true), norm2 = cresset::sum(cresset::square(x2), -1, true);
  const Tensor left = cresset::cat({cresset::mul(x1, -2), norm1, cresset::ones_like(norm1)}, -1);
  const Tensor right = cresset::cat({x2, cresset::ones_like(norm2), norm2}, -1);
  return cresset::sqrt(cresset::clamp_min(cresset::matmul(left, right.mT()), 0));
}

Tensor pdist_impl(const Tensor& self, double p) {
  check_pdist(self, p);
  return cresset::_pdist_forward(self.contiguous(), p);
}

TensorSpec pdist_forward_shape(const Tensor& self, double p) {
  check_pdist(self, p);
  return spec_like(self, {pairs(self.size(0))});
}

TensorSpec pdist_backward_shape(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist) {
  check_pdist(self, p);
  for (const Tensor* t : {&grad, &pdist}) {
    CRESSET_CHECK(t->dim() == 1 && t->numel() == pairs(self.size(0)), "_pdist_backward: grad and pdist of ", pairs(self.size(0)),
                  " elements were required; got sizes ", t->sizes(), ".");
    CRESSET_CHECK(t->scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", t->scalar_type());
  }
  return spec_like(self, self.sizes());
}

}  // namespace cresset::ops
