// Values between Python and the stack.
#include "python/convert.h"

#include <cresset/base/utf8_decoding.h>
#include <cresset/core/dispatch_types.h>

#include "python/custom_class.h"
#include "python/graph_part.h"

namespace cresset::python {

bool is_numpy_scalar(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strncmp(name, "numpy.", 6) == 0 && std::strcmp(name, "numpy.ndarray") != 0 && Py_TYPE(o)->tp_as_number &&
         Py_TYPE(o)->tp_as_number->nb_float;
}

bool is_int(PyObject* o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  if (is_tensor(o)) return unwrap(o).dim() == 0 && isIntegralType(unwrap(o).scalar_type());
  return PyIndex_Check(o) && !PyFloat_Check(o);
}

bool is_size(PyObject* o) { return is_int(o) || (is_tensor(o) && unwrap(o).numel() == 1 && isIntegralType(unwrap(o).scalar_type())); }

bool is_int_sequence(PyObject* o) {
  if (PyTuple_Check(o)) return PyTuple_GET_SIZE(o) == 0 || is_int(PyTuple_GET_ITEM(o, 0));
  if (PyList_Check(o)) return PyList_GET_SIZE(o) == 0 || is_int(PyList_GET_ITEM(o, 0));
  return false;
}

Scalar to_scalar(PyObject* o) {
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (CRESSET_LIKELY(overflow == 0)) return Scalar(static_cast<int64_t>(v));
    const unsigned long long wide = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) throw ErrorAlreadySet();
    return Scalar(static_cast<uint64_t>(wide));
  }
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) return Scalar(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (is_tensor(o)) return to_scalar(checked(item_of(unwrap(o))).get());
  if (is_numpy_scalar(o)) return to_scalar(checked(PyObject_CallMethod(o, "item", nullptr)).get());
  if (PyIndex_Check(o)) return Scalar(to_int(o));
  CRESSET_THROW(TypeError, "a number was required; a ", type_name(Py_TYPE(o)), " was given.");
}

int64_t to_int(PyObject* o) {
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (CRESSET_UNLIKELY(overflow)) CRESSET_THROW(ValueError, "Overflow when unpacking long long");
    if (v == -1 && PyErr_Occurred()) throw ErrorAlreadySet();
    return v;
  }
  const Ref number = checked(PyNumber_Index(o));
  return to_int(number.get());
}

double to_double(PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  const double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw ErrorAlreadySet();
  return v;
}

PyObject* from_scalar(const Scalar& s) {
  if (s.isBoolean()) return PyBool_FromLong(s.toBool());
  if (s.isUnsigned()) return PyLong_FromUnsignedLongLong(s.toUInt64());
  if (s.isIntegral(false)) return PyLong_FromLongLong(s.toLong());
  if (s.isFloatingPoint()) return PyFloat_FromDouble(s.toDouble());
  const std::complex<double> c = s.toComplexDouble();
  return PyComplex_FromDoubles(c.real(), c.imag());
}

namespace {

template <class T>
PyObject* element_to_python(const void* p) {
  std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> v;  // any byte but 0 is true
  std::memcpy(&v, p, sizeof v);
  if constexpr (std::is_same_v<T, bool>)
    return PyBool_FromLong(v != 0);
  else if constexpr (std::is_same_v<T, uint64_t>)
    return PyLong_FromUnsignedLongLong(v);
  else if constexpr (std::is_integral_v<T>)
    return PyLong_FromLongLong(v);
  else if constexpr (is_complex_v<T>)
    return PyComplex_FromDoubles(v.real(), v.imag());
  else
    return PyFloat_FromDouble(static_cast<double>(v));
}

}  // namespace

PyObject* item_of(const Tensor& t) {
  CRESSET_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  if (CRESSET_LIKELY(t.is_cpu() && t.has_storage())) {
    switch (t.scalar_type()) {
#define CRESSET_CASE(T, Name, number, text) \
  case ScalarType::Name: return element_to_python<T>(t.data_ptr());
      CRESSET_FORALL_SCALAR_TYPES(CRESSET_CASE)
#undef CRESSET_CASE
      default: break;
    }
  }
  Scalar value;
  {
    GilRelease release(!t.is_cpu());  // a device waits for its queue
    value = t.item();
  }
  return from_scalar(value);
}

