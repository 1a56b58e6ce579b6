// nn::functional: the functions behind modules, with options in place of long lists of arguments.
#pragma once

#include <utility>
#include <vector>

#include <cresset/nn/options.h>
#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_conv.h>
#include <cresset/ops/functions_ctc.h>
#include <cresset/ops/functions_distance.h>
#include <cresset/ops/functions_embedding.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_loss.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_pool.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_rearrange.h>
#include <cresset/ops/functions_softmax.h>
#include <cresset/ops/functions_view.h>

namespace cresset::nn::functional {

namespace detail {
inline std::optional<Tensor> given(const Tensor& t) { return t.defined() ? std::optional<Tensor>(t) : std::nullopt; }
/// The number that operators take.
inline int64_t number(const loss_reduction_t& reduction) { return static_cast<int64_t>(reduction.index()); }
}  // namespace detail

// --- linear

inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  return cresset::linear(input, weight, detail::given(bias));
}
inline Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias = {}) {
  return cresset::bilinear(a, b, weight, detail::given(bias));
}

// --- activations

#define CRESSET_NN_ACTIVATION(name, Options, call, call_) \
  inline Tensor name(Tensor input, const Options& o = {}) { return o.inplace() ? cresset::call_ : cresset::call; }
CRESSET_NN_ACTIVATION(relu, ReLUOptions, relu(input), relu_(input))
CRESSET_NN_ACTIVATION(relu6, ReLU6Options, relu6(input), relu6_(input))
CRESSET_NN_ACTIVATION(selu, SELUOptions, selu(input), selu_(input))
CRESSET_NN_ACTIVATION(elu, ELUOptions, elu(input, o.alpha()), elu_(input, o.alpha()))
CRESSET_NN_ACTIVATION(celu, CELUOptions, celu(input, o.alpha()), celu_(input, o.alpha()))
CRESSET_NN_ACTIVATION(leaky_relu, LeakyReLUOptions, leaky_relu(input, o.negative_slope()), leaky_relu_(input, o.negative_slope()))
CRESSET_NN_ACTIVATION(hardtanh, HardtanhOptions, hardtanh(input, o.min_val(), o.max_val()), hardtanh_(input, o.min_val(), o.max_val()))
#undef CRESSET_NN_ACTIVATION
inline Tensor threshold(Tensor input, const ThresholdOptions& o) {
  return o.inplace() ? cresset::threshold_(input, o.threshold(), o.value()) : cresset::threshold(input, o.threshold(), o.value());
}
inline Tensor gelu(const Tensor& input, const GELUOptions& o = {}) { return cresset::gelu(input, o.approximate()); }
inline Tensor silu(const Tensor& input) { return cresset::silu(input); }
inline Tensor mish(const Tensor& input) { return cresset::mish(input); }
inline Tensor glu(const Tensor& input, const GLUOptions& o = {}) { return cresset::glu(input, o.dim()); }
inline Tensor hardshrink(const Tensor& input, const HardshrinkOptions& o = {}) { return cresset::hardshrink(input, o.lambda()); }
inline Tensor softshrink(const Tensor& input, const SoftshrinkOptions& o = {}) { return cresset::softshrink(input, o.lambda()); }
inline Tensor softplus(const Tensor& input, const SoftplusOptions& o = {}) { return cresset::softplus(input, o.beta(), o.threshold()); }
inline Tensor logsigmoid(const Tensor& input) { return cresset::log_sigmoid(input); }
inline Tensor sigmoid(const Tensor& input) { return input.sigmoid(); }
inline Tensor tanh(const Tensor& input) { return input.tanh(); }
inline Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
inline Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
inline Tensor prelu(const Tensor& input, const Tensor& weight) { return cresset::prelu(input, weight); }
inline Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& o) { return cresset::softmax(input, o.dim(), o.dtype()); }
inline Tensor softmin(const Tensor& input, const SoftmaxFuncOptions& o) { return cresset::softmax(-input, o.dim(), o.dtype()); }
inline Tensor log_softmax(const Tensor& input, const SoftmaxFuncOptions& o) { return cresset::log_softmax(input, o.dim(), o.dtype()); }
CRESSET_API Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});
/// leaky_relu with slopes drawn from [lower, upper] in training, their mean otherwise.
CRESSET_API Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});

// --- convolutions

CRESSET_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options = {});
CRESSET_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options = {});
CRESSET_API Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options = {});
#define CRESSET_NN_DIMENSIONS(D)                                                                                                          \
  inline Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight, const ConvTranspose##D##dFuncOptions& o = {}) {           \
    return cresset::conv_transpose##D##d(input, weight, detail::given(o.bias()), o.stride(), o.padding(), o.output_padding(), o.groups(), \
                                         o.dilation());                                                                                   \
  }
