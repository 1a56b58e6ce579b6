// Attention of several heads.
#include <cresset/nn/attention.h>

#include <cmath>
#include <ostream>

#include <cresset/ops/functions_attention.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_softmax.h>
#include <cresset/ops/functions_view.h>

namespace cresset::nn {

namespace functional {
namespace {

using Options = MultiheadAttentionForwardFuncOptions;

/// A mask as numbers that are added to scores.
Tensor float_mask(const Tensor& mask, const char* name, ScalarType dtype) {
  if (!mask.defined() || mask.is_floating_point()) return mask;
  CRESSET_CHECK(mask.scalar_type() == kBool, "only bool and floating types of ", name, " are supported; got ",
                toString(mask.scalar_type()));
  return cresset::zeros(mask.sizes(), mask.options().dtype(dtype)).masked_fill_(mask, -INFINITY);
}
/// A mask with one more position that is seen.
Tensor one_more(const Tensor& mask) { return mask.defined() ? cresset::constant_pad_nd(mask, {0, 1}, 0) : mask; }

void check_ranks(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o) {
  const int64_t n = query.dim();
  CRESSET_CHECK(n == 2 || n == 3, "query should be unbatched 2D or batched 3D tensor but received ", n, "-D query tensor");
  const char* kind = n == 3 ? "batched" : "unbatched";
  CRESSET_CHECK(key.dim() == n && value.dim() == n, "For ", kind, " (", n, "-D) `query`, expected `key` and `value` to be ", n,
                "-D but found ", key.dim(), "-D and ", value.dim(), "-D tensors respectively");
  CRESSET_CHECK(!o.key_padding_mask().defined() || o.key_padding_mask().dim() == n - 1, "For ", kind, " (", n,
                "-D) `query`, expected `key_padding_mask` to be undefined or ", n - 1, "-D but found ", o.key_padding_mask().dim(),
                "-D tensor instead");
  CRESSET_CHECK(query.size(-1) == o.embed_dim_to_check(), "was expecting embedding dimension of ", o.embed_dim_to_check(), ", but got ",
                query.size(-1));
  CRESSET_CHECK(o.num_heads() > 0 && query.size(-1) % o.num_heads() == 0, "embed_dim ", query.size(-1), " not divisible by num_heads ",
                o.num_heads());
  if (o.use_separate_proj_weight())
    CRESSET_CHECK(key.sizes().slice(0, n - 1) == value.sizes().slice(0, n - 1), "key's sequence and batch dims ",
                  key.sizes().slice(0, n - 1), " do not match value's ", value.sizes().slice(0, n - 1));
  else
    CRESSET_CHECK(key.sizes() == value.sizes(), "key shape ", key.sizes(), " does not match value shape ", value.sizes());
}

struct Projected {
  Tensor q, k, v;
};
Projected project(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o) {
  if (!o.use_separate_proj_weight() && query.is_same(key) && key.is_same(value)) {
    const std::vector<Tensor> parts = linear(query, o.in_proj_weight(), o.in_proj_bias()).chunk(3, -1);
    return {parts[0], parts[1], parts[2]};
  }
  const std::vector<Tensor> weights = o.use_separate_proj_weight()
                                          ? std::vector<Tensor>{o.q_proj_weight(), o.k_proj_weight(), o.v_proj_weight()}
                                          : o.in_proj_weight().chunk(3, 0);
  const std::vector<Tensor> biases = o.in_proj_bias().defined() ? o.in_proj_bias().chunk(3, 0) : std::vector<Tensor>(3);
  return {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]), linear(value, weights[2], biases[2])};
}

/// The mask of attention in three dimensions, checked against the scores it is for.
Tensor checked_mask(const Tensor& mask, int64_t matrices, int64_t length, int64_t source) {
  if (!mask.defined()) return mask;
  CRESSET_CHECK(mask.dim() == 2 || mask.dim() == 3, "attn_mask's dimension ", mask.dim(), " is not supported");
  const std::vector<int64_t> expected =
      mask.dim() == 2 ? std::vector<int64_t>{length, source} : std::vector<int64_t>{matrices, length, source};
  CRESSET_CHECK(mask.sizes() == IntArrayRef(expected), "The shape of the ", mask.dim(), "D attn_mask is ", mask.sizes(), ", but should be ",
                IntArrayRef(expected), ".");
  return mask.dim() == 2 ? mask.unsqueeze(0) : mask;
}

}  // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o) {
  check_ranks(query, key, value, o);
  if (query.dim() == 2) {
    // Equal inputs stay equal: that decides how the projection is computed.
    const Tensor q = query.unsqueeze(1), k = key.is_same(query) ? q : key.unsqueeze(1), v = value.is_same(key) ? k : value.unsqueeze(1);
    Options batched = o;
    if (o.key_padding_mask().defined()) batched.key_padding_mask(o.key_padding_mask().unsqueeze(0));
    const auto [out, weights] = multi_head_attention_forward(q, k, v, batched);
    return {out.squeeze(1), weights.defined() ? weights.squeeze(0) : weights};
  }
  const int64_t length = query.size(0), batch = query.size(1), width = query.size(2), heads = o.num_heads(), head = width / heads;
  auto [q, k, v] = project(query, key, value, o);
  Tensor mask = checked_mask(float_mask(o.attn_mask(), "attn_mask", query.scalar_type()), batch * heads, length, key.size(0));
  Tensor padding = float_mask(o.key_padding_mask(), "key_padding_mask", query.scalar_type());
  CRESSET_CHECK(o.bias_k().defined() == o.bias_v().defined(), "bias_k and bias_v must be given together");
  if (o.bias_k().defined()) {
    CRESSET_CHECK(!o.static_k().defined(), "bias cannot be added to static key.");
    CRESSET_CHECK(!o.static_v().defined(), "bias cannot be added to static value.");
    k = cresset::cat({k, o.bias_k().repeat({1, batch, 1})}, 0);
    v = cresset::cat({v, o.bias_v().repeat({1, batch, 1})}, 0);
    mask = one_more(mask);
    padding = one_more(padding);
  }

  // (L, N, E) -> (N heads, L, head)
  const auto split = [&](const Tensor& t) { return t.contiguous().view({t.size(0), batch * heads, head}).transpose(0, 1); };
  q = split(q);
  k = o.static_k().defined() ? o.static_k() : split(k);
  v = o.static_v().defined() ? o.static_v() : split(v);
  if (o.add_zero_attn()) {
    const Tensor zeros = cresset::zeros({batch * heads, 1, head}, k.options());
    k = cresset::cat({k, zeros}, 1);
    v = cresset::cat({v, zeros}, 1);
    mask = one_more(mask);
    padding = one_more(padding);
  }
  const int64_t source = k.size(1);
  if (padding.defined()) {
    CRESSET_CHECK(padding.sizes() == IntArrayRef({batch, source}), "expecting key_padding_mask shape of ", IntArrayRef({batch, source}),
                  ", but got ", padding.sizes());
    padding = padding.view({batch, 1, 1, source}).expand({-1, heads, -1, -1}).reshape({batch * heads, 1, source});
    mask = mask.defined() ? mask + padding : padding;
  }

  const double drop = o.training() ? o.dropout_p() : 0;
  Tensor out, weights;
  if (o.need_weights()) {
    const Tensor scaled = q * std::sqrt(1.0 / static_cast<double>(head)), turned = k.transpose(-2, -1);
    weights = cresset::softmax(mask.defined() ? cresset::baddbmm(mask, scaled, turned) : cresset::bmm(scaled, turned), -1);
    if (drop > 0) weights = cresset::dropout(weights, drop, true);
    out = cresset::bmm(weights, v);
    weights = weights.view({batch, heads, length, source});
    if (o.average_attn_weights()) weights = weights.mean(1);
  } else {
    const auto by_batch = [&](const Tensor& t) { return t.reshape({batch, heads, t.size(1), head}); };
    if (mask.defined()) mask = mask.size(0) == 1 ? mask.unsqueeze(0) : mask.view({batch, heads, -1, source});
    out = cresset::scaled_dot_product_attention(by_batch(q), by_batch(k), by_batch(v), detail::given(mask), drop)
              .reshape({batch * heads, length, head});
  }
  out = out.transpose(0, 1).reshape({length, batch, width});
  return {linear(out, o.out_proj_weight(), o.out_proj_bias()), weights};
}

}  // namespace functional