PyObject* item_seen(const Tensor& t) {
  if (CRESSET_LIKELY(!impl::tls_is_dispatch_key_included(DispatchKey::Python))) return item_of(t);
  CRESSET_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return from_scalar(t.item());
}

namespace {

// Streams are objects of Python, of cresset.Stream or of a subclass.
PyObject* stream_type() {
  static PyObject* const type =
      checked(PyObject_GetAttrString(checked(PyImport_ImportModule("cresset._streams")).get(), "Stream")).release();
  return type;
}
bool is_stream(PyObject* o) { return PyObject_IsInstance(o, stream_type()) == 1; }
Stream to_stream(PyObject* o) {
  const Ref device = checked(PyObject_GetAttrString(o, "device")), id = checked(PyObject_GetAttrString(o, "stream_id"));
  return Stream(Stream::UNSAFE, to_device(device.get()), to_int(id.get()));
}
PyObject* wrap_stream(Stream s) {
  const Ref arguments = checked(PyTuple_New(0));
  const Ref names = checked(Py_BuildValue("{s:L,s:i,s:s}", "stream_id", static_cast<long long>(s.id()), "device_index",
                                          int{s.device_index()}, "device_type", to_string(s.device_type()).c_str()));
  return PyObject_Call(stream_type(), arguments.get(), names.get());
}

bool is_of_script(const IValue& v) {
  using Tag = IValue::Tag;
  return v.isTuple() || v.tag() == Tag::ScriptObject || v.tag() == Tag::Enum || v.tag() == Tag::Future || v.tag() == Tag::Function;
}

// A new reference; null without an error for values that are none of a script's.
PyObject* script_value(const IValue& v) { return is_of_script(v) ? require_graph_part().script_value_to_python(v) : nullptr; }

}  // namespace

PyObject* to_python(IValue v, bool lists_as_tuples) {
  using Tag = IValue::Tag;
  switch (v.tag()) {
    case Tag::None: Py_RETURN_NONE;
    case Tag::Tensor: return wrap(std::move(v).toTensor());
    case Tag::Double: return PyFloat_FromDouble(v.toDouble());
    case Tag::Int: return PyLong_FromLongLong(v.toInt());
    case Tag::Bool: return PyBool_FromLong(v.toBool());
    case Tag::Complex:
    case Tag::UInt: return from_scalar(v.toScalar());
    case Tag::String: {
      const std::string& s = v.toStringRef();
      return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), utf8_decoding_ignore() ? "ignore" : nullptr);
    }
    case Tag::Device: return wrap_device(v.toDevice());
    case Tag::Stream: return wrap_stream(v.toStream());
    case Tag::Generator: return wrap_generator(v.toGenerator());
    case Tag::List:
    case Tag::Tuple: {
      if (v.isTuple() && v.toTupleRef().type)
        if (PyObject* named = script_value(v)) return named;
      const bool tuple = v.isTuple() || lists_as_tuples;
      const std::vector<IValue>& elements = v.isTuple() ? v.toTupleElements() : v.toListRef();
      const auto n = static_cast<Py_ssize_t>(elements.size());
      Ref out = checked(tuple ? PyTuple_New(n) : PyList_New(n));
      for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* e = checked(to_python(elements[static_cast<std::size_t>(i)], lists_as_tuples)).release();
        if (tuple)
          PyTuple_SET_ITEM(out.get(), i, e);
        else
          PyList_SET_ITEM(out.get(), i, e);
      }
      return out.release();
    }
    case Tag::Dict: {
      Ref out = checked(PyDict_New());
      for (const auto& [k, x] : v.toDictImpl().items) {
        const Ref key = checked(to_python(k, lists_as_tuples)), value = checked(to_python(x, lists_as_tuples));
        checked(PyDict_SetItem(out.get(), key.get(), value.get()));
      }
      return out.release();
    }
    case Tag::Object: return wrap_script_object(std::move(v));
    default:
      if (PyObject* o = script_value(v)) return o;
      if (PyErr_Occurred()) throw ErrorAlreadySet();
      CRESSET_THROW(Error, "a value of kind ", v.tagKind(), " has no Python form.");
  }
}

