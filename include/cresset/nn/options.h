// Options of modules and of the functions of nn::functional, under PyTorch's names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/nn/arg.h>

namespace cresset::nn {

/// Options with one number or flag.
#define CRESSET_NN_OPTION1(Name, T, arg, value) \
  struct Name {                                 \
    Name() = default;                           \
    Name(T given) : arg##_(std::move(given)) {} \
    CRESSET_ARG(T, arg) = value;                \
  }
/// The same where the value must be given.
#define CRESSET_NN_REQUIRED1(Name, T, arg)      \
  struct Name {                                 \
    Name(T given) : arg##_(std::move(given)) {} \
    CRESSET_ARG(T, arg);                        \
  }

// --- linear

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  CRESSET_ARG(int64_t, in_features);
  CRESSET_ARG(int64_t, out_features);
  CRESSET_ARG(bool, bias) = true;
};
struct BilinearOptions {
  BilinearOptions(int64_t in1, int64_t in2, int64_t out) : in1_features_(in1), in2_features_(in2), out_features_(out) {}
  CRESSET_ARG(int64_t, in1_features);
  CRESSET_ARG(int64_t, in2_features);
  CRESSET_ARG(int64_t, out_features);
  CRESSET_ARG(bool, bias) = true;
};
struct FlattenOptions {
  CRESSET_ARG(int64_t, start_dim) = 1;
  CRESSET_ARG(int64_t, end_dim) = -1;
};
struct UnflattenOptions {
  using namedshape_t = std::vector<std::pair<std::string, int64_t>>;
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  /// Dimensions by name: tensors have none here, so the module raises when it is called.
  UnflattenOptions(const char* dimname, namedshape_t namedshape) : dim_(0), dimname_(dimname), namedshape_(std::move(namedshape)) {}
  UnflattenOptions(std::string dimname, namedshape_t namedshape) : UnflattenOptions(dimname.c_str(), std::move(namedshape)) {}
  CRESSET_ARG(int64_t, dim);
  CRESSET_ARG(std::vector<int64_t>, sizes);
  CRESSET_ARG(std::string, dimname);
  CRESSET_ARG(namedshape_t, namedshape);
};

// --- embeddings

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim) : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  CRESSET_ARG(int64_t, num_embeddings);
  CRESSET_ARG(int64_t, embedding_dim);
  CRESSET_ARG(std::optional<int64_t>, padding_idx);
  CRESSET_ARG(std::optional<double>, max_norm);
  CRESSET_ARG(double, norm_type) = 2;
  CRESSET_ARG(bool, scale_grad_by_freq) = false;
  CRESSET_ARG(bool, sparse) = false;
  CRESSET_ARG(Tensor, _weight);
};
struct EmbeddingFromPretrainedOptions {
  CRESSET_ARG(bool, freeze) = true;
  CRESSET_ARG(std::optional<int64_t>, padding_idx);
  CRESSET_ARG(std::optional<double>, max_norm);
  CRESSET_ARG(double, norm_type) = 2;
  CRESSET_ARG(bool, scale_grad_by_freq) = false;
  CRESSET_ARG(bool, sparse) = false;
};
using EmbeddingBagMode = std::variant<enumtype::kSum, enumtype::kMean, enumtype::kMax>;
struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim) : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  CRESSET_ARG(int64_t, num_embeddings);
  CRESSET_ARG(int64_t, embedding_dim);
  CRESSET_ARG(std::optional<double>, max_norm);
  CRESSET_ARG(double, norm_type) = 2;
  CRESSET_ARG(bool, scale_grad_by_freq) = false;
  CRESSET_ARG(EmbeddingBagMode, mode) = kMean;
  CRESSET_ARG(bool, sparse) = false;
  CRESSET_ARG(Tensor, _weight);
  CRESSET_ARG(bool, include_last_offset) = false;
  CRESSET_ARG(std::optional<int64_t>, padding_idx);
};
struct EmbeddingBagFromPretrainedOptions {
  CRESSET_ARG(bool, freeze) = true;
  CRESSET_ARG(std::optional<double>, max_norm);
  CRESSET_ARG(double, norm_type) = 2;
  CRESSET_ARG(bool, scale_grad_by_freq) = false;
  CRESSET_ARG(EmbeddingBagMode, mode) = kMean;
  CRESSET_ARG(bool, sparse) = false;
  CRESSET_ARG(bool, include_last_offset) = false;
  CRESSET_ARG(std::optional<int64_t>, padding_idx);
};

