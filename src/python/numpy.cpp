// NumPy and the buffer protocol, both ways, without a copy and without NumPy's headers. NumPy is imported only when an
// array has to be made.
#include <bit>

#include <cresset/base/warn_always.h>

#include "base/hint.h"
#include "python/bind.h"
#include "python/graph_part.h"
#include "python/override.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

// Codes of the struct module, by kind and then by size of elements; null for types that NumPy does not have.
const char* buffer_format(ScalarType t) {
  if (numpy_type(t).empty()) return nullptr;
  if (t == kBool) return "?";
  const std::size_t size = std::bit_width(element_size(t)) - 1;
  constexpr bool kLongLong = sizeof(long) != 8;
  constexpr const char* kUnsigned[] = {"B", "H", "I", kLongLong ? "Q" : "L"};
  constexpr const char* kSigned[] = {"b", "h", "i", kLongLong ? "q" : "l"};
  constexpr const char* kFloating[] = {nullptr, "e", "f", "d"};
  if (isComplexType(t)) return t == kComplexFloat ? "Zf" : "Zd";
  return isFloatingType(t) ? kFloating[size] : isSignedType(t) ? kSigned[size] : kUnsigned[size];
}

void drop_owner(void* owner) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(owner));
}

PyObject* item(PyObject* dict, const char* key) {
  PyObject* v = PyDict_GetItemString(dict, key);
  CRESSET_CHECK_TYPE(v, "__array_interface__: the entry '", key, "' was required and is missing.");
  return v;
}

void check_exportable(const Tensor& t) {
  CRESSET_CHECK(!t.key_set().has(DispatchKey::Python), ".numpy() is not supported for tensor subclasses.");
  CRESSET_CHECK(!t.key_set().has(DispatchKey::FuncTorchBatched), "Cannot access data pointer of Tensor that doesn't have storage");
  CRESSET_CHECK_TYPE(t.is_cpu() && t.has_storage(), "can't convert ", t.device(),
                     " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  CRESSET_CHECK(!(t.requires_grad() && GradMode::is_enabled()),
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  CRESSET_CHECK_TYPE(buffer_format(t.scalar_type()), "Got unsupported ScalarType ", t.scalar_type());
}

// An object that shows a tensor's memory as __array_interface__, and owns the tensor.
struct ArrayView {
  PyObject_HEAD Tensor tensor;
};
PyTypeObject* array_view_type = nullptr;

void array_view_dealloc(PyObject* o) {
  reinterpret_cast<ArrayView*>(o)->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* array_view_interface(PyObject* o, void*) {
  CRESSET_PY_TRY
  const Tensor& t = reinterpret_cast<ArrayView*>(o)->tensor;
  const Ref shape = checked(PyTuple_New(t.dim())), strides = checked(PyTuple_New(t.dim()));
  for (int64_t d = 0; d < t.dim(); ++d) {
    PyTuple_SET_ITEM(shape.get(), d, checked(PyLong_FromLongLong(t.size(d))).release());
    PyTuple_SET_ITEM(strides.get(), d, checked(PyLong_FromLongLong(t.stride(d) * t.element_size())).release());
  }
  // Empty tensors have no memory; NumPy wants an address all the same.
  static char nothing;
  void* data = t.data_ptr() ? t.data_ptr() : &nothing;
  const std::string typestr = std::string(element_size(t.scalar_type()) == 1 ? "|" : "<") + numpy_type(t.scalar_type());
  return Py_BuildValue("{s:O,s:s,s:(NO),s:O,s:i}", "shape", shape.get(), "typestr", typestr.c_str(), "data", PyLong_FromVoidPtr(data),
                       Py_False, "strides", strides.get(), "version", 3);
  CRESSET_PY_CATCH(nullptr)
}

// --- buffer protocol ------------------------------------------------------------------------------------------------------

struct BufferShape {
  Tensor tensor;
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  try {
    const Tensor& t = unwrap(o);
    CRESSET_CHECK(!type_overrides(Py_TYPE(o)), "a tensor of a type with __torch_function__ gives its memory by numpy() and __array__");
    check_exportable(t);
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !t.is_contiguous()) CRESSET_THROW(Error, "the tensor is not contiguous");
    t.storage().unsafeGetStorageImpl()->set_resizable(false);
    auto shape = std::make_unique<BufferShape>();
    shape->tensor = t;
    for (int64_t d = 0; d < t.dim(); ++d) {
      shape->shape.push_back(t.size(d));
      shape->strides.push_back(t.stride(d) * t.element_size());
    }
    static char nothing;
    view->buf = t.data_ptr() ? t.data_ptr() : &nothing;
    view->obj = Py_NewRef(o);
    view->len = static_cast<Py_ssize_t>(t.nbytes());
    view->itemsize = t.element_size();
    view->readonly = 0;
    view->ndim = static_cast<int>(t.dim());
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(buffer_format(t.scalar_type())) : nullptr;
    view->shape = (flags & PyBUF_ND) ? shape->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shape->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = shape.release();
    return 0;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    view->obj = nullptr;
    return -1;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_BufferError, e.what());
    view->obj = nullptr;
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<BufferShape*>(view->internal); }

// --- methods --------------------------------------------------------------------------------------------------------------

PyObject* py_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(may_override(self))) {
    if (PyObject* r = override_method(self, "numpy", args, kwargs)) return r;
    if (PyErr_Occurred()) return nullptr;
  }
  if (unwrap(self).key_set().has(DispatchKey::Python))
    detail::raise_with_hint(
        ".numpy() is not supported for tensor subclasses.",
        str(type_name(Py_TYPE(self)), " sees operators in __torch_dispatch__. Take the array of the tensor that it wraps."));
  static const char* names[] = {"force", nullptr};
  int force = 0;
  if (PyTuple_GET_SIZE(args) > 0)
    CRESSET_THROW(TypeError, "numpy() takes 0 positional arguments but ", static_cast<int64_t>(PyTuple_GET_SIZE(args)),
                  PyTuple_GET_SIZE(args) == 1 ? " was given" : " were given");
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", const_cast<char**>(names), &force)) return nullptr;
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->warn_conversion("NumPy array");
  return tensor_to_numpy(unwrap(self), force);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_array(PyObject* self, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(may_override(self))) {
    if (PyObject* r = override_method(self, "__array__", args, kwargs)) return r;
    if (PyErr_Occurred()) return nullptr;
  }
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype, &copy)) return nullptr;
  Ref array = checked(tensor_to_numpy(unwrap(self), false));
  if (dtype != Py_None) return PyObject_CallMethod(array.get(), "astype", "O", dtype);
  if (copy == Py_True) return PyObject_CallMethod(array.get(), "copy", nullptr);
  return array.release();
  CRESSET_PY_CATCH(nullptr)
}

