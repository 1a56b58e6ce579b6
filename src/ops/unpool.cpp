// Shape rules of max unpooling.
#include "ops/ops_decl_unpool.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

TensorSpec unpooled(const Tensor& self, const Tensor& indices, IntArrayRef output_size, int64_t n) {
  CRESSET_CHECK(indices.scalar_type() == kLong, "elements in indices should be type int64 but got: ", indices.scalar_type());
  CRESSET_CHECK(static_cast<int64_t>(output_size.size()) == n, "There should be exactly ", n == 2 ? "two" : "three", " elements (",
                n == 2 ? "height, width" : "depth, height, width", ") in output_size, but got ", output_size.size(), " elements.");
  CRESSET_CHECK(self.dim() == n + 1 || self.dim() == n + 2, "Input to max_unpooling", n, "d should be a ", n + 1, "d or ", n + 2,
                "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  CRESSET_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (", self.sizes(),
                ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t d = self.dim() - n - 1; d < self.dim(); ++d)
    CRESSET_CHECK(self.size(d) > 0, "max_unpooling", n, "d(): Expected input to have non-zero size for non-batch dimensions, but got ",
                  self.sizes(), " with dimension ", d, " being empty.");
  DimVector sizes(self.sizes());
  for (int64_t d = 0; d < n; ++d) {
    CRESSET_CHECK(output_size[static_cast<std::size_t>(d)] >= 0, "max_unpooling", n, "d(): output_size must not be negative; got ",
                  output_size);
    sizes[static_cast<std::size_t>(self.dim() - n + d)] = output_size[static_cast<std::size_t>(d)];
  }
  return spec_like(self, sizes, std::nullopt, n == 2 ? self.suggest_memory_format() : MemoryFormat::Contiguous);
}

}  // namespace

TensorSpec max_unpool2d_shape(const Tensor& self, const Tensor& indices, IntArrayRef output_size) {
  return unpooled(self, indices, output_size, 2);
}

TensorSpec max_unpool3d_shape(const Tensor& self, const Tensor& indices, IntArrayRef output_size, IntArrayRef stride, IntArrayRef padding) {
  CRESSET_CHECK(stride.size() == 3, "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
                " elements.");
  CRESSET_CHECK(padding.size() == 3, "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
                " elements.");
  for (int64_t s : stride) CRESSET_CHECK(s > 0, "strides should be greater than zero, but got stride: ", stride);
  return unpooled(self, indices, output_size, 3);
}

}  // namespace cresset::ops
