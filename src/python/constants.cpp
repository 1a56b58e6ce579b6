// dtype, layout and memory_format objects, and the functions about dtypes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <cresset/core/dtype_codes.h>

#include "python/bind.h"
#include "python/convert.h"
#include "python/printed_name.h"
#include "python/types.h"

namespace cresset::python {

std::string printed_name = "cresset";

PyTypeObject* dtype_type = nullptr;
PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;

namespace {

PyObject* dtype_objects[static_cast<int>(ScalarType::NumOptions)];
PyObject* layout_objects[16];
PyObject* memory_format_objects[4];

PyObject* constant_repr(PyObject* o) { return PyUnicode_FromFormat("%s.%s", printed_name.c_str(), reinterpret_cast<PyConstant*>(o)->name); }
// Pickled as the name of a global of the class's module.
PyObject* constant_reduce(PyObject* o, PyObject*) { return PyUnicode_FromString(reinterpret_cast<PyConstant*>(o)->name); }
PyObject* constant_self(PyObject* o, PyObject*) { return Py_NewRef(o); }

PyMethodDef constant_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, nullptr},
                                  {"__copy__", constant_self, METH_NOARGS, nullptr},
                                  {"__deepcopy__", constant_self, METH_O, nullptr},
                                  {}};

ScalarType dtype_of(PyObject* o) { return static_cast<ScalarType>(constant_value(o)); }

// The value of a Python int from 0 to 127, else -1.
int small_int(PyObject* o) {
  if (!PyLong_Check(o) || PyBool_Check(o)) return -1;
  int overflow = 0;
  const long n = PyLong_AsLongAndOverflow(o, &overflow);
  return !overflow && n >= 0 && n < 128 ? static_cast<int>(n) : -1;
}
bool is_named_type(ScalarType t) {
  switch (t) {
#define CRESSET_NAMED(Name, number) case ScalarType::Name:
    CRESSET_FORALL_NAMED_TYPES(CRESSET_NAMED)
#undef CRESSET_NAMED
    return true;
    default: return false;
  }
}

template <class T, std::size_t n>
std::optional<T> operator_constant(PyObject* o, PyTypeObject* type, PyObject* const (&objects)[n]) {
  if (Py_TYPE(o) == type) return static_cast<T>(constant_value(o));
  const int number = small_int(o);
  return number >= 0 && number < static_cast<int>(n) && objects[number] ? std::optional(static_cast<T>(number)) : std::nullopt;
}

PyObject* to_real(PyObject* o, PyObject*) { return wrap_dtype(toRealValueType(dtype_of(o))); }
PyObject* to_complex(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  const ScalarType t = dtype_of(o);
  CRESSET_CHECK(isDifferentiableType(t) && !isFloat8Type(t), "Unknown Complex ScalarType for ", t);
  return wrap_dtype(toComplexType(t));
  CRESSET_PY_CATCH(nullptr)
}
PyMethodDef dtype_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, nullptr},
                               {"__copy__", constant_self, METH_NOARGS, nullptr},
                               {"__deepcopy__", constant_self, METH_O, nullptr},
                               {"to_real", to_real, METH_NOARGS, "The real dtype of the same precision."},
                               {"to_complex", to_complex, METH_NOARGS, "The complex dtype of the same precision."},
                               {}};
PyObject* dtype_is_floating(PyObject* o, void*) { return PyBool_FromLong(isFloatingType(dtype_of(o))); }
PyObject* dtype_is_complex(PyObject* o, void*) { return PyBool_FromLong(isComplexType(dtype_of(o))); }
PyObject* dtype_is_signed(PyObject* o, void*) { return PyBool_FromLong(isSignedType(dtype_of(o))); }
PyObject* dtype_itemsize(PyObject* o, void*) { return PyLong_FromSize_t(element_size(dtype_of(o))); }
PyGetSetDef dtype_properties[] = {
    {"is_floating_point", dtype_is_floating, nullptr, "float16, bfloat16, float32, float64 or an eight-bit floating type?", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "complex32, complex64 or complex128?", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "Has negative values?", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of an element.", nullptr},
    {}};

PyTypeObject* make_type(PyObject* module, const char* name, PyMethodDef* methods, PyGetSetDef* properties, const char* doc) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_repr, reinterpret_cast<void*>(&constant_repr)}, {Py_tp_methods, methods}, {Py_tp_doc, const_cast<char*>(doc)}};
  if (properties) slots.push_back({Py_tp_getset, properties});
  slots.push_back({0, nullptr});
  PyType_Spec spec{name, sizeof(PyConstant), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  auto* type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, strrchr(type->tp_name, '.') + 1, reinterpret_cast<PyObject*>(type)));
  return type;
}

