// New sparse tensors. They are written in Python, so that a program without the package has none.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// A tensor of the sizes that keeps no element, where the layout is a sparse one, else an undefined tensor.
CRESSET_API Tensor new_sparse(IntArrayRef size, ScalarType dtype, std::optional<Layout> layout, std::optional<Device> device);

}  // namespace cresset::ops
