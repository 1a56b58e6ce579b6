// Layers with weights: linear, embeddings, convolutions, norms. Weights start as PyTorch's do, from the default CPU generator.
#pragma once

#include <string>
#include <vector>

#include <cresset/nn/any.h>
#include <cresset/nn/functional.h>
#include <cresset/nn/init.h>
#include <cresset/nn/print.h>
#include <cresset/ops/functions_creation.h>

namespace cresset::nn {

/// y = x @ weight.T + bias; weight (out, in).
class CRESSET_API LinearImpl : public Cloneable<LinearImpl> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features) : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options_) : options(options_) { LinearImpl::reset(); }
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) const { return functional::linear(input, weight, bias); }

  LinearOptions options;
  Tensor weight, bias;
};
CRESSET_MODULE(Linear);

class CRESSET_API BilinearImpl : public Cloneable<BilinearImpl> {
 public:
  BilinearImpl(int64_t in1, int64_t in2, int64_t out) : BilinearImpl(BilinearOptions(in1, in2, out)) {}
  explicit BilinearImpl(const BilinearOptions& options_) : options(options_) { BilinearImpl::reset(); }
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input1, const Tensor& input2) const { return functional::bilinear(input1, input2, weight, bias); }

  BilinearOptions options;
  Tensor weight, bias;
};
CRESSET_MODULE(Bilinear);

class CRESSET_API PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  explicit PReLUImpl(const PReLUOptions& options_ = {}) : options(options_) { PReLUImpl::reset(); }
  void reset() override;
  void pretty_print(std::ostream& stream) const override { detail::print_options(stream, "PReLU", options); }
  Tensor forward(const Tensor& input) const { return functional::prelu(input, weight); }

  PReLUOptions options;
  Tensor weight;
};
CRESSET_MODULE(PReLU);

class CRESSET_API EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim) : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(EmbeddingOptions options_);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override { detail::print_options(stream, "Embedding", options); }
  Tensor forward(const Tensor& indices) const;

  EmbeddingOptions options;
  Tensor weight;
};
class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  /// Around given rows, frozen unless the options say otherwise.
  static Embedding from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& o = {}) {
    CRESSET_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
    EmbeddingOptions options(embeddings.size(0), embeddings.size(1));
    options._weight(embeddings).padding_idx(o.padding_idx()).max_norm(o.max_norm()).norm_type(o.norm_type());
    Embedding embedding(options.scale_grad_by_freq(o.scale_grad_by_freq()).sparse(o.sparse()));
    embedding->weight.set_requires_grad(!o.freeze());
    return embedding;
  }
};

class CRESSET_API EmbeddingBagImpl : public Cloneable<EmbeddingBagImpl> {
 public:
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim) : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingBagImpl(EmbeddingBagOptions options_) : options(std::move(options_)) { EmbeddingBagImpl::reset(); }
  void reset() override;
  void pretty_print(std::ostream& stream) const override { detail::print_options(stream, "EmbeddingBag", options); }
  Tensor forward(const Tensor& input, const Tensor& offsets = {}, const Tensor& per_sample_weights = {}) const;
  CRESSET_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})

  EmbeddingBagOptions options;
  Tensor weight;
};
class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  using Impl = EmbeddingBagImpl;
  /// Around given rows, frozen unless the options say otherwise.
  static EmbeddingBag from_pretrained(const Tensor& embeddings, const EmbeddingBagFromPretrainedOptions& o = {}) {
    CRESSET_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
    EmbeddingBagOptions options(embeddings.size(0), embeddings.size(1));
    options._weight(embeddings).max_norm(o.max_norm()).norm_type(o.norm_type()).scale_grad_by_freq(o.scale_grad_by_freq());
    options.mode(o.mode()).sparse(o.sparse()).include_last_offset(o.include_last_offset()).padding_idx(o.padding_idx());
    EmbeddingBag bag(options);
    bag->weight.set_requires_grad(!o.freeze());
    return bag;
  }
};

// --- convolutions

