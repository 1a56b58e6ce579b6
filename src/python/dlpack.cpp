// DLPack, both ways. The structures are DLPack's binary interface, version 0 ("dltensor" capsules).
#include "python/bind.h"
#include "python/tensor_new.h"

#include <cresset/core/backend.h>
#include <cresset/core/dtype_codes.h>
#include <cresset/core/event.h>
#include <cresset/ops/functions_copy.h>

namespace cresset::python {

namespace {

struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
constexpr int32_t kDLCPU = 1, kDLExtDev = 12;

// A backend says which type its memory has, and the id is the index. Others are extension devices; their id is the index, with the number
// of the slot behind PrivateUse1's above 8 bits.
bool has_dlpack_device(const Tensor& t) {
  if (!t.has_storage() || t.is_meta()) return false;
  const cresset_backend* table = backend_table(t.device().type());
  return !table || !(table->flags & CRESSET_OPAQUE_MEMORY);  // a handle is not an address
}
DLDevice dlpack_device(Device d) {
  if (d.is_cpu()) return {kDLCPU, 0};
  if (const cresset_backend* t = backend_table(d.type()); t && t->dlpack_type) return {t->dlpack_type, d.index()};
  return {kDLExtDev, (static_cast<int32_t>(d.type()) - static_cast<int32_t>(kPrivateUse1)) << 8 | d.index()};
}
Device device_of_dlpack(DLDevice d) {
  if (d.type == kDLCPU) return Device(kCPU);
  for (const DeviceType t : registered_backends())
    if (backend_table(t)->dlpack_type == d.type && d.id >= 0 && d.id < device_count(t)) return Device(t, static_cast<DeviceIndex>(d.id));
  const int slot = static_cast<int>(kPrivateUse1) + (d.id >> 8);
  const bool known =
      d.type == kDLExtDev && d.id >= 0 && slot < kDeviceTypeCount && (d.id & 0xFF) < device_count(static_cast<DeviceType>(slot));
  CRESSET_CHECK(known, "from_dlpack: memory of device type ", static_cast<int>(d.type), " is not supported.");
  return Device(static_cast<DeviceType>(slot), static_cast<DeviceIndex>(d.id & 0xFF));
}

DLDataType type_to_dlpack(ScalarType t) {
  const auto [code, bits] = dlpack_type(t);
  return {code, bits, 1};
}

ScalarType type_from_dlpack(DLDataType t) {
  CRESSET_CHECK(t.lanes == 1, "ATen does not support lanes != 1");
  if (const auto type = dtype_from_dlpack(t.code, t.bits)) return *type;
  CRESSET_THROW(Error, "from_dlpack: unsupported element type with code ", static_cast<int>(t.code), " and ", static_cast<int>(t.bits),
                " bits.");
}

// Owns the exported tensor and its shape.
struct Export {
  Tensor tensor;
  DimVector shape, strides;
  DLManagedTensor managed;
};

void capsule_destructor(PyObject* capsule) {
  // A consumer renames the capsule and becomes responsible for the deleter.
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (m && m->deleter) m->deleter(m);
}

PyObject* to_dlpack(const Tensor& t) {
  if (t.requires_grad()) {
    PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    return nullptr;
  }
  if (!has_dlpack_device(t)) {
    PyErr_SetString(PyExc_BufferError, ("Can't export a tensor on device '" + t.device().str() + "' through DLPack").c_str());
    return nullptr;
  }
  t.storage().unsafeGetStorageImpl()->set_resizable(false);  // the memory stays where the consumer sees it
  auto e = std::make_unique<Export>();
  e->tensor = t;
  e->shape = DimVector(t.sizes());
  e->strides = DimVector(t.strides());
  // Consumers want the strides of a size-1 dimension to be normal.
  for (std::size_t i = 0; i < e->shape.size(); ++i)
    if (e->shape[i] < 2) e->strides[i] = 1;
  e->managed.tensor = {t.data_ptr(),
                       dlpack_device(t.device()),
                       static_cast<int32_t>(t.dim()),
                       type_to_dlpack(t.scalar_type()),
                       e->shape.data(),
                       e->strides.data(),
                       0};
  e->managed.manager = e.get();
  e->managed.deleter = [](DLManagedTensor* m) { delete static_cast<Export*>(m->manager); };
  Export* raw = e.release();
  PyObject* capsule = PyCapsule_New(&raw->managed, "dltensor", &capsule_destructor);
  if (!capsule) delete raw;
  return capsule;
}

// Work that the consumer puts into its stream follows the work on the tensor: None means the default stream, another number the driver's
// queue, and -1 that it waits itself.
void let_consumer_follow(const Tensor& t, PyObject* stream) {
  if (t.is_cpu()) {
    if (stream == Py_None || PyLong_AsLong(stream) == -1) return;
    PyErr_SetString(PyExc_AssertionError, "stream should be None on cpu.");
    throw ErrorAlreadySet();
  }
  const auto handle = stream == Py_None ? 0 : PyLong_AsLongLong(stream);
  if (PyErr_Occurred()) throw ErrorAlreadySet();
  if (handle == -1) return;
  without_lock(true, [&] {
    const auto* guard = impl::getDeviceGuardImpl(t.device().type());
    const Stream mine = guard->getStream(t.device());
    const Stream theirs = stream == Py_None ? guard->getDefaultStream(t.device())
                                            : cresset::detail::stream_of_native(t.device(), reinterpret_cast<void*>(handle));
    if (mine == theirs) return;
    Event event(t.device().type());
    event.record(mine);
    event.block(theirs);
  });
}

PyObject* py_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream, &version, &device, &copy))
    return nullptr;
  CRESSET_CHECK_TYPE(stream == Py_None || PyLong_Check(stream), "stream must be ``int`` or ``none``");
  const Tensor& t = unwrap(self);
  if (t.is_cpu() || has_dlpack_device(t)) let_consumer_follow(t, stream);
  return to_dlpack(copy == Py_True ? without_lock(may_wait(t), [&] { return cresset::clone(t); }) : t);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_dlpack_device(PyObject* self, PyObject*) {
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  CRESSET_CHECK_VALUE(has_dlpack_device(t), "Unknown device type ", t.device(), " for Dlpack");
  const DLDevice device = dlpack_device(t.device());
  return Py_BuildValue("(ii)", static_cast<int>(device.type), static_cast<int>(device.id));
  CRESSET_PY_CATCH(nullptr)
}

