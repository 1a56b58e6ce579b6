// Modules without weights: an options object and a function of nn::functional each.
#pragma once

#include <cresset/nn/any.h>
#include <cresset/nn/functional.h>
#include <cresset/nn/print.h>

namespace cresset::nn {

namespace detail {
template <class Options>
void check_options(const Options&) {}
inline void check_options(const DropoutOptions& o) {
  CRESSET_CHECK(o.p() >= 0 && o.p() <= 1, "dropout probability has to be between 0 and 1, but got ", o.p());
}
inline void check_options(const HardtanhOptions& o) { CRESSET_CHECK(o.min_val() < o.max_val(), "max_val must be greater than min_val"); }

template <class Derived, class Options>
class Stateless : public Cloneable<Derived> {
 public:
  Stateless()
    requires std::is_default_constructible_v<Options>
  {}
  Stateless(const Options& given) : options(given) { check_options(options); }
  template <class... A>
    requires(sizeof...(A) > 0 && std::is_constructible_v<Options, A...>)
  explicit Stateless(A&&... given) : options(std::forward<A>(given)...) {
    check_options(options);
  }
  void reset() override { check_options(options); }

  Options options;
};
struct NoOptions {};
}  // namespace detail

#define CRESSET_NN_PRINT(Name) \
  void pretty_print(std::ostream& stream) const override { detail::print_options(stream, #Name, this->options); }
/// `parameters` and `expression` are those of forward(); the expression sees `options`.
#define CRESSET_NN_STATELESS(Name, Options, parameters, expression)  \
  class Name##Impl : public detail::Stateless<Name##Impl, Options> { \
   public:                                                           \
    using detail::Stateless<Name##Impl, Options>::Stateless;         \
    auto forward parameters { return functional::expression; }       \
    CRESSET_NN_PRINT(Name)                                           \
  };                                                                 \
  CRESSET_MODULE(Name);
#define CRESSET_NN_ONE (const Tensor& input)
#define CRESSET_NN_TWO (const Tensor& input, const Tensor& target)
#define CRESSET_NN_THREE (const Tensor& input1, const Tensor& input2, const Tensor& target)

CRESSET_NN_STATELESS(ReLU, ReLUOptions, CRESSET_NN_ONE, relu(input, options))
CRESSET_NN_STATELESS(ReLU6, ReLU6Options, CRESSET_NN_ONE, relu6(input, options))
CRESSET_NN_STATELESS(SELU, SELUOptions, CRESSET_NN_ONE, selu(input, options))
CRESSET_NN_STATELESS(ELU, ELUOptions, CRESSET_NN_ONE, elu(input, options))
CRESSET_NN_STATELESS(CELU, CELUOptions, CRESSET_NN_ONE, celu(input, options))
CRESSET_NN_STATELESS(LeakyReLU, LeakyReLUOptions, CRESSET_NN_ONE, leaky_relu(input, options))
CRESSET_NN_STATELESS(RReLU, RReLUOptions, CRESSET_NN_ONE,
                     rrelu(input, functional::RReLUFuncOptions()
                                      .lower(options.lower())
                                      .upper(options.upper())
                                      .training(this->is_training())
                                      .inplace(options.inplace())))
CRESSET_NN_STATELESS(Hardtanh, HardtanhOptions, CRESSET_NN_ONE, hardtanh(input, options))
CRESSET_NN_STATELESS(Threshold, ThresholdOptions, CRESSET_NN_ONE, threshold(input, options))
CRESSET_NN_STATELESS(GELU, GELUOptions, CRESSET_NN_ONE, gelu(input, options))
CRESSET_NN_STATELESS(GLU, GLUOptions, CRESSET_NN_ONE, glu(input, options))
CRESSET_NN_STATELESS(Hardshrink, HardshrinkOptions, CRESSET_NN_ONE, hardshrink(input, options))
CRESSET_NN_STATELESS(Softshrink, SoftshrinkOptions, CRESSET_NN_ONE, softshrink(input, options))
CRESSET_NN_STATELESS(Softplus, SoftplusOptions, CRESSET_NN_ONE, softplus(input, options))
CRESSET_NN_STATELESS(Softmax, SoftmaxOptions, CRESSET_NN_ONE, softmax(input, options.dim()))
CRESSET_NN_STATELESS(Softmin, SoftminOptions, CRESSET_NN_ONE, softmin(input, options.dim()))
CRESSET_NN_STATELESS(LogSoftmax, LogSoftmaxOptions, CRESSET_NN_ONE, log_softmax(input, options.dim()))
CRESSET_NN_STATELESS(Softmax2d, detail::NoOptions, CRESSET_NN_ONE, softmax(input, -3))
CRESSET_NN_STATELESS(SiLU, detail::NoOptions, CRESSET_NN_ONE, silu(input))
CRESSET_NN_STATELESS(Mish, detail::NoOptions, CRESSET_NN_ONE, mish(input))
CRESSET_NN_STATELESS(LogSigmoid, detail::NoOptions, CRESSET_NN_ONE, logsigmoid(input))
CRESSET_NN_STATELESS(Sigmoid, detail::NoOptions, CRESSET_NN_ONE, sigmoid(input))
CRESSET_NN_STATELESS(Tanh, detail::NoOptions, CRESSET_NN_ONE, tanh(input))
CRESSET_NN_STATELESS(Tanhshrink, detail::NoOptions, CRESSET_NN_ONE, tanhshrink(input))
CRESSET_NN_STATELESS(Softsign, detail::NoOptions, CRESSET_NN_ONE, softsign(input))

#define CRESSET_NN_DROPOUT(Name, function)  \
  CRESSET_NN_STATELESS(                     \
      Name, DropoutOptions, CRESSET_NN_ONE, \
      function(input, functional::DropoutFuncOptions().p(options.p()).training(this->is_training()).inplace(options.inplace())))
CRESSET_NN_DROPOUT(Dropout, dropout)
CRESSET_NN_DROPOUT(Dropout2d, dropout2d)
CRESSET_NN_DROPOUT(Dropout3d, dropout3d)
#undef CRESSET_NN_DROPOUT
#define CRESSET_NN_DROPOUT(Name, function)  \
  CRESSET_NN_STATELESS(                     \
      Name, DropoutOptions, CRESSET_NN_ONE, \
      function(input, functional::AlphaDropoutFuncOptions().p(options.p()).training(this->is_training()).inplace(options.inplace())))
CRESSET_NN_DROPOUT(AlphaDropout, alpha_dropout)
CRESSET_NN_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout)
#undef CRESSET_NN_DROPOUT

#define CRESSET_NN_POOL(Name, function)                                                                                                  \
  class Name##Impl : public detail::Stateless<Name##Impl, Name##Options> {                                                               \
   public:                                                                                                                               \
    using detail::Stateless<Name##Impl, Name##Options>::Stateless;                                                                       \
    Tensor forward(const Tensor& input) { return functional::function(input, options); }                                                 \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input) { return functional::function##_with_indices(input, options); } \
    CRESSET_NN_PRINT(Name)                                                                                                               \
  };                                                                                                                                     \
  CRESSET_MODULE(Name);
