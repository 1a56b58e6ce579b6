// torch/csrc/jit/passes/frozen_*.h: folding in frozen graphs.
#pragma once

#include <cresset_compat/jit.h>

#include <cresset/ir/frozen_functions.h>

namespace torch::jit {
using cresset::jit::FoldFrozenConvAddOrSub;
using cresset::jit::FoldFrozenConvBatchnorm;
using cresset::jit::FoldFrozenConvMulOrDiv;
using cresset::jit::FoldFrozenLinearBatchnorm;
using cresset::jit::nonConstantParameters;
using cresset::jit::OptimizeFrozenGraph;
}  // namespace torch::jit
