// Tensors from Python data: tensor(), as_tensor(), the constructor Tensor(...), frombuffer().
#include "python/tensor_new.h"

#include <cresset/base/warn_always.h>
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/pinned_memory.h>

#include "ops/shared/fresh_memory.h"
#include "ops/shared/lifted.h"
#include "python/bind.h"
#include "python/graph_part.h"
#include "python/override.h"

namespace cresset::python {

namespace {

bool is_nested(PyObject* o) {
  return !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyDict_Check(o) && !is_tensor(o) && PySequence_Check(o) && !is_numpy_scalar(o);
}

ScalarType type_of_number(PyObject* o) {
  if (PyFloat_Check(o)) return get_default_dtype();
  if (PyBool_Check(o)) return kBool;
  if (PyLong_Check(o)) return kLong;
  if (PyComplex_Check(o)) return get_default_complex_dtype();
  if (is_numpy_scalar(o)) return tensor_from_array(o).scalar_type();
  if (is_tensor(o)) return unwrap(o).scalar_type();
  CRESSET_THROW(Error, "Could not infer dtype of ", type_name(Py_TYPE(o)));
}

// numpy.float64(1) is a float of Python too, but says which dtype it wants.
bool is_typed_number(PyObject* o) { return is_numpy_scalar(o); }

ScalarType infer_type(PyObject* o, int depth) {
  if (is_typed_number(o)) return tensor_from_array(o).scalar_type();
  if (is_number(o) || is_tensor(o)) return type_of_number(o);
  if (is_array(o)) return tensor_from_array(o).scalar_type();
  if (PyUnicode_Check(o) || PyBytes_Check(o)) CRESSET_THROW(TypeError, "new(): invalid data type '", type_name(Py_TYPE(o)), "'");
  if (!is_nested(o)) CRESSET_THROW(Error, "Could not infer dtype of ", type_name(Py_TYPE(o)));
  CRESSET_CHECK_VALUE(depth < 128, "tensor: data is nested too deeply (recursive?).");
  const Ref items = checked(PySequence_Fast(o, "not a sequence"));
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  if (n == 0) return get_default_dtype();
  ScalarType type = ScalarType::Undefined;
  PyTypeObject* seen = nullptr;  // runs of one Python type need one look
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* e = PySequence_Fast_GET_ITEM(items.get(), i);
    if (Py_TYPE(e) == seen) continue;
    const ScalarType t = infer_type(e, depth + 1);
    type = type == ScalarType::Undefined ? t : promote_types(type, t);
    if (PyFloat_CheckExact(e) || PyLong_CheckExact(e)) seen = Py_TYPE(e);
  }
  return type;
}

DimVector infer_sizes(PyObject* data) {
  DimVector sizes;
  Ref keep = Ref::borrow(data);
  while (true) {
    PyObject* o = keep.get();
    if (is_number(o) || is_tensor(o)) return sizes;  // a tensor is a number where the shape is read, as in PyTorch
    if (is_array(o)) {
      if (sizes.size() == 1 && PyList_Check(data))
        CRESSET_WARN_ONCE(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
            "numpy.ndarray with numpy.array() before converting to a tensor.");
      const Tensor t = tensor_from_array(o);
      for (int64_t s : t.sizes()) sizes.push_back(s);
      return sizes;
    }
    if (PyUnicode_Check(o)) CRESSET_THROW(ValueError, "too many dimensions 'str'");
    if (!is_nested(o)) return sizes;
    const Py_ssize_t n = PySequence_Size(o);
    checked(static_cast<int>(n < 0 ? -1 : 0));
    CRESSET_CHECK_VALUE(sizes.size() < 128, "too many dimensions '", type_name(Py_TYPE(o)), "'");
    sizes.push_back(n);
    if (n == 0) return sizes;
    keep = checked(PySequence_GetItem(o, 0));
  }
}

template <class T>
T number_as(PyObject* o) {
  if (is_tensor(o) && unwrap(o).numel() != 1) {
    CRESSET_CHECK_TYPE(!std::is_integral_v<T>, "only integer tensors of a single element can be converted to an index");
    CRESSET_THROW(ValueError, "only one element tensors can be converted to Python scalars");
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (PyFloat_CheckExact(o)) return static_cast<T>(PyFloat_AS_DOUBLE(o));
  }
  if constexpr (std::is_same_v<T, bool>) {
    const int r = PyObject_IsTrue(o);
    checked(r);
    return r == 1;
  } else {
    // Zero-dimensional arrays, and whatever else converts itself.
    if (!is_number(o) && !is_tensor(o)) {
      const Ref number = checked(std::is_integral_v<T> ? PyNumber_Index(o) : PyFloat_FromDouble(PyFloat_AsDouble(o)));
      if (PyErr_Occurred()) throw ErrorAlreadySet();
      return number_as<T>(number.get());
    }
    if constexpr (std::is_same_v<T, uint64_t>) {
      const Ref number = checked(PyNumber_Index(o));
      const unsigned long long v = PyLong_AsUnsignedLongLong(number.get());
      if (PyErr_Occurred()) throw ErrorAlreadySet();
      return v;
    }
    const Scalar s = PyLong_CheckExact(o) ? Scalar(to_int(o)) : to_scalar(o);
    if constexpr (!is_complex_v<T>) {
      if (s.isComplex()) {
        PyErr_SetString(PyExc_TypeError, std::is_integral_v<T> ? "'complex' object cannot be interpreted as an integer"
                                                               : "must be real number, not complex");
        throw ErrorAlreadySet();
      }
    }
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const bool fits =
          s.isFloatingPoint() ? cresset::detail::fits<T>(s.toDouble()) : !s.isUnsigned() && cresset::detail::fits<T>(s.to<int64_t>());
      CRESSET_CHECK(fits, "value cannot be converted to type ", dtype_name(CppTypeToScalarType<T>::value), " without overflow");
    }
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) return T(static_cast<float>(s.toDouble()));
    return s.to<T>();
  }
}

