// Out forms of rows with `out_strides = "contiguous"`: a fresh out tensor becomes contiguous, although the functional form keeps a memory
// format.
#pragma once

#include <cresset/core/tensor_spec.h>

#include "ops/shared/pointwise.h"

namespace cresset::ops {

/// Gives `out` the result's sizes before the kernel is bound to it. An out tensor that shares memory with an input is resized afterwards
/// anyway.
CRESSET_API void prepare_plain_out(const TensorSpec& spec, const Tensor& out, bool overlaps_input);
CRESSET_API void prepare_plain_out(const PointwiseOp& op, const PointwiseCall& call, const Tensor& out);

}  // namespace cresset::ops
