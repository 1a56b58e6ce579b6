// Operators as Python functions and methods.
#include "python/op_function.h"

#include <algorithm>
#include <cstring>

#include "python/bind.h"
#include "python/override.h"
#include "python/printed_name.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

PyTypeObject* function_type = nullptr;  // cresset._C.builtin_function
PyTypeObject* method_type = nullptr;    // the same with binding
PyObject* return_types = nullptr;       // dict of the named tuples made so far

// Modules of _C with the operators that are functions elsewhere than in the package.
constexpr std::pair<uint8_t, const char*> submodules[] = {{kNn, "_nn"}, {kLinalg, "_linalg"}, {kSpecial, "_special"}, {kFft, "_fft"}};

OpFunction* function_of(PyObject* o) { return reinterpret_cast<OpFunction*>(o); }
bool is_method(const OpFunction* f) { return (f->where & kMethod) != 0; }

const Plan& plan_of(OpFunction* f) {
  if (CRESSET_LIKELY(f->plan != nullptr)) return *f->plan;
  std::vector<Plan::Overload> overloads;
  for (uint16_t i = 0; i < f->entry->count; ++i) {
    const TableOverload& o = f->entry->overloads[i];
    if (!(o.where & f->where)) continue;
    overloads.push_back({Dispatcher::singleton().findSchemaOrThrow(o.name, o.overload), o.numbers, o.legacy});
  }
  f->plan = new Plan(Plan::for_name(f->entry->name, is_method(f), overloads));
  return *f->plan;
}

CRESSET_NOINLINE PyObject* call_overridden(const Overriders& overriders, PyObject* callable, PyObject* const* args, Py_ssize_t n,
                                           PyObject* kwnames) {
  const OpFunction* f = function_of(callable);
  const Ref tuple = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  Ref kwargs;
  if (kwnames && PyTuple_GET_SIZE(kwnames)) {
    kwargs = checked(PyDict_New());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i)
      checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]));
  }
  return overriders.call(callable, tuple.get(), kwargs.get(),
                         ((is_method(f) ? "torch.Tensor." : "torch.") + std::string(f->entry->name)).c_str());
}

// Functions that make tensors say where and how in each call, also what was left out: modes and traces read it there.
void say_options(const FunctionSchema& schema, Stack& stack) {
  const auto& arguments = schema.arguments();
  const auto pin = std::find_if(arguments.begin(), arguments.end(), [](const Argument& a) { return a.name == "pin_memory"; });
  if (pin == arguments.end() || pin == arguments.begin()) return;
  const auto at = static_cast<std::size_t>(pin - arguments.begin());
  const std::size_t first = stack.size() - arguments.size();
  if (stack[first + at].isNone()) stack[first + at] = false;
  const bool of_tensor = arguments[0].type->kind == TypeKind::Tensor;
  if (!of_tensor && arguments[at - 1].name == "device" && stack[first + at - 1].isNone()) stack[first + at - 1] = Device(kCPU);
}

// What changes one list and returns nothing by its schema gives the list back, as PyTorch's _foreach functions do.
bool gives_list_back(const FunctionSchema& schema) {
  if (!schema.returns().empty()) return false;
  const auto& arguments = schema.arguments();
  return !arguments.empty() && arguments[0].type->kind == TypeKind::List && arguments[0].is_mutable() &&
         std::count_if(arguments.begin(), arguments.end(), [](const Argument& a) { return a.is_mutable(); }) == 1;
}

