// Tensors in pinned host memory: the option pin_memory=True of new tensors, and pin_memory().
#include <cresset/ops/pinned_memory.h>

#include <cresset/core/accelerator_hooks.h>
#include <cresset/ops/functions_copy.h>

namespace cresset {
namespace {

Tensor empty_pinned(IntArrayRef sizes, IntArrayRef strides, Allocator* allocator, ScalarType dtype) {
  return detail::empty_strided_generic(sizes, strides, allocator, key_set_for_device(kCPU), dtype);
}

}  // namespace

Tensor pin_memory(const Tensor& self, std::optional<Device> device) {
  CRESSET_CHECK(!device || !device->is_cpu(), "CPU device type not an accelerator.");
  const std::optional<DeviceType> kind = device ? std::optional(device->type()) : getAccelerator();
  CRESSET_CHECK(kind, "Cannot access accelerator device when none is available.");
  CRESSET_CHECK(self.is_cpu() && self.layout() == kStrided, "cannot pin '", self.toString(), "' only dense CPU tensors can be pinned");
  if (is_pinned_ptr(self.data_ptr())) return self;
  const DimVector strides = self.is_non_overlapping_and_dense() ? DimVector(self.strides()) : contiguous_strides(self.sizes());
  return empty_pinned(self.sizes(), strides, pinned_memory_allocator(*kind), self.scalar_type()).copy_(self);
}

Tensor Tensor::pin_memory(std::optional<Device> device) const { return cresset::pin_memory(*this, device); }

namespace detail {

Tensor empty_host(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, std::optional<bool> pin_memory) {
  if (!pin_memory.value_or(false)) return empty_strided_cpu(sizes, strides, dtype);
  const std::optional<DeviceType> kind = getAccelerator();
  CRESSET_CHECK(kind, "pin_memory=True requires an accelerator backend; no pinned memory allocator is available on this system.");
  return empty_pinned(sizes, strides, pinned_memory_allocator(*kind), dtype);
}

Tensor empty_host(const TensorSpec& spec, std::optional<bool> pin_memory) {
  if (!pin_memory.value_or(false) && !spec.strides) return empty_cpu(spec.sizes, spec.dtype);
  return empty_host(spec.sizes, spec.strides ? *spec.strides : contiguous_strides(spec.sizes), spec.dtype, pin_memory);
}

}  // namespace detail
}  // namespace cresset