template <class T>
void fill_elements(T*& out, PyObject* o, IntArrayRef sizes, std::size_t dim) {
  if (dim == sizes.size()) {
    *out++ = number_as<T>(o);
    return;
  }
  if (is_tensor(o) || is_array(o)) {
    const Tensor given = is_tensor(o) ? unwrap(o) : tensor_from_array(o);
    const Tensor t = without_lock(
        may_wait(given), [&] { return given.detach().to(TensorOptions(CppTypeToScalarType<T>::value).device(kCPU)).contiguous(); });
    CRESSET_CHECK_VALUE(t.sizes() == sizes.slice(dim), "expected sequence of length ", sizes[dim], " at dim ", static_cast<int64_t>(dim),
                        " (got ", t.dim() ? t.size(0) : 0, ")");
    if (t.numel()) std::memcpy(static_cast<void*>(out), t.data_ptr(), t.nbytes());
    out += t.numel();
    return;
  }
  if (!is_nested(o)) {
    PyErr_Format(PyExc_TypeError, "not a sequence");
    throw ErrorAlreadySet();
  }
  const Ref items = checked(PySequence_Fast(o, "not a sequence"));
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  CRESSET_CHECK_VALUE(n == sizes[dim], "expected sequence of length ", sizes[dim], " at dim ", static_cast<int64_t>(dim), " (got ",
                      static_cast<int64_t>(n), ")");
  for (Py_ssize_t i = 0; i < n; ++i) fill_elements(out, PySequence_Fast_GET_ITEM(items.get(), i), sizes, dim + 1);
}

Tensor copy_of(const Tensor& t, std::optional<ScalarType> dtype, std::optional<Device> device) {
  const Device where = device.value_or(t.device());
  return without_lock(may_wait(t) || may_wait(where),
                      [&] { return cresset::to(t, TensorOptions(dtype.value_or(t.scalar_type())).device(where), false, true); });
}

}  // namespace

void require_grad_of_new(Tensor t) {
  CRESSET_CHECK(isDifferentiableType(t.scalar_type()), "Only Tensors of floating point and complex dtype can require gradients");
  t.requires_grad_(true);
}

namespace {
bool may_be_storage(PyObject* o) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || PyUnicode_Check(o))
    return false;
  static PyObject* const name = PyUnicode_InternFromString("_tensor_over");
  return PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(o)), name) != 0;
}
}  // namespace