Object from_dlpack(PyObject* source) {
  const bool exports = !PyCapsule_CheckExact(source) && PyObject_HasAttrString(source, "__dlpack__");
  const Ref capsule = exports ? checked(PyObject_CallMethod(source, "__dlpack__", nullptr)) : Ref::borrow(source);
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  if (!m) {
    PyErr_Clear();
    CRESSET_THROW(
        Error,
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already "
        "constructed a tensor from it once.");
  }
  const Device device = device_of_dlpack(m->tensor.device);
  const ScalarType type = type_from_dlpack(m->tensor.dtype);
  const DimVector sizes(m->tensor.shape, m->tensor.shape + m->tensor.ndim);
  const DimVector strides =
      m->tensor.strides ? DimVector(m->tensor.strides, m->tensor.strides + m->tensor.ndim) : contiguous_strides(sizes);
  for (int64_t s : strides) CRESSET_CHECK_VALUE(s >= 0, "from_dlpack: negative strides are not supported. Make a copy first.");
  DataPtr pointer(
      static_cast<char*>(m->tensor.data) + m->tensor.byte_offset, m,
      [](void* p) {
        auto* managed = static_cast<DLManagedTensor*>(p);
        if (!managed->deleter || !Py_IsInitialized()) return;
        GilAcquire gil;  // deleters of Python libraries drop references
        managed->deleter(managed);
      },
      device);
  Storage storage(Storage::use_byte_size_t(), cresset::detail::compute_storage_nbytes(sizes, strides, element_size(type)),
                  std::move(pointer));
  checked(PyCapsule_SetName(capsule.get(), "used_dltensor"));
  return Object(wrap(Tensor(make_intrusive<TensorImpl>(storage, key_set_for_device(device.type()), type, sizes, strides, 0))));
}

}  // namespace

PyMethodDef tensor_dlpack_methods[] = {{"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_dlpack)),
                                        METH_VARARGS | METH_KEYWORDS, "A DLPack capsule that shares memory."},
                                       {"__dlpack_device__", py_dlpack_device, METH_NOARGS, "(device type, index) as DLPack numbers them."},
                                       {}};

void init_dlpack(PyObject* module) {
  def(
      module, "from_dlpack", [](PyObject* o) { return from_dlpack(o); },
      "from_dlpack(x)\n\nA tensor that shares the memory of an object with __dlpack__.");
  def(module, "to_dlpack", [](PyObject* o) {
    CRESSET_CHECK_TYPE(is_tensor(o), "to_dlpack: a Tensor was required; a ", type_name(Py_TYPE(o)), " was given.");
    return Object(to_dlpack(unwrap(o).detach()));  // the function, unlike __dlpack__, takes tensors that require gradients
  });
}

}  // namespace cresset::python
