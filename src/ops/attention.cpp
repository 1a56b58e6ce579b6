// Scaled dot-product attention as products and softmax; long sequences by a kernel that never holds the matrix of scores.
#include <algorithm>
#include <cmath>
#include <limits>

#include <cresset/core/grad_mode.h>
#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_attention.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_softmax.h>
#include <cresset/ops/functions_view.h>

#include "ops/attention.h"
#include "ops/ops_decl_attention.h"
#include "ops/shared/pointwise.h"

namespace cresset::ops {
namespace {

constexpr double kExcluded = -std::numeric_limits<double>::infinity();

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& attn_mask) {
  CRESSET_CHECK(query.scalar_type() == key.scalar_type() && key.scalar_type() == value.scalar_type(),
                "Expected query, key, and value to have the same dtype, but got query.dtype: ", cpp_type_name(query.scalar_type()),
                " key.dtype: ", cpp_type_name(key.scalar_type()), " and value.dtype: ", cpp_type_name(value.scalar_type()), " instead.");
  CRESSET_CHECK(query.device() == key.device() && key.device() == value.device(),
                "Expected query, key, and value to have the same device type, but got query.device: ", query.device(),
                " key.device: ", key.device(), " and value.device: ", value.device(), " instead.");
  CRESSET_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
                "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ", query.dim(),
                " key.dim: ", key.dim(), " and value.dim: ", value.dim(), " instead.");
  if (!attn_mask) return;
  const ScalarType mask = attn_mask->scalar_type();
  CRESSET_CHECK(mask == kBool || mask == kFloat || mask == query.scalar_type(),
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ", cpp_type_name(mask),
                " and  query.dtype: ", cpp_type_name(query.scalar_type()), " instead.");
}

// Filled with `value`, beside `like`: of its class, where that is one written in Python, so that both go into one operator.
Tensor filled_beside(const Tensor& like, IntArrayRef sizes, bool value, TensorOptions options) {
  if (like.key_set().has(DispatchKey::Python))
    return value ? cresset::new_ones(like, sizes, options) : cresset::new_zeros(like, sizes, options);
  return value ? cresset::ones(sizes, options) : cresset::zeros(sizes, options);
}

// A bool mask (true where a key takes part) as one that is added: zeros and minus infinities.
std::optional<Tensor> additive_mask(const std::optional<Tensor>& mask, ScalarType type) {
  if (!mask || mask->scalar_type() != kBool) return mask;
  return filled_beside(*mask, mask->sizes(), false, mask->options().dtype(type)).masked_fill(mask->logical_not(), kExcluded);
}

// Modes and classes written in Python see the operator that PyTorch has, whether it pays or not.
bool is_watched(const Tensor& query) {
  return cresset::impl::tls_is_dispatch_key_included(DispatchKey::Python) || query.key_set().has(DispatchKey::Python);
}

using Product = Tensor (*)(const Tensor&, const Tensor&);

// Query times key, scaled, with the mask added and, if causal, the future at minus infinity.
Tensor masked_scores(Product product, const Tensor& query, const Tensor& key, const std::optional<Tensor>& attn_mask, bool is_causal,
                     std::optional<double> scale) {
  // The root of the factor on either side keeps what is multiplied in the range of half types; few queries take all of it, and many keys
  // stay as they are.
  const double factor = attention_factor(query, scale), root = std::sqrt(std::abs(factor));
  const bool roots = is_watched(query) || query.size(-2) >= key.size(-2);
  const Tensor scaled = query * (!roots ? factor : factor < 0 ? -root : root), turned = key.transpose(-2, -1);
  Tensor scores = product(scaled, roots ? turned * root : turned);
  if (attn_mask) scores = scores + attn_mask->to(scores.scalar_type());
  if (is_causal) {
    const Tensor seen = filled_beside(query, {query.size(-2), key.size(-2)}, true, query.options().dtype(kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), kExcluded);
  }
  return scores;
}

// Key or value: one head of theirs may serve several of the query's.
void check_shared_heads(const Tensor& t, const Tensor& query) {
  CRESSET_CHECK(query.dim() >= 3 && t.dim() >= 3 && t.size(-3) > 0 && query.size(-3) % t.size(-3) == 0,
                "Number of heads in key and value must divide the number of heads in query; got ", query.sizes(), " and ", t.sizes(), ".");
}

