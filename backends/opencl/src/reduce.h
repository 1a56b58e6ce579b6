// Reductions over any dimensions of a strided tensor.
#pragma once

#include "launch.h"

namespace cresset_opencl {

struct Reduction {
  std::string defines;   // "-DOP_SUM=1"
  Compute accumulator;   // type of the accumulator
  double parameter = 0;  // correction of a variance, order of a norm
};

/// Reduces `dims` (all when empty) of x into contiguous results with one element for every place of the other dimensions, in order.
/// `second` may be undefined. False when there are too many dimensions for a kernel.
bool reduce(const Tensor& x, std::vector<int64_t> dims, const Reduction& how, const Tensor& out, const Tensor& second = Tensor());

}  // namespace cresset_opencl
