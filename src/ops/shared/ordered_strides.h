// Strides of a new tensor whose dimensions lie in memory in the order of its operands' dimensions.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// Dense strides for sizes, or nothing when they are row-major; `strides` has one array for each operand (see order_dimensions).
std::optional<DimVector> ordered_strides(IntArrayRef sizes, const int64_t* const* strides, int num_operands);

}  // namespace cresset::ops
