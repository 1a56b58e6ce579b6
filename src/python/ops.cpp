// Operators by their schema names: what cresset.ops.NAMESPACE.NAME and its overloads call.
#include <cresset/dispatch/definitions.h>

#include <algorithm>
#include <set>
#include <span>

#include "ops/shared/promotion.h"
#include "python/bind.h"
#include "python/convert.h"
#include "python/custom_class.h"
#include "python/dispatch.h"
#include "python/graph_part.h"
#include "python/op_function.h"
#include "python/override.h"
#include "python/printed_name.h"
#include "python/python_table.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

// What a call takes beyond what fits its types.
struct Lenience {
  bool numbers;    // a number for a tensor: PyTorch's arithmetic of aten, the table knows which, and of prims
  bool undefined;  // None for a tensor reaches the kernel: everyone's operators but those of the table, whose kernels would have to ask

  explicit Lenience(const std::string& name) : numbers(takes_numbers(name)), undefined(!name.starts_with("aten::")) {}

 private:
  static bool takes_numbers(const std::string& name) {
    static const auto& names = *new std::set<std::string>([] {
      std::set<std::string> found;
      for (std::size_t i = 0; i < operator_table_size; ++i)
        for (const TableOverload *o = operator_table[i].overloads, *end = o + operator_table[i].count; o != end; ++o)
          if (o->numbers) found.insert(o->name);
      return found;
    }());
    return name.starts_with("prims::") || names.contains(name) || (name.ends_with('_') && names.contains(name.substr(0, name.size() - 1)));
  }
};

// An overload. Holds the operator's name rather than trusting the handle: the operator may be removed.
struct PyOverload {
  PyObject_HEAD vectorcallfunc vectorcall;
  impl::OperatorEntry* entry;
  PyObject* dict;
  Lenience lenience;
};
PyTypeObject* overload_type = nullptr;

OperatorHandle handle_of(PyObject* o) { return OperatorHandle(reinterpret_cast<PyOverload*>(o)->entry); }
Lenience lenience_of(PyObject* o) { return reinterpret_cast<PyOverload*>(o)->lenience; }

// "aten.add.Tensor", as messages and reprs name an overload.
std::string dotted(const OperatorName& n, bool overload) {
  std::string s = std::string(n.ns()) + "." + std::string(n.base());
  return overload ? s + "." + (n.overload_name.empty() ? "default" : n.overload_name) : s;
}

bool is_plain_sequence(PyObject* o) {
  return PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyByteArray_Check(o) && !is_tensor(o);
}

// Of NumPy's arrays; -1 for anything else.
long dimensions_of_array(PyObject* o) {
  if (!is_array(o) || is_numpy_scalar(o)) return -1;
  const Ref n = checked(PyObject_GetAttrString(o, "ndim"));
  return PyLong_AsLong(n.get());
}

// May o be passed for this type? Numbers convert into each other where that loses nothing but a type's name; a tensor is no Scalar.
bool accepts(PyObject* o, const Type& type) {
  switch (type.kind) {
    case TypeKind::Number: return is_number(o);
    case TypeKind::Int:
    case TypeKind::SymInt:
      if (PyLong_Check(o)) {
        int overflow = 0;
        PyLong_AsLongLongAndOverflow(o, &overflow);
        return overflow == 0;
      }
      return dimensions_of_array(o) <= 0 && fits(o, type);
    case TypeKind::Float: {
      if (is_tensor(o) && unwrap(o).is_complex()) return false;
      const PyNumberMethods* numbers = Py_TYPE(o)->tp_as_number;
      return fits(o, type) || (numbers && (numbers->nb_float || numbers->nb_index) && !is_tensor(o) && !is_array(o));
    }
    case TypeKind::Complex: return is_number(o) || (is_tensor(o) && unwrap(o).dim() == 0);
    case TypeKind::Bool: return is_number(o) || (is_tensor(o) && unwrap(o).numel() == 1);
    case TypeKind::Optional: return o == Py_None || accepts(o, *type.element());
    case TypeKind::List: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return fits(o, type);
      const Type& element = *type.element();
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
        if (!accepts(PySequence_Fast_GET_ITEM(o, i), element)) return false;
      return true;
    }
    default: return fits(o, type);
  }
}

