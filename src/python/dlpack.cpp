// DLPack's capsules, both ways: those of version 0 ("dltensor") and of version 1, which say it.
#include "python/bind.h"
#include "python/tensor_new.h"

#include <cresset/core/event.h>
#include <cresset/ops/dlpack.h>
#include <cresset/ops/functions_copy.h>

namespace cresset::python {

namespace {

constexpr const char *kDLPack = "dltensor", *kDLPackVersioned = "dltensor_versioned", *kDLPackUsed = "used_dltensor",
                     *kDLPackVersionedUsed = "used_dltensor_versioned";

// A consumer renames the capsule and becomes responsible for the deleter.
template <class Managed>
void capsule_destructor(PyObject* capsule) {
  const char* name = std::is_same_v<Managed, DLManagedTensor> ? kDLPack : kDLPackVersioned;
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (m && m->deleter) m->deleter(m);
}

template <class Managed>
PyObject* capsule_of(Managed* m, const char* name) {
  PyObject* capsule = PyCapsule_New(m, name, &capsule_destructor<Managed>);
  if (!capsule) m->deleter(m);
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

// Does the consumer know the form that says its version, which came with 1.0?
bool takes_versions(PyObject* max_version) {
  if (max_version == Py_None) return false;
  int major = 0, minor = 0;
  CRESSET_CHECK_TYPE(PyTuple_Check(max_version) && PyArg_ParseTuple(max_version, "ii", &major, &minor),
                     "__dlpack__: max_version must be a tuple of two ints or None");
  return major >= 1;
}

// The tensor on the device that the consumer names as DLPack numbers it, its own when that is None.
Tensor moved_to(const Tensor& t, PyObject* dl_device, PyObject* copy) {
  if (dl_device == Py_None || !has_dlpack_device(t)) return t;
  int kind = 0, index = 0;
  CRESSET_CHECK_TYPE(PyTuple_Check(dl_device) && PyArg_ParseTuple(dl_device, "ii", &kind, &index),
                     "__dlpack__: dl_device must be a tuple of two ints, not ", type_name(Py_TYPE(dl_device)));
  const DLDevice own = dlpack_device(t.device());
  if (own.device_type == kind && (t.is_cpu() || own.device_id == index)) return t;
  std::optional<Device> device;
  try {
    device = device_of_dlpack({static_cast<DLDeviceType>(kind), index});
  } catch (const Error&) {
    CRESSET_THROW(BufferError, "Unsupported device_type: ", kind);
  }
  CRESSET_CHECK_VALUE(copy != Py_False, "cannot move (i.e. copy=False) tensor from ", t.device(), " to ", *device, " without copying.");
  return without_lock(may_wait(t), [&] { return t.to(TensorOptions(*device)); });
}

PyObject* py_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream, &version, &device, &copy))
    return nullptr;
  CRESSET_CHECK_TYPE(stream == Py_None || PyLong_Check(stream), "stream must be ``int`` or ``none``");
  const Tensor t = moved_to(unwrap(self), device, copy);
  if (t.is_cpu() || has_dlpack_device(t)) let_consumer_follow(t, stream);
  const bool copies = copy == Py_True;
  const Tensor given = copies ? without_lock(may_wait(t), [&] { return cresset::clone(t); }) : t;
  if (!takes_versions(version)) return capsule_of(to_dlpack(given), kDLPack);
  return capsule_of(to_dlpack_versioned(given, copies ? DLPACK_FLAG_BITMASK_IS_COPIED : 0), kDLPackVersioned);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_dlpack_device(PyObject* self, PyObject*) {
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  CRESSET_CHECK_VALUE(has_dlpack_device(t), "Unknown device type ", t.device(), " for Dlpack");
  const DLDevice device = dlpack_device(t.device());
  const Ref module = checked(PyImport_ImportModule("cresset.utils.dlpack"));
  Ref kind = Ref::steal(PyObject_CallMethod(module.get(), "DLDeviceType", "i", static_cast<int>(device.device_type)));
  if (!kind) {  // a vendor's number, which the class does not have
    PyErr_Clear();
    kind = checked(PyLong_FromLong(static_cast<int>(device.device_type)));
  }
  return Py_BuildValue("(Oi)", kind.get(), static_cast<int>(device.device_id));
  CRESSET_PY_CATCH(nullptr)
}

// Deleters of Python libraries drop references.
template <class Managed>
void delete_with_lock(void* p) {
  auto* managed = static_cast<Managed*>(p);
  if (!managed->deleter || !Py_IsInitialized()) return;
  GilAcquire gil;
  managed->deleter(managed);
}

template <class Managed>
Object taken_in(PyObject* capsule, const char* name, const char* used) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  const Tensor t = cresset::from_dlpack(m, &delete_with_lock<Managed>);
  checked(PyCapsule_SetName(capsule, used));
  return Object(wrap(t));
}

// The exporter is told that versions are known; one that does not know them takes no such argument.
Ref capsule_from(PyObject* source) {
  const Ref method = checked(PyObject_GetAttrString(source, "__dlpack__"));
  const Ref nothing = checked(PyTuple_New(0)), versions = checked(Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, 0));
  PyObject* capsule = PyObject_Call(method.get(), nothing.get(), versions.get());
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = PyObject_CallNoArgs(method.get());
  }
  return checked(capsule);
}

Object from_dlpack(PyObject* source) {
  const bool exports = !PyCapsule_CheckExact(source) && PyObject_HasAttrString(source, "__dlpack__");
  const Ref capsule = exports ? capsule_from(source) : Ref::borrow(source);
  if (PyCapsule_IsValid(capsule.get(), kDLPackVersioned))
    return taken_in<DLManagedTensorVersioned>(capsule.get(), kDLPackVersioned, kDLPackVersionedUsed);
  CRESSET_CHECK(PyCapsule_IsValid(capsule.get(), kDLPack),
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already "
                "constructed a tensor from it once.");
  return taken_in<DLManagedTensor>(capsule.get(), kDLPack, kDLPackUsed);
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
    return Object(capsule_of(cresset::to_dlpack(unwrap(o).detach()),
                             kDLPack));  // the function, unlike __dlpack__, takes tensors that require gradients
  });
}

}  // namespace cresset::python
