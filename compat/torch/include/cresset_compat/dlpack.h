// ATen/DLConvertor.h: tensors of other libraries, by DLPack.
#pragma once

#include <cresset_compat/aten.h>

#include <cresset/ops/dlpack.h>

namespace at {
inline ScalarType toScalarType(const DLDataType& type) { return cresset::scalar_type_of_dlpack(type); }
inline DLDataType getDLDataType(const Tensor& t) { return cresset::dlpack_data_type(t.scalar_type()); }
inline DLDevice torchDeviceToDLDevice(c10::Device device) { return cresset::dlpack_device(device); }
inline DLDevice getDLContext(const Tensor& t, const int64_t& /*device_id*/ = 0) { return cresset::dlpack_device(t.device()); }
inline c10::Device dlDeviceToTorchDevice(DLDeviceType type, c10::DeviceIndex index, void* /*data*/ = nullptr) {
  return cresset::device_of_dlpack({type, index});
}
inline DLManagedTensor* toDLPack(const Tensor& t) { return cresset::to_dlpack(t); }
inline DLManagedTensorVersioned* toDLPackVersioned(const Tensor& t) { return cresset::to_dlpack_versioned(t); }
inline Tensor fromDLPack(DLManagedTensor* source, std::function<void(void*)> deleter = {}) {
  return deleter ? cresset::from_dlpack(source, std::move(deleter)) : cresset::from_dlpack(source);
}
inline Tensor fromDLPackVersioned(DLManagedTensorVersioned* source, std::function<void(void*)> deleter = {}) {
  return deleter ? cresset::from_dlpack(source, std::move(deleter)) : cresset::from_dlpack(source);
}
}  // namespace at
