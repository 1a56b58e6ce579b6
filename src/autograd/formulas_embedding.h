// Derivatives of embedding bags.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// Tangent of the bags when the table and the weights of the samples move (either may be undefined).
Tensor embedding_bag_jvp(const Tensor& weight_p, const Tensor& weight_t, const Tensor& indices, const Tensor& offsets, int64_t mode,
                         const Tensor& factors_p, const Tensor& factors_t, bool include_last_offset, int64_t padding_idx,
                         const Tensor& bag_size, const Tensor& maxima);

}  // namespace cresset::autograd::formulas