CRESSET_NN_DIMENSIONS(1)
CRESSET_NN_DIMENSIONS(2)
CRESSET_NN_DIMENSIONS(3)
#undef CRESSET_NN_DIMENSIONS
using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;
CRESSET_API Tensor fold(const Tensor& input, const FoldFuncOptions& options);
CRESSET_API Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);

// --- norms

inline Tensor batch_norm(const Tensor& input, const Tensor& mean, const Tensor& var, const BatchNormFuncOptions& o = {}) {
  return cresset::batch_norm(input, detail::given(o.weight()), detail::given(o.bias()), detail::given(mean), detail::given(var),
                             o.training(), o.momentum(), o.eps(), false);
}
inline Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o = {}) {
  return cresset::instance_norm(input, detail::given(o.weight()), detail::given(o.bias()), detail::given(o.running_mean()),
                                detail::given(o.running_var()), o.use_input_stats(), o.momentum(), o.eps(), false);
}
inline Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return cresset::layer_norm(input, o.normalized_shape(), detail::given(o.weight()), detail::given(o.bias()), o.eps());
}
inline Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return cresset::group_norm(input, o.num_groups(), detail::given(o.weight()), detail::given(o.bias()), o.eps());
}
CRESSET_API Tensor local_response_norm(const Tensor& input, const LocalResponseNormOptions& options);
namespace detail {
/// The same, with as many channels before an element as after it whether size is odd or even.
CRESSET_API Tensor cross_map_lrn(const Tensor& input, const CrossMapLRN2dOptions& options);
}  // namespace detail
CRESSET_API Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});

// --- dropout

#define CRESSET_NN_DROPOUT(name, call)                                                                                       \
  inline Tensor name(Tensor input, const DropoutFuncOptions& o = {}) {                                                       \
    CRESSET_CHECK(o.p() >= 0 && o.p() <= 1, "dropout probability has to be between 0 and 1, but got ", o.p());               \
    return o.inplace() ? input.copy_(cresset::call(input, o.p(), o.training())) : cresset::call(input, o.p(), o.training()); \
  }
CRESSET_NN_DROPOUT(dropout2d, feature_dropout)
CRESSET_NN_DROPOUT(dropout3d, feature_dropout)
#undef CRESSET_NN_DROPOUT
inline Tensor dropout(Tensor input, const DropoutFuncOptions& o = {}) {
  CRESSET_CHECK(o.p() >= 0 && o.p() <= 1, "dropout probability has to be between 0 and 1, but got ", o.p());
  return o.inplace() ? cresset::dropout_(input, o.p(), o.training()) : cresset::dropout(input, o.p(), o.training());
}
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
/// Without training these two give back their input.
struct AlphaDropoutFuncOptions {
  CRESSET_ARG(double, p) = 0.5;
  CRESSET_ARG(bool, training) = false;
  CRESSET_ARG(bool, inplace) = false;
};
using FeatureAlphaDropoutFuncOptions = AlphaDropoutFuncOptions;
CRESSET_API Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options = {});
/// alpha_dropout of whole channels.
CRESSET_API Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options = {});
namespace detail {
inline Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::alpha_dropout(std::move(input), AlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
inline Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::feature_alpha_dropout(std::move(input), FeatureAlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
}  // namespace detail

// --- pooling

/// Sizes left out become those of the input's last dimensions.
CRESSET_API std::vector<int64_t> adaptive_size(const Tensor& input, ArrayRef<std::optional<int64_t>> given);
inline std::vector<int64_t> adaptive_size(const Tensor&, IntArrayRef given) { return given.vec(); }
#define CRESSET_NN_DIMENSIONS(D)                                                                                                           \
  using AvgPool##D##dFuncOptions = AvgPool##D##dOptions;                                                                                   \
  using MaxPool##D##dFuncOptions = MaxPool##D##dOptions;                                                                                   \
  using LPPool##D##dFuncOptions = LPPool##D##dOptions;                                                                                     \
  using AdaptiveAvgPool##D##dFuncOptions = AdaptiveAvgPool##D##dOptions;                                                                   \
  using AdaptiveMaxPool##D##dFuncOptions = AdaptiveMaxPool##D##dOptions;                                                                   \
  inline Tensor max_pool##D##d(const Tensor& input, const MaxPool##D##dFuncOptions& o) {                                                   \
    return cresset::max_pool##D##d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());                          \
  }                                                                                                                                        \
  inline std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input, const MaxPool##D##dFuncOptions& o) {                  \
    return cresset::max_pool##D##d_with_indices(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());             \
  }                                                                                                                                        \
  inline Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptiveAvgPool##D##dFuncOptions& o) {                                  \
    return cresset::adaptive_avg_pool##D##d(input, adaptive_size(input, *o.output_size()));                                                \
  }                                                                                                                                        \
  inline std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) { \
    return cresset::adaptive_max_pool##D##d(input, adaptive_size(input, *o.output_size()));                                                \
  }                                                                                                                                        \
  inline Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) {                                  \
    return std::get<0>(adaptive_max_pool##D##d_with_indices(input, o));                                                                    \
  }
CRESSET_NN_DIMENSIONS(1)
CRESSET_NN_DIMENSIONS(2)
CRESSET_NN_DIMENSIONS(3)
#undef CRESSET_NN_DIMENSIONS
inline Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& o) {
  return cresset::avg_pool1d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad());
}
inline Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& o) {
  return cresset::avg_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad(), o.divisor_override());
}
inline Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& o) {
  return cresset::avg_pool3d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad(), o.divisor_override());
}
CRESSET_API Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& options);
CRESSET_API Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& options);
CRESSET_API Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& options);
using FractionalMaxPool2dFuncOptions = FractionalMaxPool2dOptions;
using FractionalMaxPool3dFuncOptions = FractionalMaxPool3dOptions;
CRESSET_API std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& input,
                                                                          const FractionalMaxPool2dFuncOptions& options);
