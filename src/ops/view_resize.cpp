// resize_ and set_: a tensor gets other sizes, and with them more memory, or another storage.
#include <cresset/core/supported_types.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_view.h"
#include "ops/shared/fresh_memory.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

namespace {
// Device memory grows by a new block: the backend needs nothing but its allocator and a copy within the device.
void grow_device_storage(const Storage& storage, DispatchKeySet keys, std::size_t needed) {
  CRESSET_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const int64_t size = static_cast<int64_t>(needed), old_size = static_cast<int64_t>(storage.nbytes()), unit = 1;
  Tensor grown = cresset::empty({size}, TensorOptions(kByte).device(storage.device()));
  if (old_size > 0)
    grown.narrow(0, 0, old_size)
        .copy_(Tensor(make_intrusive<TensorImpl>(storage, keys, kByte, IntArrayRef(old_size), IntArrayRef(unit), 0)));
  storage.set_data_ptr(grown.storage().set_data_ptr(DataPtr(nullptr, storage.device())));
  storage.set_nbytes(needed);
}

void grow(const Tensor& self, std::size_t needed) {
  const std::size_t before = self.storage().nbytes();
  self.storage().unsafeGetStorageImpl()->resize_bytes(needed);
  if (CRESSET_LIKELY(!fresh_memory_is_marked.load(std::memory_order_relaxed))) return;
  const auto size = static_cast<int64_t>(self.itemsize()), first = (static_cast<int64_t>(before) + size - 1) / size;
  const DimVector added{static_cast<int64_t>(needed) / size - first};
  mark_fresh_memory(Tensor(make_intrusive<TensorImpl>(self.storage(), self.key_set(), self.dtype(), added, DimVector{1}, first)));
}
}  // namespace

Tensor& resize_inplace(Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  int64_t numel = 1;
  for (int64_t s : size) {
    CRESSET_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", size);
    CRESSET_CHECK(!__builtin_mul_overflow(numel, s, &numel), "numel: integer multiplication overflow");
  }
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  CRESSET_CHECK(format != MemoryFormat::Preserve, "resize_: Contiguous, ChannelsLast or ChannelsLast3d was required; got Preserve.");
  if (self.sizes() == size && !memory_format) return self;
  const DimVector strides = strides_for(size, format);
  const std::size_t needed = detail::compute_storage_nbytes(size, strides, self.itemsize(), self.storage_offset());
  if (needed > self.storage().nbytes()) {
    if (self.is_meta())
      self.storage().set_nbytes(needed);
    else if (self.is_cpu())
      grow(self, needed);
    else
      grow_device_storage(self.storage(), self.key_set(), needed);
  }
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, strides);
  return self;
}

Tensor& resize_as_inplace(Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  if (memory_format == MemoryFormat::Preserve) memory_format = the_template.suggest_memory_format();
  return cresset::resize_(self, the_template.sizes(), memory_format);
}

Tensor& set_to_tensor(Tensor& self, const Tensor& source) {
  CRESSET_CHECK(self.scalar_type() == source.scalar_type(), "Could not set tensor of type ", source.scalar_type(), " to a tensor of type ",
                self.scalar_type());
  CRESSET_CHECK(self.device() == source.device(), "set_: a source on ", self.device(), " was required; got ", source.device(), ".");
  if (self.is_same(source)) return self;
  TensorImpl* impl = self.unsafeGetTensorImpl();
  // Wrappers without memory, and their views, have nothing else to share.
  if (self.has_storage() || source.has_storage()) impl->set_storage_keep_dtype(source.storage());
  impl->set_sizes_and_strides(source.sizes(), source.strides(), source.storage_offset());
  return self;
}

Tensor& set_to_tensor_offset(Tensor& self, const Tensor& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride) {
  const DimVector strides = stride.empty() ? contiguous_strides(size) : DimVector(stride);
  return self.set_(source.as_strided(size, strides, storage_offset));
}

Tensor& set_to_empty(Tensor& self) {
  const Tensor fresh = cresset::empty({0}, self.options());
  TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(fresh.storage());
  impl->set_sizes_and_strides({0}, {1}, 0);
  return self;
}

Tensor resized_copy(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  Tensor copy = self.clone();
  return copy.resize_(size, memory_format);
}
Tensor resized_as_copy(const Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  Tensor copy = self.clone();
  return copy.resize_as_(the_template, memory_format);
}

}  // namespace cresset::ops
