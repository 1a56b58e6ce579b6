// Methods of the class Tensor that are not operators of the table.
#include <cresset/ops/functions_copy.h>

#include <vector>

#include "autograd/captured_tensors.h"
#include "base/hint.h"
#include "python/autograd.h"
#include "python/dispatch_mode.h"
#include "python/graph_part.h"
#include "python/override.h"
#include "python/tensor_new.h"

namespace cresset::python {

extern PyMethodDef tensor_dlpack_methods[];

namespace {

Ref pack(PyObject* const* args, Py_ssize_t n) {
  Ref tuple = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  return tuple;
}
Ref keywords(PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  if (!kwnames || PyTuple_GET_SIZE(kwnames) == 0) return {};
  Ref dict = checked(PyDict_New());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) checked(PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]));
  return dict;
}

#define CRESSET_OVERRIDE(name)                                                                        \
  if (CRESSET_UNLIKELY(may_override(self))) {                                                         \
    PyObject* r = override_method(self, name, pack(args, n).get(), keywords(args, n, kwnames).get()); \
    if (r || PyErr_Occurred()) return r;                                                              \
  }

using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

// The value of the only argument of a method (given by position or by `keyword`), or null.
PyObject* one_argument(const char* method, const char* keyword, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Py_ssize_t k = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  CRESSET_CHECK_TYPE(n + k <= 1, method, "() takes 1 positional argument but ", static_cast<int64_t>(n + k), " were given");
  if (n == 1) return args[0];
  if (k == 0) return nullptr;
  CRESSET_CHECK_TYPE(PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), keyword) == 0, method,
                     "() got an unexpected keyword argument '", PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, 0)), "'");
  return args[0];
}

int64_t dim_argument(const char* method, PyObject* o) {
  CRESSET_CHECK_TYPE(is_int(o), method, "(): argument 'dim' (position 1) must be int, not ", type_name(Py_TYPE(o)));
  return to_int(o);
}

PyObject* py_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_OVERRIDE("size")
  const Tensor& t = unwrap(self);
  PyObject* dim = one_argument("size", "dim", args, n, kwnames);
  if (!dim || dim == Py_None) return is_tracing() ? graph_part->traced_sizes(t) : wrap_size(t.sizes());
  if (is_tracing()) return graph_part->traced_size_of(t, dim_argument("size", dim));
  return PyLong_FromLongLong(t.size(dim_argument("size", dim)));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_OVERRIDE("stride")
  const Tensor& t = unwrap(self);
  PyObject* dim = one_argument("stride", "dim", args, n, kwnames);
  if (dim && dim != Py_None) return PyLong_FromLongLong(t.stride(dim_argument("stride", dim)));
  const IntArrayRef strides = t.strides();
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(strides.size())));
  for (std::size_t i = 0; i < strides.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(strides[i])).release());
  return out.release();
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_OVERRIDE("is_contiguous")
  PyObject* format = one_argument("is_contiguous", "memory_format", args, n, kwnames);
  CRESSET_CHECK_TYPE(!format || is_memory_format(format), "is_contiguous(): argument 'memory_format' must be torch.memory_format, not ",
                     type_name(Py_TYPE(format)));
  return PyBool_FromLong(unwrap(self).is_contiguous(format ? static_cast<MemoryFormat>(constant_value(format)) : MemoryFormat::Contiguous));
  CRESSET_PY_CATCH(nullptr)
}

// Methods without arguments: the expression sees the tensor as t.
#define CRESSET_SIMPLE(name, expression)                                                                                  \
  PyObject* py_##name(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {                           \
    CRESSET_PY_TRY                                                                                                        \
    CRESSET_OVERRIDE(#name)                                                                                               \
    CRESSET_CHECK_TYPE(n == 0 && (!kwnames || PyTuple_GET_SIZE(kwnames) == 0), "Tensor." #name "() takes no arguments (", \
                       static_cast<int64_t>(n), " given)");                                                               \
    [[maybe_unused]] const Tensor& t = unwrap(self);                                                                      \
    return expression;                                                                                                    \
    CRESSET_PY_CATCH(nullptr)                                                                                             \
  }