// --- convolutions

using conv_padding_mode_t = std::variant<enumtype::kZeros, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
template <std::size_t D>
using conv_padding_t = std::variant<ExpandingArray<D>, enumtype::kValid, enumtype::kSame>;

template <std::size_t D>
struct ConvOptions {
  using padding_mode_t = conv_padding_mode_t;
  using padding_t = conv_padding_t<D>;
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(std::move(kernel_size)) {}
  ConvOptions& padding(std::initializer_list<int64_t> sizes) { return padding(padding_t(ExpandingArray<D>(sizes))); }
  CRESSET_ARG(int64_t, in_channels);
  CRESSET_ARG(int64_t, out_channels);
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(ExpandingArray<D>, stride) = 1;
  CRESSET_ARG(padding_t, padding) = ExpandingArray<D>(0);
  CRESSET_ARG(ExpandingArray<D>, dilation) = 1;
  CRESSET_ARG(int64_t, groups) = 1;
  CRESSET_ARG(bool, bias) = true;
  CRESSET_ARG(padding_mode_t, padding_mode) = kZeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <std::size_t D>
struct ConvTransposeOptions {
  using padding_mode_t = conv_padding_mode_t;
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(std::move(kernel_size)) {}
  CRESSET_ARG(int64_t, in_channels);
  CRESSET_ARG(int64_t, out_channels);
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(ExpandingArray<D>, stride) = 1;
  CRESSET_ARG(ExpandingArray<D>, padding) = 0;
  CRESSET_ARG(ExpandingArray<D>, output_padding) = 0;
  CRESSET_ARG(int64_t, groups) = 1;
  CRESSET_ARG(bool, bias) = true;
  CRESSET_ARG(ExpandingArray<D>, dilation) = 1;
  CRESSET_ARG(padding_mode_t, padding_mode) = kZeros;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size) : output_size_(output_size), kernel_size_(kernel_size) {}
  CRESSET_ARG(ExpandingArray<2>, output_size);
  CRESSET_ARG(ExpandingArray<2>, kernel_size);
  CRESSET_ARG(ExpandingArray<2>, dilation) = 1;
  CRESSET_ARG(ExpandingArray<2>, padding) = 0;
  CRESSET_ARG(ExpandingArray<2>, stride) = 1;
};
struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}
  CRESSET_ARG(ExpandingArray<2>, kernel_size);
  CRESSET_ARG(ExpandingArray<2>, dilation) = 1;
  CRESSET_ARG(ExpandingArray<2>, padding) = 0;
  CRESSET_ARG(ExpandingArray<2>, stride) = 1;
};

// --- norms

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  CRESSET_ARG(int64_t, num_features);
  CRESSET_ARG(double, eps) = 1e-5;
  /// Without a value the running statistics are plain averages.
  CRESSET_ARG(std::optional<double>, momentum) = 0.1;
  CRESSET_ARG(bool, affine) = true;
  CRESSET_ARG(bool, track_running_stats) = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;
struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  CRESSET_ARG(int64_t, num_features);
  CRESSET_ARG(double, eps) = 1e-5;
  CRESSET_ARG(double, momentum) = 0.1;
  CRESSET_ARG(bool, affine) = false;
  CRESSET_ARG(bool, track_running_stats) = false;
};
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;
struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  CRESSET_ARG(std::vector<int64_t>, normalized_shape);
  CRESSET_ARG(double, eps) = 1e-5;
  CRESSET_ARG(bool, elementwise_affine) = true;
};
struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels) : num_groups_(num_groups), num_channels_(num_channels) {}
  CRESSET_ARG(int64_t, num_groups);
  CRESSET_ARG(int64_t, num_channels);
  CRESSET_ARG(double, eps) = 1e-5;
  CRESSET_ARG(bool, affine) = true;
};
struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  CRESSET_ARG(int64_t, size);
  CRESSET_ARG(double, alpha) = 1e-4;
  CRESSET_ARG(double, beta) = 0.75;
  CRESSET_ARG(double, k) = 1;
};
using CrossMapLRN2dOptions = LocalResponseNormOptions;