namespace detail {
/// Registers weight and bias and fills them uniformly on ±1/sqrt(fan_in).
CRESSET_API void reset_convolution(Module& module, Tensor& weight, Tensor& bias, std::vector<int64_t> sizes, bool with_bias,
                                   int64_t bias_size);
CRESSET_API void check_channels(int64_t in, int64_t out, int64_t groups);
/// Both widths of every dimension, the last dimension's first, as functional::pad takes them.
CRESSET_API std::vector<int64_t> padding_widths(IntArrayRef kernel, IntArrayRef dilation, const IntArrayRef* padding, bool same);
CRESSET_API std::vector<int64_t> transposed_output_padding(const Tensor& input, const std::optional<IntArrayRef>& output_size,
                                                           IntArrayRef given, IntArrayRef stride, IntArrayRef padding, IntArrayRef kernel,
                                                           IntArrayRef dilation);
}  // namespace detail

/// What the convolutions of all dimensions share. Weight (out, in/groups, kernel...).
template <std::size_t D, class Derived>
class ConvNdImpl : public Cloneable<Derived> {
 public:
  ConvNdImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvNdImpl(ConvOptions<D>(in_channels, out_channels, kernel_size)) {}
  explicit ConvNdImpl(ConvOptions<D> options_) : options(std::move(options_)) { ConvNdImpl::reset(); }
  void reset() override {
    detail::check_channels(options.in_channels(), options.out_channels(), options.groups());
    if (std::holds_alternative<enumtype::kSame>(options.padding()))
      CRESSET_CHECK(*options.stride() == *ExpandingArray<D>(1), "padding='same' is not supported for strided convolutions");
    std::vector<int64_t> sizes = {options.out_channels(), options.in_channels() / options.groups()};
    sizes.insert(sizes.end(), options.kernel_size()->begin(), options.kernel_size()->end());
    detail::reset_convolution(*this, weight, bias, sizes, options.bias(), options.out_channels());
  }
  void pretty_print(std::ostream& stream) const override {
    detail::print_options(stream, D == 1 ? "Conv1d" : D == 2 ? "Conv2d" : "Conv3d", options);
  }

  ConvOptions<D> options;
  Tensor weight, bias;

 protected:
  /// The input to convolve and the options to do it with: paddings other than zeros are written out beforehand.
  std::pair<Tensor, functional::ConvFuncOptions<D>> prepared(const Tensor& input) const {
    functional::ConvFuncOptions<D> call;
    call.bias(bias).stride(options.stride()).padding(options.padding()).dilation(options.dilation()).groups(options.groups());
    if (std::holds_alternative<enumtype::kZeros>(options.padding_mode())) return {input, call};
    const auto* sizes = std::get_if<ExpandingArray<D>>(&options.padding());
    const IntArrayRef given = sizes ? IntArrayRef(*sizes) : IntArrayRef();
    functional::PadFuncOptions pad(detail::padding_widths(options.kernel_size(), options.dilation(), sizes ? &given : nullptr,
                                                          std::holds_alternative<enumtype::kSame>(options.padding())));
    if (std::holds_alternative<enumtype::kReflect>(options.padding_mode()))
      pad.mode(kReflect);
    else if (std::holds_alternative<enumtype::kReplicate>(options.padding_mode()))
      pad.mode(kReplicate);
    else
      pad.mode(kCircular);
    call.padding(ExpandingArray<D>(0));
    return {functional::pad(input, pad), call};
  }
};

/// Weight (in, out/groups, kernel...).
template <std::size_t D, class Derived>
class ConvTransposeNdImpl : public Cloneable<Derived> {
 public:
  ConvTransposeNdImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvTransposeNdImpl(ConvTransposeOptions<D>(in_channels, out_channels, kernel_size)) {}
  explicit ConvTransposeNdImpl(ConvTransposeOptions<D> options_) : options(std::move(options_)) { ConvTransposeNdImpl::reset(); }
  void reset() override {
    detail::check_channels(options.in_channels(), options.out_channels(), options.groups());
    std::vector<int64_t> sizes = {options.in_channels(), options.out_channels() / options.groups()};
    sizes.insert(sizes.end(), options.kernel_size()->begin(), options.kernel_size()->end());
    detail::reset_convolution(*this, weight, bias, sizes, options.bias(), options.out_channels());
  }
  void pretty_print(std::ostream& stream) const override {
    detail::print_options(stream, D == 1 ? "ConvTranspose1d" : D == 2 ? "ConvTranspose2d" : "ConvTranspose3d", options);
  }