CRESSET_SIMPLE(dim, PyLong_FromLongLong(dim_seen(t)))
CRESSET_SIMPLE(ndimension, PyLong_FromLongLong(dim_seen(t)))
CRESSET_SIMPLE(numel, is_tracing() ? graph_part->traced_numel_of(t) : PyLong_FromLongLong(t.numel()))
CRESSET_SIMPLE(nelement, is_tracing() ? graph_part->traced_numel_of(t) : PyLong_FromLongLong(t.numel()))
CRESSET_SIMPLE(element_size, PyLong_FromLongLong(t.element_size()))
CRESSET_SIMPLE(storage_offset, PyLong_FromLongLong(storage_offset_seen(t)))
CRESSET_SIMPLE(data_ptr, PyLong_FromVoidPtr(!t.has_storage() && t.key_set().has(DispatchKey::Python) ? nullptr : t.data_ptr()))
CRESSET_SIMPLE(get_device, PyLong_FromLongLong(t.get_device()))
CRESSET_SIMPLE(is_floating_point, PyBool_FromLong(t.is_floating_point()))
CRESSET_SIMPLE(is_complex, PyBool_FromLong(t.is_complex()))
CRESSET_SIMPLE(is_signed, PyBool_FromLong(t.is_signed()))
CRESSET_SIMPLE(is_inference, PyBool_FromLong(t.is_inference()))
CRESSET_SIMPLE(is_conj, PyBool_FromLong(t.is_conj()))
CRESSET_SIMPLE(is_neg, PyBool_FromLong(t.is_neg()))
CRESSET_SIMPLE(has_names, PyBool_FromLong(false))
CRESSET_SIMPLE(is_shared, PyBool_FromLong(false))
CRESSET_SIMPLE(_is_view, PyBool_FromLong(t.is_view()))
CRESSET_SIMPLE(item, [&] {
  if (is_tracing()) graph_part->warn_conversion("Python number");
  return item_seen(t);
}())
CRESSET_SIMPLE(__complex__, [&]() -> PyObject* {
  if (is_tracing()) graph_part->warn_conversion("Python complex");
  CRESSET_CHECK_VALUE(t.numel() == 1, "only one element tensors can be converted to Python scalars");
  const std::complex<double> c = to_scalar(checked(item_seen(t)).get()).toComplexDouble();
  return PyComplex_FromDoubles(c.real(), c.imag());
}())

// Nested lists, reading memory directly.
Ref list_of_elements(const Tensor& t, int64_t dim, const char* data) {
  if (dim == t.dim()) {
    Tensor one = tensor_over(const_cast<char*>(data), Py_None, {}, {}, t.scalar_type());
    return checked(item_of(one));
  }
  const int64_t size = t.size(dim), step = t.stride(dim) * t.element_size();
  Ref list = checked(PyList_New(size));
  if (dim + 1 == t.dim()) {
    switch (t.scalar_type()) {
#define CRESSET_ROW(type, T, make)                             \
  case type:                                                   \
    for (int64_t i = 0; i < size; ++i) {                       \
      T v;                                                     \
      std::memcpy(&v, data + i * step, sizeof v);              \
      PyList_SET_ITEM(list.get(), i, checked(make).release()); \
    }                                                          \
    return list;
      CRESSET_ROW(kFloat, float, PyFloat_FromDouble(v))
      CRESSET_ROW(kDouble, double, PyFloat_FromDouble(v))
      CRESSET_ROW(kLong, int64_t, PyLong_FromLongLong(v))
      CRESSET_ROW(kInt, int32_t, PyLong_FromLong(v))
      CRESSET_ROW(kByte, uint8_t, PyLong_FromLong(v))
      CRESSET_ROW(kBool, uint8_t, PyBool_FromLong(v != 0))
#undef CRESSET_ROW
      default: break;
    }
  }
  for (int64_t i = 0; i < size; ++i) PyList_SET_ITEM(list.get(), i, list_of_elements(t, dim + 1, data + i * step).release());
  return list;
}