void MultiheadAttentionImpl::reset() {
  const int64_t width = options.embed_dim(), kdim = options.kdim().value_or(width), vdim = options.vdim().value_or(width);
  CRESSET_CHECK_VALUE(width > 0 && options.num_heads() > 0, "embed_dim and num_heads must be greater than 0, got embed_dim=", width,
                      " and num_heads=", options.num_heads(), " instead");
  head_dim = width / options.num_heads();
  CRESSET_CHECK(head_dim * options.num_heads() == width, "embed_dim must be divisible by num_heads");
  _qkv_same_embed_dim = kdim == width && vdim == width;
  const auto parameter = [&](const char* name, bool there, IntArrayRef sizes) {
    return register_parameter(name, there ? cresset::empty(sizes, TensorOptions()) : Tensor(), there);
  };
  in_proj_weight = parameter("in_proj_weight", _qkv_same_embed_dim, {3 * width, width});
  q_proj_weight = parameter("q_proj_weight", !_qkv_same_embed_dim, {width, width});
  k_proj_weight = parameter("k_proj_weight", !_qkv_same_embed_dim, {width, kdim});
  v_proj_weight = parameter("v_proj_weight", !_qkv_same_embed_dim, {width, vdim});
  in_proj_bias = parameter("in_proj_bias", options.bias(), {3 * width});
  out_proj = register_module("out_proj", Linear(LinearOptions(width, width).bias(options.bias())));
  bias_k = parameter("bias_k", options.add_bias_kv(), {1, 1, width});
  bias_v = parameter("bias_v", options.add_bias_kv(), {1, 1, width});
  _reset_parameters();
}

void MultiheadAttentionImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::MultiheadAttention"; }
void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (weight.defined()) init::xavier_uniform_(weight);
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  for (const Tensor& bias : {bias_k, bias_v})
    if (bias.defined()) init::xavier_normal_(bias);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights, const Tensor& attn_mask,
                                                           bool average_attn_weights) {
  functional::MultiheadAttentionForwardFuncOptions call(options.embed_dim(), options.num_heads(), in_proj_weight, in_proj_bias, bias_k,
                                                        bias_v, options.add_zero_attn(), options.dropout(), out_proj->weight,
                                                        out_proj->bias);
  call.training(is_training()).key_padding_mask(key_padding_mask).need_weights(need_weights).attn_mask(attn_mask);
  call.use_separate_proj_weight(!_qkv_same_embed_dim)
      .q_proj_weight(q_proj_weight)
      .k_proj_weight(k_proj_weight)
      .v_proj_weight(v_proj_weight);
  return functional::multi_head_attention_forward(query, key, value, call.average_attn_weights(average_attn_weights));
}

}  // namespace cresset::nn