CRESSET_API std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& input,
                                                                          const FractionalMaxPool3dFuncOptions& options);
inline Tensor fractional_max_pool2d(const Tensor& input, const FractionalMaxPool2dFuncOptions& o) {
  return std::get<0>(fractional_max_pool2d_with_indices(input, o));
}
inline Tensor fractional_max_pool3d(const Tensor& input, const FractionalMaxPool3dFuncOptions& o) {
  return std::get<0>(fractional_max_pool3d_with_indices(input, o));
}
/// Zeros, and the values at the indices that a max_pool gave.
CRESSET_API Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& options);
CRESSET_API Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& options);
CRESSET_API Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& options);

// --- shapes

CRESSET_API Tensor pad(const Tensor& input, const PadFuncOptions& options);
CRESSET_API Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options);
CRESSET_API Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options = {});
CRESSET_API Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);
using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;
inline Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& o) {
  return cresset::pixel_shuffle(input, o.upscale_factor());
}
inline Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& o) {
  return cresset::pixel_unshuffle(input, o.downscale_factor());
}
inline Tensor one_hot(const Tensor& input, int64_t num_classes = -1) { return cresset::one_hot(input, num_classes); }
CRESSET_API Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});
/// Sums, means or maxima of rows: each row of a 2-D input is a bag; bags of a 1-D input start at the offsets.
CRESSET_API Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options = {});

// --- distances and losses