// --- dropout

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  CRESSET_ARG(double, p) = 0.5;
  CRESSET_ARG(bool, inplace) = false;
};
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

// --- activations

struct ELUOptions {
  CRESSET_ARG(double, alpha) = 1;
  CRESSET_ARG(bool, inplace) = false;
};
using CELUOptions = ELUOptions;
CRESSET_NN_OPTION1(ReLUOptions, bool, inplace, false);
using ReLU6Options = ReLUOptions;
using SELUOptions = ReLUOptions;
CRESSET_NN_OPTION1(GELUOptions, std::string, approximate, "none");
CRESSET_NN_OPTION1(GLUOptions, int64_t, dim, -1);
CRESSET_NN_OPTION1(HardshrinkOptions, double, lambda, 0.5);
using SoftshrinkOptions = HardshrinkOptions;
struct HardtanhOptions {
  CRESSET_ARG(double, min_val) = -1;
  CRESSET_ARG(double, max_val) = 1;
  CRESSET_ARG(bool, inplace) = false;
};
struct LeakyReLUOptions {
  CRESSET_ARG(double, negative_slope) = 1e-2;
  CRESSET_ARG(bool, inplace) = false;
};
CRESSET_NN_REQUIRED1(SoftmaxOptions, int64_t, dim);
using SoftminOptions = SoftmaxOptions;
using LogSoftmaxOptions = SoftmaxOptions;
struct PReLUOptions {
  CRESSET_ARG(int64_t, num_parameters) = 1;
  CRESSET_ARG(double, init) = 0.25;
};
struct RReLUOptions {
  CRESSET_ARG(double, lower) = 1.0 / 8.0;
  CRESSET_ARG(double, upper) = 1.0 / 3.0;
  CRESSET_ARG(bool, inplace) = false;
};
struct SoftplusOptions {
  CRESSET_ARG(double, beta) = 1;
  CRESSET_ARG(double, threshold) = 20;
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  CRESSET_ARG(double, threshold);
  CRESSET_ARG(double, value);
  CRESSET_ARG(bool, inplace) = false;
};

/// Classes in clusters: those before the first cutoff in the head, the rest in tails of smaller and smaller projections.
struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  CRESSET_ARG(int64_t, in_features);
  CRESSET_ARG(int64_t, n_classes);
  CRESSET_ARG(std::vector<int64_t>, cutoffs);
  CRESSET_ARG(double, div_value) = 4;
  CRESSET_ARG(bool, head_bias) = false;
};

// --- pooling

template <std::size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(ExpandingArray<D>, stride);
  CRESSET_ARG(ExpandingArray<D>, padding) = 0;
  CRESSET_ARG(bool, ceil_mode) = false;
  CRESSET_ARG(bool, count_include_pad) = true;
  CRESSET_ARG(std::optional<int64_t>, divisor_override);
};
template <std::size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(ExpandingArray<D>, stride);
  CRESSET_ARG(ExpandingArray<D>, padding) = 0;
  CRESSET_ARG(ExpandingArray<D>, dilation) = 1;
  CRESSET_ARG(bool, ceil_mode) = false;
};
template <std::size_t D>
struct LPPoolOptions {
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size) : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  CRESSET_ARG(double, norm_type);
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(ExpandingArray<D>, stride);
  CRESSET_ARG(bool, ceil_mode) = false;
};
/// Sizes left out are those of the input.
template <std::size_t D>
struct AdaptivePoolOptions {
  using output_size_t = std::conditional_t<D == 1, ExpandingArray<1>, ExpandingArrayWithOptionalElem<D>>;
  AdaptivePoolOptions(output_size_t output_size) : output_size_(output_size) {}
  CRESSET_ARG(output_size_t, output_size);
};
template <std::size_t D>
struct MaxUnpoolOptions {
  MaxUnpoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(ExpandingArray<D>, stride);
  CRESSET_ARG(ExpandingArray<D>, padding) = 0;
};
/// Windows whose distances vary at random; either the size of the output or its ratio to that of the input is given.
template <std::size_t D>
struct FractionalMaxPoolOptions {
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(std::optional<ExpandingArray<D>>, output_size);
  using ExpandingArrayDouble = ExpandingArray<D, double>;
  CRESSET_ARG(std::optional<ExpandingArrayDouble>, output_ratio);
  /// Numbers on [0, 1) that place the windows: (N, C, D).
  CRESSET_ARG(Tensor, _random_samples);
};
using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;
#define CRESSET_NN_DIMENSIONS(D)                               \
  using AvgPool##D##dOptions = AvgPoolOptions<D>;              \
  using MaxPool##D##dOptions = MaxPoolOptions<D>;              \
  using LPPool##D##dOptions = LPPoolOptions<D>;                \
  using MaxUnpool##D##dOptions = MaxUnpoolOptions<D>;          \
  using AdaptiveAvgPool##D##dOptions = AdaptivePoolOptions<D>; \
  using AdaptiveMaxPool##D##dOptions = AdaptivePoolOptions<D>;
