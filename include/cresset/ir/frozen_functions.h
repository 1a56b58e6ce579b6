// Folding in frozen graphs under PyTorch's names. A header of its own: programs that fold by rules of their own give their functions these
// names, and a call would find both.
#pragma once

#include <memory>
#include <tuple>

#include <cresset/ir/ir.h>

namespace cresset::jit {

// What follows a convolution or a linear layer with constant weights goes into them (src/ir/passes/fold_frozen.cpp says where).
CRESSET_API bool FoldFrozenConvBatchnorm(std::shared_ptr<Graph>& graph);
CRESSET_API bool FoldFrozenConvAddOrSub(std::shared_ptr<Graph>& graph);
CRESSET_API bool FoldFrozenConvMulOrDiv(std::shared_ptr<Graph>& graph);
CRESSET_API bool FoldFrozenLinearBatchnorm(std::shared_ptr<Graph>& graph);
/// All of these until nothing is left to fold, unless numbers must stay as they are, and what tidies the graph.
CRESSET_API void OptimizeFrozenGraph(std::shared_ptr<Graph>& graph, bool optimize_numerics = true);

/// A convolution and the batch norm behind it.
struct ConvBNParameters {
  Tensor conv_w, conv_b, bn_rm, bn_rv;
  double bn_eps = 0.0;
  Tensor bn_w, bn_b;
};
/// Weight and bias of the convolution that does both: w * s and (b - mean) * s + bn_b, where s = bn_w / sqrt(var + eps) for each channel of
/// the result.
CRESSET_API std::tuple<Tensor, Tensor> computeUpdatedConvWeightAndBias(const ConvBNParameters& p);

/// A linear layer and the batch norm behind it.
struct LinearBNParameters {
  Tensor linear_w, linear_b, bn_rm, bn_rv;
  double bn_eps = 0.0;
  Tensor bn_w, bn_b;
};
/// The same for the layer that does both; s is one number for each row of w.
CRESSET_API std::tuple<Tensor, Tensor> computeUpdatedLinearWeightAndBias(const LinearBNParameters& p);
/// Is an input of the node other than the first no constant?
CRESSET_API bool nonConstantParameters(Node* n);

}  // namespace cresset::jit
