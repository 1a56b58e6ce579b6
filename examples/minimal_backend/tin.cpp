// A device called `tin` on PrivateUse1. It can allocate and copy; everything else runs on the CPU through the fallback.
//
// The "device memory" is host memory that only this file touches, so the example needs no hardware and still has every
// part a real backend starts with: an allocator, two empty operators, one copy operator, and the fallback.
#include <cresset/cresset.h>

#include <cstdlib>
#include <cstring>

namespace {

using cresset::Device;
using cresset::DeviceType;
using cresset::IntArrayRef;
using cresset::Layout;
using cresset::MemoryFormat;
using cresset::ScalarType;
using cresset::Tensor;

constexpr DeviceType kTin = DeviceType::PrivateUse1;

// Stands for the vendor's malloc and free.
struct TinAllocator final : cresset::Allocator {
  cresset::DataPtr allocate(std::size_t n) override {
    void* p = n ? std::malloc(n) : nullptr;
    CRESSET_CHECK_AS(OutOfMemoryError, p || n == 0, "tin: out of memory: you tried to allocate ", n, " bytes.");
    return {p, p, &std::free, Device(kTin, 0)};
  }
};
TinAllocator allocator;

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype, std::optional<Layout>, std::optional<Device>,
                     std::optional<bool>) {
  return cresset::detail::empty_strided_generic(size, stride, &allocator, cresset::key_set_for_device(kTin),
                                                dtype.value_or(cresset::get_default_dtype()));
}

Tensor empty(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout>, std::optional<Device>, std::optional<bool>,
             std::optional<MemoryFormat> format) {
  return cresset::detail::empty_generic(size, &allocator, cresset::key_set_for_device(kTin), dtype.value_or(cresset::get_default_dtype()),
                                        format);
}

// An alias of a tensor's memory that the CPU kernels can read: stands for the vendor's transfer functions.
Tensor host_view(const Tensor& t) {
  if (t.is_cpu()) return t;
  return cresset::from_blob(t.data_ptr(), t.sizes(), t.strides(), cresset::TensorOptions(t.scalar_type()));
}

// Copies between the host and the device, or within the device; sizes are equal.
Tensor copy_from(const Tensor& self, const Tensor& dst, bool) {
  host_view(dst).copy_(host_view(self));
  return dst;
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, PrivateUse1, m) {
  cresset::rename_privateuse1_backend("tin");
  cresset::SetAllocator(kTin, &allocator);
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
}
CRESSET_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(cresset::CppFunction::makeFromBoxedFunction<&cresset::cpu_fallback>()); }
