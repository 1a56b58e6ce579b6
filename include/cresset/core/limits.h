// Limits of tensors.
#pragma once

namespace cresset {

/// Tensors have at most so many dimensions (TensorImpl refuses more), so that loops over them keep their counters on the stack.
inline constexpr int kMaxDims = 64;

}  // namespace cresset