PyObject* op_call(PyObject* callable, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  CRESSET_PY_TRY
  OpFunction* f = function_of(callable);
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  Overriders overriders;
  for (Py_ssize_t i = 0; i < all; ++i) overriders.scan(args[i]);
  if (CRESSET_UNLIKELY(!overriders.empty())) return call_overridden(overriders, callable, args, n, kwnames);
  const Plan& plan = plan_of(f);
  PyObject* self = nullptr;
  if (is_method(f)) {
    CRESSET_CHECK_TYPE(n > 0, "unbound method Tensor.", f->entry->name, "() needs an argument");
    self = args[0];
    CRESSET_CHECK_TYPE(is_tensor(self), "descriptor '", f->entry->name, "' for 'Tensor' objects doesn't apply to a '",
                       type_name(Py_TYPE(self)), "' object");
    ++args;
    --n;
  }
  Match match;
  plan.parse(self, args, n, kwnames, match);
  StackLease lease;
  Stack& stack = *lease;
  const OperatorHandle& op = push_arguments(match, stack);
  if (CRESSET_UNLIKELY(impl::tls_is_dispatch_key_included(DispatchKey::Python) || is_tracing())) say_options(op.schema(), stack);
  call_operator(op, stack);
  if (match.slots[0] && gives_list_back(op.schema())) return Py_NewRef(match.slots[0]);
  Ref result = checked(wrap_results(op.schema(), stack, plan.name(), true));
  if (match.signature->requires_grad >= 0) {
    PyObject* wanted = match.slots[match.signature->requires_grad];
    if (wanted && PyObject_IsTrue(wanted) == 1) require_grad_of_new(unwrap(result.get()));
  }
  return result.release();
  CRESSET_PY_CATCH(nullptr)
}

PyObject* function_name(PyObject* o, void*) { return Py_NewRef(function_of(o)->name); }
PyObject* get_qualname(PyObject* o, void*) { return Py_NewRef(function_of(o)->qualname); }
// Where a function lies, so that pickles find it there: operators of torch.linalg, .fft, .special and .nn.functional are no functions
// of the package itself.
PyObject* get_module(PyObject* o, void*) {
  CRESSET_PY_TRY
  // Other names of operators are found there, too: special_erf of erf.
  const uint8_t where = std::strncmp(function_of(o)->entry->name, "special_", 8) == 0 ? kSpecial : function_of(o)->where;
  for (const auto& [place, name] : submodules)
    if (where == place) return PyUnicode_FromFormat("%s._C.%s", printed_name.c_str(), name);
  return PyUnicode_FromString(printed_name.c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* get_objclass(PyObject* o, void*) {
  if (!is_method(function_of(o))) {
    PyErr_SetString(PyExc_AttributeError, "__objclass__");
    return nullptr;
  }
  return Py_NewRef(reinterpret_cast<PyObject*>(tensor_type));
}
PyObject* function_doc(PyObject* o, void*) {
  CRESSET_PY_TRY
  std::string text;
  for (const Signature& s : plan_of(function_of(o)).signatures()) text += std::string(function_of(o)->entry->name) + s.text + "\n";
  return PyUnicode_FromString((text + "\n" + function_of(o)->entry->doc).c_str());
  CRESSET_PY_CATCH(nullptr)
}
// The overloads behind a name, as "aten::add.Tensor": for tools and for the tests of the override protocol.
PyObject* get_overloads(PyObject* o, void*) {
  CRESSET_PY_TRY
  const OpFunction* f = function_of(o);
  Ref list = checked(PyList_New(0));
  for (uint16_t i = 0; i < f->entry->count; ++i) {
    const TableOverload& e = f->entry->overloads[i];
    if (!(e.where & f->where)) continue;
    const Ref text = checked(PyUnicode_FromFormat(*e.overload ? "%s.%s" : "%s", e.name, e.overload));
    checked(PyList_Append(list.get(), text.get()));
  }
  return list.release();
  CRESSET_PY_CATCH(nullptr)
}
PyObject* function_repr(PyObject* o) {
  return PyUnicode_FromFormat(is_method(function_of(o)) ? "<method '%s' of 'torch._C.TensorBase' objects>" : "<built-in function %s>",
                              function_of(o)->entry->name);
}
PyObject* function_reduce(PyObject* o, PyObject*) { return Py_NewRef(function_of(o)->qualname); }
PyObject* method_bind(PyObject* o, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(o);
  return PyMethod_New(o, instance);
}

PyGetSetDef function_properties[] = {{"__name__", function_name, nullptr, nullptr, nullptr},
                                     {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
                                     {"__module__", get_module, nullptr, nullptr, nullptr},
                                     {"__doc__", function_doc, nullptr, nullptr, nullptr},
                                     {"__objclass__", get_objclass, nullptr, nullptr, nullptr},
                                     {"_overloads", get_overloads, nullptr, "Operators behind this name.", nullptr},
                                     {}};
// inspect.isbuiltin and isinstance(f, types.BuiltinFunctionType) hold, as programs expect that tell operators from Python functions.
PyObject* function_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyCFunction_Type)); }
PyGetSetDef class_property[] = {{"__class__", function_class, nullptr, nullptr, nullptr}, {}};

