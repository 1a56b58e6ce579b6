// Python: pybind11 casters of tensors and value types, errors, and the older THPVariable functions.
#pragma once

#include <Python.h>

#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cresset_compat/torch.h>

#include <cresset/dispatch/python_api.h>

namespace py = pybind11;
using namespace pybind11::literals;

PYBIND11_DECLARE_HOLDER_TYPE(T, c10::intrusive_ptr<T>, true)

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
namespace torch {
inline PyObject* getTHPDtype(at::ScalarType t) { return cresset::python_api().from_dtype(t); }
inline int64_t THPUtils_unpackLong(PyObject* o) { return PyLong_AsLongLong(o); }
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
}  // namespace torch
