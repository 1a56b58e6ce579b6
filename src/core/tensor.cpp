// Tensor members that need no operator, and the allocation of dense tensors.
#include <cresset/core/supported_types.h>
#include <cresset/core/tensor.h>

#include "core/traced_alias.h"

namespace cresset {

namespace detail {
std::atomic<void (*)(const TensorBase& known, const TensorBase& alias)> traced_alias{nullptr};
}

std::string to_string(const TensorBase& t) {
  if (!t.defined()) return "an undefined tensor";
  return str(dtype_name(t.scalar_type()), t.sizes(), t.is_cpu() ? std::string() : " on " + t.device().str());
}

std::string TensorBase::toString() const {
  if (!defined()) return "UndefinedType";
  return str(layout() == Layout::Sparse ? "Sparse" : "", DeviceTypeName(device().type(), false), scalar_type(), "Type");
}

void TensorBase::raise_dim(int64_t d) const {
  maybe_wrap_dim(d, dim(), false);
  __builtin_unreachable();
}

void TensorBase::raise_type(ScalarType t) const {
  CRESSET_CHECK(defined(), "data_ptr: a defined tensor was required.");
  CRESSET_THROW(Error, "expected scalar type ", t, " but found ", scalar_type());
}

MemoryFormat TensorBase::suggest_memory_format() const {
  if (is_channels_last_strides_2d(sizes(), strides())) return MemoryFormat::ChannelsLast;
  return is_channels_last_strides_3d(sizes(), strides()) ? MemoryFormat::ChannelsLast3d : MemoryFormat::Contiguous;
}

int64_t maybe_wrap_dim(int64_t d, int64_t ndim, bool wrap_scalar) {
  int64_t n = ndim;
  if (n == 0) {
    CRESSET_CHECK_INDEX(wrap_scalar, "Dimension specified as ", d, " but tensor has no dimensions");
    n = 1;
  }
  CRESSET_CHECK_INDEX(d >= -n && d < n, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1, "], but got ", d, ")");
  return d < 0 ? d + n : d;
}

namespace detail {

void check_sizes_nonnegative(IntArrayRef sizes) {
  for (int64_t s : sizes) CRESSET_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
}

std::size_t compute_storage_nbytes(IntArrayRef sizes, IntArrayRef strides, std::size_t itemsize, int64_t offset) {
  std::size_t last = static_cast<std::size_t>(offset), bytes = 0;
  bool overflow = false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    std::size_t span;
    overflow |= __builtin_mul_overflow(static_cast<std::size_t>(sizes[d] - 1), static_cast<std::size_t>(strides[d]), &span);
    overflow |= __builtin_add_overflow(last, span, &last);
  }
  overflow |= __builtin_add_overflow(last, std::size_t{1}, &last);
  overflow |= __builtin_mul_overflow(last, itemsize, &bytes);
  CRESSET_CHECK(!overflow && bytes < std::size_t{1} << 62, "Storage size calculation overflowed with sizes=", sizes);
  return bytes;
}

namespace {
Tensor make_cpu(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, std::size_t nbytes) {
  Storage storage(make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), nbytes));
  auto impl = make_intrusive<TensorImpl>(storage, key_set_for_device(kCPU), dtype, sizes, strides, 0);
  if (CRESSET_UNLIKELY(InferenceMode::is_enabled())) {
    impl->set_inference(true);
    impl->remove_autograd_key();
  }
  return Tensor(std::move(impl));
}
}  // namespace

// The path of nearly every result: one pass over the sizes, and the storage is moved, not shared, into the tensor.
Tensor empty_cpu(IntArrayRef sizes, ScalarType dtype) {
  int64_t bytes = static_cast<int64_t>(element_size(dtype));
  bool overflow = false;
  for (int64_t s : sizes) {
    if (CRESSET_UNLIKELY(s < 0)) check_sizes_nonnegative(sizes);
    overflow |= __builtin_mul_overflow(bytes, s, &bytes);
  }
  check_supported_type(dtype);
  CRESSET_CHECK(!overflow && bytes < int64_t{1} << 62, "Storage size calculation overflowed with sizes=", sizes);
  auto impl =
      make_intrusive<TensorImpl>(Storage(make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), static_cast<std::size_t>(bytes))),
                                 key_set_for_device(kCPU), dtype);
  impl->set_sizes_contiguous(sizes);
  return Tensor(std::move(impl));
}