// (N, heads, L, E) laid out as (N, L, heads, E), where the projections around attention want it.
Tensor by_length(const Tensor& t) { return t.transpose(1, 2).contiguous().transpose(1, 2); }

constexpr int64_t kOverrideable = 4;  // SDPBackend.OVERRIDEABLE, an answer of _fused_sdp_choice

[[noreturn]] void raise_no_fused_attention(const char* name) {
  CRESSET_THROW(NotImplementedError, name, ": the device has no kernel for it; a backend whose _fused_sdp_choice answers ", kOverrideable,
                " registers one with TORCH_LIBRARY_IMPL.");
}

ScalarType accumulation_type(const Tensor& t) { return t.scalar_type() == kDouble ? kDouble : kFloat; }

// Scores of a head from which on the kernel that never holds the matrix of scores pays: smaller ones stay in the cache, and its gradient
// computes them anew; with a causal mask it computes half of them.
int64_t many_scores(const Tensor& query, const Tensor& key, const Tensor& value, bool is_causal) {
  constexpr int64_t kWithoutGradient = int64_t{1} << 14, kCausal = int64_t{1} << 15, kMany = int64_t{1} << 18;
  const bool gradient = GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
  return !gradient ? kWithoutGradient : is_causal ? kCausal : kMany;
}

// Whether that kernel takes the call, and pays.
bool goes_by_blocks(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask, double dropout_p,
                    bool is_causal, bool enable_gqa) {
  return query.is_cpu() && isFloatingType(query.scalar_type()) && dropout_p == 0 && query.dim() == 4 && key.dim() == 4 &&
         value.dim() == 4 &&
         (query.size(2) * key.size(2) >= many_scores(query, key, value, is_causal) || (is_watched(query) && query.numel() > 0)) &&
         query.size(0) == key.size(0) && key.size(1) > 0 && query.size(1) % key.size(1) == 0 &&
         (enable_gqa || query.size(1) == key.size(1)) && key.sizes() == value.sizes() && query.size(3) == key.size(3) &&
         !(is_causal && mask) && !(mask && (mask->requires_grad() || (mask->dim() != 2 && mask->dim() != 4)));
}

}  // namespace

Tensor grouped_heads(const Tensor& t, int64_t shared) {
  if (t.dim() < 3 || t.size(-3) == shared) return t;
  DimVector sizes(t.sizes().begin(), t.sizes().end());
  const std::size_t d = sizes.size() - 3;
  sizes[d + 1] *= sizes[d] / shared;
  sizes[d] = shared;
  return t.reshape(sizes);
}

Tensor shared_product(const Tensor& a, const Tensor& b) {
  if (a.dim() < 3 || b.dim() < 3 || a.size(-3) == b.size(-3) || b.size(-3) == 0) return cresset::matmul(a, b);
  const Tensor product = cresset::matmul(grouped_heads(a, b.size(-3)), b);
  DimVector sizes(product.sizes().begin(), product.sizes().end());
  const std::size_t d = sizes.size() - 3;
  sizes[d] = a.size(-3);
  sizes[d + 1] = a.size(-2);
  return product.reshape(sizes);
}

double attention_factor(const Tensor& query, std::optional<double> scale) {
  // Without features every score is zero, whatever the factor.
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(query.size(-1), 1))));
}

void check_flash_attention(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p,
                           const std::optional<Tensor>& attn_mask) {
  constexpr const char* kName = "scaled_dot_product_attention_flash_attention: ";
  check_attention(query, key, value, std::nullopt);
  CRESSET_CHECK(isFloatingType(query.scalar_type()), kName, "Expected data type in FP32, FP64, BF16, FP16, but got ", query.scalar_type(),
                " instead.");
  CRESSET_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, kName, "Accept only 4 dims inputs shape of {B, H, T, K}");
  CRESSET_CHECK(key.size(0) == query.size(0) && value.size(0) == query.size(0) && key.size(2) == value.size(2) &&
                    key.size(1) == value.size(1) && (key.size(1) > 0 ? query.size(1) % key.size(1) == 0 : query.size(1) == 0),
                kName,
                "query (N, heads, L, E), key and value (N, shared heads, S, E) were required, with heads a multiple of shared heads; got ",
                query.sizes(), ", ", key.sizes(), " and ", value.sizes(), ".");
  CRESSET_CHECK(dropout_p == 0.0, kName, "Currently do not support dropout > 0");
  CRESSET_CHECK(query.size(3) == value.size(3) && key.size(3) == value.size(3), kName, "Q/K/V should have the same head size");
  CRESSET_CHECK(!attn_mask || attn_mask->scalar_type() == kFloat || attn_mask->scalar_type() == query.scalar_type(), kName,
                "Attention mask is the same data type as query");
  CRESSET_CHECK(!attn_mask || attn_mask->dim() == 2 || attn_mask->dim() == 4, kName, "Attention mask dim in {2, 4}");
}