PyObject* make_constant(PyObject* module, PyTypeObject* type, int value, const char* name, const char* alias = nullptr) {
  auto* o = PyObject_New(PyConstant, type);
  if (!o) throw ErrorAlreadySet();
  o->value = value;
  o->name = name;
  for (const char* n : {name, alias})
    if (n) checked(PyModule_AddObjectRef(module, n, reinterpret_cast<PyObject*>(o)));
  return reinterpret_cast<PyObject*>(o);
}

// finfo(dtype): (bits, eps, max, min, tiny, smallest_subnormal, resolution).
template <class T>
PyObject* float_facts() {
  using L = std::numeric_limits<T>;
  constexpr int mantissa = L::digits - 1;  // bits behind the leading one
  const double tiny = static_cast<double>(L::min()), resolution = std::pow(10, -std::floor(mantissa * std::log10(2)));
  return Py_BuildValue("(idddddd)", static_cast<int>(8 * sizeof(T)), static_cast<double>(L::epsilon()), static_cast<double>(L::max()),
                       static_cast<double>(L::lowest()), tiny, std::ldexp(tiny, -mantissa), resolution);
}

Object finfo_facts(PyObject* o) {
  CRESSET_CHECK_TYPE(is_dtype(o), "finfo: a dtype was required; a ", type_name(Py_TYPE(o)), " was given.");
  switch (toRealValueType(dtype_of(o))) {
#define CRESSET_FACTS(T, Name, number, text) \
  case ScalarType::Name: return Object(float_facts<T>());
    CRESSET_HALF_TYPES(CRESSET_FACTS)
    CRESSET_WIDE_FLOAT_TYPES(CRESSET_FACTS)
    CRESSET_FLOAT8_TYPES(CRESSET_FACTS)
#undef CRESSET_FACTS
    default:
      CRESSET_THROW(TypeError, "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.",
                    dtype_name(dtype_of(o)), "'");
  }
}

// iinfo(dtype): (bits, min, max).
Object iinfo_facts(PyObject* o) {
  CRESSET_CHECK_TYPE(is_dtype(o), "iinfo: a dtype was required; a ", type_name(Py_TYPE(o)), " was given.");
  const ScalarType t = dtype_of(o);
  CRESSET_CHECK_TYPE(isIntegralType(t, true), "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.",
                     dtype_name(t), "'");
  const int bits = static_cast<int>(8 * element_size(t));
  if (t == kBool) return Object(Py_BuildValue("(iii)", 8, 0, 1));
  const bool is_signed = isSignedType(t);
  const unsigned long long max = ~0ull >> (64 - bits + (is_signed ? 1 : 0));
  return Object(Py_BuildValue("(iLK)", bits, is_signed ? -static_cast<long long>(max) - 1 : 0ll, max));
}

}  // namespace

bool is_dtype_like(PyObject* o) {
  return is_dtype(o) || o == reinterpret_cast<PyObject*>(&PyFloat_Type) || o == reinterpret_cast<PyObject*>(&PyLong_Type) ||
         o == reinterpret_cast<PyObject*>(&PyBool_Type) || o == reinterpret_cast<PyObject*>(&PyComplex_Type);
}

ScalarType to_scalar_type(PyObject* o) {
  if (is_dtype(o)) return dtype_of(o);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kDouble;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return kLong;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return kBool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return kComplexDouble;
  CRESSET_THROW(TypeError, "a dtype was required; a ", type_name(Py_TYPE(o)), " was given.");
}

PyObject* wrap_dtype(ScalarType t) {
  PyObject*& o = dtype_objects[static_cast<int>(t)];
  // Types without elements are objects of Python's, which name themselves when their module is loaded.
  if (CRESSET_UNLIKELY(!o) && is_named_type(t) && !Ref::steal(PyImport_ImportModule("cresset._quantized_types"))) return nullptr;
  return Py_NewRef(o ? o : Py_None);
}

