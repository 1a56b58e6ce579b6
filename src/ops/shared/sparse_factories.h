// New sparse tensors. They are written in Python, so that a program without the package has none.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// A tensor of the sizes that keeps no element, by what the Python package registered; undefined where it is not loaded.
CRESSET_API Tensor make_sparse(IntArrayRef size, ScalarType dtype, Layout layout, std::optional<Device> device);

/// The same where the layout is a sparse one, else an undefined tensor.
inline Tensor new_sparse(IntArrayRef size, ScalarType dtype, std::optional<Layout> layout, std::optional<Device> device) {
  return CRESSET_LIKELY(!layout || *layout == kStrided) ? Tensor() : make_sparse(size, dtype, *layout, device);
}

}  // namespace cresset::ops