namespace {

// The elements of a tuple or list; null for anything else (strings in particular).
Ref sequence_items(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return {};
  return checked(PySequence_Fast(o, "a sequence was required"));
}

IValue infer(PyObject* o) {
  if (o == Py_None) return {};
  if (is_tensor(o)) return unwrap(o);
  if (is_number(o)) return to_scalar(o);
  if (PyUnicode_Check(o)) return to_text(o);
  if (is_device(o)) return to_device(o);
  if (is_dtype(o) || is_layout(o) || is_memory_format(o)) return static_cast<int64_t>(constant_value(o));
  if (is_generator(o)) return to_generator(o);
  if (is_script_object(o)) return unwrap_script_object(o);
  if (const Ref items = sequence_items(o)) {
    std::vector<IValue> values;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      values.push_back(infer(PySequence_Fast_GET_ITEM(items.get(), i)));
    if (PyTuple_Check(o)) return make_intrusive<ivalue::TupleImpl>(std::move(values));
    return make_intrusive<ivalue::ListImpl>(std::move(values));
  }
  if (PyDict_Check(o)) {
    auto dict = make_intrusive<ivalue::DictImpl>();
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(o, &at, &key, &value)) dict->items.insert_or_assign(infer(key), infer(value));
    return dict;
  }
  // Objects of scripts exist once the part is loaded.
  if (graph_part)
    if (auto value = graph_part->infer_script_value(o)) return std::move(*value);
  CRESSET_THROW(TypeError, "a value of type ", type_name(Py_TYPE(o)), " cannot be passed to an operator.");
}

bool fits_script(PyObject* o, const Type& type) { return graph_part && graph_part->fits_script_type(o, type); }

}  // namespace

bool fits(PyObject* o, const Type& type) {
  switch (type.kind) {
    case TypeKind::Any: return true;
    case TypeKind::Tensor: return is_tensor(o);
    case TypeKind::Number: return is_number(o) || (is_tensor(o) && unwrap(o).dim() == 0);
    case TypeKind::Int:
    case TypeKind::SymInt: return is_int(o) || is_dtype(o) || is_layout(o) || is_memory_format(o);
    case TypeKind::Float:
      return PyFloat_Check(o) || (PyLong_Check(o) && !PyBool_Check(o)) || is_numpy_scalar(o) || (is_tensor(o) && unwrap(o).dim() == 0);
    case TypeKind::Complex: return is_number(o);
    case TypeKind::Bool: return PyBool_Check(o) || (is_numpy_scalar(o) && std::strstr(Py_TYPE(o)->tp_name, "bool"));
    case TypeKind::String: return PyUnicode_Check(o);
    case TypeKind::None: return o == Py_None;
    case TypeKind::Device: return is_device(o) || PyUnicode_Check(o);
    case TypeKind::Stream: return is_stream(o);
    case TypeKind::ScalarType: return operator_dtype(o).has_value();
    case TypeKind::Layout: return operator_layout(o).has_value();
    case TypeKind::MemoryFormat: return operator_memory_format(o).has_value();
    case TypeKind::Generator: return is_generator(o);
    case TypeKind::Optional: return o == Py_None || fits(o, *type.element());
    case TypeKind::List: {
      const Ref items = sequence_items(o);
      if (!items) return fits_script(o, type);
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
        if (!fits(PySequence_Fast_GET_ITEM(items.get(), i), *type.element())) return false;
      return true;
    }
    case TypeKind::Tuple: {
      if (!PyTuple_Check(o) || static_cast<std::size_t>(PyTuple_GET_SIZE(o)) != type.contained.size()) return false;
      for (std::size_t i = 0; i < type.contained.size(); ++i)
        if (!fits(PyTuple_GET_ITEM(o, static_cast<Py_ssize_t>(i)), *type.contained[i])) return false;
      return true;
    }
    case TypeKind::Dict: {
      if (!PyDict_Check(o)) return fits_script(o, type);
      PyObject *key, *value;
      Py_ssize_t at = 0;
      while (PyDict_Next(o, &at, &key, &value))
        if (!fits(key, *type.contained[0]) || !fits(value, *type.contained[1])) return false;
      return true;
    }
    case TypeKind::Union: return std::any_of(type.contained.begin(), type.contained.end(), [&](const TypePtr& t) { return fits(o, *t); });
    case TypeKind::Object: return is_script_object(o) ? unwrap_script_object(o).type()->name == type.name : fits_script(o, type);
    default: return fits_script(o, type);
  }
}