std::optional<ScalarType> operator_dtype(PyObject* o) {
  if (is_dtype_like(o)) return to_scalar_type(o);
  if (const int number = small_int(o); number >= 0) {
    const bool known =
        number < static_cast<int>(ScalarType::Undefined) && (dtype_objects[number] || is_named_type(static_cast<ScalarType>(number)));
    return known ? std::optional(static_cast<ScalarType>(number)) : std::nullopt;
  }
  const auto at = std::find(std::begin(dtype_objects), std::end(dtype_objects), o);
  return at != std::end(dtype_objects) ? std::optional(static_cast<ScalarType>(at - dtype_objects)) : std::nullopt;
}
std::optional<Layout> operator_layout(PyObject* o) { return operator_constant<Layout>(o, layout_type, layout_objects); }
std::optional<MemoryFormat> operator_memory_format(PyObject* o) {
  return operator_constant<MemoryFormat>(o, memory_format_type, memory_format_objects);
}

PyObject* wrap_layout(Layout l) { return Py_NewRef(layout_objects[static_cast<int>(l)]); }
PyObject* wrap_memory_format(MemoryFormat f) { return Py_NewRef(memory_format_objects[static_cast<int>(f)]); }

void init_constants(PyObject* module) {
  dtype_type = make_type(module, "cresset.dtype", dtype_methods, dtype_properties, "An element type.");
  layout_type = make_type(module, "cresset.layout", constant_methods, nullptr, "A memory layout.");
  memory_format_type = make_type(module, "cresset.memory_format", constant_methods, nullptr, "An order of dimensions in memory.");
  const auto dtype = [&](ScalarType t, const char* alias) {
    dtype_objects[static_cast<int>(t)] = make_constant(module, dtype_type, static_cast<int>(t), dtype_name(t), alias);
  };
#define CRESSET_DTYPE(T, Name, number, text) dtype(ScalarType::Name, dtype_alias(ScalarType::Name));
  CRESSET_FORALL_SCALAR_TYPES(CRESSET_DTYPE)
#undef CRESSET_DTYPE
  const auto layout = [&](Layout l, const char* name) {
    layout_objects[static_cast<int>(l)] = make_constant(module, layout_type, static_cast<int>(l), name);
  };
  layout(Layout::Strided, "strided");
  layout(Layout::Sparse, "sparse_coo");
  layout(Layout::SparseCsr, "sparse_csr");
  layout(Layout::Mkldnn, "_mkldnn");
  layout(Layout::Custom, "custom_layout");
  // Layouts that only Python's tensor types have, which no operator in C++ meets.
  layout(Layout::SparseCsc, "sparse_csc");
  layout(Layout::SparseBsr, "sparse_bsr");
  layout(Layout::SparseBsc, "sparse_bsc");
  layout(Layout::Jagged, "jagged");
  const auto format = [&](MemoryFormat f, const char* name) {
    memory_format_objects[static_cast<int>(f)] = make_constant(module, memory_format_type, static_cast<int>(f), name);
  };
  format(MemoryFormat::Contiguous, "contiguous_format");
  format(MemoryFormat::Preserve, "preserve_format");
  format(MemoryFormat::ChannelsLast, "channels_last");
  format(MemoryFormat::ChannelsLast3d, "channels_last_3d");

  def(module, "_name_dtype", [](int64_t number, PyObject* o) {
    CRESSET_CHECK(number >= 0 && number < static_cast<int64_t>(ScalarType::Undefined) && is_named_type(static_cast<ScalarType>(number)),
                  "_name_dtype: ", number, " is no element type without elements.");
    Py_XSETREF(dtype_objects[number], Py_NewRef(o));
  });
  def(module, "promote_types", [](ScalarType a, ScalarType b) { return promote_types(a, b); });
  def(module, "can_cast", [](ScalarType from, ScalarType to) { return canCast(from, to); });
  def(module, "get_default_dtype", [] { return get_default_dtype(); });
  def(module, "set_default_dtype", [](PyObject* o) {
    CRESSET_CHECK_TYPE(is_dtype(o), "invalid dtype object: only floating-point types are supported as the default type");
    set_default_dtype(dtype_of(o));
  });
  def(module, "_printed_name", [] { return printed_name; });
  def(module, "_set_printed_name", [](const std::string& name) { printed_name = name; });
  def(module, "_safetensors_code", [](ScalarType t) { return std::string(safetensors_code(t) ? safetensors_code(t) : ""); });
  def(module, "_finfo", [](PyObject* o) { return finfo_facts(o); });
  def(module, "_iinfo", [](PyObject* o) { return iinfo_facts(o); });
}

}  // namespace cresset::python