void warn_of_copy(const char* call) {
  cresset::warn(
      str("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
          "sourceTensor.detach().clone().requires_grad_(True), rather than ",
          call, "."));
}

Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype, std::optional<Device> device) {
  if (is_tensor(data)) return copy_of(unwrap(data).detach(), dtype, device);
  if (may_be_storage(data)) {
    const Ref type = Ref::steal(dtype ? wrap_dtype(*dtype) : Py_NewRef(Py_None));
    const Ref over(checked(PyObject_CallMethod(data, "_tensor_over", "O", type.get())));
    const Tensor& t = unwrap(over.get());
    return device && *device != t.device() ? copy_of(t, dtype, device) : t;
  }
  if (is_array(data) && !is_numpy_scalar(data)) return copy_of(ops::lifted(tensor_from_array(data)), dtype, device);
  if (PyUnicode_Check(data)) CRESSET_THROW(TypeError, "new(): invalid data type 'str'");
  const DimVector sizes = infer_sizes(data);
  const ScalarType type = dtype ? *dtype : infer_type(data, 0);
  Tensor t = cresset::detail::empty_cpu(sizes, type);
  if (t.numel() > 0) {
    CRESSET_DISPATCH(type, "tensor", CRESSET_STORED_AND_ALL_TYPES, [&] {
      auto* out = static_cast<scalar_t*>(t.data_ptr());
      fill_elements(out, data, sizes, 0);
    });
  }
  t = ops::lifted(std::move(t));
  // A trace has a constant and its way to the device.
  if (CRESSET_UNLIKELY(is_tracing())) return cresset::to(t, device.value_or(Device(kCPU)), type);
  if (!device || device->is_cpu()) return t;
  return without_lock(may_wait(*device), [&] { return t.to(TensorOptions(*device)); });
}

namespace {

// tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)
struct CreationArguments {
  PyObject* data = nullptr;
  std::optional<ScalarType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;
  bool pin_memory = false;

  /// The options that are left when the tensor is made.
  Tensor finish(Tensor t) const {
    if (pin_memory && !t.is_meta()) {
      CRESSET_CHECK(t.is_cpu(), "Only dense CPU tensors can be pinned; leave pin_memory out or device at \"cpu\".");
      CRESSET_CHECK(getAccelerator(),
                    "pin_memory=True requires an accelerator backend; no pinned memory allocator is available on this system.");
      t = without_lock(true, [&] { return cresset::pin_memory(t); });
    }
    if (requires_grad) require_grad_of_new(t);
    return t;
  }
};

CreationArguments parse(const char* name, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, int positional) {
  CreationArguments a;
  static const char* const names[] = {"data", "dtype", "device", "requires_grad", "pin_memory"};
  PyObject* values[5] = {};
  CRESSET_CHECK_TYPE(n <= positional, name, "() takes ", positional, " positional argument", positional == 1 ? "" : "s", " but ",
                     static_cast<int64_t>(n), n == 1 ? " was given" : " were given");
  for (Py_ssize_t i = 0; i < n; ++i) values[i] = args[i];
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    const std::string key = to_text(PyTuple_GET_ITEM(kwnames, k));
    const auto* found = std::find(std::begin(names), std::end(names), key);
    CRESSET_CHECK_TYPE(found != std::end(names), name, "() got an unexpected keyword argument '", key, "'");
    const auto i = static_cast<std::size_t>(found - std::begin(names));
    CRESSET_CHECK_TYPE(!values[i], name, "() got multiple values for argument '", key, "'");
    values[i] = args[n + k];
  }
  CRESSET_CHECK_TYPE(values[0], name, "() missing 1 required positional arguments: \"data\"");
  a.data = values[0];
  if (values[1] && values[1] != Py_None) {
    CRESSET_CHECK_TYPE(is_dtype_like(values[1]), name, "(): argument 'dtype' must be torch.dtype, not ", type_name(Py_TYPE(values[1])));
    a.dtype = to_scalar_type(values[1]);
  }
  if (values[2] && values[2] != Py_None) a.device = to_present_device(values[2]);
  for (const auto& [i, flag] : {std::pair(3, &a.requires_grad), std::pair(4, &a.pin_memory)}) {
    if (!values[i] || values[i] == Py_None) continue;
    CRESSET_CHECK_TYPE(PyBool_Check(values[i]), name, "(): argument '", names[i], "' must be bool, not ", type_name(Py_TYPE(values[i])));
    *flag = values[i] == Py_True;
  }
  return a;
}