// The number of a tensor of one element, of NumPy's scalars and of its arrays without dimensions, where one is wanted; an integer is cut
// out of it. Null for others.
Ref number_in(PyObject* o, const Type& type) {
  const bool whole = type.kind == TypeKind::Int || type.kind == TypeKind::SymInt;
  if (!whole && type.kind != TypeKind::Float && type.kind != TypeKind::Complex && type.kind != TypeKind::Bool) return {};
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (t.numel() != 1 || (t.is_complex() && type.kind != TypeKind::Complex)) return {};
    const Ref number = checked(PyObject_CallMethod(o, "item", nullptr));
    return whole ? checked(PyNumber_Long(number.get())) : checked(Py_NewRef(number.get()));
  }
  if (type.kind == TypeKind::Bool && is_array(o)) return Ref::steal(PyBool_FromLong(PyObject_IsTrue(o) == 1));
  if (!is_numpy_scalar(o) && dimensions_of_array(o) != 0) return {};
  Ref number = Ref::steal(whole ? PyNumber_Long(o) : PyNumber_Float(o));
  if (!number) PyErr_Clear();
  return number;
}

// Is o the one number that stands for a list of fixed length?
bool is_repeated(PyObject* o, const Type& element) {
  if (element.kind == TypeKind::Float) return PyFloat_Check(o);
  return (element.kind == TypeKind::Int || element.kind == TypeKind::SymInt) && PyLong_Check(o) && accepts(o, element);
}

// The last line of those errors.
std::string cast_details(PyObject* o, const Type& type) {
  const auto shown = [](PyObject* value) {
    const Ref text = Ref::steal(PyObject_Str(value));
    if (!text) PyErr_Clear();
    return text ? to_text(text.get()).substr(0, 200) : std::string();
  };
  const Type& inner = type.kind == TypeKind::Optional ? *type.element() : type;
  if (inner.kind == TypeKind::Tensor) return "Unable to cast " + shown(o) + " to Tensor";
  if (inner.kind == TypeKind::Number) return "Cannot cast " + shown(o) + " to number";
  const Ref name = Ref::steal(PyObject_Str(reinterpret_cast<PyObject*>(Py_TYPE(o))));
  if (!name) PyErr_Clear();
  return "Unable to cast Python instance of type " + (name ? to_text(name.get()) : std::string()) +
         " to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)";
}

}  // namespace

CRESSET_NOINLINE std::string wrong_type(const FunctionSchema& schema, std::size_t at, PyObject* o) {
  const cresset::Argument& p = schema.arguments()[at];
  std::string value;
  if (const Ref text = Ref::steal(PyObject_Repr(o)))
    value = "\nValue: " + to_text(text.get()).substr(0, 200);
  else
    PyErr_Clear();
  return schema.name() + "() Expected a value of type '" + p.type->annotation_str() + "' for argument '" + p.name +
         "' but instead found type '" + type_name(Py_TYPE(o)) + "'.\nPosition: " + std::to_string(at) + value +
         "\nDeclaration: " + schema.str() + "\nCast error details: " + cast_details(o, *p.type);
}

