// What attention's operators share with their kernels.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// What scores are multiplied with: `scale`, or one over the root of the features.
CRESSET_API double attention_factor(const Tensor& query, std::optional<double> scale);
/// Raises for what _scaled_dot_product_flash_attention_for_cpu does not take.
CRESSET_API void check_flash_attention(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p,
                                       const std::optional<Tensor>& attn_mask);

}  // namespace cresset::ops
