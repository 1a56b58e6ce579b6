// Attention of several heads: the function, the module and their options.
#pragma once

#include <tuple>

#include <cresset/nn/any.h>
#include <cresset/nn/layers.h>

namespace cresset::nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads) : embed_dim_(embed_dim), num_heads_(num_heads) {}
  CRESSET_ARG(int64_t, embed_dim);
  CRESSET_ARG(int64_t, num_heads);
  CRESSET_ARG(double, dropout) = 0;
  CRESSET_ARG(bool, bias) = true;
  CRESSET_ARG(bool, add_bias_kv) = false;
  CRESSET_ARG(bool, add_zero_attn) = false;
  /// Sizes of keys and values; embed_dim unless given.
  CRESSET_ARG(std::optional<int64_t>, kdim);
  CRESSET_ARG(std::optional<int64_t>, vdim);
};

namespace functional {

struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight, Tensor in_proj_bias,
                                       Tensor bias_k, Tensor bias_v, bool add_zero_attn, double dropout_p, Tensor out_proj_weight,
                                       Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  CRESSET_ARG(int64_t, embed_dim_to_check);
  CRESSET_ARG(int64_t, num_heads);
  CRESSET_ARG(Tensor, in_proj_weight);
  CRESSET_ARG(Tensor, in_proj_bias);
  CRESSET_ARG(Tensor, bias_k);
  CRESSET_ARG(Tensor, bias_v);
  CRESSET_ARG(bool, add_zero_attn);
  CRESSET_ARG(double, dropout_p);
  CRESSET_ARG(Tensor, out_proj_weight);
  CRESSET_ARG(Tensor, out_proj_bias);
  CRESSET_ARG(bool, training) = true;
  CRESSET_ARG(Tensor, key_padding_mask);
  CRESSET_ARG(bool, need_weights) = true;
  CRESSET_ARG(Tensor, attn_mask);
  CRESSET_ARG(bool, use_separate_proj_weight) = false;
  CRESSET_ARG(Tensor, q_proj_weight);
  CRESSET_ARG(Tensor, k_proj_weight);
  CRESSET_ARG(Tensor, v_proj_weight);
  CRESSET_ARG(Tensor, static_k);
  CRESSET_ARG(Tensor, static_v);
  CRESSET_ARG(bool, average_attn_weights) = true;
};

/// Query (L, N, E), key and value (S, N, E), all without N when unbatched. Gives the output and the weights (N, L, S), which are undefined
/// unless need_weights. Masks are bool (true is left out) or floating (added to the scores).
CRESSET_API std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                                    const MultiheadAttentionForwardFuncOptions& options);

}  // namespace functional

/// Parameters under the names of the Python module.
class CRESSET_API MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads) : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options_) : options(options_) { MultiheadAttentionImpl::reset(); }
  void reset() override;
  void _reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& key_padding_mask = {},
                                     bool need_weights = true, const Tensor& attn_mask = {}, bool average_attn_weights = true);
  CRESSET_FORWARD_DEFAULTS({3, AnyValue(Tensor())}, {4, AnyValue(true)}, {5, AnyValue(Tensor())}, {6, AnyValue(true)})

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias, bias_k, bias_v, q_proj_weight, k_proj_weight, v_proj_weight;
  Linear out_proj = nullptr;
  int64_t head_dim = 0;
  bool _qkv_same_embed_dim = true;
};
CRESSET_MODULE(MultiheadAttention);

}  // namespace cresset::nn