namespace {

// Puts an argument on the stack as a value of the parameter's type; false when it is none.
bool push_argument(const cresset::Argument& p, PyObject* o, Lenience lenience, Stack& stack) {
  const Type& type = *p.type;
  if (is_tensor(o) && type.kind == TypeKind::Tensor) {
    stack.emplace_back(unwrap(o));
    return true;
  }
  if (o == Py_None && type.kind == TypeKind::Tensor) {  // who may not have it is told when all else fits
    stack.emplace_back(Tensor());
    return true;
  }
  const Type& inner = type.kind == TypeKind::Optional ? *type.element() : type;
  if (lenience.numbers && o != Py_None && inner.kind == TypeKind::Tensor && is_number(o)) {
    stack.emplace_back(ops::wrapped_scalar_tensor(to_scalar(o)));
    return true;
  }
  Ref items;
  if (inner.kind == TypeKind::List && o != Py_None && !PyTuple_Check(o) && !PyList_Check(o)) {
    if (p.N && is_repeated(o, *inner.element())) {
      std::vector<IValue> values(static_cast<std::size_t>(*p.N), to_fitting_ivalue(o, *inner.element()));
      stack.emplace_back(make_intrusive<ivalue::ListImpl>(std::move(values), inner.element()));
      return true;
    }
    if (is_plain_sequence(o) && dimensions_of_array(o) != 0 && !fits(o, inner)) {
      items = checked(PySequence_List(o));
      o = items.get();
    }
  }
  if (!accepts(o, type)) {
    items = number_in(o, inner);
    if (!items || !accepts(items.get(), type)) return false;
    o = items.get();
  }
  stack.push_back(CRESSET_UNLIKELY(is_tracing()) ? graph_part->traced_ivalue(p.name, o, type) : to_fitting_ivalue(o, type));
  return true;
}

// Why a keyword was not used.
std::string unused_keyword(const FunctionSchema& schema, PyObject* kwnames) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k) {
    const char* key = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
    if (!schema.argument_index(key))
      return std::string("Unknown keyword argument '") + key + "' for operator '" + schema.name() + "'. Schema: " + schema.str();
  }
  return schema.name() + "() got a positional-only argument by keyword. Declaration: " + schema.str();
}

// Puts the arguments of a call on the stack; returns why they do not fit, or nothing.
std::optional<std::string> push(const OperatorHandle& op, Lenience lenience, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
                                Stack& stack) {
  const FunctionSchema& schema = op.schema();
  const auto& parameters = schema.arguments();
  const auto count = static_cast<Py_ssize_t>(parameters.size());
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  const auto declaration = [&] { return "Declaration: " + schema.str(); };  // for errors only, as is schema.name()
  if (n + keywords > count)
    return schema.name() + "() expected at most " + std::to_string(count) + " argument(s) but received " + std::to_string(n + keywords) +
           " argument(s). " + declaration();
  Py_ssize_t positional = 0;
  for (const cresset::Argument& p : parameters) positional += !p.kwarg_only;
  if (n > positional)
    return schema.name() + "() takes " + std::to_string(positional) + " positional argument(s) but " + std::to_string(n) +
           " was/were given.  " + declaration();
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->forget_traced_arguments();
  Py_ssize_t used = 0;
  std::optional<Py_ssize_t> none;  // the first None for a tensor of an operator that wants one
  for (Py_ssize_t i = 0; i < count; ++i) {
    const cresset::Argument& p = parameters[static_cast<std::size_t>(i)];
    PyObject* o = i < n && !p.kwarg_only ? args[i] : nullptr;
    for (Py_ssize_t k = 0; k < keywords; ++k) {
      PyObject* key = PyTuple_GET_ITEM(kwnames, k);
      if (PyUnicode_CompareWithASCIIString(key, p.name.c_str()) != 0) continue;
      if (o) return "Argument '" + p.name + "' specified both as positional and keyword argument. Schema: " + schema.str();
      o = args[n + k];
      ++used;
    }
    if (!o) {
      if (!p.default_value) return schema.name() + "() is missing value for argument '" + p.name + "'. " + declaration();
      stack.push_back(*p.default_value);
      continue;
    }
    if (!lenience.undefined && o == Py_None && p.type->kind == TypeKind::Tensor && !none) none = i;
    if (!push_argument(p, o, lenience, stack)) return wrong_type(schema, static_cast<std::size_t>(i), o);
  }
  if (used < keywords) return unused_keyword(schema, kwnames);
  // All else fits, so this is the overload that was meant.
  CRESSET_CHECK(!none, "Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #", none.value_or(0), " '",
                parameters[static_cast<std::size_t>(none.value_or(0))].name, "'");
  return std::nullopt;
}

PyObject* call_with_stack(const OperatorHandle& op, Stack& stack) {
  call_operator(op, stack);
  return wrap_results(op.schema(), stack, {}, false);  // only named tuples need the name
}

