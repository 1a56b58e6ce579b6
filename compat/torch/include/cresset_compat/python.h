// Python: pybind11 casters of tensors and value types, errors, and the older THPVariable functions.
#pragma once

#include <Python.h>

#include <limits>
#include <string>
#include <utility>

#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cresset_compat/torch.h>

#include <cresset/dispatch/python_api.h>

namespace py = pybind11;
using namespace pybind11::literals;

PYBIND11_DECLARE_HOLDER_TYPE(T, c10::intrusive_ptr<T>, true)

/// A reference to an object of Python, which is given up at its end.
template <class T>
class THPPointer {
 public:
  THPPointer() = default;
  explicit THPPointer(T* object) noexcept : object_(object) {}
  THPPointer(THPPointer&& o) noexcept : object_(o.release()) {}
  ~THPPointer() { reset(nullptr); }
  THPPointer& operator=(T* object) {
    reset(object);
    return *this;
  }
  THPPointer& operator=(THPPointer&& o) noexcept {
    reset(o.release());
    return *this;
  }
  T* get() const { return object_; }
  T* release() { return std::exchange(object_, nullptr); }
  operator T*() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

  static THPPointer none() {
    Py_INCREF(Py_None);
    return THPPointer(reinterpret_cast<T*>(Py_None));
  }

 private:
  void reset(T* object) { Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(object_, object))); }
  T* object_ = nullptr;
};
using THPObjectPtr = THPPointer<PyObject>;

namespace torch::detail {
/// Errors of Cresset that leave functions bound in this module become the Python errors that Cresset itself raises.
inline bool register_errors() {
  if (!Py_IsInitialized()) return false;
  const py::gil_scoped_acquire gil;
  py::register_local_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const cresset::Error&) {
      cresset::python_api().set_error();
    }
  });
  return true;
}
[[maybe_unused]] static const bool errors_registered = register_errors();

/// Turns a failure of the functions of cresset._C into pybind11's exception.
inline PyObject* checked(PyObject* o) {
  if (!o) throw py::error_already_set();
  return o;
}
}  // namespace torch::detail

namespace pybind11::detail {

#define CRESSET_COMPAT_CASTER(T, annotation, can_load, load_value, give)                                                          \
  template <>                                                                                                                     \
  struct type_caster<T> {                                                                                                         \
    PYBIND11_TYPE_CASTER(T, const_name(annotation));                                                                              \
    bool load(handle source, bool) {                                                                                              \
      const cresset::PythonApi& api = cresset::python_api();                                                                      \
      PyObject* o = source.ptr();                                                                                                 \
      if (!(can_load)) return false;                                                                                              \
      load_value;                                                                                                                 \
      return true;                                                                                                                \
    }                                                                                                                             \
    static handle cast(const T& v, return_value_policy, handle) { return torch::detail::checked(cresset::python_api().give(v)); } \
  }

template <>
struct type_caster<at::Tensor> {
  PYBIND11_TYPE_CASTER(at::Tensor, const_name("torch.Tensor"));
  bool load(handle source, bool) {
    const cresset::PythonApi& api = cresset::python_api();
    if (!api.is_tensor(source.ptr())) return false;
    value = api.tensor(source.ptr());
    return true;
  }
  static handle cast(const at::Tensor& t, return_value_policy, handle) {
    return torch::detail::checked(cresset::python_api().from_tensor(t));
  }
};

// Constants have no value that stands for "none yet".
#define CRESSET_COMPAT_OPTIONAL_CASTER(T, annotation, is, get, give)                                                              \
  template <>                                                                                                                     \
  struct type_caster<T> {                                                                                                         \
    static constexpr auto name = const_name(annotation);                                                                          \
    template <class U>                                                                                                            \
    using cast_op_type = T;                                                                                                       \
    operator T() { return *value_; }                                                                                              \
    bool load(handle source, bool) {                                                                                              \
      const cresset::PythonApi& api = cresset::python_api();                                                                      \
      if (!api.is(source.ptr())) return false;                                                                                    \
      value_.emplace(api.get(source.ptr()));                                                                                      \
      return true;                                                                                                                \
    }                                                                                                                             \
    static handle cast(const T& v, return_value_policy, handle) { return torch::detail::checked(cresset::python_api().give(v)); } \
                                                                                                                                  \
   private:                                                                                                                       \
    std::optional<T> value_;                                                                                                      \
  }
CRESSET_COMPAT_OPTIONAL_CASTER(at::Device, "torch.device", is_device, device, from_device);
CRESSET_COMPAT_OPTIONAL_CASTER(at::ScalarType, "torch.dtype", is_dtype, dtype, from_dtype);
CRESSET_COMPAT_OPTIONAL_CASTER(at::Layout, "torch.layout", is_layout, layout, from_layout);
CRESSET_COMPAT_OPTIONAL_CASTER(at::MemoryFormat, "torch.memory_format", is_memory_format, memory_format, from_memory_format);
CRESSET_COMPAT_OPTIONAL_CASTER(at::Generator, "torch.Generator", is_generator, generator, from_generator);
CRESSET_COMPAT_OPTIONAL_CASTER(at::Scalar, "Number", is_number, scalar, from_scalar);
#undef CRESSET_COMPAT_OPTIONAL_CASTER
#undef CRESSET_COMPAT_CASTER

template <>
struct type_caster<c10::SymInt> {
  PYBIND11_TYPE_CASTER(c10::SymInt, const_name("int"));
  bool load(handle source, bool convert) {
    make_caster<int64_t> number;
    if (!number.load(source, convert)) return false;
    value = cast_op<int64_t>(number);
    return true;
  }
  static handle cast(c10::SymInt v, return_value_policy, handle) { return PyLong_FromLongLong(v); }
};
template <class T>
struct array_ref_caster {
  static constexpr auto name = const_name("List[int]");
  template <class U>
  using cast_op_type = c10::ArrayRef<T>;
  operator c10::ArrayRef<T>() { return values_; }
  bool load(handle source, bool convert) {
    if (!PyTuple_Check(source.ptr()) && !PyList_Check(source.ptr())) return false;
    make_caster<std::vector<T>> list;
    if (!list.load(source, convert)) return false;
    values_ = cast_op<std::vector<T>>(std::move(list));
    return true;
  }
  static handle cast(c10::ArrayRef<T> v, return_value_policy policy, handle parent) {
    return make_caster<std::vector<T>>::cast(v.vec(), policy, parent);
  }

