// What attention's operators share with their kernels.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// What scores are multiplied with: `scale`, or one over the root of the features.
CRESSET_API double attention_factor(const Tensor& query, std::optional<double> scale);
/// Tensor (…, heads, L, X) as (…, shared, heads / shared * L, X): what heads that share one of `shared` keys or values ask of it, in rows.
CRESSET_API Tensor grouped_heads(const Tensor& t, int64_t shared);
/// a @ b of (…, heads, L, X) and (…, shared, X, Y), each of b's matrices for heads / shared neighbouring heads of a; nothing is repeated.
CRESSET_API Tensor shared_product(const Tensor& a, const Tensor& b);
/// Raises for what _scaled_dot_product_flash_attention_for_cpu does not take.
CRESSET_API void check_flash_attention(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p,
                                       const std::optional<Tensor>& attn_mask);
/// The same for what comes back.
CRESSET_API void check_flash_attention_backward(const Tensor& grad_out, const Tensor& query, const Tensor& out, const Tensor& logsumexp);

}  // namespace cresset::ops