// The result of the __torch_function__ protocol, or null when nobody overrides. `name` is a function: only errors need the name.
template <class Name>
PyObject* override_call(PyObject* callable, const Name& name, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Overriders overriders;
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  for (Py_ssize_t i = 0; i < all; ++i) overriders.scan(args[i]);
  if (CRESSET_LIKELY(overriders.empty())) return nullptr;
  const Ref tuple = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  Ref kwargs;
  if (all > n) {
    kwargs = checked(PyDict_New());
    for (Py_ssize_t i = n; i < all; ++i) checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i - n), args[i]));
  }
  return checked(overriders.call(callable, tuple.get(), kwargs.get(), name().c_str())).release();
}

PyObject* overload_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  CRESSET_PY_TRY
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  const OperatorHandle op = handle_of(self);
  if (PyObject* r = override_call(self, [&] { return "torch.ops." + dotted(op.operator_name(), true); }, args, n, kwnames)) return r;
  StackLease lease;
  Stack& stack = *lease;
  if (const auto why = push(op, lenience_of(self), args, n, kwnames, stack)) CRESSET_THROW(Error, *why);
  return call_with_stack(op, stack);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* overload_name(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(handle_of(o).operator_name().str().c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_repr(PyObject* o) {
  CRESSET_PY_TRY
  const OperatorName& n = handle_of(o).operator_name();
  return PyUnicode_FromFormat("<OpOverload(op='%s', overload='%s')>", dotted(n, false).c_str(),
                              n.overload_name.empty() ? "default" : n.overload_name.c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_str(PyObject* o) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(dotted(handle_of(o).operator_name(), true).c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_schema_text(PyObject* o, void*) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(handle_of(o).schema().str().c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_property(PyObject* o, void* which) {
  CRESSET_PY_TRY
  const OperatorName& n = handle_of(o).operator_name();
  switch (reinterpret_cast<uintptr_t>(which)) {
    case 0: return Convert<std::string>::to(std::string(n.ns()));
    case 1: return PyUnicode_FromString(n.overload_name.empty() ? "default" : n.overload_name.c_str());
    case 2: return Convert<std::string>::to(std::string(n.base()) + "." + (n.overload_name.empty() ? "default" : n.overload_name));
    default: return Convert<std::string>::to(printed_name + "._ops." + std::string(n.ns()));
  }
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_tags(PyObject* o, void*) {
  CRESSET_PY_TRY
  return Convert<std::vector<std::string>>::to(handle_of(o).getTags());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_has_kernel(PyObject* o, PyObject* key) {
  CRESSET_PY_TRY
  return PyBool_FromLong(handle_of(o).hasKernelForDispatchKey(Convert<DispatchKey>::from(key)));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_has_any_kernel(PyObject* o, PyObject* keys) {
  CRESSET_PY_TRY
  return PyBool_FromLong(handle_of(o).hasKernelForAnyDispatchKey(to_key_set(keys)));
  CRESSET_PY_CATCH(nullptr)
}
// redispatch(key set bits or DispatchKeySet, *args)
PyObject* overload_redispatch(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  CRESSET_CHECK_TYPE(n >= 1, "redispatch: a DispatchKeySet was required.");
  const Ref raw = PyLong_Check(args[0]) ? Ref::borrow(args[0]) : checked(PyObject_CallMethod(args[0], "raw_repr", nullptr));
  const OperatorHandle op = handle_of(o);
  StackLease lease;
  Stack& stack = *lease;
  if (const auto why = push(op, lenience_of(o), args + 1, n - 1, kwnames, stack)) CRESSET_THROW(Error, *why);
  const auto keys = DispatchKeySet::from_raw_repr(Convert<uint64_t>::from(raw.get()));
  without_lock(any_waits(stack), [&] { op.redispatchBoxed(keys, &stack); });
  return wrap_results(op.schema(), stack, "", false);
  CRESSET_PY_CATCH(nullptr)
}
PyObject* overload_reduce(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  const Ref module = checked(PyImport_ImportModule("cresset._ops"));
  const Ref find = checked(PyObject_GetAttrString(module.get(), "_find_overload"));
  const OperatorName& n = handle_of(o).operator_name();
  return Py_BuildValue("(O(ss))", find.get(), n.name.c_str(), n.overload_name.c_str());
  CRESSET_PY_CATCH(nullptr)
}

PyMethodDef overload_methods[] = {
    {"name", overload_name, METH_NOARGS, "\"aten::add.Tensor\""},
    {"has_kernel_for_dispatch_key", overload_has_kernel, METH_O, "Is a kernel registered for exactly this key?"},
    {"has_kernel_for_any_dispatch_key", overload_has_any_kernel, METH_O, "Is a kernel registered for one of the set's keys?"},
    {"redispatch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&overload_redispatch)), METH_FASTCALL | METH_KEYWORDS,
     "redispatch(keyset, *args)\n\nCalls with exactly these keys."},
    {"__reduce__", overload_reduce, METH_NOARGS, nullptr},
    {}};
PyGetSetDef overload_properties[] = {{"_schema_text", overload_schema_text, nullptr, nullptr, nullptr},
                                     {"namespace", overload_property, nullptr, nullptr, reinterpret_cast<void*>(uintptr_t{0})},
                                     {"_overloadname", overload_property, nullptr, nullptr, reinterpret_cast<void*>(uintptr_t{1})},
                                     {"__name__", overload_property, nullptr, nullptr, reinterpret_cast<void*>(uintptr_t{2})},
                                     {"__module__", overload_property, nullptr, nullptr, reinterpret_cast<void*>(uintptr_t{3})},
                                     {"_tag_names", overload_tags, nullptr, nullptr, nullptr},
                                     {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                     {}};
PyMemberDef overload_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOverload, vectorcall), READONLY, nullptr},
                                  {"__dictoffset__", T_PYSSIZET, offsetof(PyOverload, dict), READONLY, nullptr},
                                  {}};

// All overloads of a name. The class with everything that needs no speed is in Python, on top of this one.
struct PyPacket {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::string* name;  // "aten::add"
  Lenience* lenience;
  std::vector<OperatorHandle>* overloads;
  uint64_t definitions;  // when the overloads were looked up
};

std::vector<OperatorHandle> overloads_in_order(const std::string& name) {
  std::vector<OperatorHandle> all = Dispatcher::singleton().overloadsOf(name);
  const std::span first(first_overloads, first_overloads_size);
  if (const auto row = std::ranges::find(first, name, [](const auto& r) { return r.first; }); row != first.end())
    std::stable_partition(all.begin(), all.end(),
                          [&](const OperatorHandle& op) { return op.operator_name().overload_name == row->second; });
  return all;
}

const std::vector<OperatorHandle>& overloads_of(PyPacket* p) {
  if (const uint64_t now = definition_count(); CRESSET_UNLIKELY(p->definitions != now)) {
    *p->overloads = overloads_in_order(*p->name);
    p->definitions = now;
  }
  return *p->overloads;
}

// The first overload whose schema takes the arguments, which are on the stack then.
OperatorHandle matching(PyPacket* packet, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Stack& stack) {
  const std::vector<OperatorHandle> overloads = overloads_of(packet);  // a copy: conversions may run Python code
  CRESSET_CHECK_AS(AttributeError, !overloads.empty(), "operator ", *packet->name, " is not defined any more.");
  std::string text = "Overloaded torch operator invoked from Python failed to match any schema:\n";
  for (const OperatorHandle& op : overloads) {
    stack.clear();
    const auto why = push(op, *packet->lenience, args, n, kwnames, stack);
    if (!why) return op;
    text += *why + "\n\n";
  }
  CRESSET_THROW(Error, text);
}

// Calls the first overload whose schema takes the arguments.
PyObject* packet_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  CRESSET_PY_TRY
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  auto* packet = reinterpret_cast<PyPacket*>(self);
  const std::string& name = *packet->name;
  if (PyObject* r = override_call(self, [&] { return "torch.ops." + name; }, args, n, kwnames)) return r;
  StackLease lease;
  Stack& stack = *lease;
  const Lenience lenience = *packet->lenience;
  if (const auto& known = overloads_of(packet); CRESSET_LIKELY(known.size() == 1)) {
    const OperatorHandle op = known[0];
    if (const auto why = push(op, lenience, args, n, kwnames, stack)) CRESSET_THROW(Error, *why);
    return call_with_stack(op, stack);
  }
  return call_with_stack(matching(packet, args, n, kwnames, stack), stack);
  CRESSET_PY_CATCH(nullptr)
}

// packet._matching(*args, **kwargs): the name of the overload that a call runs.
PyObject* packet_matching(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  StackLease lease;
  const OperatorHandle op = matching(reinterpret_cast<PyPacket*>(self), args, n, kwnames, *lease);
  const std::string& overload = op.operator_name().overload_name;
  return PyUnicode_FromString(overload.empty() ? "default" : overload.c_str());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* packet_new(PyTypeObject* type, PyObject* args, PyObject*) {
  CRESSET_PY_TRY
  const char *ns, *name;
  if (!PyArg_ParseTuple(args, "ss:OpOverloadPacket", &ns, &name)) return nullptr;
  auto* p = reinterpret_cast<PyPacket*>(type->tp_alloc(type, 0));
  if (!p) return nullptr;
  p->vectorcall = &packet_call;
  p->name = new std::string(std::string(ns) + "::" + name);
  p->lenience = new Lenience(*p->name);
  p->overloads = new std::vector<OperatorHandle>();
  p->definitions = 0;
  return reinterpret_cast<PyObject*>(p);
  CRESSET_PY_CATCH(nullptr)
}
void packet_dealloc(PyObject* o) {
  auto* p = reinterpret_cast<PyPacket*>(o);
  delete p->name;
  delete p->lenience;
  delete p->overloads;
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
PyMethodDef packet_methods[] = {{"_matching", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&packet_matching)),
                                 METH_FASTCALL | METH_KEYWORDS, "The name of the overload that a call with these arguments runs."},
                                {}};
PyMemberDef packet_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyPacket, vectorcall), READONLY, nullptr}, {}};

void init_packet(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&packet_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&packet_dealloc)},
                         {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_methods, packet_methods},
                         {Py_tp_members, packet_members},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._Packet", sizeof(PyPacket), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  checked(PyModule_AddObjectRef(module, "_Packet", checked(PyType_FromSpec(&spec)).get()));
}

}  // namespace