CRESSET_NN_DIMENSIONS(1)
CRESSET_NN_DIMENSIONS(2)
CRESSET_NN_DIMENSIONS(3)
#undef CRESSET_NN_DIMENSIONS

// --- padding: two widths for each dimension, the last dimension's first

template <std::size_t D>
struct PadOptions {
  PadOptions(ExpandingArray<D * 2> padding) : padding_(padding) {}
  CRESSET_ARG(ExpandingArray<D * 2>, padding);
};
template <std::size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<D * 2> padding, double value) : padding_(padding), value_(value) {}
  CRESSET_ARG(ExpandingArray<D * 2>, padding);
  CRESSET_ARG(double, value);
};
#define CRESSET_NN_DIMENSIONS(D)                     \
  using ReflectionPad##D##dOptions = PadOptions<D>;  \
  using ReplicationPad##D##dOptions = PadOptions<D>; \
  using ZeroPad##D##dOptions = PadOptions<D>;        \
  using ConstantPad##D##dOptions = ConstantPadOptions<D>;
CRESSET_NN_DIMENSIONS(1)
CRESSET_NN_DIMENSIONS(2)
CRESSET_NN_DIMENSIONS(3)
#undef CRESSET_NN_DIMENSIONS

// --- vision

CRESSET_NN_REQUIRED1(PixelShuffleOptions, int64_t, upscale_factor);
CRESSET_NN_REQUIRED1(PixelUnshuffleOptions, int64_t, downscale_factor);
struct UpsampleOptions {
  using mode_t = std::variant<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic, enumtype::kTrilinear>;
  CRESSET_ARG(std::optional<std::vector<int64_t>>, size);
  CRESSET_ARG(std::optional<std::vector<double>>, scale_factor);
  CRESSET_ARG(mode_t, mode) = kNearest;
  CRESSET_ARG(std::optional<bool>, align_corners);
};

// --- distances and losses

struct CosineSimilarityOptions {
  CRESSET_ARG(int64_t, dim) = 1;
  CRESSET_ARG(double, eps) = 1e-8;
};
struct PairwiseDistanceOptions {
  CRESSET_ARG(double, p) = 2;
  CRESSET_ARG(double, eps) = 1e-6;
  CRESSET_ARG(bool, keepdim) = false;
};
/// The order is that of the operators' numbers.
using loss_reduction_t = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;
#define CRESSET_NN_REDUCTION CRESSET_ARG(loss_reduction_t, reduction) = kMean

/// Constructors from a reduction alone: Options(kSum).
#define CRESSET_NN_FROM_REDUCTION(Name)                                                           \
  Name() = default;                                                                               \
  Name(reduction_t reduction) : reduction_(reduction) {}                                          \
  template <class Choice, class = std::enable_if_t<std::is_constructible_v<reduction_t, Choice>>> \
  Name(Choice choice) : reduction_(choice) {}