CRESSET_SIMPLE(tolist, [&]() -> PyObject* {
  if (is_tracing()) graph_part->warn_conversion("Python list");
  if (t.key_set().has(DispatchKey::Python))
    detail::raise_with_hint(str(".tolist() is not supported for tensor subclasses, got ", type_name(Py_TYPE(self))),
                            "It sees operators in __torch_dispatch__. Take the list of the tensor that it wraps.");
  if (t.dim() == 0 && !t.is_meta()) return item_of(t);
  const Tensor plain = without_lock(may_wait(t), [&] {
    const NoGradGuard no_grad;
    return t.to(TensorOptions(Device(kCPU)));
  });
  CRESSET_CHECK(plain.is_cpu(), "tolist: a copy on the CPU was required of aten::_to_copy; its kernel for ", t.device(),
                " gave a tensor on ", plain.device(), ".");
  return list_of_elements(plain, 0, static_cast<const char*>(plain.data_ptr())).release();
}())

// The argument memory_format of a method, when it is given.
std::optional<MemoryFormat> format_argument(const char* name, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  PyObject* f = one_argument(name, "memory_format", args, n, kwnames);
  if (!f || f == Py_None) return std::nullopt;
  CRESSET_CHECK_TYPE(is_memory_format(f), name, "(): argument 'memory_format' must be torch.memory_format, not ", type_name(Py_TYPE(f)));
  return static_cast<MemoryFormat>(constant_value(f));
}

