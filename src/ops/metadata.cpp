// Operators that compute nothing and exist to be seen in __torch_dispatch__: questions for a tensor's sizes, strides, device and
// layout, and lift_fresh, which hands a tensor that was just made from Python data to the modes. C++ asks tensors themselves.
// They are not in the table of operators, as those of metadata.toml are: no derivative, no function, no method.
#include <cresset/core/tensor_impl.h>
#include <cresset/dispatch/library.h>

namespace cresset {

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