void check_flash_attention_backward(const Tensor& grad_out, const Tensor& query, const Tensor& out, const Tensor& logsumexp) {
  CRESSET_CHECK(
      grad_out.sizes() == query.sizes() && out.sizes() == query.sizes() && logsumexp.sizes() == query.sizes().slice(0, 3),
      "scaled_dot_product_attention_flash_attention_backward: grad_out and out of the size of query and logsumexp of its first three "
      "sizes were required; got ",
      grad_out.sizes(), ", ", out.sizes(), ", ", logsumexp.sizes(), " and query ", query.sizes(), ".");
}

std::tuple<Tensor, Tensor> scaled_dot_product_attention_math(const Tensor& query, const Tensor& key, const Tensor& value,
                                                             const std::optional<Tensor>& attn_mask, double dropout_p, bool is_causal,
                                                             const std::optional<Tensor>& dropout_mask, std::optional<double> scale,
                                                             bool enable_gqa) {
  check_attention(query, key, value, attn_mask);
  CRESSET_CHECK(!is_causal || !attn_mask, "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  if (enable_gqa) {
    check_shared_heads(key, query);
    check_shared_heads(value, query);
  }
  const Product product = enable_gqa ? shared_product : cresset::matmul;
  const Tensor scores = masked_scores(product, query, key, attn_mask, is_causal, scale);
  // Only a mask can leave a query without keys.
  Tensor weights = attn_mask || is_watched(query) ? cresset::_safe_softmax(scores, -1) : scores.softmax(-1);
  if (dropout_p > 0) {
    if (dropout_mask) {
      CRESSET_CHECK(dropout_p < 1, "_scaled_dot_product_attention_math: a dropout_p below 1 was required with a mask; got ", dropout_p,
                    ".");
      return {product(weights.masked_fill(dropout_mask->logical_not(), 0) / (1 - dropout_p), value), weights};
    }
    weights = cresset::dropout(weights, dropout_p, true);
  }
  // Autocast has products of a lower type, and softmax one of a higher.
  return {product(weights, value).to(query.scalar_type()), weights.to(query.scalar_type())};
}

Tensor scaled_dot_product_attention_impl(const Tensor& query, const Tensor& key, const Tensor& value,
                                         const std::optional<Tensor>& attn_mask, double dropout_p, bool is_causal,
                                         std::optional<double> scale, bool enable_gqa) {
  CRESSET_CHECK(dropout_p >= 0 && dropout_p <= 1, "dropout probability has to be between 0 and 1, but got ", dropout_p);
  check_attention(query, key, value, attn_mask);
  const std::optional<Tensor> mask = additive_mask(attn_mask, query.scalar_type());
  // The answer for the CPU is known.
  if (!query.is_cpu() && cresset::_fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) == kOverrideable)
    return std::get<0>(
        cresset::_scaled_dot_product_fused_attention_overrideable(query, key, value, mask, dropout_p, is_causal, false, scale));
  if (goes_by_blocks(query, key, value, mask, dropout_p, is_causal, enable_gqa))
    return std::get<0>(cresset::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, mask, scale));
  return std::get<0>(scaled_dot_product_attention_math(query, key, value, mask, dropout_p, is_causal, std::nullopt, scale, enable_gqa));
}