/// Options of a loss with its reduction alone.
struct ReductionOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_NN_FROM_REDUCTION(ReductionOptions)
  CRESSET_NN_REDUCTION;
};
using L1LossOptions = ReductionOptions;
using MSELossOptions = ReductionOptions;
using SoftMarginLossOptions = ReductionOptions;
using MultiLabelMarginLossOptions = ReductionOptions;
struct BCELossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(Tensor, weight);
  CRESSET_NN_REDUCTION;
};
struct BCEWithLogitsLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(Tensor, weight);
  CRESSET_NN_REDUCTION;
  CRESSET_ARG(Tensor, pos_weight);
};
struct NLLLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(Tensor, weight);
  CRESSET_ARG(int64_t, ignore_index) = -100;
  CRESSET_NN_REDUCTION;
};
struct CrossEntropyLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(Tensor, weight);
  CRESSET_ARG(int64_t, ignore_index) = -100;
  CRESSET_NN_REDUCTION;
  CRESSET_ARG(double, label_smoothing) = 0;
};
struct KLDivLossOptions {
  using reduction_t = std::variant<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  CRESSET_NN_FROM_REDUCTION(KLDivLossOptions)
  CRESSET_ARG(reduction_t, reduction) = kMean;
  CRESSET_ARG(bool, log_target) = false;
};
struct SmoothL1LossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_NN_FROM_REDUCTION(SmoothL1LossOptions)
  CRESSET_NN_REDUCTION;
  CRESSET_ARG(std::optional<double>, beta);
};
struct HuberLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_NN_FROM_REDUCTION(HuberLossOptions)
  CRESSET_NN_REDUCTION;
  CRESSET_ARG(double, delta) = 1;
};
struct HingeEmbeddingLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(double, margin) = 1;
  CRESSET_NN_REDUCTION;
};
struct CosineEmbeddingLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(double, margin) = 0;
  CRESSET_NN_REDUCTION;
};
struct MarginRankingLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(double, margin) = 0;
  CRESSET_NN_REDUCTION;
};
struct MultiLabelSoftMarginLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(Tensor, weight);
  CRESSET_NN_REDUCTION;
};
struct TripletMarginLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(double, margin) = 1;
  CRESSET_ARG(double, p) = 2;
  CRESSET_ARG(double, eps) = 1e-6;
  CRESSET_ARG(bool, swap) = false;
  CRESSET_NN_REDUCTION;
};
struct TripletMarginWithDistanceLossOptions {
  using reduction_t = loss_reduction_t;
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  /// pairwise_distance unless given.
  CRESSET_ARG(std::optional<distance_function_t>, distance_function);
  CRESSET_ARG(double, margin) = 1;
  CRESSET_ARG(bool, swap) = false;
  CRESSET_NN_REDUCTION;
};
struct MultiMarginLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(int64_t, p) = 1;
  CRESSET_ARG(double, margin) = 1;
  CRESSET_ARG(Tensor, weight);
  CRESSET_NN_REDUCTION;
};
struct CTCLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(int64_t, blank) = 0;
  CRESSET_NN_REDUCTION;
  CRESSET_ARG(bool, zero_infinity) = false;
};
struct PoissonNLLLossOptions {
  using reduction_t = loss_reduction_t;
  CRESSET_ARG(bool, log_input) = true;
  CRESSET_ARG(bool, full) = false;
  CRESSET_ARG(double, eps) = 1e-8;
  CRESSET_NN_REDUCTION;
};

// --- recurrent layers