 private:
  std::vector<T> values_;
};
template <>
struct type_caster<at::IntArrayRef> : array_ref_caster<int64_t> {};
template <>
struct type_caster<c10::SymIntArrayRef> : array_ref_caster<c10::SymInt> {};
template <>
struct type_caster<at::TensorList> : array_ref_caster<at::Tensor> {};
template <>
struct type_caster<c10::DispatchKey> {
  PYBIND11_TYPE_CASTER(c10::DispatchKey, const_name("DispatchKey"));
  bool load(handle source, bool) {
    if (!isinstance<str>(source)) return false;
    value = c10::parseDispatchKey(source.cast<std::string>());
    return true;
  }
  static handle cast(c10::DispatchKey k, return_value_policy, handle) { return PyUnicode_FromString(c10::toString(k)); }
};
template <>
struct type_caster<c10::IValue> {
  PYBIND11_TYPE_CASTER(c10::IValue, const_name("Any"));
  bool load(handle source, bool) {
    value = cresset::python_api().value(source.ptr());
    return true;
  }
  static handle cast(const c10::IValue& v, return_value_policy, handle) {
    return torch::detail::checked(cresset::python_api().from_value(v));
  }
};

}  // namespace pybind11::detail

// --- the functions of PyTorch's own binding code
inline bool THPVariable_Check(PyObject* o) { return cresset::python_api().is_tensor(o); }
inline const at::Tensor& THPVariable_Unpack(PyObject* o) { return cresset::python_api().tensor(o); }
inline PyObject* THPVariable_Wrap(const at::Tensor& t) { return cresset::python_api().from_tensor(t); }
#define THPVariableClass (cresset::python_api().tensor_type)
inline bool THPDevice_Check(PyObject* o) { return cresset::python_api().is_device(o) && !PyUnicode_Check(o); }
inline PyObject* THPDevice_New(const at::Device& d) { return cresset::python_api().from_device(d); }
inline bool THPDtype_Check(PyObject* o) { return cresset::python_api().is_dtype(o); }
inline bool THPGenerator_Check(PyObject* o) { return cresset::python_api().is_generator(o); }
inline PyObject* THPGenerator_initDefaultGenerator(const at::Generator& g) { return cresset::python_api().from_generator(g); }
inline PyObject* THPGenerator_Wrap(const at::Generator& g) { return cresset::python_api().from_generator(g); }

