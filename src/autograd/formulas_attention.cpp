// Derivatives of attention.
#include "autograd/formulas_attention.h"

#include <limits>

#include <cresset/core/grad_mode.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_attention.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_softmax.h>
#include <cresset/ops/functions_view.h>

#include "ops/attention.h"

namespace cresset::autograd::formulas {

namespace {

Tensor attention_weights(const Tensor& query, const Tensor& key, bool is_causal, const std::optional<Tensor>& mask, double factor) {
  Tensor scores = ops::shared_product(query, key.transpose(-2, -1)) * factor;
  if (mask && mask->defined()) scores = scores + mask->to(scores.scalar_type());
  if (is_causal) {
    const Tensor seen = cresset::ones({query.size(-2), key.size(-2)}, query.options().dtype(kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
  }
  return cresset::_safe_softmax(scores, -1);
}

// What a change of the scores does to the weights, or a gradient of the weights to the scores.
Tensor through_softmax(const Tensor& weights, const Tensor& change) {
  return weights * (change - cresset::sum(weights * change, {-1}, true));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const Tensor& output, const Tensor& logsumexp, double dropout_p, bool is_causal,
                                                      const std::optional<Tensor>& attn_mask, std::optional<double> scale) {
  if (!GradMode::is_enabled())
    return cresset::_scaled_dot_product_flash_attention_for_cpu_backward(grad, query, key, value, output, logsumexp, dropout_p, is_causal,
                                                                         attn_mask, scale);
  const double factor = ops::attention_factor(query, scale);
  const Tensor weights = attention_weights(query, key, is_causal, attn_mask, factor);
  const Tensor scores = through_softmax(weights, ops::shared_product(grad, value.transpose(-2, -1))) * factor;
  const auto over_heads = [&](const Tensor& left, const Tensor& right) {
    return cresset::matmul(ops::grouped_heads(left, key.size(1)).transpose(-2, -1), ops::grouped_heads(right, key.size(1)));
  };
  return {ops::shared_product(scores, key), over_heads(scores, query), over_heads(weights, grad)};
}

Tensor attention_jvp(const Tensor& query_p, const Tensor& query_t, const Tensor& key_p, const Tensor& key_t, const Tensor& value_p,
                     const Tensor& value_t, bool is_causal, const std::optional<Tensor>& attn_mask_p, const Tensor& attn_mask_t,
                     std::optional<double> scale) {
  const double factor = ops::attention_factor(query_p, scale);
  const Tensor weights = attention_weights(query_p, key_p, is_causal, attn_mask_p, factor);
  Tensor change = (ops::shared_product(query_t, key_p.transpose(-2, -1)) + ops::shared_product(query_p, key_t.transpose(-2, -1))) * factor;
  if (attn_mask_t.defined()) change = change + attn_mask_t;
  return ops::shared_product(through_softmax(weights, change), value_p) + ops::shared_product(weights, value_t);
}

}  // namespace cresset::autograd::formulas