#define CRESSET_CAST(name, type)                                                                        \
  PyObject* py_##name(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {         \
    CRESSET_PY_TRY                                                                                      \
    CRESSET_OVERRIDE(#name)                                                                             \
    const Tensor& t = unwrap(self);                                                                     \
    const auto format = format_argument(#name, args, n, kwnames);                                       \
    return wrap(without_lock(may_wait(t), [&] { return cresset::to(t, type, false, false, format); })); \
    CRESSET_PY_CATCH(nullptr)                                                                           \
  }
CRESSET_CAST(float, kFloat)
CRESSET_CAST(double, kDouble)
CRESSET_CAST(half, kHalf)
CRESSET_CAST(bfloat16, kBFloat16)
CRESSET_CAST(long, kLong)
CRESSET_CAST(int, kInt)
CRESSET_CAST(short, kShort)
CRESSET_CAST(char, kChar)
CRESSET_CAST(byte, kByte)
CRESSET_CAST(bool, kBool)
CRESSET_CAST(chalf, kComplexHalf)
CRESSET_CAST(cfloat, kComplexFloat)
CRESSET_CAST(cdouble, kComplexDouble)

PyObject* py_cpu(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_OVERRIDE("cpu")
  const Tensor& t = unwrap(self);
  const auto format = format_argument("cpu", args, n, kwnames);
  return wrap(without_lock(may_wait(t), [&] { return cresset::to(t, TensorOptions(Device(kCPU)), false, false, format); }));
  CRESSET_PY_CATCH(nullptr)
}

// to(dtype), to(device), to(device, dtype), to(other), each with non_blocking, copy and memory_format.
PyObject* py_to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_OVERRIDE("to")
  const Tensor& t = unwrap(self);
  TensorOptions options;
  bool non_blocking = false, copy = false;
  std::optional<MemoryFormat> format;
  const auto truth = [](const char* name, PyObject* o) {
    CRESSET_CHECK_TYPE(PyBool_Check(o), "to(): argument '", name, "' must be bool, not ", type_name(Py_TYPE(o)));
    return o == Py_True;
  };
  const auto take_other = [&](const Tensor& other) { options = options.dtype(other.scalar_type()).device(other.device()); };
  Py_ssize_t at = 0;
  if (at < n && is_tensor(args[at])) {
    take_other(unwrap(args[at++]));
  } else {
    if (at < n &&
        (is_device(args[at]) || PyUnicode_Check(args[at]) || args[at] == Py_None || (PyLong_Check(args[at]) && !PyBool_Check(args[at])))) {
      if (args[at] != Py_None) options = options.device(to_present_device(args[at]));
      ++at;
    }
    if (at < n && (is_dtype_like(args[at]) || (at == 1 && args[at] == Py_None))) {
      if (args[at] != Py_None) options = options.dtype(to_scalar_type(args[at]));
      ++at;
    }
  }
  if (at < n && PyBool_Check(args[at])) non_blocking = truth("non_blocking", args[at++]);
  if (at < n && PyBool_Check(args[at])) copy = truth("copy", args[at++]);
  if (at < n) {
    std::string got;
    for (Py_ssize_t i = 0; i < n; ++i) got += (i ? ", " : "") + type_name(Py_TYPE(args[i]));
    CRESSET_THROW(TypeError, "to() received an invalid combination of arguments - got (", got,
                  "), but expected one of:\n * (torch.device device = None, torch.dtype dtype = None, "
                  "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool "
                  "non_blocking = False, bool copy = False, *, "
                  "torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking = False, bool copy = False, *, "
                  "torch.memory_format memory_format = None)");
  }
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    const std::string key = to_text(PyTuple_GET_ITEM(kwnames, k));
    PyObject* v = args[n + k];
    if (key == "dtype") {
      if (v == Py_None) continue;
      CRESSET_CHECK_TYPE(is_dtype_like(v), "to(): argument 'dtype' must be torch.dtype, not ", type_name(Py_TYPE(v)));
      options = options.dtype(to_scalar_type(v));
    } else if (key == "device") {
      if (v != Py_None) options = options.device(to_present_device(v));
    } else if (key == "other" || key == "tensor") {
      CRESSET_CHECK_TYPE(is_tensor(v), "to(): argument '", key, "' must be Tensor, not ", type_name(Py_TYPE(v)));
      take_other(unwrap(v));
    } else if (key == "non_blocking") {
      non_blocking = truth("non_blocking", v);
    } else if (key == "copy") {
      copy = truth("copy", v);
    } else if (key == "memory_format") {
      if (v == Py_None) continue;
      CRESSET_CHECK_TYPE(is_memory_format(v), "to(): argument 'memory_format' must be torch.memory_format, not ", type_name(Py_TYPE(v)));
      format = static_cast<MemoryFormat>(constant_value(v));
    } else {
      CRESSET_THROW(TypeError, "to() got an unexpected keyword argument '", key, "'");
    }
  }
  const bool same =
      (!options.has_dtype() || options.dtype() == t.scalar_type()) && (!options.has_device() || options.device() == t.device());
  const bool itself = same && !copy && (!format || *format == MemoryFormat::Preserve || t.suggest_memory_format() == *format);
  if (itself && !is_tracing()) return Py_NewRef(self);  // a trace records it: other inputs may be of another dtype
  const bool waits = may_wait(t) || (options.has_device() && may_wait(options.device()));
  return wrap(without_lock(waits, [&] { return cresset::to(t, options, non_blocking, copy, format); }));
  CRESSET_PY_CATCH(nullptr)
}

