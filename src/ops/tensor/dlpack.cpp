#include <cresset/ops/dlpack.h>

#include <memory>

#include <cresset/core/backend.h>
#include <cresset/core/dtype_codes.h>

namespace cresset {

// A backend says which type its memory has, and the id is the index. Others are extension devices; their id is the index, with the number
// of the slot behind PrivateUse1's above 8 bits.
bool has_dlpack_device(const Tensor& t) {
  if (!t.has_storage() || t.is_meta()) return false;
  const cresset_backend* table = backend_table(t.device().type());
  return !table || !(table->flags & CRESSET_OPAQUE_MEMORY);  // a handle is not an address
}

DLDevice dlpack_device(Device d) {
  if (d.is_cpu()) return {kDLCPU, 0};
  if (const cresset_backend* table = backend_table(d.type()); table && table->dlpack_type)
    return {static_cast<DLDeviceType>(table->dlpack_type), d.index()};
  return {kDLExtDev, (static_cast<int32_t>(d.type()) - static_cast<int32_t>(kPrivateUse1)) << 8 | d.index()};
}

Device device_of_dlpack(DLDevice d) {
  const int32_t type = d.device_type, id = d.device_id;
  if (type == kDLCPU) return Device(kCPU);
  for (const DeviceType t : registered_backends())
    if (backend_table(t)->dlpack_type == type && id >= 0 && id < device_count(t)) return Device(t, static_cast<DeviceIndex>(id));
  const int slot = static_cast<int>(kPrivateUse1) + (id >> 8);
  const bool known = type == kDLExtDev && id >= 0 && slot < kDeviceTypeCount && (id & 0xFF) < device_count(static_cast<DeviceType>(slot));
  CRESSET_CHECK(known, "from_dlpack: memory of device type ", type, " is not supported.");
  return Device(static_cast<DeviceType>(slot), static_cast<DeviceIndex>(id & 0xFF));
}

DLDataType dlpack_data_type(ScalarType t) {
  const auto [code, bits] = dlpack_type(t);
  return {code, bits, 1};
}

ScalarType scalar_type_of_dlpack(DLDataType t) {
  CRESSET_CHECK(t.lanes == 1, "ATen does not support lanes != 1");
  if (const auto type = dtype_from_dlpack(t.code, t.bits)) return *type;
  CRESSET_THROW(Error, "from_dlpack: unsupported element type with code ", static_cast<int>(t.code), " and ", static_cast<int>(t.bits),
                " bits.");
}

namespace {

// Owns the tensor that was given out, and its shape.
template <class Managed>
struct Export {
  Tensor tensor;
  DimVector shape, strides;
  Managed managed{};
};

template <class Managed>
Managed* given_out(const Tensor& t) {
  CRESSET_CHECK_AS(BufferError, !t.requires_grad(), "Can't export tensors that require gradient, use tensor.detach()");
  CRESSET_CHECK_AS(BufferError, t.layout() == kStrided, "Can't export tensors with layout other than torch.strided");
  CRESSET_CHECK_AS(BufferError, has_dlpack_device(t), "Cannot pack tensors on ", t.device());
  const DLDataType type = dlpack_data_type(t.scalar_type());
  t.storage().unsafeGetStorageImpl()->set_resizable(false);  // the memory stays where the consumer sees it
  auto e = std::make_unique<Export<Managed>>();
  e->tensor = t;
  e->shape = DimVector(t.sizes());
  e->strides = DimVector(t.strides());
  // Consumers want the strides of a size-1 dimension to be normal.
  for (std::size_t i = 0; i < e->shape.size(); ++i)
    if (e->shape[i] < 2) e->strides[i] = 1;
  e->managed.dl_tensor = {
      t.data_ptr(), dlpack_device(t.device()), static_cast<int32_t>(t.dim()), type, e->shape.data(), e->strides.data(), 0};
  e->managed.manager_ctx = e.get();
  e->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->manager_ctx); };
  return &e.release()->managed;
}

// Frees what was imported; kept beside the memory.
struct Import {
  void* source;
  std::function<void(void*)> deleter;
};

Tensor taken_in(const DLTensor& t, void* source, std::function<void(void*)> deleter) {
  const Device device = device_of_dlpack(t.device);
  const ScalarType type = scalar_type_of_dlpack(t.dtype);
  CRESSET_CHECK(t.ndim >= 0 && (t.ndim == 0 || t.shape), "from_dlpack: a shape of ", t.ndim, " dimensions was required.");
  const DimVector sizes(t.shape, t.shape + t.ndim);
  const DimVector strides = t.strides ? DimVector(t.strides, t.strides + t.ndim) : contiguous_strides(sizes);
  for (const int64_t s : sizes) CRESSET_CHECK_VALUE(s >= 0, "from_dlpack: negative sizes are not supported.");
  for (const int64_t s : strides) CRESSET_CHECK_VALUE(s >= 0, "from_dlpack: negative strides are not supported. Make a copy first.");
  const std::size_t bytes = cresset::detail::compute_storage_nbytes(sizes, strides, element_size(type));
  // What follows does not throw before the memory has its owner.
  auto import = std::make_unique<Import>(Import{source, std::move(deleter)});
  DataPtr pointer(
      static_cast<char*>(t.data) + t.byte_offset, import.release(),
      [](void* p) {
        const std::unique_ptr<Import> owned(static_cast<Import*>(p));
        if (owned->deleter) owned->deleter(owned->source);
      },
      device);
  Storage storage(Storage::use_byte_size_t(), bytes, std::move(pointer));
  return Tensor(make_intrusive<TensorImpl>(storage, key_set_for_device(device.type()), type, sizes, strides, 0));
}

template <class Managed>
std::function<void(void*)> own_deleter(Managed* source) {
  if (!source->deleter) return nullptr;
  return [](void* p) {
    auto* managed = static_cast<Managed*>(p);
    managed->deleter(managed);
  };
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& t) { return given_out<DLManagedTensor>(t); }

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t, uint64_t flags) {
  DLManagedTensorVersioned* managed = given_out<DLManagedTensorVersioned>(t);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = flags;
  return managed;
}

Tensor from_dlpack(DLManagedTensor* source) { return from_dlpack(source, own_deleter(source)); }
Tensor from_dlpack(DLManagedTensorVersioned* source) { return from_dlpack(source, own_deleter(source)); }

Tensor from_dlpack(DLManagedTensor* source, std::function<void(void*)> deleter) {
  return taken_in(source->dl_tensor, source, std::move(deleter));
}

Tensor from_dlpack(DLManagedTensorVersioned* source, std::function<void(void*)> deleter) {
  CRESSET_CHECK(source->version.major <= DLPACK_MAJOR_VERSION, "from_dlpack: version ", source->version.major, ".", source->version.minor,
                " of DLPack is newer than ", DLPACK_MAJOR_VERSION, ".", DLPACK_MINOR_VERSION, ".");
  return taken_in(source->dl_tensor, source, std::move(deleter));
}

}  // namespace cresset