  ConvTransposeOptions<D> options;
  Tensor weight, bias;

 protected:
  functional::ConvTransposeFuncOptions<D> call_options(const Tensor& input, const std::optional<IntArrayRef>& output_size) const {
    CRESSET_CHECK(std::holds_alternative<enumtype::kZeros>(options.padding_mode()),
                  "Only `zeros` padding mode is supported for ConvTranspose", D, "d");
    functional::ConvTransposeFuncOptions<D> call;
    const std::vector<int64_t> output_padding = detail::transposed_output_padding(
        input, output_size, options.output_padding(), options.stride(), options.padding(), options.kernel_size(), options.dilation());
    return call.bias(bias)
        .stride(options.stride())
        .padding(options.padding())
        .output_padding(output_padding)
        .groups(options.groups())
        .dilation(options.dilation());
  }
};

#define CRESSET_NN_CONVOLUTION(D)                                                                             \
  class Conv##D##dImpl : public ConvNdImpl<D, Conv##D##dImpl> {                                               \
   public:                                                                                                    \
    using ConvNdImpl<D, Conv##D##dImpl>::ConvNdImpl;                                                          \
    Tensor forward(const Tensor& input) const {                                                               \
      const auto [x, call] = prepared(input);                                                                 \
      return functional::conv##D##d(x, weight, call);                                                         \
    }                                                                                                         \
  };                                                                                                          \
  CRESSET_MODULE(Conv##D##d);                                                                                 \
  class ConvTranspose##D##dImpl : public ConvTransposeNdImpl<D, ConvTranspose##D##dImpl> {                    \
   public:                                                                                                    \
    using ConvTransposeNdImpl<D, ConvTranspose##D##dImpl>::ConvTransposeNdImpl;                               \
    Tensor forward(const Tensor& input, const std::optional<IntArrayRef>& output_size = std::nullopt) const { \
      return functional::conv_transpose##D##d(input, weight, call_options(input, output_size));               \
    }                                                                                                         \
    CRESSET_FORWARD_DEFAULTS({1, AnyValue(std::optional<IntArrayRef>())})                                     \
  };                                                                                                          \
  CRESSET_MODULE(ConvTranspose##D##d);
CRESSET_NN_CONVOLUTION(1)
CRESSET_NN_CONVOLUTION(2)
CRESSET_NN_CONVOLUTION(3)
#undef CRESSET_NN_CONVOLUTION

// --- norms

/// Weights and running statistics of norms over channels.
template <class Derived, class Options>
class NormImplBase : public Cloneable<Derived> {
 public:
  explicit NormImplBase(const Options& options_) : options(options_) { NormImplBase::reset(); }
  void reset() override {
    const IntArrayRef size(options.num_features());
    weight = this->register_parameter("weight", options.affine() ? cresset::ones(size, TensorOptions()) : Tensor(), options.affine());
    bias = this->register_parameter("bias", options.affine() ? cresset::zeros(size, TensorOptions()) : Tensor(), options.affine());
    const bool track = options.track_running_stats();
    running_mean = this->register_buffer("running_mean", track ? cresset::zeros(size, TensorOptions()) : Tensor());
    running_var = this->register_buffer("running_var", track ? cresset::ones(size, TensorOptions()) : Tensor());
    num_batches_tracked = this->register_buffer("num_batches_tracked", track ? cresset::zeros({}, TensorOptions(kLong)) : Tensor());
  }
  void reset_running_stats() {
    if (!options.track_running_stats()) return;
    running_mean.zero_();
    running_var.fill_(1);
    num_batches_tracked.zero_();
  }
  void reset_parameters() {
    reset_running_stats();
    if (!options.affine()) return;
    init::ones_(weight);
    init::zeros_(bias);
  }

  Options options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  void check_dimensions(const Tensor& input, int64_t least, int64_t most) const {
    if (least == most)
      CRESSET_CHECK(input.dim() == least, "expected ", least, "D input (got ", input.dim(), "D input)");
    else
      CRESSET_CHECK(input.dim() >= least && input.dim() <= most, "expected ", least, "D or ", most, "D input (got ", input.dim(),
                    "D input)");
  }
};

template <class Derived>
class BatchNormImplBase : public NormImplBase<Derived, BatchNormOptions> {
 public:
  using NormImplBase<Derived, BatchNormOptions>::NormImplBase;
  Tensor forward(const Tensor& input) {
    this->check_dimensions(input, Derived::kDimensions.first, Derived::kDimensions.second);
    double factor = this->options.momentum().value_or(0);
    if (this->is_training() && this->options.track_running_stats()) {
      this->num_batches_tracked.add_(1);
      if (!this->options.momentum()) factor = 1.0 / this->num_batches_tracked.template item<double>();
    }
    functional::BatchNormFuncOptions call;
    call.weight(this->weight).bias(this->bias).momentum(factor).eps(this->options.eps());
    call.training(this->is_training() || !this->options.track_running_stats());
    return functional::batch_norm(input, this->running_mean, this->running_var, call);
  }
};

template <class Derived>
class InstanceNormImplBase : public NormImplBase<Derived, InstanceNormOptions> {
 public:
  using NormImplBase<Derived, InstanceNormOptions>::NormImplBase;
  Tensor forward(const Tensor& input) {
    this->check_dimensions(input, Derived::kDimensions.first, Derived::kDimensions.second);
    functional::InstanceNormFuncOptions call;
    call.running_mean(this->running_mean).running_var(this->running_var).weight(this->weight).bias(this->bias);
    call.use_input_stats(this->is_training() || !this->options.track_running_stats());
    return functional::instance_norm(input, call.momentum(this->options.momentum()).eps(this->options.eps()));
  }
};

#define CRESSET_NN_NORM(Name, Base, least, most)                                                                    \
  class Name##Impl : public Base<Name##Impl> {                                                                      \
   public:                                                                                                          \
    static constexpr std::pair<int64_t, int64_t> kDimensions{least, most};                                          \
    using Base<Name##Impl>::Base;                                                                                   \
    void pretty_print(std::ostream& stream) const override { detail::print_options(stream, #Name, this->options); } \
  };                                                                                                                \
  CRESSET_MODULE(Name);
CRESSET_NN_NORM(BatchNorm1d, BatchNormImplBase, 2, 3)
CRESSET_NN_NORM(BatchNorm2d, BatchNormImplBase, 4, 4)
CRESSET_NN_NORM(BatchNorm3d, BatchNormImplBase, 5, 5)
CRESSET_NN_NORM(InstanceNorm1d, InstanceNormImplBase, 2, 3)
CRESSET_NN_NORM(InstanceNorm2d, InstanceNormImplBase, 3, 4)
CRESSET_NN_NORM(InstanceNorm3d, InstanceNormImplBase, 4, 5)
#undef CRESSET_NN_NORM

class CRESSET_API LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  explicit LayerNormImpl(std::vector<int64_t> normalized_shape) : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  explicit LayerNormImpl(LayerNormOptions options_) : options(std::move(options_)) { LayerNormImpl::reset(); }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input) const;
  void pretty_print(std::ostream& stream) const override { detail::print_options(stream, "LayerNorm", options); }

  LayerNormOptions options;
  Tensor weight, bias;
};
CRESSET_MODULE(LayerNorm);

class CRESSET_API GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels) : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options_) : options(options_) { GroupNormImpl::reset(); }
  void reset() override;
  Tensor forward(const Tensor& input) const;
  void pretty_print(std::ostream& stream) const override { detail::print_options(stream, "GroupNorm", options); }

  GroupNormOptions options;
  Tensor weight, bias;
};
CRESSET_MODULE(GroupNorm);

}  // namespace cresset::nn
