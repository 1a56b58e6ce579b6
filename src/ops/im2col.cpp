// Shape rules of im2col and col2im.
#include "ops/im2col.h"

#include <limits>
#include <string>

#include "ops/ops_decl_im2col.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

std::string pair(const std::array<int64_t, 2>& v) { return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ")"; }

std::string settings(const Blocks& b) {
  return "kernel_size=" + pair(b.kernel) + ", dilation=" + pair(b.dilation) + ", padding=" + pair(b.padding);
}

int64_t product(int64_t a, int64_t b) {
  int64_t out;
  CRESSET_CHECK(!__builtin_mul_overflow(a, b, &out), "Storage size calculation overflowed: ", a, " * ", b, " elements of sliding blocks");
  return out;
}

}  // namespace

Blocks sliding_blocks(IntArrayRef image, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  Blocks b{};
  const auto take = [](std::array<int64_t, 2>& to, const char* name, const char* short_name, const char* rule, IntArrayRef from,
                       int64_t least) {
    CRESSET_CHECK(from.size() == 2, "It is expected ", short_name, "_size equals to 2, but got size ", from.size());
    to = {from[0], from[1]};
    CRESSET_CHECK(from[0] >= least && from[1] >= least, name, " should be ", rule, ", but got ", short_name, "_height: ", from[0], " ",
                  short_name, "_width: ", from[1]);
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // sums and products of two stay numbers
    CRESSET_CHECK(from[0] <= kMost && from[1] <= kMost, name, " should be at most ", kMost, ", but got ", short_name, "_height: ", from[0],
                  " ", short_name, "_width: ", from[1]);
  };
  int64_t area;
  CRESSET_CHECK(kernel_size.size() != 2 || !__builtin_mul_overflow(kernel_size[0], kernel_size[1], &area),
                "Given kernel_width = ", kernel_size[1], " and kernel_height = ", kernel_size[0],
                " the product of kernel_width and kernel_height overflowed.");
  take(b.kernel, "kernel size", "kernel", "greater than zero", kernel_size, 1);
  take(b.dilation, "dilation", "dilation", "greater than zero", dilation, 1);
  take(b.padding, "padding", "pad", "non-negative", padding, 0);
  take(b.stride, "stride", "stride", "greater than zero", stride, 1);
  for (std::size_t d = 0; d < 2; ++d) {
    CRESSET_CHECK(image[d] <= std::numeric_limits<int64_t>::max() / 2, "Storage size calculation overflowed with sizes=", image);
    b.image[d] = image[d];
    const int64_t reach = image[d] + 2 * b.padding[d] - b.dilation[d] * (b.kernel[d] - 1) - 1;
    b.count[d] = (reach >= 0 ? reach / b.stride[d] : -((-reach + b.stride[d] - 1) / b.stride[d])) + 1;
  }
  return b;
}

TensorSpec im2col_shape(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  CRESSET_CHECK_INDEX(self.dim() >= 3, "Dimension out of range (expected to be in range of [", -self.dim(), ", ", self.dim() - 1,
                      "], but got ", self.dim(), ")");
  bool filled = self.dim() == 3 || self.dim() == 4;
  for (int64_t d = self.dim() - 3; filled && d < self.dim(); ++d) filled = self.size(d) > 0;
  CRESSET_CHECK(
      filled,
      "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ", self.sizes());
  const Blocks b = sliding_blocks(self.sizes().slice(static_cast<std::size_t>(self.dim() - 2)), kernel_size, dilation, padding, stride);
  CRESSET_CHECK(b.count[0] >= 1 && b.count[1] >= 1, "Given input with spatial size ", pair(b.image), ", ", settings(b),
                ", calculated shape of the array of sliding blocks as ", pair(b.count), ", but its components must be at least one.");
  DimVector sizes(self.sizes().slice(0, static_cast<std::size_t>(self.dim() - 3)));
  sizes.push_back(product(self.size(-3), b.kernel[0] * b.kernel[1]));
  sizes.push_back(product(b.count[0], b.count[1]));
  return spec_like(self, sizes);
}

TensorSpec col2im_shape(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                        IntArrayRef stride) {
  CRESSET_CHECK(output_size.size() == 2, "It is expected output_size equals to 2, but got size ", output_size.size());
  const Blocks b = sliding_blocks(output_size, kernel_size, dilation, padding, stride);
  bool filled = self.dim() == 2 || self.dim() == 3;
  for (int64_t d = self.dim() - 2; filled && d < self.dim(); ++d) filled = self.size(d) > 0;
  CRESSET_CHECK(filled,
                "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: ",
                self.sizes());
  const int64_t area = b.kernel[0] * b.kernel[1];
  CRESSET_CHECK(self.size(-2) % area == 0,
                "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=", self.size(-2),
                " and kernel_size=", pair(b.kernel), ".");
  const int64_t blocks = product(b.count[0], b.count[1]);
  const bool fits = self.size(-1) == blocks;
  CRESSET_CHECK(fits, "Given output_size=", pair(b.image), ", ", settings(b), ", stride=", pair(b.stride),
                ", expected size of input's dimension 2 to match the calculated number of sliding blocks ", b.count[0], " * ", b.count[1],
                " = ", blocks, ", but got input.size(2)=", self.size(-1), ".");
  CRESSET_CHECK(b.count[0] >= 1 && b.count[1] >= 1, "Given output_size=", pair(b.image), ", ", settings(b), ", stride=", pair(b.stride),
                ", calculated shape of the array of sliding blocks as ", pair(b.count), ", which is too small (non-positive)");
  DimVector sizes(self.sizes().slice(0, static_cast<std::size_t>(self.dim() - 2)));
  sizes.push_back(self.size(-2) / area);
  sizes.push_back(b.image[0]);
  sizes.push_back(b.image[1]);
  return spec_like(self, sizes);
}

}  // namespace cresset::ops
