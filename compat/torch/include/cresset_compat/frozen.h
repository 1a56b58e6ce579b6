// torch/csrc/jit/passes/frozen_*.h, fold_*_bn.h: folding in frozen graphs.
#pragma once

#include <cresset_compat/jit.h>

#include <cresset/ir/frozen_functions.h>

namespace torch::jit {
using cresset::jit::computeUpdatedConvWeightAndBias;
using cresset::jit::computeUpdatedLinearWeightAndBias;
using cresset::jit::ConvBNParameters;
using cresset::jit::FoldFrozenConvAddOrSub;
using cresset::jit::FoldFrozenConvBatchnorm;
using cresset::jit::FoldFrozenConvMulOrDiv;
using cresset::jit::FoldFrozenLinearBatchnorm;
using cresset::jit::LinearBNParameters;
using cresset::jit::nonConstantParameters;
using cresset::jit::OptimizeFrozenGraph;
}  // namespace torch::jit