// What NumPy functions return for tensors becomes a tensor again; flags as uint8, as PyTorch has it from the time before bool.
PyObject* py_array_wrap(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(may_override(self))) {
    const Ref given = checked(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
    if (PyObject* r = override_method(self, "__array_wrap__", given.get())) return r;
    if (PyErr_Occurred()) return nullptr;
  }
  CRESSET_CHECK_TYPE(n >= 1, "__array_wrap__: an array was required.");
  Tensor t = tensor_from_array(args[0]);
  return wrap(t.scalar_type() == kBool ? t.to(kByte) : std::move(t));
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

bool is_array(PyObject* o) {
  if (is_tensor(o) || PyTuple_Check(o) || PyList_Check(o)) return false;
  if (std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0) return true;
  PyObject* v = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__array_interface__");
  if (!v) {
    PyErr_Clear();
    return false;
  }
  Py_DECREF(v);
  return true;
}

Tensor tensor_over(void* data, PyObject* owner, IntArrayRef sizes, IntArrayRef strides, ScalarType dtype) {
  const std::size_t nbytes = cresset::detail::compute_storage_nbytes(sizes, strides, element_size(dtype));
  DataPtr pointer(data, Py_NewRef(owner), &drop_owner, Device(kCPU));
  Storage storage(Storage::use_byte_size_t(), nbytes, std::move(pointer));
  return Tensor(make_intrusive<TensorImpl>(storage, key_set_for_device(kCPU), dtype, sizes, strides, 0));
}

Tensor tensor_from_array(PyObject* array) {
  const Ref interface = checked(PyObject_GetAttrString(array, "__array_interface__"));
  CRESSET_CHECK_TYPE(PyDict_Check(interface.get()), "__array_interface__: a dict was required.");
  const std::string typestr = to_text(item(interface.get(), "typestr"));
  CRESSET_CHECK_VALUE(
      typestr[0] != '>',
      "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported.");
  const std::optional<ScalarType> type_of_elements = dtype_from_numpy(std::string_view(typestr).substr(typestr.empty() ? 0 : 1));
  if (!type_of_elements) {
    const Ref dtype = checked(PyObject_GetAttrString(array, "dtype"));
    const Ref type = checked(PyObject_GetAttrString(dtype.get(), "type"));
    CRESSET_THROW(TypeError, "can't convert np.ndarray of type ", reinterpret_cast<PyTypeObject*>(type.get())->tp_name,
                  ". The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, "
                  "uint32, uint16, "
                  "uint8, and bool.");
  }
  const auto item_size = static_cast<int64_t>(element_size(*type_of_elements));
  PyObject* shape = item(interface.get(), "shape");
  PyObject* strides_object = PyDict_GetItemString(interface.get(), "strides");
  DimVector sizes, strides;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) sizes.push_back(to_int(PyTuple_GET_ITEM(shape, i)));
  if (strides_object && strides_object != Py_None) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(strides_object); ++i) {
      const int64_t s = to_int(PyTuple_GET_ITEM(strides_object, i));
      CRESSET_CHECK_VALUE(
          s >= 0,
          "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
          "(You can probably work around this by making a copy of your array  with array.copy().) ");
      CRESSET_CHECK_VALUE(
          s % item_size == 0,
          "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.");
      strides.push_back(s / item_size);
    }
  } else {
    strides = contiguous_strides(sizes);
  }
  PyObject* data = item(interface.get(), "data");
  CRESSET_CHECK_TYPE(PyTuple_Check(data) && PyTuple_GET_SIZE(data) == 2, "__array_interface__: 'data' must be (address, read-only).");
  void* address = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
  if (!address && PyErr_Occurred()) throw ErrorAlreadySet();
  if (is_numpy_scalar(array)) {
    // The interface of a scalar shows a temporary.
    Tensor t = cresset::detail::empty_cpu(sizes, *type_of_elements);
    std::memcpy(t.data_ptr(), address, static_cast<std::size_t>(item_size));
    return t;
  }
  if (PyTuple_GET_ITEM(data, 1) == Py_True)
    CRESSET_WARN_FIRST(
        "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor will "
        "result in undefined behavior. You may want to copy the array to protect its data or make it writable before converting it to a "
        "tensor. This type of warning will be suppressed for the rest of this program.");
  return tensor_over(address, array, sizes, strides, *type_of_elements);
}

