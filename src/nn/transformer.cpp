// Transformer encoders and decoders.
#include <cresset/nn/transformer.h>

#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

namespace cresset::nn {
namespace {

Tensor activated(const transformer_activation_t& activation, const Tensor& x) {
  if (std::holds_alternative<enumtype::kReLU>(activation)) return functional::relu(x);
  if (std::holds_alternative<enumtype::kGELU>(activation)) return functional::gelu(x);
  const auto& function = std::get<std::function<Tensor(const Tensor&)>>(activation);
  CRESSET_CHECK(function, "activation should be kReLU, kGELU or a function; an empty function was given");
  return function(x);
}
LayerNorm norm_of(int64_t width) { return LayerNorm(LayerNormOptions({width})); }
/// The output of attention without its weights.
Tensor attended(MultiheadAttention& attention, const Tensor& query, const Tensor& key, const Tensor& mask, const Tensor& padding) {
  return std::get<0>(attention(query, key, key, padding, false, mask));
}

/// Registers copies of a layer under "layers" and, when there is one, a copy of the norm.
template <class Layer>
void reset_stack(Module& stack, ModuleList& layers, AnyModule& norm, const Layer& layer, int64_t num_layers, const AnyModule& given_norm) {
  layers = stack.register_module("layers", ModuleList());
  for (int64_t i = 0; i < num_layers; ++i) layers->push_back(layer->clone());
  norm = given_norm.clone();
  if (!norm.is_empty()) stack.register_module("norm", norm.ptr());
}
Tensor normed(const AnyModule& norm, Tensor x) { return norm.is_empty() ? x : norm.forward(std::move(x)); }

}  // namespace

// --- layers

void TransformerEncoderLayerImpl::reset() {
  const int64_t width = options.d_model();
  self_attn =
      register_module("self_attn", MultiheadAttention(MultiheadAttentionOptions(width, options.nhead()).dropout(options.dropout())));
  linear1 = register_module("linear1", Linear(width, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), width));
  norm1 = register_module("norm1", norm_of(width));
  norm2 = register_module("norm2", norm_of(width));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}
void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}
Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask) {
  const Tensor x = norm1(src + dropout1(attended(self_attn, src, src, src_mask, src_key_padding_mask)));
  return norm2(x + dropout2(linear2(dropout(activated(options.activation(), linear1(x))))));
}

void TransformerDecoderLayerImpl::reset() {
  const int64_t width = options.d_model();
  const MultiheadAttentionOptions attention = MultiheadAttentionOptions(width, options.nhead()).dropout(options.dropout());
  self_attn = register_module("self_attn", MultiheadAttention(attention));
  multihead_attn = register_module("multihead_attn", MultiheadAttention(attention));
  linear1 = register_module("linear1", Linear(width, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), width));
  norm1 = register_module("norm1", norm_of(width));
  norm2 = register_module("norm2", norm_of(width));
  norm3 = register_module("norm3", norm_of(width));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}
void TransformerDecoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  multihead_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  for (LayerNorm* norm : {&norm1, &norm2, &norm3}) (*norm)->reset_parameters();
}
Tensor TransformerDecoderLayerImpl::forward(Tensor tgt, const Tensor& memory, const Tensor& tgt_mask, const Tensor& memory_mask,
                                            const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask) {
  tgt = norm1(tgt + dropout1(attended(self_attn, tgt, tgt, tgt_mask, tgt_key_padding_mask)));
  tgt = norm2(tgt + dropout2(attended(multihead_attn, tgt, memory, memory_mask, memory_key_padding_mask)));
  return norm3(tgt + dropout3(linear2(dropout(activated(options.activation(), linear1(tgt))))));
}

// --- stacks of layers

void TransformerEncoderImpl::reset() { reset_stack(*this, layers, norm, options.encoder_layer(), options.num_layers(), options.norm()); }
void TransformerEncoderImpl::reset_parameters() {
  for (const std::shared_ptr<Module>& layer : *layers) layer->as<TransformerEncoderLayer>()->reset_parameters();
}
Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask) {
  Tensor x = src;
  for (const std::shared_ptr<Module>& layer : *layers) x = layer->as<TransformerEncoderLayer>()->forward(x, src_mask, src_key_padding_mask);
  return normed(norm, std::move(x));
}

void TransformerDecoderImpl::reset() { reset_stack(*this, layers, norm, options.decoder_layer(), options.num_layers(), options.norm()); }
void TransformerDecoderImpl::reset_parameters() {
  for (const std::shared_ptr<Module>& layer : *layers) layer->as<TransformerDecoderLayer>()->reset_parameters();
}
Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask, const Tensor& memory_mask,
                                       const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask) {
  Tensor x = tgt;
  for (const std::shared_ptr<Module>& layer : *layers)
    x = layer->as<TransformerDecoderLayer>()->forward(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
  return normed(norm, std::move(x));
}

// --- both

void TransformerImpl::reset() {
  const auto layer = [&]<class Options>(Options o) {
    return o.dim_feedforward(options.dim_feedforward()).dropout(options.dropout()).activation(options.activation());
  };
  const AnyModule norm(norm_of(options.d_model()));
  if (options.custom_encoder().is_empty()) {
    TransformerEncoderOptions o(layer(TransformerEncoderLayerOptions(options.d_model(), options.nhead())), options.num_encoder_layers());
    encoder = AnyModule(TransformerEncoder(o.norm(norm)));
  } else {
    encoder = options.custom_encoder().clone();
  }
  register_module("encoder", encoder.ptr());
  if (options.custom_decoder().is_empty()) {
    TransformerDecoderOptions o(layer(TransformerDecoderLayerOptions(options.d_model(), options.nhead())), options.num_decoder_layers());
    decoder = AnyModule(TransformerDecoder(o.norm(norm)));
  } else {
    decoder = options.custom_decoder().clone();
  }
  register_module("decoder", decoder.ptr());
  reset_parameters();
}
void TransformerImpl::reset_parameters() {
  for (const Tensor& parameter : parameters())
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
}
Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                                const Tensor& memory_mask, const Tensor& src_key_padding_mask, const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask) {
  CRESSET_CHECK(src.dim() == tgt.dim() && (src.dim() == 2 || src.dim() == 3),
                "src and tgt should have 3 dimensions, or 2 without batches, but got ", src.dim(), " and ", tgt.dim());
  CRESSET_CHECK(src.dim() == 2 || src.size(1) == tgt.size(1), "src and tgt should have equal batch size (at dim 1), but got ", src.size(1),
                " and ", tgt.size(1));
  CRESSET_CHECK(src.size(-1) == options.d_model() && tgt.size(-1) == options.d_model(),
                "src and tgt should have same feature size as d_model (at dim -1), but got ", src.size(-1), " and ", tgt.size(-1));
  const Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask);
  return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
}
Tensor TransformerImpl::generate_square_subsequent_mask(int64_t sz) {
  return cresset::full({sz, sz}, -INFINITY, TensorOptions(kFloat)).triu(1);
}

}  // namespace cresset::nn