// Data that overrides is not asked: it is read, as any other.
Ref modes_result(const char* name, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Overriders overriders{};
  if (overriders.empty()) return {};
  const Ref module = checked(PyImport_ImportModule("cresset"));
  const Ref function = checked(PyObject_GetAttrString(module.get(), name));
  const Ref tuple = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  Ref kwargs;
  if (kwnames) {
    kwargs = checked(PyDict_New());
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k)
      checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, k), args[n + k]));
  }
  return checked(overriders.call(function.get(), tuple.get(), kwargs.get(), (std::string("torch.") + name).c_str()));
}

PyObject* py_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  if (Ref r = modes_result("tensor", args, n, kwnames)) return r.release();
  const CreationArguments a = parse("tensor", args, n, kwnames, 1);
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->warn_constant("torch.tensor");
  if (is_tensor(a.data)) warn_of_copy("torch.tensor(sourceTensor)");
  Tensor t = tensor_from_data(a.data, a.dtype, a.device);
  if (CRESSET_UNLIKELY(is_tracing())) t = cresset::detach(t);  // as PyTorch records it
  return wrap(a.finish(std::move(t)));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  if (Ref r = modes_result("as_tensor", args, n, kwnames)) return r.release();
  const CreationArguments a = parse("as_tensor", args, n, kwnames, 3);
  if (CRESSET_UNLIKELY(is_tracing()) && !is_tensor(a.data)) graph_part->warn_constant("torch.as_tensor");
  const auto keep = [&](const Tensor& t) {
    const Device where = a.device.value_or(t.device());
    return without_lock(may_wait(t) || may_wait(where),
                        [&] { return cresset::to(t, TensorOptions(a.dtype.value_or(t.scalar_type())).device(where)); });
  };
  if (is_tensor(a.data)) return wrap(keep(unwrap(a.data)));
  if (is_array(a.data) && !is_numpy_scalar(a.data)) return wrap(keep(ops::lifted(tensor_from_array(a.data))));
  return wrap(tensor_from_data(a.data, a.dtype, a.device));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject *object, *dtype = nullptr;
  Py_ssize_t count = -1, offset = 0;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Onnp:frombuffer", const_cast<char**>(names), &object, &dtype, &count, &offset,
                                   &requires_grad))
    return nullptr;
  CRESSET_CHECK_TYPE(dtype, "frombuffer() missing 1 required keyword-only argument: 'dtype'");
  const ScalarType type = to_scalar_type(dtype);
  CRESSET_CHECK_VALUE(PyObject_CheckBuffer(object), "object does not implement Python buffer protocol.");
  const Ref view = checked(PyMemoryView_FromObject(object));
  const Py_buffer* buffer = PyMemoryView_GET_BUFFER(view.get());
  const auto size = static_cast<Py_ssize_t>(element_size(type));
  CRESSET_CHECK_VALUE(buffer->len > 0 && count != 0, "both buffer length (", static_cast<int64_t>(buffer->len), ") and count (",
                      static_cast<int64_t>(count), ") must not be 0");
  CRESSET_CHECK_VALUE(offset >= 0 && offset < buffer->len, "offset (", static_cast<int64_t>(offset),
                      " bytes) must be non-negative and no greater than buffer length (", static_cast<int64_t>(buffer->len),
                      " bytes) minus 1");
  CRESSET_CHECK_VALUE(count > 0 || (buffer->len - offset) % size == 0, "buffer length (", static_cast<int64_t>(buffer->len - offset),
                      " bytes) after offset (", static_cast<int64_t>(offset), " bytes) must be a multiple of element size (",
                      static_cast<int64_t>(size), ")");
  if (count < 0) count = (buffer->len - offset) / size;
  CRESSET_CHECK_VALUE(offset + count * size <= buffer->len, "requested buffer length (", static_cast<int64_t>(count), " * ",
                      static_cast<int64_t>(size), " bytes) after offset (", static_cast<int64_t>(offset),
                      " bytes) must not be greater than actual buffer length (", static_cast<int64_t>(buffer->len), " bytes)");
  if (buffer->readonly)
    CRESSET_WARN_FIRST(
        "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to the "
        "underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its data "
        "or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program.");
  Tensor t = tensor_over(static_cast<char*>(buffer->buf) + offset, view.get(), {static_cast<int64_t>(count)}, {int64_t{1}}, type);
  if (requires_grad) require_grad_of_new(t);
  return wrap(std::move(t));
  CRESSET_PY_CATCH(nullptr)
}

