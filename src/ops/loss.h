// The common end of every loss.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::ops {

enum Reduction : int64_t { kReduceNone = 0, kReduceMean = 1, kReduceSum = 2 };

/// loss itself, its mean or its sum. Raises for other numbers.
Tensor reduce_loss(const Tensor& loss, int64_t reduction);

}  // namespace cresset::ops