// --- numbers and texts: what does not fit is a Python error
inline const char* THPUtils_typename(PyObject* o) { return Py_TYPE(o)->tp_name; }
inline bool THPUtils_checkLong(PyObject* o) { return PyLong_Check(o) && !PyBool_Check(o); }
inline bool THPUtils_checkLongExact(PyObject* o) { return PyLong_CheckExact(o); }
inline bool THPUtils_checkDouble(PyObject* o) { return PyFloat_Check(o) || PyLong_Check(o); }
inline bool THPUtils_checkString(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }
inline int64_t THPUtils_unpackLong(PyObject* o) {
  const long long v = PyLong_AsLongLong(o);
  if (v == -1 && PyErr_Occurred()) throw py::error_already_set();
  return v;
}
inline uint64_t THPUtils_unpackUInt64(PyObject* o) {
  const unsigned long long v = PyLong_AsUnsignedLongLong(o);
  if (PyErr_Occurred()) throw py::error_already_set();
  return v;
}
namespace torch::detail {
template <class T>
T unpacked_number(PyObject* o, const char* overflow) {
  const int64_t v = THPUtils_unpackLong(o);
  TORCH_CHECK(v >= static_cast<int64_t>(std::numeric_limits<T>::min()) && v <= static_cast<int64_t>(std::numeric_limits<T>::max()),
              overflow);
  return static_cast<T>(v);
}
}  // namespace torch::detail
inline int THPUtils_unpackInt(PyObject* o) { return torch::detail::unpacked_number<int>(o, "Overflow when unpacking long"); }
inline uint32_t THPUtils_unpackUInt32(PyObject* o) {
  return torch::detail::unpacked_number<uint32_t>(o, "Overflow when unpacking long long");
}
inline c10::DeviceIndex THPUtils_unpackDeviceIndex(PyObject* o) {
  return torch::detail::unpacked_number<c10::DeviceIndex>(o, "Overflow when unpacking DeviceIndex");
}
inline double THPUtils_unpackDouble(PyObject* o) {
  const double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw py::error_already_set();
  return v;
}
inline bool THPUtils_unpackBool(PyObject* o) {
  TORCH_CHECK_TYPE(PyBool_Check(o), "couldn't convert python object to boolean");
  return o == Py_True;
}
inline std::string THPUtils_unpackString(PyObject* o) { return py::cast<std::string>(py::handle(o)); }
inline PyObject* THPUtils_packInt32(int32_t v) { return PyLong_FromLong(v); }
inline PyObject* THPUtils_packInt64(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* THPUtils_packUInt32(uint32_t v) { return PyLong_FromUnsignedLong(v); }
inline PyObject* THPUtils_packUInt64(uint64_t v) { return PyLong_FromUnsignedLongLong(v); }
inline PyObject* THPUtils_packDeviceIndex(c10::DeviceIndex v) { return PyLong_FromLong(v); }
inline PyObject* THPUtils_packString(const char* s) { return PyUnicode_FromString(s); }
inline PyObject* THPUtils_packString(const std::string& s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

namespace torch {
inline PyObject* getTHPDtype(at::ScalarType t) { return cresset::python_api().from_dtype(t); }
using ::THPUtils_unpackLong;
/// A Python error on its way through C++.
using python_error = py::error_already_set;
}  // namespace torch
using torch::python_error;
#define HANDLE_TH_ERRORS try {
#define END_HANDLE_TH_ERRORS_RET(value) \
  }                                     \
  catch (py::error_already_set & e) {   \
    e.restore();                        \
    return value;                       \
  }                                     \
  catch (...) {                         \
    cresset::python_api().set_error();  \
    return value;                       \
  }
#define END_HANDLE_TH_ERRORS END_HANDLE_TH_ERRORS_RET(nullptr)
#define END_HANDLE_TH_ERRORS_PYBIND \
  }                                 \
  catch (...) {                     \
    throw;                          \
  }
#define THPObjectPtr_check(o) torch::detail::checked(o)
namespace torch {
/// pybind11::gil_scoped_release for functions that keep no Python object.
using PyGilRelease = py::gil_scoped_release;
namespace detail {
template <class F, class R, class... A>
auto without_gil(F f, R (*)(A...)) {
  return [f = std::move(f)](A... arguments) -> R {
    const PyGilRelease released;
    return f(std::forward<A>(arguments)...);
  };
}
}  // namespace detail
/// The function as pybind11 takes it, called without the interpreter's lock.
template <class F>
auto wrap_pybind_function_no_gil(F&& f) {
  return detail::without_gil(std::forward<F>(f), static_cast<py::detail::function_signature_t<F>*>(nullptr));
}
}  // namespace torch