PyMethodDef creation_functions[] = {
    {"tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_tensor)), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n\nA tensor with a copy of the data."},
    {"as_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_as_tensor)), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n\nA tensor of the data, without a copy where possible."},
    {"frombuffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_frombuffer)), METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n\nA one-dimensional tensor over the memory of a buffer."},
    {}};

// The arguments of the old constructor as sizes. As in PyTorch the first one decides, and bools behind it are numbers.
DimVector legacy_sizes(PyObject* args) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  CRESSET_CHECK_TYPE(is_size(first),
                     "new() received an invalid combination of arguments: sizes, or one sequence, tensor or storage were required; got ",
                     static_cast<int64_t>(n), " arguments, the first one a ", type_name(Py_TYPE(first)));
  DimVector sizes;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    CRESSET_CHECK_TYPE(is_size(item) || PyBool_Check(item), "new(): argument 'size' failed to unpack the object at pos ",
                       static_cast<int64_t>(i + 1), " with error \"type must be tuple of ints,but got ", type_name(Py_TYPE(item)), "\"");
    sizes.push_back(to_int(item));
  }
  return sizes;
}

}  // namespace

// Tensor(), Tensor(2, 3), Tensor([1, 2]), Tensor(other): float tensors, as the old constructor gives them.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  std::optional<Device> device;
  PyObject* data = nullptr;
  if (kwargs) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &key, &value)) {
      const std::string name = to_text(key);
      if (name == "device") {
        if (value != Py_None) device = to_device(value);
      } else if (name == "data") {
        data = value;
      } else if (type == tensor_type) {
        CRESSET_THROW(TypeError, "new() got an unexpected keyword argument '", name, "'");
      }
    }
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  const ScalarType dtype = get_default_dtype();
  const Device where = device.value_or(Device(kCPU));
  const auto empty = [&](const DimVector& sizes) {
    return without_lock(may_wait(where), [&] { return cresset::empty(sizes, TensorOptions(dtype).device(where)); });
  };
  if (n > 0 && !data) data = PyTuple_GET_ITEM(args, 0);
  CRESSET_CHECK(!device || !data || !is_tensor(data),
                "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use torch.tensor(...) or "
                "torch.as_tensor(...) instead.");
  CRESSET_CHECK(where.is_cpu(), "legacy constructor expects device type: cpu but device type: ", DeviceTypeName(where.type()),
                " was passed");
  Tensor t;
  if (!data) {
    t = empty({0});
  } else if (n > 1 || (PyIndex_Check(data) && !PyBool_Check(data) && !is_tensor(data) && !PySequence_Check(data))) {
    t = empty(legacy_sizes(args));
  } else if (Py_TYPE(data) == size_type) {
    DimVector sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(data); ++i) sizes.push_back(to_int(PyTuple_GET_ITEM(data, i)));
    t = empty(sizes);
  } else if (is_tensor(data)) {
    const Tensor& other = unwrap(data);
    t = without_lock(may_wait(other), [&] { return cresset::alias(other); });
  } else {
    CRESSET_CHECK_TYPE(PySequence_Check(data) || PyObject_HasAttrString(data, "__len__"), "new(): data must be a sequence (got ",
                       Py_TYPE(data)->tp_name, ")");
    t = tensor_from_data(data, dtype, device);
  }
  return wrap_as(type, std::move(t));
  CRESSET_PY_CATCH(nullptr)
}

void init_tensor_new(PyObject* module) {
  checked(PyModule_AddFunctions(module, creation_functions));
  def(module, "_set_warn_always", [](bool always) { set_warn_always(always); });
  def(module, "_mark_fresh_memory", [](bool on) { ops::fresh_memory_is_marked = on; });
}

}  // namespace cresset::python