using rnn_nonlinearity_t = std::variant<enumtype::kTanh, enumtype::kReLU>;
#define CRESSET_NN_RECURRENT(Name)                                                                      \
  Name(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {} \
  CRESSET_ARG(int64_t, input_size);                                                                     \
  CRESSET_ARG(int64_t, hidden_size);                                                                    \
  CRESSET_ARG(bool, bias) = true
#define CRESSET_NN_RECURRENT_LAYERS       \
  CRESSET_ARG(int64_t, num_layers) = 1;   \
  CRESSET_ARG(bool, batch_first) = false; \
  CRESSET_ARG(double, dropout) = 0;       \
  CRESSET_ARG(bool, bidirectional) = false
namespace detail {
/// What RNN, LSTM and GRU share.
struct RNNOptionsBase {
  using rnn_options_base_mode_t = std::variant<enumtype::kLSTM, enumtype::kGRU, enumtype::kRNN_TANH, enumtype::kRNN_RELU>;
  RNNOptionsBase(rnn_options_base_mode_t mode, int64_t input_size, int64_t hidden_size)
      : mode_(mode), input_size_(input_size), hidden_size_(hidden_size) {}
  CRESSET_ARG(rnn_options_base_mode_t, mode);
  CRESSET_ARG(int64_t, input_size);
  CRESSET_ARG(int64_t, hidden_size);
  CRESSET_ARG(bool, bias) = true;
  CRESSET_NN_RECURRENT_LAYERS;
  /// Of an LSTM: the size that outputs are projected to; 0: none.
  CRESSET_ARG(int64_t, proj_size) = 0;
};
}  // namespace detail
struct RNNOptions {
  CRESSET_NN_RECURRENT(RNNOptions);
  CRESSET_NN_RECURRENT_LAYERS;
  CRESSET_ARG(rnn_nonlinearity_t, nonlinearity) = kTanh;
};
struct LSTMOptions {
  CRESSET_NN_RECURRENT(LSTMOptions);
  CRESSET_NN_RECURRENT_LAYERS;
  CRESSET_ARG(int64_t, proj_size) = 0;
};
struct GRUOptions {
  CRESSET_NN_RECURRENT(GRUOptions);
  CRESSET_NN_RECURRENT_LAYERS;
};
struct RNNCellOptions {
  CRESSET_NN_RECURRENT(RNNCellOptions);
  CRESSET_ARG(rnn_nonlinearity_t, nonlinearity) = kTanh;
};
struct LSTMCellOptions {
  CRESSET_NN_RECURRENT(LSTMCellOptions);
};
struct GRUCellOptions {
  CRESSET_NN_RECURRENT(GRUCellOptions);
};
#undef CRESSET_NN_RECURRENT
#undef CRESSET_NN_RECURRENT_LAYERS

/// Options of functions that are not those of a module.
namespace functional {

template <std::size_t D>
struct ConvFuncOptions {
  using padding_t = conv_padding_t<D>;
  ConvFuncOptions& padding(std::initializer_list<int64_t> sizes) { return padding(padding_t(ExpandingArray<D>(sizes))); }
  CRESSET_ARG(Tensor, bias);
  CRESSET_ARG(ExpandingArray<D>, stride) = 1;
  CRESSET_ARG(padding_t, padding) = ExpandingArray<D>(0);
  CRESSET_ARG(ExpandingArray<D>, dilation) = 1;
  CRESSET_ARG(int64_t, groups) = 1;
};
template <std::size_t D>
struct ConvTransposeFuncOptions {
  CRESSET_ARG(Tensor, bias);
  CRESSET_ARG(ExpandingArray<D>, stride) = 1;
  CRESSET_ARG(ExpandingArray<D>, padding) = 0;
  CRESSET_ARG(ExpandingArray<D>, output_padding) = 0;
  CRESSET_ARG(int64_t, groups) = 1;
  CRESSET_ARG(ExpandingArray<D>, dilation) = 1;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions<1>;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions<2>;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions<3>;

struct BatchNormFuncOptions {
  CRESSET_ARG(Tensor, weight);
  CRESSET_ARG(Tensor, bias);
  CRESSET_ARG(bool, training) = false;
  CRESSET_ARG(double, momentum) = 0.1;
  CRESSET_ARG(double, eps) = 1e-5;
};
struct InstanceNormFuncOptions {
  CRESSET_ARG(Tensor, running_mean);
  CRESSET_ARG(Tensor, running_var);
  CRESSET_ARG(Tensor, weight);
  CRESSET_ARG(Tensor, bias);
  CRESSET_ARG(bool, use_input_stats) = true;
  CRESSET_ARG(double, momentum) = 0.1;
  CRESSET_ARG(double, eps) = 1e-5;
};
struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  CRESSET_ARG(std::vector<int64_t>, normalized_shape);
  CRESSET_ARG(Tensor, weight);
  CRESSET_ARG(Tensor, bias);
  CRESSET_ARG(double, eps) = 1e-5;
};
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}
  CRESSET_ARG(int64_t, num_groups);
  CRESSET_ARG(Tensor, weight);
  CRESSET_ARG(Tensor, bias);
  CRESSET_ARG(double, eps) = 1e-5;
};
struct NormalizeFuncOptions {
  CRESSET_ARG(double, p) = 2;
  CRESSET_ARG(int64_t, dim) = 1;
  CRESSET_ARG(double, eps) = 1e-12;
  /// Takes the result, which has no history then.
  CRESSET_ARG(std::optional<Tensor>, out);
};
struct DropoutFuncOptions {
  CRESSET_ARG(double, p) = 0.5;
  CRESSET_ARG(bool, training) = true;
  CRESSET_ARG(bool, inplace) = false;
};
struct SoftmaxFuncOptions {
  SoftmaxFuncOptions(int64_t dim) : dim_(dim) {}
  CRESSET_ARG(int64_t, dim);
  CRESSET_ARG(std::optional<ScalarType>, dtype);
};
struct EmbeddingFuncOptions {
  CRESSET_ARG(std::optional<int64_t>, padding_idx);
  CRESSET_ARG(std::optional<double>, max_norm);
  CRESSET_ARG(double, norm_type) = 2;
  CRESSET_ARG(bool, scale_grad_by_freq) = false;
  CRESSET_ARG(bool, sparse) = false;
};
struct EmbeddingBagFuncOptions {
  CRESSET_ARG(Tensor, offsets);
  CRESSET_ARG(std::optional<double>, max_norm);
  CRESSET_ARG(double, norm_type) = 2;
  CRESSET_ARG(bool, scale_grad_by_freq) = false;
  CRESSET_ARG(EmbeddingBagMode, mode) = kMean;
  CRESSET_ARG(bool, sparse) = false;
  CRESSET_ARG(Tensor, per_sample_weights);
  CRESSET_ARG(bool, include_last_offset) = false;
  CRESSET_ARG(std::optional<int64_t>, padding_idx);
};
struct GumbelSoftmaxFuncOptions {
  CRESSET_ARG(double, tau) = 1;
  CRESSET_ARG(bool, hard) = false;
  CRESSET_ARG(int64_t, dim) = -1;
};
struct RReLUFuncOptions {
  CRESSET_ARG(double, lower) = 1.0 / 8.0;
  CRESSET_ARG(double, upper) = 1.0 / 3.0;
  CRESSET_ARG(bool, training) = false;
  CRESSET_ARG(bool, inplace) = false;
};
template <std::size_t D>
struct MaxUnpoolFuncOptions {
  MaxUnpoolFuncOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  CRESSET_ARG(ExpandingArray<D>, kernel_size);
  CRESSET_ARG(ExpandingArray<D>, stride);
  CRESSET_ARG(ExpandingArray<D>, padding) = 0;
  /// The size of the result, which several can lead to the same pooled size; with or without the first two dimensions.
  CRESSET_ARG(std::optional<std::vector<int64_t>>, output_size);
};
using MaxUnpool1dFuncOptions = MaxUnpoolFuncOptions<1>;
using MaxUnpool2dFuncOptions = MaxUnpoolFuncOptions<2>;
using MaxUnpool3dFuncOptions = MaxUnpoolFuncOptions<3>;
struct PadFuncOptions {
  using mode_t = std::variant<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  CRESSET_ARG(std::vector<int64_t>, pad);
  CRESSET_ARG(mode_t, mode) = kConstant;
  CRESSET_ARG(double, value) = 0;
};
struct InterpolateFuncOptions {
  using mode_t = std::variant<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic, enumtype::kTrilinear,
                              enumtype::kArea, enumtype::kNearestExact>;
  CRESSET_ARG(std::optional<std::vector<int64_t>>, size);
  CRESSET_ARG(std::optional<std::vector<double>>, scale_factor);
  CRESSET_ARG(mode_t, mode) = kNearest;
  CRESSET_ARG(std::optional<bool>, align_corners);
  CRESSET_ARG(std::optional<bool>, recompute_scale_factor);
  CRESSET_ARG(bool, antialias) = false;
};
struct GridSampleFuncOptions {
  using mode_t = std::variant<enumtype::kBilinear, enumtype::kNearest, enumtype::kBicubic>;
  using padding_mode_t = std::variant<enumtype::kZeros, enumtype::kBorder, enumtype::kReflection>;
  CRESSET_ARG(mode_t, mode) = kBilinear;
  CRESSET_ARG(padding_mode_t, padding_mode) = kZeros;
  CRESSET_ARG(std::optional<bool>, align_corners);
};

}  // namespace functional
}  // namespace cresset::nn
