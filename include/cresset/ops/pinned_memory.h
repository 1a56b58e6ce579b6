// Host memory that an accelerator reads directly.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset {

/// A copy of a dense CPU tensor in pinned memory, or the tensor when it lies there already. Without a device the accelerator of this
/// process says whose memory it is. Raises when there is none or when it has no such memory.
CRESSET_API Tensor pin_memory(const Tensor& self, std::optional<Device> device = std::nullopt);

namespace detail {
/// A new CPU tensor, in the pinned memory of the accelerator when `pin_memory` is true.
CRESSET_API Tensor empty_host(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, std::optional<bool> pin_memory);
CRESSET_API Tensor empty_host(const TensorSpec& spec, std::optional<bool> pin_memory);
}  // namespace detail

}  // namespace cresset