PyMethodDef methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr}, {}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OpFunction, vectorcall), READONLY, nullptr}, {}};

PyTypeObject* make_function_type(const char* name, bool binds) {
  std::vector<PyType_Slot> slots = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                                    {Py_tp_repr, reinterpret_cast<void*>(&function_repr)},
                                    {Py_tp_getset, function_properties},
                                    {Py_tp_methods, methods},
                                    {Py_tp_members, members}};
  if (binds) slots.push_back({Py_tp_descr_get, reinterpret_cast<void*>(&method_bind)});
  slots.push_back({0, nullptr});
  const unsigned flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | (binds ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0);
  PyType_Spec spec{name, sizeof(OpFunction), 0, flags, slots.data()};
  Ref type = checked(PyType_FromSpec(&spec));
  if (!binds) {
    const Ref property = checked(PyDescr_NewGetSet(reinterpret_cast<PyTypeObject*>(type.get()), class_property));
    checked(PyDict_SetItemString(reinterpret_cast<PyTypeObject*>(type.get())->tp_dict, "__class__", property.get()));
    PyType_Modified(reinterpret_cast<PyTypeObject*>(type.get()));
  }
  return reinterpret_cast<PyTypeObject*>(type.release());
}

Ref make_function(const TableEntry& entry, uint8_t where) {
  const bool method = (where & kMethod) != 0;
  auto* f = PyObject_New(OpFunction, method ? method_type : function_type);
  if (!f) throw ErrorAlreadySet();
  f->vectorcall = &op_call;
  f->entry = &entry;
  f->plan = nullptr;
  f->where = where;
  f->name = interned(entry.name);
  f->qualname = method ? checked(PyUnicode_FromFormat("Tensor.%s", entry.name)).release() : Py_NewRef(f->name);
  return Ref::steal(reinterpret_cast<PyObject*>(f));
}

// The fields one to a line, as PyTorch prints them.
PyObject* named_tuple_repr(PyObject* o) {
  CRESSET_PY_TRY
  const auto* members = Py_TYPE(o)->tp_members;
  std::string text = printed_name + (Py_TYPE(o)->tp_name + sizeof("cresset") - 1) + "(";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    text += std::string(i ? "," : "") + "\n" + members[i].name + "=" + to_text(checked(PyObject_Repr(PyTuple_GET_ITEM(o, i))).get());
  return PyUnicode_FromString((text + ")").c_str());
  CRESSET_PY_CATCH(nullptr)
}

// cresset.return_types.NAME with the schema's names of the results.
PyTypeObject* named_tuple(const FunctionSchema& schema, const std::string& name) {
  if (PyObject* found = PyDict_GetItemString(return_types, name.c_str())) return reinterpret_cast<PyTypeObject*>(found);
  std::vector<PyStructSequence_Field> fields;
  for (const cresset::Argument& r : schema.returns()) fields.push_back({PyUnicode_AsUTF8(interned(r.name.c_str())), nullptr});
  fields.push_back({nullptr, nullptr});
  const std::string full = "cresset.return_types." + name;
  PyStructSequence_Desc desc{PyUnicode_AsUTF8(interned(full.c_str())), nullptr, fields.data(), static_cast<int>(fields.size()) - 1};
  const Ref type = checked(reinterpret_cast<PyObject*>(PyStructSequence_NewType(&desc)));
  reinterpret_cast<PyTypeObject*>(type.get())->tp_repr = &named_tuple_repr;
  checked(PyObject_SetAttrString(type.get(), "__module__", checked(PyUnicode_FromString((printed_name + ".return_types").c_str())).get()));
  checked(PyDict_SetItemString(return_types, name.c_str(), type.get()));
  return reinterpret_cast<PyTypeObject*>(type.get());
}

// Whether the results are tensors that were given for them.
bool writes_results(const FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const cresset::Argument& a) { return a.kwarg_only && a.is_mutable(); });
}

