// What shape rules and kernels of embedding bags share.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

enum BagMode : int64_t { kBagSum = 0, kBagMean = 1, kBagMax = 2 };

void check_embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                         const std::optional<Tensor>& per_sample_weights, bool include_last_offset);

}  // namespace cresset::ops