// One object an overload: torch.ops.aten.add.Tensor is itself.
PyObject* wrap_overload(const OperatorHandle& op) {
  static auto& made = *new std::map<impl::OperatorEntry*, PyObject*>();
  PyObject*& slot = made[op.entry()];
  if (!slot) {
    auto* o = PyObject_New(PyOverload, overload_type);
    if (!o) throw ErrorAlreadySet();
    o->vectorcall = &overload_call;
    o->entry = op.entry();
    o->dict = nullptr;
    new (&o->lenience) Lenience(op.operator_name().name);
    slot = reinterpret_cast<PyObject*>(o);
  }
  return Py_NewRef(slot);
}

void init_ops(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_repr, reinterpret_cast<void*>(&overload_repr)},
                         {Py_tp_str, reinterpret_cast<void*>(&overload_str)},
                         {Py_tp_methods, overload_methods},
                         {Py_tp_getset, overload_properties},
                         {Py_tp_members, overload_members},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._ops.OpOverload", sizeof(PyOverload), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  overload_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "OpOverload", reinterpret_cast<PyObject*>(overload_type)));
  init_packet(module);

  def(module, "_find_overload", [](std::string name, std::string overload) -> std::optional<Object> {
    const auto op = Dispatcher::singleton().findSchema({name, overload});
    if (!op) return std::nullopt;
    return Object(wrap_overload(*op));
  });
  def(module, "_overload_names", [](std::string name) {
    std::vector<std::string> names;
    for (const OperatorHandle& op : overloads_in_order(name)) names.push_back(op.operator_name().overload_name);
    return names;
  });
}

}  // namespace cresset::python