inline Tensor cosine_similarity(const Tensor& a, const Tensor& b, const CosineSimilarityOptions& o = {}) {
  return cresset::cosine_similarity(a, b, o.dim(), o.eps());
}
inline Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceOptions& o = {}) {
  return cresset::pairwise_distance(a, b, o.p(), o.eps(), o.keepdim());
}
inline Tensor pdist(const Tensor& input, double p = 2) { return cresset::pdist(input, p); }
inline Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossOptions& o = {}) {
  return cresset::l1_loss(input, target, detail::number(o.reduction()));
}
inline Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossOptions& o = {}) {
  return cresset::mse_loss(input, target, detail::number(o.reduction()));
}
inline Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossOptions& o = {}) {
  return cresset::soft_margin_loss(input, target, detail::number(o.reduction()));
}
inline Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BCELossOptions& o = {}) {
  return cresset::binary_cross_entropy(input, target, detail::given(o.weight()), detail::number(o.reduction()));
}
inline Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const BCEWithLogitsLossOptions& o = {}) {
  CRESSET_CHECK(target.sizes() == input.sizes(), "Target size (", target.sizes(), ") must be the same as input size (", input.sizes(), ")");
  return cresset::binary_cross_entropy_with_logits(input, target, detail::given(o.weight()), detail::given(o.pos_weight()),
                                                   detail::number(o.reduction()));
}
inline Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossOptions& o = {}) {
  return cresset::nll_loss_nd(input, target, detail::given(o.weight()), detail::number(o.reduction()), o.ignore_index());
}
inline Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyLossOptions& o = {}) {
  return cresset::cross_entropy_loss(input, target, detail::given(o.weight()), detail::number(o.reduction()), o.ignore_index(),
                                     o.label_smoothing());
}
CRESSET_API Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivLossOptions& options = {});
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& o = {}) {
  return cresset::smooth_l1_loss(input, target, detail::number(o.reduction()), o.beta().value_or(1.0));
}
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& o, double beta) {
  CRESSET_CHECK(!o.beta().has_value(), "expected beta not to be provided in 'options', but got ", o.beta().value_or(0));
  return cresset::smooth_l1_loss(input, target, detail::number(o.reduction()), beta);
}
inline Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& o = {}) {
  return cresset::huber_loss(input, target, detail::number(o.reduction()), o.delta());
}
inline Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossOptions& o = {}) {
  return cresset::hinge_embedding_loss(input, target, o.margin(), detail::number(o.reduction()));
}
inline Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, const CosineEmbeddingLossOptions& o = {}) {
  return cresset::cosine_embedding_loss(a, b, target, o.margin(), detail::number(o.reduction()));
}
inline Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, const MarginRankingLossOptions& o = {}) {
  return cresset::margin_ranking_loss(a, b, target, o.margin(), detail::number(o.reduction()));
}
CRESSET_API Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                               const MultiLabelSoftMarginLossOptions& options = {});
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                  const TripletMarginLossOptions& o = {}) {
  return cresset::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(), detail::number(o.reduction()));
}
CRESSET_API Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                                     const TripletMarginWithDistanceLossOptions& options = {});
inline Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& o = {}) {
  CRESSET_CHECK(o.p() == 1 || o.p() == 2, "only p == 1 and p == 2 supported");
  return cresset::multi_margin_loss(input, target, o.p(), o.margin(), detail::given(o.weight()), detail::number(o.reduction()));
}
inline Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, const MultiLabelMarginLossOptions& o = {}) {
  return cresset::multilabel_margin_loss(input, target, detail::number(o.reduction()));
}
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                       const CTCLossOptions& o = {}) {
  return cresset::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(), detail::number(o.reduction()), o.zero_infinity());
}
inline Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossOptions& o = {}) {
  return cresset::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(), detail::number(o.reduction()));
}

// Functions whose options are those of the module have them under both names.
#define CRESSET_NN_SAME_OPTIONS(Name) using Name##FuncOptions = Name##Options;
CRESSET_NN_SAME_OPTIONS(ReLU)
CRESSET_NN_SAME_OPTIONS(ReLU6)
CRESSET_NN_SAME_OPTIONS(SELU)
CRESSET_NN_SAME_OPTIONS(ELU)
CRESSET_NN_SAME_OPTIONS(CELU)
CRESSET_NN_SAME_OPTIONS(LeakyReLU)
CRESSET_NN_SAME_OPTIONS(Hardtanh)
CRESSET_NN_SAME_OPTIONS(Threshold)
CRESSET_NN_SAME_OPTIONS(GELU)
CRESSET_NN_SAME_OPTIONS(GLU)
CRESSET_NN_SAME_OPTIONS(Hardshrink)
CRESSET_NN_SAME_OPTIONS(Softshrink)
CRESSET_NN_SAME_OPTIONS(Softplus)
using SoftminFuncOptions = SoftmaxFuncOptions;
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;
CRESSET_NN_SAME_OPTIONS(LocalResponseNorm)
CRESSET_NN_SAME_OPTIONS(CosineSimilarity)
CRESSET_NN_SAME_OPTIONS(PairwiseDistance)
CRESSET_NN_SAME_OPTIONS(L1Loss)
CRESSET_NN_SAME_OPTIONS(MSELoss)
CRESSET_NN_SAME_OPTIONS(SoftMarginLoss)
CRESSET_NN_SAME_OPTIONS(NLLLoss)
CRESSET_NN_SAME_OPTIONS(SmoothL1Loss)
CRESSET_NN_SAME_OPTIONS(HuberLoss)
CRESSET_NN_SAME_OPTIONS(HingeEmbeddingLoss)
CRESSET_NN_SAME_OPTIONS(CosineEmbeddingLoss)
CRESSET_NN_SAME_OPTIONS(MarginRankingLoss)
CRESSET_NN_SAME_OPTIONS(MultiLabelSoftMarginLoss)
CRESSET_NN_SAME_OPTIONS(TripletMarginWithDistanceLoss)
CRESSET_NN_SAME_OPTIONS(MultiMarginLoss)
CRESSET_NN_SAME_OPTIONS(TripletMarginLoss)
CRESSET_NN_SAME_OPTIONS(CTCLoss)
CRESSET_NN_SAME_OPTIONS(PoissonNLLLoss)
#undef CRESSET_NN_SAME_OPTIONS
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;

}  // namespace cresset::nn::functional
