// Tensors to and from other libraries without a copy, by DLPack (https://dmlc.github.io/dlpack/latest/c_api.html).
#pragma once

#include <cstdint>
#include <functional>

#include <cresset/base/dlpack_abi.h>
#include <cresset/core/tensor.h>

namespace cresset {

/// Does the tensor lie where DLPack can point? Meta tensors and opaque handles of devices do not.
CRESSET_API bool has_dlpack_device(const Tensor& t);
/// Where it lies, as DLPack numbers devices: what a backend says of its memory, kDLExtDev where it says nothing.
CRESSET_API DLDevice dlpack_device(Device device);
/// RuntimeError (Error) for devices that are not here.
CRESSET_API Device device_of_dlpack(DLDevice device);
CRESSET_API DLDataType dlpack_data_type(ScalarType type);
/// Error for types and vectors of elements (lanes) that there are none of.
CRESSET_API ScalarType scalar_type_of_dlpack(DLDataType type);

/// The memory of a tensor, which lives until the consumer calls the deleter. Its storage cannot be resized from now on. BufferError where
/// the tensor requires gradients or has no memory that can be pointed at.
CRESSET_API DLManagedTensor* to_dlpack(const Tensor& t);
/// The same in the form of DLPack 1; `flags` of DLPACK_FLAG_BITMASK_*.
CRESSET_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t, uint64_t flags = 0);

/// A tensor on memory that another library owns; it calls the deleter when the last tensor on it goes. Error for element types and devices
/// that are not here and for another major version, ValueError for negative strides; what was given still belongs to the caller then.
CRESSET_API Tensor from_dlpack(DLManagedTensor* source);
CRESSET_API Tensor from_dlpack(DLManagedTensorVersioned* source);
/// The same with a deleter in place of the source's own.
CRESSET_API Tensor from_dlpack(DLManagedTensor* source, std::function<void(void*)> deleter);
CRESSET_API Tensor from_dlpack(DLManagedTensorVersioned* source, std::function<void(void*)> deleter);

}  // namespace cresset
