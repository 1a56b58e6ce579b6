// device objects.
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/device_guard.h>
#include <cresset/core/dispatch_key_set.h>

#include "base/hint.h"
#include "python/bind.h"
#include "python/dispatch_mode.h"
#include "python/types.h"

namespace cresset::python {

PyTypeObject* device_type_object = nullptr;

namespace {

Device& device_of(PyObject* o) { return reinterpret_cast<PyDevice*>(o)->device; }

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"type", "index", nullptr};
  PyObject *type = nullptr, *index = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type, &index)) {
    if (kwargs && PyDict_GetItemString(kwargs, "device")) {  // device(device="cpu")
      PyErr_Clear();
      return wrap_device(to_device(PyDict_GetItemString(kwargs, "device")));
    }
    return nullptr;
  }
  Device d = to_device(type);
  if (index && index != Py_None) {
    CRESSET_CHECK(!d.has_index(), "type (string) must not include an index because index was passed explicitly: ", d.str());
    const long i = PyLong_AsLong(index);
    if (i == -1 && PyErr_Occurred()) return nullptr;
    CRESSET_CHECK(i >= 0 && i < 128, "Device index must be between 0 and 127, got ", static_cast<int64_t>(i));
    d.set_index(static_cast<DeviceIndex>(i));
  }
  return wrap_device(d);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* device_repr(PyObject* o) {
  CRESSET_PY_TRY
  const Device d = device_of(o);
  const std::string name = DeviceTypeName(d.type());
  if (d.has_index()) return PyUnicode_FromFormat("device(type='%s', index=%d)", name.c_str(), static_cast<int>(d.index()));
  return PyUnicode_FromFormat("device(type='%s')", name.c_str());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* device_str(PyObject* o) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(device_of(o).str().c_str());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(a) || !is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of(a) == device_of(b)) == (op == Py_EQ));
}

Py_hash_t device_hash(PyObject* o) { return static_cast<Py_hash_t>(std::hash<Device>()(device_of(o))) + 1; }

PyObject* device_get_type(PyObject* o, void*) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(DeviceTypeName(device_of(o).type()).c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* device_get_index(PyObject* o, void*) {
  const Device d = device_of(o);
  if (!d.has_index()) Py_RETURN_NONE;
  return PyLong_FromLong(d.index());
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return Py_BuildValue("(O(s))", Py_TYPE(o), device_of(o).str().c_str());
  CRESSET_PY_CATCH(nullptr)
}

PyGetSetDef device_properties[] = {{"type", device_get_type, nullptr, "Name of the kind of device.", nullptr},
                                   {"index", device_get_index, nullptr, "Number of the device, None for the current one.", nullptr},
                                   {}};
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr}, {}};

}  // namespace

PyObject* wrap_device(Device d) {
  auto* o = PyObject_New(PyDevice, device_type_object);
  if (!o) return nullptr;
  new (&o->device) Device(d);
  return reinterpret_cast<PyObject*>(o);
}

Device to_device(PyObject* o) {
  if (is_device(o)) return device_of(o);
  if (PyUnicode_Check(o)) return Device(to_text(o));
  if (PyLong_Check(o) && !PyBool_Check(o)) {
    const long i = PyLong_AsLong(o);
    if (i == -1 && PyErr_Occurred()) throw ErrorAlreadySet();
    const auto accelerator = getAccelerator();
    if (!accelerator)
      detail::raise_with_hint("Cannot access accelerator device when none is available.",
                              "An index alone names a device of the current accelerator. Write \"name:index\".");
    CRESSET_CHECK(i >= 0 && i < 128, "Device index must be between 0 and 127, got ", static_cast<int64_t>(i));
    return Device(*accelerator, static_cast<DeviceIndex>(i));
  }
  CRESSET_THROW(TypeError, "device: a device or a string was required; a ", type_name(Py_TYPE(o)), " was given.");
}

Device to_present_device(PyObject* o) {
  const Device d = to_device(o);
  if (CRESSET_LIKELY(d.is_cpu()) || impl::hasDeviceGuardImpl(d.type()) || any_dispatch_mode()) return d;
  if (d.type() == DeviceType::CUDA || d.type() == DeviceType::XPU) {  // PyTorch's own class, which programs catch
    PyErr_Format(PyExc_AssertionError, "Torch not compiled with %s enabled", d.type() == DeviceType::CUDA ? "CUDA" : "XPU");
    throw ErrorAlreadySet();
  }
  const DispatchKey key = backendKey(d.type());
  if (key == DispatchKey::Undefined || isForeignDispatchKey(key))  // a name that only a backend could give a meaning
    detail::raise_with_hint<NotImplementedError>(str("No backend is mounted as '", DeviceTypeName(d.type()), "'."),
                                                 "`cresset doctor` lists the devices that are there.");
  return d;
}

void init_device(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&device_new)},
                         {Py_tp_repr, reinterpret_cast<void*>(&device_repr)},
                         {Py_tp_str, reinterpret_cast<void*>(&device_str)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(&device_compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(&device_hash)},
                         {Py_tp_getset, device_properties},
                         {Py_tp_methods, device_methods},
                         {Py_tp_doc, const_cast<char*>("A kind of device and, optionally, its number.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, slots};
  device_type_object = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type_object)));
  def(module, "_rename_privateuse1_backend", [](std::string name) { rename_privateuse1_backend(name); });
  def(module, "_get_privateuse1_backend_name", [] { return DeviceTypeName(kPrivateUse1); });
  def(module, "_register_device_type", [](std::string name) { return static_cast<int64_t>(register_device_type(name)); });
}

}  // namespace cresset::python