struct StackPool {
  std::vector<std::unique_ptr<Stack>> stacks;
  std::size_t used = 0;
};
thread_local StackPool pool;

}  // namespace

StackLease::StackLease() {
  StackPool& p = pool;
  if (p.used == p.stacks.size()) {
    p.stacks.push_back(std::make_unique<Stack>());
    p.stacks.back()->reserve(16);
  }
  stack_ = p.stacks[p.used++].get();
}
StackLease::~StackLease() {
  stack_->clear();
  --pool.used;
}

PyObject* wrap_results(const FunctionSchema& schema, Stack& stack, const std::string& name, bool lists_as_tuples) {
  const auto& returns = schema.returns();
  if (returns.empty()) Py_RETURN_NONE;
  if (CRESSET_LIKELY(returns.size() == 1)) {
    const TypePtr& type = returns[0].type;
    if (type->kind == TypeKind::ScalarType && stack.back().isInt()) return wrap_dtype(pop(stack).toScalarType());
    return to_python(pop(stack), lists_as_tuples);
  }
  const auto n = static_cast<Py_ssize_t>(returns.size());
  IValue* first = stack.data() + (stack.size() - returns.size());
  const bool named =
      lists_as_tuples && std::all_of(returns.begin(), returns.end(), [](const cresset::Argument& r) { return !r.name.empty(); });
  Ref out =
      named ? checked(PyStructSequence_New(named_tuple(schema, writes_results(schema) ? name + "_out" : name))) : checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* v = checked(to_python(std::move(first[i]), lists_as_tuples)).release();
    if (named)
      PyStructSequence_SetItem(out.get(), i, v);
    else
      PyTuple_SET_ITEM(out.get(), i, v);
  }
  return out.release();
}

void init_op_functions(PyObject* module) {
  function_type = make_function_type("cresset._C.builtin_function", false);
  method_type = make_function_type("cresset._C.builtin_method", true);
  checked(PyModule_AddObjectRef(module, "builtin_function", reinterpret_cast<PyObject*>(function_type)));
  checked(PyModule_AddObjectRef(module, "builtin_method", reinterpret_cast<PyObject*>(method_type)));
  return_types = checked(PyDict_New()).release();
  checked(PyModule_AddObjectRef(module, "_return_types", return_types));
  // The type NAME for the results of an operator, which is made at its first call otherwise.
  def(module, "_named_results", [](std::string op, std::string overload, std::string name) {
    const OperatorHandle handle = Dispatcher::singleton().findSchemaOrThrow(op.c_str(), overload.c_str());
    return Object(Ref::borrow(reinterpret_cast<PyObject*>(named_tuple(handle.schema(), name))));
  });

  struct Place {
    uint8_t where;
    PyObject* module;
  };
  std::vector<Place> places;
  const auto add_place = [&](uint8_t where, const char* name) {
    PyObject* added = PyImport_AddModule((std::string("cresset._C.") + name).c_str());  // borrowed
    if (!added) throw ErrorAlreadySet();
    checked(PyModule_AddObjectRef(module, name, added));
    places.push_back({where, added});
  };
  add_place(kFunction, "_VariableFunctions");
  for (const auto& [where, name] : submodules) add_place(where, name);
  for (std::size_t i = 0; i < operator_table_size; ++i) {
    const TableEntry& entry = operator_table[i];
    uint8_t where = 0;
    for (uint16_t k = 0; k < entry.count; ++k) where |= entry.overloads[k].where;
    for (const Place& p : places)
      if (where & p.where) checked(PyObject_SetAttrString(p.module, entry.name, make_function(entry, p.where).get()));
    // Attributes such as `mT` that are operators but read like properties, and __and__ and the like, are set elsewhere.
    if ((where & kMethod) && !PyDict_GetItemString(tensor_type->tp_dict, entry.name))
      checked(PyDict_SetItemString(tensor_type->tp_dict, entry.name, make_function(entry, kMethod).get()));
  }
  PyType_Modified(tensor_type);
  checked(PyModule_AddObjectRef(module, "_factory_names", names_tuple(factory_names, factory_names_size).get()));
}

}  // namespace cresset::python
