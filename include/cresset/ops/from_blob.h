// Tensors on memory that somebody else owns.
#pragma once

#include <functional>

#include <cresset/core/tensor.h>

namespace cresset {

/// A tensor that shows `data` without copying: `sizes` elements of options.dtype() (float32 by default), row-major or with the
/// given strides in elements. The memory must outlive the tensor; `deleter`, when given, is called with `data` when the last
/// tensor on it goes. Raises for negative sizes and for devices other than the CPU.
CRESSET_API Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
CRESSET_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
CRESSET_API Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter, const TensorOptions& options = {});
CRESSET_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                             const TensorOptions& options = {});

}  // namespace cresset