// type() names the kind of tensor, type(dtype) converts.
PyObject* py_type(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_OVERRIDE("type")
  const Tensor& t = unwrap(self);
  if (n == 0 && !kwnames) {
    const std::string device = t.device().is_cpu() ? "" : DeviceTypeName(t.device().type()) + ".";
    return PyUnicode_FromFormat("torch.%s%sTensor", device.c_str(), cresset::toString(t.scalar_type()));
  }
  PyObject* wanted = n > 0 ? args[0] : args[n];
  if (PyUnicode_Check(wanted)) {
    std::string name = to_text(wanted);
    if (name.starts_with("torch.")) name = name.substr(6);
    // A kind of device stands in front, "mychip.FloatTensor"; without one it is the CPU.
    const std::size_t dot = name.find('.');
    const std::string kind = dot == std::string::npos ? "cpu" : name.substr(0, dot);
    if (dot != std::string::npos) name = name.substr(dot + 1);
    const bool same_kind = DeviceTypeName(t.device().type()) == kind;
    for (int i = 0; i < static_cast<int>(ScalarType::NumOptions); ++i) {
      const auto s = static_cast<ScalarType>(i);
      if (element_size(s) && name == std::string(cresset::toString(s)) + "Tensor")
        return wrap(without_lock(may_wait(t) || may_wait(Device(kind)),
                                 [&] { return same_kind ? cresset::to(t, s) : t.to(TensorOptions(Device(kind)).dtype(s)); }));
    }
    CRESSET_THROW(ValueError, "invalid type: '", to_text(wanted), "'");
  }
  if (wanted == reinterpret_cast<PyObject*>(tensor_type))
    return wrap(without_lock(may_wait(t), [&] { return cresset::to(t, get_default_dtype()); }));
  CRESSET_CHECK_TYPE(is_dtype_like(wanted), "type(): argument 'dtype' (position 1) must be torch.dtype or str, not ",
                     type_name(Py_TYPE(wanted)));
  const ScalarType type = to_scalar_type(wanted);
  return wrap(without_lock(may_wait(t), [&] { return cresset::to(t, type); }));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_OVERRIDE("requires_grad_")
  PyObject* value = one_argument("requires_grad_", "requires_grad", args, n, kwnames);
  CRESSET_CHECK_TYPE(!value || PyBool_Check(value), "requires_grad_(): argument 'requires_grad'", n ? " (position 1)" : "",
                     " must be bool, not ", type_name(Py_TYPE(value)));
  if (CRESSET_UNLIKELY(autograd::transforms::inside_function())) autograd::transforms::refuse_requires_grad();
  const bool wanted = !value || value == Py_True;
  const Tensor& t = unwrap(self);
  if (!t.is_leaf())
    CRESSET_CHECK(wanted,
                  "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that "
                  "doesn't require "
                  "differentiation use var_no_grad = var.detach().");
  t.requires_grad_(wanted);
  return Py_NewRef(self);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_is_set_to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  PyObject* const other = one_argument("is_set_to", "tensor", args, n, kwnames);
  CRESSET_CHECK_TYPE(other, "is_set_to() missing 1 required positional arguments: \"tensor\"");
  if (CRESSET_UNLIKELY(may_override(self) || !is_plain(other))) {
    const Ref others = checked(PyTuple_Pack(1, other));
    if (PyObject* r = override_method(self, "is_set_to", others.get())) return r;
    if (PyErr_Occurred()) return nullptr;
  }
  CRESSET_CHECK_TYPE(is_tensor(other), "is_set_to(): argument 'tensor' (position 1) must be Tensor, not ", type_name(Py_TYPE(other)));
  const Tensor &a = unwrap(self), &b = unwrap(other);
  return PyBool_FromLong(a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
                         a.strides() == b.strides());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_is_same_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  PyObject* const other = one_argument("is_same_size", "other", args, n, kwnames);
  CRESSET_CHECK_TYPE(other, "is_same_size() missing 1 required positional arguments: \"other\"");
  if (CRESSET_UNLIKELY(may_override(self) || !is_plain(other))) {
    const Ref others = checked(PyTuple_Pack(1, other));
    if (PyObject* r = override_method(self, "is_same_size", others.get())) return r;
    if (PyErr_Occurred()) return nullptr;
  }
  CRESSET_CHECK_TYPE(is_tensor(other), "is_same_size(): argument 'other' (position 1) must be Tensor, not ", type_name(Py_TYPE(other)));
  return PyBool_FromLong(unwrap(self).sizes() == unwrap(other).sizes());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_new_tensor(PyObject* self, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(may_override(self))) {
    if (PyObject* r = override_method(self, "new_tensor", args, kwargs)) return r;
    if (PyErr_Occurred()) return nullptr;
  }
  static const char* names[] = {"data", "dtype", "device", "requires_grad", nullptr};
  PyObject *data, *dtype = Py_None, *device = Py_None;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOp:new_tensor", const_cast<char**>(names), &data, &dtype, &device, &requires_grad))
    return nullptr;
  const Tensor& t = unwrap(self);
  if (is_tensor(data)) warn_of_copy("tensor.new_tensor(sourceTensor)");
  Tensor r = tensor_from_data(data, dtype == Py_None ? t.scalar_type() : to_scalar_type(dtype),
                              device == Py_None ? t.device() : to_device(device));
  if (requires_grad) require_grad_of_new(r);
  return wrap(std::move(r));
  CRESSET_PY_CATCH(nullptr)
}