Tensor empty_strided_cpu(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype) {
  check_supported_type(dtype);
  check_sizes_nonnegative(sizes);
  return make_cpu(sizes, strides, dtype, compute_storage_nbytes(sizes, strides, element_size(dtype)));
}

Tensor empty_meta(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype) {
  check_sizes_nonnegative(sizes);
  const std::size_t nbytes = compute_storage_nbytes(sizes, strides, element_size(dtype));
  Storage storage(Storage::use_byte_size_t(), nbytes, DataPtr(nullptr, kMeta), nullptr, true);
  auto impl = make_intrusive<TensorImpl>(std::move(storage), key_set_for_device(kMeta), dtype);
  impl->set_sizes_and_strides(sizes, strides);
  return Tensor(std::move(impl));
}

Tensor empty_strided_generic(IntArrayRef sizes, IntArrayRef strides, Allocator* allocator, DispatchKeySet ks, ScalarType dtype) {
  check_sizes_nonnegative(sizes);
  const std::size_t nbytes = compute_storage_nbytes(sizes, strides, element_size(dtype));
  const auto type = static_cast<DeviceType>(ks.highestBackendIndex());
  Storage storage(
      make_storage_impl(StorageImpl::use_byte_size_t(), static_cast<int64_t>(nbytes), DataPtr(), allocator, true, Device(type)));
  auto impl = make_intrusive<TensorImpl>(std::move(storage), ks, dtype);
  impl->set_sizes_and_strides(sizes, strides);
  return Tensor(std::move(impl));
}

Tensor empty_generic(IntArrayRef sizes, Allocator* allocator, DispatchKeySet ks, ScalarType dtype, std::optional<MemoryFormat> format) {
  return empty_strided_generic(sizes, strides_for(sizes, format.value_or(MemoryFormat::Contiguous)), allocator, ks, dtype);
}

Tensor alias_with_sizes_and_strides(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  TensorImpl* from = self.unsafeGetTensorImpl();
  if (CRESSET_UNLIKELY(!from->has_storage()) && from->key_set().has(DispatchKey::Python) &&
      impl::tls_is_dispatch_key_excluded(DispatchKey::Python)) {
    // A wrapper class that looks below itself: its views are geometry, as it is.
    auto made = from->shallow_copy_and_detach(true);
    made->set_sizes_and_strides(sizes, strides, offset);
    return Tensor(std::move(made));
  }
  const Storage& storage = from->storage();
  if (from->device_type() != kMeta) {
    const std::size_t needed = compute_storage_nbytes(sizes, strides, from->itemsize(), offset);
    CRESSET_CHECK(needed <= storage.nbytes(), "setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", offset,
                  ", and itemsize ", from->itemsize(), " requiring a storage size of ", needed, " are out of bounds for storage of size ",
                  storage.nbytes(),
                  storage.nbytes() == 0 && from->numel() > 0
                      ? ". The tensor has no memory of its own: a device that keeps elements in Python needs a kernel for this view, too "
                        "(library.impl)."
                      : "");
  }
  auto impl = make_intrusive<TensorImpl>(storage, from->key_set(), from->dtype(), sizes, strides, offset);
  if (CRESSET_UNLIKELY(from->is_inference()))
    impl->set_inference(true);
  else
    impl->share_version_with(*from);
  if (CRESSET_UNLIKELY(from->backend_meta() != nullptr)) impl->set_backend_meta(from->backend_meta_ptr());
  return Tensor(std::move(impl));
}

}  // namespace detail
}  // namespace cresset