std::tuple<Tensor, Tensor> flash_attention_for_cpu(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p,
                                                   bool is_causal, const std::optional<Tensor>& attn_mask, std::optional<double> scale) {
  check_flash_attention(query, key, value, dropout_p, attn_mask);
  const ScalarType type = accumulation_type(query);
  const Tensor scores = masked_scores(shared_product, query.to(type), key.to(type), attn_mask, is_causal, scale);
  const Tensor sums = cresset::logsumexp(scores, {-1}, true);
  // A query that sees nothing gets zeros.
  const Tensor empty = cresset::eq(sums, kExcluded), safe = sums.masked_fill(empty, 0);
  const Tensor out = shared_product(cresset::exp(scores - safe), value.to(type)).to(query.scalar_type());
  return {by_length(out), by_length(safe.squeeze(-1))};
}

// With P = exp(scores - logsumexp): dV = P^T dO, dS = P * (dO V^T - rowsum(dO * O)), dQ = dS K * scale, dK = dS^T Q * scale.
std::tuple<Tensor, Tensor, Tensor> flash_attention_for_cpu_backward(const Tensor& grad_out, const Tensor& query, const Tensor& key,
                                                                    const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                                                                    double dropout_p, bool is_causal,
                                                                    const std::optional<Tensor>& attn_mask, std::optional<double> scale) {
  check_flash_attention(query, key, value, dropout_p, attn_mask);
  check_flash_attention_backward(grad_out, query, out, logsumexp);
  const ScalarType type = accumulation_type(query);
  const Tensor q = query.to(type), k = key.to(type), v = value.to(type), g = grad_out.to(type);
  const Tensor p = cresset::exp(masked_scores(shared_product, q, k, attn_mask, is_causal, scale) - logsumexp.to(type).unsqueeze(-1));
  const Tensor moved = shared_product(g, v.transpose(-2, -1)) - cresset::sum(g * out.to(type), {-1}, true);
  const Tensor scores = p * moved * attention_factor(query, scale);
  const auto finish = [&](const Tensor& t) { return by_length(t.to(query.scalar_type())); };
  const auto over_heads = [&](const Tensor& left, const Tensor& right) {
    return finish(cresset::matmul(grouped_heads(left, k.size(1)).transpose(-2, -1), grouped_heads(right, k.size(1))));
  };
  return {finish(shared_product(scores, k)), over_heads(scores, q), over_heads(p, g)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t, int64_t, Tensor, Tensor, Tensor> overrideable_attention(
    const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool, bool, std::optional<double>) {
  raise_no_fused_attention("_scaled_dot_product_fused_attention_overrideable");
}
std::tuple<Tensor, Tensor, Tensor, Tensor> overrideable_attention_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                                           const Tensor&, std::array<bool, 4>, const Tensor&, const Tensor&,
                                                                           const Tensor&, const Tensor&, int64_t, int64_t, double, bool,
                                                                           const Tensor&, const Tensor&, std::optional<double>) {
  raise_no_fused_attention("_scaled_dot_product_fused_attention_overrideable_backward");
}

int64_t fused_sdp_choice(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool, std::optional<double>,
                         bool) {
  return 0;
}

namespace {

// A mask as one that is true where a key takes no part, in a shape that the scores (N, heads, L, L) broadcast: 0, of (L, L), for all
// examples; 1, of (N, L), for all queries; 2, of the scores' shape. Any number but zero excludes.
Tensor excluded_keys(const Tensor& mask, std::optional<int64_t> mask_type, const Tensor& scores) {
  const Tensor excluded = mask.to(kBool);
  if (mask.sizes() == scores.sizes()) return excluded;
  const int64_t n = scores.size(0), length = scores.size(3);
  CRESSET_CHECK(mask_type, "Mask Type should be defined");
  CRESSET_CHECK(*mask_type >= 0 && *mask_type <= 2, "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)");
  CRESSET_CHECK(*mask_type != 2, "For mask_type == 2 mask shape should match input shape");
  if (*mask_type == 0) {
    CRESSET_CHECK(mask.dim() == 2 && mask.size(0) == length && mask.size(1) == length, "For mask_type == 0 mask shape should be (L, L)");
    return excluded;
  }
  CRESSET_CHECK(mask.dim() == 2 && mask.size(0) == n && mask.size(1) == length, "For mask_type == 1 mask shape should be (B, L)");
  return excluded.reshape({n, 1, 1, length});
}

void check_self_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t embed_dim, int64_t num_head,
                          const Tensor& qkv_weight, const Tensor& qkv_bias) {
  CRESSET_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  CRESSET_CHECK(query.size(2) == embed_dim, "passed-in embed_dim ", embed_dim, " didn't match last dim of query ", query.size(2));
  CRESSET_CHECK(query.sizes() == key.sizes() && key.sizes() == value.sizes(), "expected `query`/`key`/`value` shapes to match");
  CRESSET_CHECK(qkv_weight.dim() == 2, "expected 2-D `qkv_weight`, got ", qkv_weight.dim(), "-D tensor");
  CRESSET_CHECK(qkv_weight.size(0) == 3 * embed_dim, "expected `qkv_weight` first dim to be 3x embed_dim");
  CRESSET_CHECK(qkv_weight.size(1) == embed_dim, "expected `qkv_weight` second dim to be embed_Dim");
  CRESSET_CHECK(qkv_bias.dim() == 1, "expected 1-D `qkv_bias`, got ", qkv_bias.dim(), "-D tensor");
  CRESSET_CHECK(qkv_bias.size(0) == 3 * embed_dim, "expected `qkv_bias` first dim and first dim of query to be equal");
  CRESSET_CHECK(num_head > 0 && embed_dim % num_head == 0, "`embed_dim` must divide evenly by `num_heads`");
}

}  // namespace

