// Geometry of sliding blocks, shared by shape rules and kernels.
#pragma once

#include <array>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// Blocks of a plane: all pairs are (rows, columns).
struct Blocks {
  std::array<int64_t, 2> image, kernel, dilation, padding, stride, count;
};

/// Checks the lists and works out how many blocks there are; counts may be less than one.
CRESSET_API Blocks sliding_blocks(IntArrayRef image, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                                  IntArrayRef stride);

}  // namespace cresset::ops
