// Gradient helpers of the attention family.
#pragma once

#include <optional>
#include <tuple>

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// By the kernel without the matrix of scores; where the gradients are differentiated in turn, by products and softmax.
std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const Tensor& output, const Tensor& logsumexp, double dropout_p, bool is_causal,
                                                      const std::optional<Tensor>& attn_mask, std::optional<double> scale);
Tensor attention_jvp(const Tensor& query_p, const Tensor& query_t, const Tensor& key_p, const Tensor& key_t, const Tensor& value_p,
                     const Tensor& value_t, bool is_causal, const std::optional<Tensor>& attn_mask_p, const Tensor& attn_mask_t,
                     std::optional<double> scale);

}  // namespace cresset::autograd::formulas
