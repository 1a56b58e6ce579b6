// Rows of a table by index: shape rules, checks and compositions.

#include "ops/ops_decl_embedding.h"
#include "ops/shape_util.h"

namespace cresset::ops {

namespace {
void check_indices(const char* op, const Tensor& indices) {
  CRESSET_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt,
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.",
                indices.scalar_type(), "Tensor instead (while checking arguments for ", op, ")");
}
}  // namespace

Tensor embedding_impl(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  CRESSET_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_indices("embedding", indices);
  if (indices.dim() == 1) return weight.index_select(0, indices);
  DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  return weight.index_select(0, indices.reshape({-1})).view(sizes);
}

TensorSpec embedding_dense_backward_shape(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t, bool) {
  check_indices("embedding_dense_backward", indices);
  check_same_device("embedding_dense_backward", grad_output, indices, "indices");
  CRESSET_CHECK(grad_output.dim() == indices.dim() + 1 && grad_output.sizes().slice(0, indices.dim()) == indices.sizes(),
                "embedding_dense_backward: a gradient of the indices' size and one more dimension was required; got ", grad_output.sizes(),
                " for indices ", indices.sizes(), ".");
  return spec_like(grad_output, {num_weights, grad_output.size(-1)});
}

Tensor& embedding_renorm_meta(Tensor& self, const Tensor& indices, double, double) {
  CRESSET_CHECK(self.dim() == 2, "embedding_renorm_: a 2-dimensional table was required; got size ", self.sizes(), ".");
  check_indices("embedding_renorm_", indices);
  return self;
}

}  // namespace cresset::ops
