// Folding in frozen graphs under PyTorch's names. A header of its own: programs that fold by rules of their own give their functions these
// names, and a call would find both.
#pragma once

#include <memory>

#include <cresset/ir/ir.h>

namespace cresset::jit {

// What follows a convolution or a linear layer with constant weights goes into them (src/ir/passes/fold_frozen.cpp says where).
CRESSET_API bool FoldFrozenConvBatchnorm(std::shared_ptr<Graph>& graph);
CRESSET_API bool FoldFrozenConvAddOrSub(std::shared_ptr<Graph>& graph);
CRESSET_API bool FoldFrozenConvMulOrDiv(std::shared_ptr<Graph>& graph);
CRESSET_API bool FoldFrozenLinearBatchnorm(std::shared_ptr<Graph>& graph);
/// All of these until nothing is left to fold, unless numbers must stay as they are, and what tidies the graph.
CRESSET_API void OptimizeFrozenGraph(std::shared_ptr<Graph>& graph, bool optimize_numerics = true);

/// Is an input of the node other than the first no constant?
CRESSET_API bool nonConstantParameters(Node* n);

}  // namespace cresset::jit