std::tuple<Tensor, Tensor> native_multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t embed_dim,
                                                       int64_t num_head, const Tensor& qkv_weight, const Tensor& qkv_bias,
                                                       const Tensor& proj_weight, const Tensor& proj_bias,
                                                       const std::optional<Tensor>& mask, bool need_weights, bool average_attn_weights,
                                                       std::optional<int64_t> mask_type) {
  check_self_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias);
  const auto heads = [&](const Tensor& input, int64_t part) {
    const int64_t from = part * embed_dim, to = from + embed_dim;
    const Tensor projected = cresset::linear(input, qkv_weight.slice(0, from, to), qkv_bias.slice(0, from, to));
    return projected.reshape({query.size(0), query.size(1), num_head, embed_dim / num_head}).transpose(1, 2);
  };
  Tensor scores = masked_scores(cresset::matmul, heads(query, 0), heads(key, 1), std::nullopt, false, std::nullopt);
  if (mask) scores = scores.masked_fill(excluded_keys(*mask, mask_type, scores), kExcluded);
  const Tensor weights = scores.softmax(-1);
  const Tensor attended = cresset::matmul(weights, heads(value, 2)).transpose(1, 2).reshape(query.sizes());
  const Tensor seen = !need_weights ? Tensor() : average_attn_weights ? weights.mean(IntArrayRef{1}) : weights;
  return {cresset::linear(attended, proj_weight, proj_bias), seen};
}

Tensor transformer_encoder_layer_fwd(const Tensor& src, int64_t embed_dim, int64_t num_heads, const Tensor& qkv_weight,
                                     const Tensor& qkv_bias, const Tensor& proj_weight, const Tensor& proj_bias, bool use_gelu,
                                     bool norm_first, double eps, const Tensor& norm_weight_1, const Tensor& norm_bias_1,
                                     const Tensor& norm_weight_2, const Tensor& norm_bias_2, const Tensor& ffn_weight_1,
                                     const Tensor& ffn_bias_1, const Tensor& ffn_weight_2, const Tensor& ffn_bias_2,
                                     const std::optional<Tensor>& mask, std::optional<int64_t> mask_type) {
  const auto attention = [&](const Tensor& x) {
    return std::get<0>(native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, false,
                                                   true, mask_type));
  };
  const auto feed_forward = [&](const Tensor& x) {
    const Tensor inner = cresset::linear(x, ffn_weight_1, ffn_bias_1);
    return cresset::linear(use_gelu ? cresset::gelu(inner) : cresset::relu(inner), ffn_weight_2, ffn_bias_2);
  };
  const auto norm_1 = [&](const Tensor& x) { return cresset::layer_norm(x, {embed_dim}, norm_weight_1, norm_bias_1, eps); };
  const auto norm_2 = [&](const Tensor& x) { return cresset::layer_norm(x, {embed_dim}, norm_weight_2, norm_bias_2, eps); };
  if (norm_first) {
    const Tensor x = src + attention(norm_1(src));
    return x + feed_forward(norm_2(x));
  }
  const Tensor x = norm_1(src + attention(src));
  return norm_2(x + feed_forward(x));
}

}  // namespace cresset::ops