#define CRESSET_NN_DIMENSIONS(D)                                                                                                     \
  CRESSET_NN_POOL(MaxPool##D##d, max_pool##D##d)                                                                                     \
  CRESSET_NN_POOL(AdaptiveMaxPool##D##d, adaptive_max_pool##D##d)                                                                    \
  CRESSET_NN_STATELESS(AvgPool##D##d, AvgPool##D##dOptions, CRESSET_NN_ONE, avg_pool##D##d(input, options))                          \
  CRESSET_NN_STATELESS(AdaptiveAvgPool##D##d, AdaptiveAvgPool##D##dOptions, CRESSET_NN_ONE, adaptive_avg_pool##D##d(input, options)) \
  CRESSET_NN_STATELESS(ReflectionPad##D##d, ReflectionPad##D##dOptions, CRESSET_NN_ONE,                                              \
                       pad(input, functional::PadFuncOptions(IntArrayRef(options.padding()).vec()).mode(kReflect)))                  \
  CRESSET_NN_STATELESS(ReplicationPad##D##d, ReplicationPad##D##dOptions, CRESSET_NN_ONE,                                            \
                       pad(input, functional::PadFuncOptions(IntArrayRef(options.padding()).vec()).mode(kReplicate)))                \
  CRESSET_NN_STATELESS(ZeroPad##D##d, ZeroPad##D##dOptions, CRESSET_NN_ONE,                                                          \
                       pad(input, functional::PadFuncOptions(IntArrayRef(options.padding()).vec())))                                 \
  CRESSET_NN_STATELESS(ConstantPad##D##d, ConstantPad##D##dOptions, CRESSET_NN_ONE,                                                  \
                       pad(input, functional::PadFuncOptions(IntArrayRef(options.padding()).vec()).value(options.value())))
CRESSET_NN_DIMENSIONS(1)
CRESSET_NN_DIMENSIONS(2)
CRESSET_NN_DIMENSIONS(3)
#undef CRESSET_NN_DIMENSIONS
CRESSET_NN_POOL(FractionalMaxPool2d, fractional_max_pool2d)
CRESSET_NN_POOL(FractionalMaxPool3d, fractional_max_pool3d)
#undef CRESSET_NN_POOL
#define CRESSET_NN_UNPOOL(D)                                                                                                  \
  class MaxUnpool##D##dImpl : public detail::Stateless<MaxUnpool##D##dImpl, MaxUnpool##D##dOptions> {                         \
   public:                                                                                                                    \
    using detail::Stateless<MaxUnpool##D##dImpl, MaxUnpool##D##dOptions>::Stateless;                                          \
    Tensor forward(const Tensor& input, const Tensor& indices, const std::optional<std::vector<int64_t>>& output_size = {}) { \
      functional::MaxUnpool##D##dFuncOptions call(options.kernel_size());                                                     \
      return functional::max_unpool##D##d(input, indices,                                                                     \
                                          call.stride(options.stride()).padding(options.padding()).output_size(output_size)); \
    }                                                                                                                         \
    CRESSET_FORWARD_DEFAULTS({2, AnyValue(std::optional<std::vector<int64_t>>())})                                            \
    CRESSET_NN_PRINT(MaxUnpool##D##d)                                                                                         \
  };                                                                                                                          \
  CRESSET_MODULE(MaxUnpool##D##d);
CRESSET_NN_UNPOOL(1)
CRESSET_NN_UNPOOL(2)
CRESSET_NN_UNPOOL(3)
#undef CRESSET_NN_UNPOOL
CRESSET_NN_STATELESS(LPPool1d, LPPool1dOptions, CRESSET_NN_ONE, lp_pool1d(input, options))
CRESSET_NN_STATELESS(LPPool2d, LPPool2dOptions, CRESSET_NN_ONE, lp_pool2d(input, options))
CRESSET_NN_STATELESS(LPPool3d, LPPool3dOptions, CRESSET_NN_ONE, lp_pool3d(input, options))
CRESSET_NN_STATELESS(LocalResponseNorm, LocalResponseNormOptions, CRESSET_NN_ONE, local_response_norm(input, options))
CRESSET_NN_STATELESS(CrossMapLRN2d, CrossMapLRN2dOptions, CRESSET_NN_ONE, detail::cross_map_lrn(input, options))
CRESSET_NN_STATELESS(PixelShuffle, PixelShuffleOptions, CRESSET_NN_ONE, pixel_shuffle(input, options))
CRESSET_NN_STATELESS(PixelUnshuffle, PixelUnshuffleOptions, CRESSET_NN_ONE, pixel_unshuffle(input, options))
CRESSET_NN_STATELESS(Fold, FoldOptions, CRESSET_NN_ONE, fold(input, options))
CRESSET_NN_STATELESS(Unfold, UnfoldOptions, CRESSET_NN_ONE, unfold(input, options))

CRESSET_NN_STATELESS(CosineSimilarity, CosineSimilarityOptions, CRESSET_NN_TWO, cosine_similarity(input, target, options))
CRESSET_NN_STATELESS(PairwiseDistance, PairwiseDistanceOptions, CRESSET_NN_TWO, pairwise_distance(input, target, options))
CRESSET_NN_STATELESS(L1Loss, L1LossOptions, CRESSET_NN_TWO, l1_loss(input, target, options))
CRESSET_NN_STATELESS(MSELoss, MSELossOptions, CRESSET_NN_TWO, mse_loss(input, target, options))
CRESSET_NN_STATELESS(SoftMarginLoss, SoftMarginLossOptions, CRESSET_NN_TWO, soft_margin_loss(input, target, options))
CRESSET_NN_STATELESS(BCELoss, BCELossOptions, CRESSET_NN_TWO, binary_cross_entropy(input, target, options))
CRESSET_NN_STATELESS(BCEWithLogitsLoss, BCEWithLogitsLossOptions, CRESSET_NN_TWO, binary_cross_entropy_with_logits(input, target, options))
CRESSET_NN_STATELESS(NLLLoss, NLLLossOptions, CRESSET_NN_TWO, nll_loss(input, target, options))
CRESSET_NN_STATELESS(CrossEntropyLoss, CrossEntropyLossOptions, CRESSET_NN_TWO, cross_entropy(input, target, options))
CRESSET_NN_STATELESS(KLDivLoss, KLDivLossOptions, CRESSET_NN_TWO, kl_div(input, target, options))
CRESSET_NN_STATELESS(SmoothL1Loss, SmoothL1LossOptions, CRESSET_NN_TWO, smooth_l1_loss(input, target, options))
CRESSET_NN_STATELESS(HuberLoss, HuberLossOptions, CRESSET_NN_TWO, huber_loss(input, target, options))
CRESSET_NN_STATELESS(HingeEmbeddingLoss, HingeEmbeddingLossOptions, CRESSET_NN_TWO, hinge_embedding_loss(input, target, options))
CRESSET_NN_STATELESS(MultiLabelSoftMarginLoss, MultiLabelSoftMarginLossOptions, CRESSET_NN_TWO,
                     multilabel_soft_margin_loss(input, target, options))
CRESSET_NN_STATELESS(MultiMarginLoss, MultiMarginLossOptions, CRESSET_NN_TWO, multi_margin_loss(input, target, options))
CRESSET_NN_STATELESS(MultiLabelMarginLoss, MultiLabelMarginLossOptions, CRESSET_NN_TWO, multilabel_margin_loss(input, target, options))
CRESSET_NN_STATELESS(PoissonNLLLoss, PoissonNLLLossOptions, CRESSET_NN_TWO, poisson_nll_loss(input, target, options))
CRESSET_NN_STATELESS(CosineEmbeddingLoss, CosineEmbeddingLossOptions, CRESSET_NN_THREE,
                     cosine_embedding_loss(input1, input2, target, options))
CRESSET_NN_STATELESS(MarginRankingLoss, MarginRankingLossOptions, CRESSET_NN_THREE, margin_ranking_loss(input1, input2, target, options))
CRESSET_NN_STATELESS(TripletMarginLoss, TripletMarginLossOptions, CRESSET_NN_THREE, triplet_margin_loss(input1, input2, target, options))
CRESSET_NN_STATELESS(TripletMarginWithDistanceLoss, TripletMarginWithDistanceLossOptions, CRESSET_NN_THREE,
                     triplet_margin_with_distance_loss(input1, input2, target, options))
CRESSET_NN_STATELESS(CTCLoss, CTCLossOptions,
                     (const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths),
                     ctc_loss(log_probs, targets, input_lengths, target_lengths, options))
#undef CRESSET_NN_ONE
#undef CRESSET_NN_TWO
#undef CRESSET_NN_THREE
#undef CRESSET_NN_STATELESS

/// Takes any arguments of construction and gives back its input.
class IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override { detail::print_without_options(stream, "Identity"); }
  Tensor forward(const Tensor& input) { return input; }
};
CRESSET_MODULE(Identity);

class FlattenImpl : public detail::Stateless<FlattenImpl, FlattenOptions> {
 public:
  using detail::Stateless<FlattenImpl, FlattenOptions>::Stateless;
  CRESSET_NN_PRINT(Flatten)
  Tensor forward(const Tensor& input) { return input.flatten(options.start_dim(), options.end_dim()); }
};
CRESSET_MODULE(Flatten);

class UnflattenImpl : public detail::Stateless<UnflattenImpl, UnflattenOptions> {
 public:
  using detail::Stateless<UnflattenImpl, UnflattenOptions>::Stateless;
  CRESSET_NN_PRINT(Unflatten)
  Tensor forward(const Tensor& input) {
    CRESSET_CHECK_NOT_IMPLEMENTED(options.namedshape().empty(),
                                  "Unflatten: dimensions with names are not supported. Give the dimension's number.");
    return input.unflatten(options.dim(), options.sizes());
  }
};
CRESSET_MODULE(Unflatten);

class UpsampleImpl : public detail::Stateless<UpsampleImpl, UpsampleOptions> {
 public:
  using detail::Stateless<UpsampleImpl, UpsampleOptions>::Stateless;
  CRESSET_NN_PRINT(Upsample)
  Tensor forward(const Tensor& input) {
    functional::InterpolateFuncOptions call;
    call.size(options.size()).scale_factor(options.scale_factor()).align_corners(options.align_corners());
    std::visit([&](const auto& mode) { call.mode(mode); }, options.mode());
    return functional::interpolate(input, call);
  }
};
CRESSET_MODULE(Upsample);
#undef CRESSET_NN_PRINT

}  // namespace cresset::nn
