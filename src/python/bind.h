// Module functions from C++ lambdas: arguments and results are converted by type, exceptions are translated.
//
// For the thin private functions of cresset._C only; the operators have their own parser (arg_parser.h).
#pragma once

#include <map>
#include <tuple>
#include <type_traits>
#include <vector>

#include "python/dispatch.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace cresset::python {

/// A result that is a Python object already (owned).
struct Object {
  explicit Object(PyObject* p) : ref(checked(p)) {}
  explicit Object(Ref r) : ref(std::move(r)) {}
  Ref ref;
};

template <class T>
struct Convert;

template <>
struct Convert<PyObject*> {
  static PyObject* from(PyObject* o) { return o; }
};
template <>
struct Convert<Object> {
  static PyObject* to(Object o) { return o.ref.release(); }
};
template <>
struct Convert<bool> {
  static bool from(PyObject* o) {
    const int r = PyObject_IsTrue(o);
    checked(r);
    return r;
  }
  static PyObject* to(bool v) { return PyBool_FromLong(v); }
};
template <>
struct Convert<int64_t> {
  static int64_t from(PyObject* o) {
    const long long v = PyLong_AsLongLong(o);
    if (v == -1 && PyErr_Occurred()) throw ErrorAlreadySet();
    return v;
  }
  static PyObject* to(int64_t v) { return PyLong_FromLongLong(v); }
};
template <>
struct Convert<uint64_t> {
  static uint64_t from(PyObject* o) {
    const unsigned long long v = PyLong_AsUnsignedLongLong(o);
    if (v == ~0ull && PyErr_Occurred()) throw ErrorAlreadySet();
    return v;
  }
  static PyObject* to(uint64_t v) { return PyLong_FromUnsignedLongLong(v); }
};
template <>
struct Convert<double> {
  static double from(PyObject* o) {
    const double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred()) throw ErrorAlreadySet();
    return v;
  }
  static PyObject* to(double v) { return PyFloat_FromDouble(v); }
};
template <>
struct Convert<std::string> {
  static std::string from(PyObject* o) {
    CRESSET_CHECK_TYPE(PyUnicode_Check(o), "a str was required; a ", type_name(Py_TYPE(o)), " was given.");
    return to_text(o);
  }
  static PyObject* to(const std::string& s) { return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())); }
};
template <>
struct Convert<Tensor> {
  static Tensor from(PyObject* o) {
    CRESSET_CHECK_TYPE(is_tensor(o), "a Tensor was required; a ", type_name(Py_TYPE(o)), " was given.");
    return unwrap(o);
  }
  static PyObject* to(Tensor t) { return wrap(std::move(t)); }
};
template <>
struct Convert<ScalarType> {
  static ScalarType from(PyObject* o) { return to_scalar_type(o); }
  static PyObject* to(ScalarType t) { return wrap_dtype(t); }
};
template <>
struct Convert<Device> {
  static Device from(PyObject* o) { return to_device(o); }
  static PyObject* to(Device d) { return wrap_device(d); }
};
template <>
struct Convert<DispatchKey> {
  static DispatchKey from(PyObject* o) { return to_dispatch_key(o); }
  static PyObject* to(DispatchKey k) { return PyUnicode_FromString(toString(k)); }
};
template <class T>
struct Convert<std::optional<T>> {
  static std::optional<T> from(PyObject* o) {
    if (o == Py_None) return std::nullopt;
    return Convert<T>::from(o);
  }
  static PyObject* to(std::optional<T> v) { return v ? Convert<T>::to(std::move(*v)) : Py_NewRef(Py_None); }
};
template <class T>
struct Convert<std::vector<T>> {
  static std::vector<T> from(PyObject* o) {
    const Ref items = checked(PySequence_Fast(o, "a sequence was required"));
    std::vector<T> out;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    out.reserve(static_cast<std::size_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) out.push_back(Convert<T>::from(PySequence_Fast_GET_ITEM(items.get(), i)));
    return out;
  }
  static PyObject* to(std::vector<T> values) {
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(values.size())));
    for (std::size_t i = 0; i < values.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), checked(Convert<T>::to(std::move(values[i]))).release());
    return list.release();
  }
};

namespace binding {

template <class F>
struct Callable : Callable<decltype(&F::operator())> {};
template <class C, class R, class... A>
struct Callable<R (C::*)(A...) const> {
  using result = R;
  using arguments = std::tuple<std::decay_t<A>...>;
  static constexpr std::size_t arity = sizeof...(A);
  // Trailing optionals may be left out.
  static constexpr std::size_t required() {
    std::size_t n = 0, i = 0;
    (((++i), (is_optional<std::decay_t<A>>() ? void() : void(n = i))), ...);
    return n;
  }
  template <class T>
  static constexpr bool is_optional() {
    return requires(T t) { t.has_value(); };
  }
};

/// Calls a stateless lambda with converted arguments.
template <class F, std::size_t Skip>
PyObject* call_lambda(const char* name, PyObject* const* args, Py_ssize_t n) {
  using C = Callable<F>;
  CRESSET_PY_TRY
  if (n < static_cast<Py_ssize_t>(C::required()) || n > static_cast<Py_ssize_t>(C::arity))
    CRESSET_THROW(TypeError, name, "() takes ",
                  C::required() == C::arity ? std::to_string(C::arity) : std::to_string(C::required()) + " to " + std::to_string(C::arity),
                  " arguments; ", static_cast<int64_t>(n), " were given.");
  const auto call = [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
    return F{}(Convert<std::tuple_element_t<I, typename C::arguments>>::from(static_cast<Py_ssize_t>(I) < n ? args[I] : Py_None)...);
  };
  if constexpr (std::is_void_v<typename C::result>) {
    call(std::make_index_sequence<C::arity>());
    Py_RETURN_NONE;
  } else {
    return Convert<std::decay_t<typename C::result>>::to(call(std::make_index_sequence<C::arity>()));
  }
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace binding

/// module.name = f, for a captureless lambda; trailing std::optional parameters may be left out by the caller.
template <class F>
void def(PyObject* module, const char* name, F, const char* doc = nullptr) {
  static_assert(std::is_empty_v<F>, "def takes lambdas without captures");
  static const char* method_name;
  method_name = name;
  static PyMethodDef method;
  method = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(+[](PyObject*, PyObject* const* args, Py_ssize_t n) -> PyObject* {
              return binding::call_lambda<F, 0>(method_name, args, n);
            })),
            METH_FASTCALL, doc};
  const Ref module_name = PyModule_Check(module) ? checked(PyModule_GetNameObject(module)) : Ref();
  const Ref function = checked(PyCFunction_NewEx(&method, nullptr, module_name.get()));
  checked(PyObject_SetAttrString(module, name, function.get()));
}

}  // namespace cresset::python