IValue to_ivalue(PyObject* o, const Type& type, const std::string& what) {
  if (!fits(o, type))
    CRESSET_THROW(TypeError, what, ": a value of type '", type, "' was expected; a ", type_name(Py_TYPE(o)), " was given.");
  return to_fitting_ivalue(o, type);
}

// Null for what has no type by itself, an empty list, say.
static TypePtr own_type(PyObject* o) {
  try {
    return infer(o).type();
  } catch (const Error&) {
    return nullptr;
  } catch (const ErrorAlreadySet&) {
    PyErr_Clear();
    return nullptr;
  }
}

IValue to_fitting_ivalue(PyObject* o, const Type& type) {
  switch (type.kind) {
    case TypeKind::Tensor: return unwrap(o);
    case TypeKind::Number: return to_scalar(o);
    case TypeKind::Int:
    case TypeKind::SymInt: return is_dtype(o) || is_layout(o) || is_memory_format(o) ? static_cast<int64_t>(constant_value(o)) : to_int(o);
    case TypeKind::Float: return to_double(o);
    case TypeKind::Complex: return to_scalar(o).toComplexDouble();
    case TypeKind::Bool: return PyObject_IsTrue(o) == 1;
    case TypeKind::String: return to_text(o);
    case TypeKind::None: return {};
    case TypeKind::Device: return to_device(o);
    case TypeKind::Stream: return to_stream(o);
    case TypeKind::ScalarType: return operator_dtype(o).value();
    case TypeKind::Layout: return operator_layout(o).value();
    case TypeKind::MemoryFormat: return operator_memory_format(o).value();
    case TypeKind::Generator: return to_generator(o);
    case TypeKind::Optional: return o == Py_None ? IValue() : to_fitting_ivalue(o, *type.element());
    case TypeKind::List:
    case TypeKind::Tuple: {
      const Ref items = sequence_items(o);
      if (!items) return require_graph_part().to_script_value(o, type);
      std::vector<IValue> values;
      const auto n = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.get()));
      values.reserve(n);
      for (std::size_t i = 0; i < n; ++i)
        values.push_back(to_fitting_ivalue(PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)),
                                           type.kind == TypeKind::List ? *type.element() : *type.contained[i]));
      if (type.kind == TypeKind::Tuple)
        return make_intrusive<ivalue::TupleImpl>(std::move(values), type.name.empty() ? nullptr : type.shared_from_this());
      return make_intrusive<ivalue::ListImpl>(std::move(values), type.element());
    }
    case TypeKind::Dict: {
      if (!PyDict_Check(o)) return require_graph_part().to_script_value(o, type);
      auto dict = make_intrusive<ivalue::DictImpl>();
      dict->key_type = type.contained[0];
      dict->value_type = type.contained[1];
      PyObject *key, *value;
      Py_ssize_t at = 0;
      while (PyDict_Next(o, &at, &key, &value))
        dict->items.insert_or_assign(to_fitting_ivalue(key, *type.contained[0]), to_fitting_ivalue(value, *type.contained[1]));
      return dict;
    }
    case TypeKind::Union:
      // The member that the value is, before those that it could be converted to: 4 is no float in Union[float, int].
      if (const TypePtr own = own_type(o))
        for (const TypePtr& t : type.contained)
          if (own->is_subtype_of(*t)) return to_fitting_ivalue(o, *t);
      for (const TypePtr& t : type.contained)
        if (fits(o, *t)) return to_fitting_ivalue(o, *t);
      return infer(o);
    case TypeKind::Object: return is_script_object(o) ? unwrap_script_object(o) : require_graph_part().to_script_value(o, type);
    case TypeKind::Interface:
    case TypeKind::Enum: return require_graph_part().to_script_value(o, type);
    default: return infer(o);
  }
}

}  // namespace cresset::python
