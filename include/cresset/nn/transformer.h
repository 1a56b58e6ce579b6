// Transformer encoders and decoders. Parameters have the names of the Python modules; inputs are (L, N, E) or (L, E).
#pragma once

#include <functional>
#include <variant>

#include <cresset/nn/attention.h>
#include <cresset/nn/containers.h>
#include <cresset/nn/stateless.h>

namespace cresset::nn {

/// The function between the two linear layers: by name, or any other.
using transformer_activation_t = std::variant<enumtype::kReLU, enumtype::kGELU, std::function<Tensor(const Tensor&)>>;

struct TransformerEncoderLayerOptions {
  using activation_t = transformer_activation_t;
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  CRESSET_ARG(int64_t, d_model);
  CRESSET_ARG(int64_t, nhead);
  CRESSET_ARG(int64_t, dim_feedforward) = 2048;
  CRESSET_ARG(double, dropout) = 0.1;
  CRESSET_ARG(activation_t, activation) = kReLU;
};
struct TransformerDecoderLayerOptions {
  using activation_t = transformer_activation_t;
  TransformerDecoderLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  CRESSET_ARG(int64_t, d_model);
  CRESSET_ARG(int64_t, nhead);
  CRESSET_ARG(int64_t, dim_feedforward) = 2048;
  CRESSET_ARG(double, dropout) = 0.1;
  CRESSET_ARG(activation_t, activation) = kReLU;
};

/// Self-attention and a network of two layers, each followed by the sum with its input and a LayerNorm.
class CRESSET_API TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_) : options(std::move(options_)) {
    TransformerEncoderLayerImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});
  CRESSET_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn = nullptr;
  Linear linear1 = nullptr, linear2 = nullptr;
  Dropout dropout = nullptr, dropout1 = nullptr, dropout2 = nullptr;
  LayerNorm norm1 = nullptr, norm2 = nullptr;
};
CRESSET_MODULE(TransformerEncoderLayer);

/// Self-attention, attention over the encoder's output (`memory`) and a network of two layers.
class CRESSET_API TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_) : options(std::move(options_)) {
    TransformerDecoderLayerImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  Tensor forward(Tensor tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});
  CRESSET_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())}, {5, AnyValue(Tensor())})

  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn = nullptr, multihead_attn = nullptr;
  Linear linear1 = nullptr, linear2 = nullptr;
  Dropout dropout = nullptr, dropout1 = nullptr, dropout2 = nullptr, dropout3 = nullptr;
  LayerNorm norm1 = nullptr, norm2 = nullptr, norm3 = nullptr;
};
CRESSET_MODULE(TransformerDecoderLayer);

struct TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  TransformerEncoderOptions(const TransformerEncoderLayerOptions& encoder_layer, int64_t num_layers)
      : TransformerEncoderOptions(TransformerEncoderLayer(encoder_layer), num_layers) {}
  CRESSET_ARG(TransformerEncoderLayer, encoder_layer) = nullptr;
  CRESSET_ARG(int64_t, num_layers);
  /// Applied to the last layer's output.
  CRESSET_ARG(AnyModule, norm);
};
struct TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  TransformerDecoderOptions(const TransformerDecoderLayerOptions& decoder_layer, int64_t num_layers)
      : TransformerDecoderOptions(TransformerDecoderLayer(decoder_layer), num_layers) {}
  CRESSET_ARG(TransformerDecoderLayer, decoder_layer) = nullptr;
  CRESSET_ARG(int64_t, num_layers);
  CRESSET_ARG(AnyModule, norm);
};

/// Copies of one encoder layer, one after another.
class CRESSET_API TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(std::move(encoder_layer), num_layers)) {}
  explicit TransformerEncoderImpl(TransformerEncoderOptions options_) : options(std::move(options_)) { TransformerEncoderImpl::reset(); }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});
  CRESSET_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})

  TransformerEncoderOptions options;
  ModuleList layers = nullptr;
  AnyModule norm;
};
CRESSET_MODULE(TransformerEncoder);

/// Copies of one decoder layer, one after another, all with the same `memory`.
class CRESSET_API TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(std::move(decoder_layer), num_layers)) {}
  explicit TransformerDecoderImpl(TransformerDecoderOptions options_) : options(std::move(options_)) { TransformerDecoderImpl::reset(); }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});
  CRESSET_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())}, {5, AnyValue(Tensor())})

  TransformerDecoderOptions options;
  ModuleList layers = nullptr;
  AnyModule norm;
};
CRESSET_MODULE(TransformerDecoder);

struct TransformerOptions {
  using activation_t = transformer_activation_t;
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers, int64_t num_decoder_layers)
      : d_model_(d_model), nhead_(nhead), num_encoder_layers_(num_encoder_layers), num_decoder_layers_(num_decoder_layers) {}
  CRESSET_ARG(int64_t, d_model) = 512;
  CRESSET_ARG(int64_t, nhead) = 8;
  CRESSET_ARG(int64_t, num_encoder_layers) = 6;
  CRESSET_ARG(int64_t, num_decoder_layers) = 6;
  CRESSET_ARG(int64_t, dim_feedforward) = 2048;
  CRESSET_ARG(double, dropout) = 0.1;
  CRESSET_ARG(activation_t, activation) = kReLU;
  /// Called with (src, src_mask, src_key_padding_mask).
  CRESSET_ARG(AnyModule, custom_encoder);
  /// Called with (tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask).
  CRESSET_ARG(AnyModule, custom_decoder);
};

/// Encoder and decoder, each with a LayerNorm at its end.
class CRESSET_API TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(TransformerOptions options_ = {}) : options(std::move(options_)) { TransformerImpl::reset(); }
  void reset() override;
  /// Xavier's uniform distribution for every parameter of more than one dimension.
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {}, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  CRESSET_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())}, {5, AnyValue(Tensor())},
                           {6, AnyValue(Tensor())}, {7, AnyValue(Tensor())})
  /// (sz, sz): minus infinity above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t sz);

  TransformerOptions options;
  AnyModule encoder, decoder;
};
CRESSET_MODULE(Transformer);

}  // namespace cresset::nn