PyTypeObject* subclass_argument(const char* name, PyObject* cls) {
  CRESSET_CHECK_TYPE(PyType_Check(cls), "cls must be a type (got ", type_name(Py_TYPE(cls)), ")");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  CRESSET_CHECK_TYPE(PyType_IsSubtype(type, tensor_type), name, ": cls must be a subclass of Tensor; ", type_name(type), " is not.");
  return type;
}

PyObject* py_as_subclass(PyObject* self, PyObject* cls) {
  CRESSET_PY_TRY
  return as_subclass(unwrap(self), subclass_argument("as_subclass", cls));
  CRESSET_PY_CATCH(nullptr)
}

// Tensor._make_subclass(cls, data, require_grad=False): an instance of cls on the data, without history.
PyObject* py_make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"cls",  "data", "require_grad", "dispatch_sizes_strides_policy", "dispatch_device", "dispatch_layout",
                                nullptr};
  PyObject *cls, *data, *policy = Py_None;
  int require_grad = 0, dispatch_device = 0, dispatch_layout = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p$Opp:_make_subclass", const_cast<char**>(names), &cls, &data, &require_grad, &policy,
                                   &dispatch_device, &dispatch_layout))
    return nullptr;
  PyTypeObject* type = subclass_argument("_make_subclass", cls);
  CRESSET_CHECK_TYPE(is_tensor(data), "_make_subclass(): argument 'data' (position 2) must be Tensor, not ", type_name(Py_TYPE(data)));
  const bool dispatches = type_dispatches(type), answers = policy != Py_None || dispatch_device || dispatch_layout;
  CRESSET_CHECK_TYPE(dispatches || !answers, type_name(type), " must define __torch_dispatch__");
  Tensor t = dispatches ? dispatching_alias(unwrap(data)) : autograd::detach_shared(unwrap(data));
  if (require_grad) require_grad_of_new(t);
  if (answers) let_class_answer(t, policy, dispatch_device != 0, dispatch_layout != 0);
  return wrap_as(type, std::move(t));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_data_ptr_impl_keys(PyObject* self, PyObject*) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(to_string(unwrap(self).key_set()).c_str());
  CRESSET_PY_CATCH(nullptr)
}