PyObject* tensor_to_numpy(const Tensor& tensor, bool force) {
  Tensor t = force ? without_lock(may_wait(tensor), [&] { return tensor.detach().to(TensorOptions(Device(kCPU))); }) : tensor;
  check_exportable(t);
  t.storage().unsafeGetStorageImpl()->set_resizable(false);  // the memory stays where the array sees it
  auto* view = PyObject_New(ArrayView, array_view_type);
  if (!view) return nullptr;
  // A tensor of its own: what happens to the Python object's metadata later must not change the array.
  new (&view->tensor) Tensor(t.detach());
  const Ref holder = Ref::steal(reinterpret_cast<PyObject*>(view));
  const Ref numpy = checked(PyImport_ImportModule("numpy"));
  return PyObject_CallMethod(numpy.get(), "asarray", "O", holder.get());
}

PyType_Slot tensor_buffer_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)}, {0, nullptr}};

PyMethodDef tensor_exchange_methods[] = {
    {"numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_numpy)), METH_VARARGS | METH_KEYWORDS,
     "numpy(*, force=False)\n\nAn array that shares memory. force copies to the CPU and drops the gradient first."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_array)), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__array_wrap__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_array_wrap)), METH_FASTCALL, nullptr},
    {}};

void init_numpy(PyObject* module) {
  static PyGetSetDef properties[] = {{"__array_interface__", array_view_interface, nullptr, nullptr, nullptr}, {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&array_view_dealloc)}, {Py_tp_getset, properties}, {0, nullptr}};
  PyType_Spec spec{"cresset._C._ArrayView", sizeof(ArrayView), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  array_view_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  def(
      module, "from_numpy",
      [](PyObject* array) {
        CRESSET_CHECK_TYPE(std::strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") == 0 || (is_array(array) && !is_numpy_scalar(array)),
                           "expected np.ndarray (got ", type_name(Py_TYPE(array)), ")");
        if (CRESSET_UNLIKELY(is_tracing())) graph_part->warn_constant("torch.from_numpy");
        return tensor_from_array(array);
      },
      "from_numpy(ndarray)\n\nA tensor that shares the memory of an array.");
}

}  // namespace cresset::python
