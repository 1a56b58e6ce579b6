// Operators that compute nothing and exist to be seen in __torch_dispatch__: questions for a tensor's sizes, strides, device and
// layout, checks of them and of values, and lift_fresh, which hands a tensor that was just made from Python data to the modes. C++ asks
// tensors themselves. They are not in the table of operators, as those of metadata.toml are: no derivative, no function, no method.
#include <cresset/core/device_allocator.h>
#include <cresset/core/device_guard.h>
#include <cresset/core/tensor_impl.h>
#include <cresset/dispatch/library.h>

namespace cresset {
namespace {

void assert_tensor_metadata(const Tensor& a, OptionalIntArrayRef size, OptionalIntArrayRef stride, std::optional<ScalarType> dtype,
                            std::optional<Device> device, std::optional<Layout> layout) {
  CRESSET_CHECK(!size || *size == a.sizes(), "Tensor sizes mismatch! Expected: ", *size, ", Got: ", a.sizes());
  CRESSET_CHECK(!stride || *stride == a.strides(), "Tensor strides mismatch! Expected: ", *stride, ", Got: ", a.strides());
  CRESSET_CHECK(!dtype || *dtype == a.scalar_type(), "Tensor dtype mismatch! Expected: ", *dtype, ", Got: ", a.scalar_type());
  CRESSET_CHECK(!device || *device == a.device(), "Tensor device mismatch! Expected: ", *device, ", Got: ", a.device());
  CRESSET_CHECK(!layout || *layout == a.layout(), "Tensor layout mismatch! Expected: ", *layout, ", Got: ", a.layout());
}

// Devices without streams have nothing to keep: no stream comes later than another. (A backend may register a kernel of its own.)
void record_stream(const Tensor& self, Stream s) {
  const Device device = self.device();
  CRESSET_CHECK_NOT_IMPLEMENTED(!device.is_cpu() && !device.is_meta(), "Could not run 'aten::record_stream' with arguments from the '",
                                device.is_cpu() ? "CPU" : "META", "' backend: it has no streams.");
  if (!self.has_storage()) return;
  impl::getDeviceGuardImpl(device.type())->recordDataPtrOnStream(self.storage().data_ptr(), s);
  if (DeviceAllocator* const allocator = find_device_allocator(device.type())) allocator->recordStream(self.storage().data_ptr(), s);
}

}  // namespace

CRESSET_LIBRARY_FRAGMENT(aten, m) {
  m.def("size(Tensor self) -> int[]", [](const Tensor& self) { return self.sizes().vec(); });
  m.def("size.int(Tensor self, int dim) -> int", [](const Tensor& self, int64_t dim) { return self.size(dim); });
  m.def("stride(Tensor self) -> int[]", [](const Tensor& self) { return self.strides().vec(); });
  m.def("stride.int(Tensor self, int dim) -> int", [](const Tensor& self, int64_t dim) { return self.stride(dim); });
  m.def("dim(Tensor self) -> int", [](const Tensor& self) { return self.dim(); });
  m.def("numel(Tensor self) -> int", [](const Tensor& self) { return self.numel(); });
  m.def("storage_offset(Tensor self) -> int", [](const Tensor& self) { return self.storage_offset(); });
  m.def("is_contiguous(Tensor self) -> bool", [](const Tensor& self) { return self.is_contiguous(); });
  m.def("is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
        [](const Tensor& self, MemoryFormat memory_format) { return self.is_contiguous(memory_format); });
  m.def("is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool");
  m.impl("is_strides_like_format", dispatch(DispatchKey::CompositeExplicitAutograd, [](const Tensor& self, MemoryFormat memory_format) {
           return self.is_contiguous(memory_format);
         }));
  m.impl("is_strides_like_format", dispatch(DispatchKey::Autograd, CppFunction::makeFallthrough()));
  m.def("is_non_overlapping_and_dense(Tensor self) -> bool",
        [](const Tensor& self) { return self.unsafeGetTensorImpl()->is_non_overlapping_and_dense(); });
  m.def("lift_fresh(Tensor(a) self) -> Tensor(a)");
  m.impl("lift_fresh", dispatch(DispatchKey::CompositeExplicitAutograd, [](const Tensor& self) { return self; }));
  m.impl("lift_fresh", dispatch(DispatchKey::Autograd, CppFunction::makeFallthrough()));
  m.def("record_stream(Tensor(a!) self, Stream s) -> ()");
  m.impl("record_stream", dispatch(DispatchKey::CompositeExplicitAutograd, record_stream));
  m.impl("record_stream", dispatch(DispatchKey::Autograd, CppFunction::makeFallthrough()));
  // Checks, with PyTorch's words. They have no results, so no derivatives.
  m.def("_assert_scalar(Scalar self, str assert_msg) -> ()");
  m.impl("_assert_scalar", dispatch(DispatchKey::CompositeExplicitAutograd,
                                    [](const Scalar& self, std::string_view message) { CRESSET_CHECK(self.to<bool>(), message); }));
  m.def(
      "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, "
      "Layout? layout=None) -> ()");
  m.impl("_assert_tensor_metadata", dispatch(DispatchKey::CompositeExplicitAutograd, assert_tensor_metadata));
  m.impl("_assert_tensor_metadata", dispatch(DispatchKey::Autograd, CppFunction::makeFallthrough()));
}

namespace {
void prim_device(const OperatorHandle&, Stack* stack) {
  const Device device = pop(*stack).toTensor().device();
  stack->emplace_back(device);
}
void prim_layout(const OperatorHandle&, Stack* stack) {
  const Layout layout = pop(*stack).toTensor().layout();
  stack->emplace_back(layout);
}
}  // namespace

CRESSET_LIBRARY(prim, m) {
  m.def("device(Tensor a) -> Device", CppFunction::makeFromBoxedFunction<&prim_device>());
  m.def("layout(Tensor a) -> Layout", CppFunction::makeFromBoxedFunction<&prim_layout>());
}

}  // namespace cresset