#define CRESSET_FAST(name, doc) \
  {#name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(static_cast<Fast>(&py_##name))), METH_FASTCALL | METH_KEYWORDS, doc}
#define CRESSET_KEYWORDS(name, flags, doc) \
  {#name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_##name)), METH_VARARGS | METH_KEYWORDS | (flags), doc}

PyMethodDef own_methods[] = {
    CRESSET_FAST(size, "size(dim=None)\n\nThe sizes, or the size of one dimension."),
    CRESSET_FAST(stride, "stride(dim=None)\n\nThe strides, or the stride of one dimension."),
    CRESSET_FAST(dim, "Number of dimensions."),
    CRESSET_FAST(ndimension, "Number of dimensions."),
    CRESSET_FAST(numel, "Number of elements."),
    CRESSET_FAST(nelement, "Number of elements."),
    CRESSET_FAST(element_size, "Bytes of an element."),
    CRESSET_FAST(storage_offset, "Place of the first element in the storage."),
    CRESSET_FAST(data_ptr, "Address of the first element."),
    CRESSET_FAST(get_device, "Index of the device, -1 on the CPU."),
    CRESSET_FAST(is_floating_point, nullptr),
    CRESSET_FAST(is_complex, nullptr),
    CRESSET_FAST(is_signed, nullptr),
    CRESSET_FAST(is_inference, "Was the tensor made in inference mode?"),
    CRESSET_FAST(is_conj, nullptr),
    CRESSET_FAST(is_neg, nullptr),
    CRESSET_FAST(has_names, nullptr),
    CRESSET_FAST(is_shared, nullptr),
    CRESSET_FAST(_is_view, nullptr),
    CRESSET_FAST(is_contiguous, "is_contiguous(memory_format=contiguous_format)\n\nAre the elements in order without gaps?"),
    CRESSET_FAST(item, "The value of a tensor with one element, as a Python number."),
    CRESSET_FAST(__complex__, nullptr),
    CRESSET_FAST(tolist, "The elements as nested lists, or the number of a zero-dimensional tensor."),
    CRESSET_FAST(float, nullptr),
    CRESSET_FAST(double, nullptr),
    CRESSET_FAST(half, nullptr),
    CRESSET_FAST(bfloat16, nullptr),
    CRESSET_FAST(long, nullptr),
    CRESSET_FAST(int, nullptr),
    CRESSET_FAST(short, nullptr),
    CRESSET_FAST(char, nullptr),
    CRESSET_FAST(byte, nullptr),
    CRESSET_FAST(bool, nullptr),
    CRESSET_FAST(chalf, nullptr),
    CRESSET_FAST(cfloat, nullptr),
    CRESSET_FAST(cdouble, nullptr),
    CRESSET_FAST(cpu, "The tensor on the CPU."),
    CRESSET_FAST(to,
                 "to(dtype | device | other, non_blocking=False, copy=False, *, memory_format=None)\n\nThe tensor with another dtype or on "
                 "another device; itself when nothing changes."),
    CRESSET_FAST(type, "type() names the kind of tensor; type(dtype) converts."),
    CRESSET_FAST(requires_grad_, "requires_grad_(requires_grad=True)\n\nSets requires_grad of a leaf; returns the tensor."),
    CRESSET_FAST(is_set_to, "is_set_to(tensor)\n\nSame storage, sizes and strides?"),
    CRESSET_FAST(is_same_size, "is_same_size(other)\n\nSame sizes?"),
    {"as_subclass", py_as_subclass, METH_O, "as_subclass(cls)\n\nA view of this tensor as an instance of a subclass."},
    {"_dispatch_keys", py_data_ptr_impl_keys, METH_NOARGS, nullptr},
    CRESSET_KEYWORDS(
        new_tensor, 0,
        "new_tensor(data, *, dtype=None, device=None, requires_grad=False)\n\nA tensor of data with this tensor's dtype and device."),
    CRESSET_KEYWORDS(make_subclass, METH_STATIC, nullptr),
};

}  // namespace

// One table from the tables of all files.
PyMethodDef* all_tensor_methods() {
  static std::vector<PyMethodDef> all = [] {
    std::vector<PyMethodDef> v(std::begin(own_methods), std::end(own_methods));
    for (PyMethodDef& m : v)
      if (std::strcmp(m.ml_name, "make_subclass") == 0) m.ml_name = "_make_subclass";
    for (const PyMethodDef* table :
         {tensor_exchange_methods, tensor_dlpack_methods, tensor_autograd_methods, override_methods, wrapper_subclass_methods})
      for (const PyMethodDef* m = table; m->ml_name; ++m) v.push_back(*m);
    v.push_back({});
    return v;
  }();
  return all.data();
}

}  // namespace cresset::python
