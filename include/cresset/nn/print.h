// How modules write themselves: "torch::nn::Dropout(p=0.5, inplace=false)".
#pragma once

#include <iosfwd>

#include <cresset/nn/options.h>

namespace cresset::nn::detail {

CRESSET_API void print_without_options(std::ostream& stream, const char* name);
/// Modules whose options are not listed below show none of them.
template <class Options>
void print_options(std::ostream& stream, const char* name, const Options&) {
  print_without_options(stream, name);
}
#define CRESSET_NN_PRINTED(Options) CRESSET_API void print_options(std::ostream& stream, const char* name, const Options& options);
CRESSET_NN_PRINTED(FlattenOptions)
CRESSET_NN_PRINTED(UnflattenOptions)
CRESSET_NN_PRINTED(EmbeddingOptions)
CRESSET_NN_PRINTED(EmbeddingBagOptions)
CRESSET_NN_PRINTED(ConvOptions<1>)
CRESSET_NN_PRINTED(ConvOptions<2>)
CRESSET_NN_PRINTED(ConvOptions<3>)
CRESSET_NN_PRINTED(ConvTransposeOptions<1>)
CRESSET_NN_PRINTED(ConvTransposeOptions<2>)
CRESSET_NN_PRINTED(ConvTransposeOptions<3>)
CRESSET_NN_PRINTED(FoldOptions)
CRESSET_NN_PRINTED(UnfoldOptions)
CRESSET_NN_PRINTED(BatchNormOptions)
CRESSET_NN_PRINTED(InstanceNormOptions)
CRESSET_NN_PRINTED(LayerNormOptions)
CRESSET_NN_PRINTED(GroupNormOptions)
CRESSET_NN_PRINTED(LocalResponseNormOptions)
CRESSET_NN_PRINTED(DropoutOptions)
CRESSET_NN_PRINTED(ELUOptions)
CRESSET_NN_PRINTED(ReLUOptions)
CRESSET_NN_PRINTED(GLUOptions)
CRESSET_NN_PRINTED(HardshrinkOptions)
CRESSET_NN_PRINTED(HardtanhOptions)
CRESSET_NN_PRINTED(LeakyReLUOptions)
CRESSET_NN_PRINTED(RReLUOptions)
CRESSET_NN_PRINTED(SoftmaxOptions)
CRESSET_NN_PRINTED(PReLUOptions)
CRESSET_NN_PRINTED(SoftplusOptions)
CRESSET_NN_PRINTED(ThresholdOptions)
CRESSET_NN_PRINTED(PixelShuffleOptions)
CRESSET_NN_PRINTED(PixelUnshuffleOptions)
CRESSET_NN_PRINTED(UpsampleOptions)
CRESSET_NN_PRINTED(CosineSimilarityOptions)
CRESSET_NN_PRINTED(PairwiseDistanceOptions)
CRESSET_NN_PRINTED(HingeEmbeddingLossOptions)
CRESSET_NN_PRINTED(CosineEmbeddingLossOptions)
CRESSET_NN_PRINTED(TripletMarginLossOptions)
CRESSET_NN_PRINTED(TripletMarginWithDistanceLossOptions)
CRESSET_NN_PRINTED(RNNOptions)
CRESSET_NN_PRINTED(LSTMOptions)
CRESSET_NN_PRINTED(GRUOptions)
CRESSET_NN_PRINTED(RNNCellOptions)
CRESSET_NN_PRINTED(LSTMCellOptions)
CRESSET_NN_PRINTED(GRUCellOptions)
#define CRESSET_NN_DIMENSIONS(D)             \
  CRESSET_NN_PRINTED(AvgPoolOptions<D>)      \
  CRESSET_NN_PRINTED(MaxPoolOptions<D>)      \
  CRESSET_NN_PRINTED(LPPoolOptions<D>)       \
  CRESSET_NN_PRINTED(MaxUnpoolOptions<D>)    \
  CRESSET_NN_PRINTED(AdaptivePoolOptions<D>) \
  CRESSET_NN_PRINTED(PadOptions<D>)          \
  CRESSET_NN_PRINTED(ConstantPadOptions<D>)
CRESSET_NN_DIMENSIONS(1)
CRESSET_NN_DIMENSIONS(2)
CRESSET_NN_DIMENSIONS(3)
#undef CRESSET_NN_DIMENSIONS
#undef CRESSET_NN_PRINTED

}  // namespace cresset::nn::detail
