// Queries of the dispatcher, key sets and guards: the thin private functions that PyTorch's own tests use.
#include "python/dispatch.h"

#include <cresset/dispatch/dispatcher.h>

#include <memory>
#include <utility>

#include "python/bind.h"
#include "python/convert.h"
#include "python/dispatch_mode.h"

namespace cresset::python {

static PyTypeObject* key_set_type = nullptr;

// Keys of devices and layouts that cannot exist here are remembered beside the set, and only remembered: no tensor is sent to their
// kernels.
struct PyKeySet {
  PyObject_HEAD uint64_t bits, foreign;
};

uint64_t foreign_keys_of(PyObject* o) { return Py_TYPE(o) == key_set_type ? reinterpret_cast<PyKeySet*>(o)->foreign : 0; }

namespace {

uint64_t foreign_bit(DispatchKey key) {
  constexpr int kCount = static_cast<int>(DispatchKey::NestedTensorPrivateUse1) - static_cast<int>(DispatchKey::FirstForeign) + 1;
  static_assert(kCount <= 64);
  return isForeignDispatchKey(key) ? uint64_t{1} << (static_cast<int>(key) - static_cast<int>(DispatchKey::FirstForeign)) : 0;
}
DispatchKeySet key_set_of(PyObject* o) {
  CRESSET_CHECK_TYPE(Py_TYPE(o) == key_set_type, "a DispatchKeySet was required; a ", type_name(Py_TYPE(o)), " was given.");
  return DispatchKeySet::from_raw_repr(reinterpret_cast<PyKeySet*>(o)->bits);
}
PyObject* wrap_key_set(DispatchKeySet ks, uint64_t foreign = 0) {
  auto* o = PyObject_New(PyKeySet, key_set_type);
  if (!o) return nullptr;
  o->bits = ks.raw_repr();
  o->foreign = foreign;
  return reinterpret_cast<PyObject*>(o);
}

// DispatchKey.CPU and so on: one object for each key, made at the start like the members of an enumeration.
struct PyKey {
  PyObject_HEAD DispatchKey key;
};
PyTypeObject* key_type = nullptr;

// Strings are accepted in place of keys.
DispatchKey to_key(PyObject* o) {
  if (Py_TYPE(o) == key_type) return reinterpret_cast<PyKey*>(o)->key;
  CRESSET_CHECK_TYPE(PyUnicode_Check(o), "a DispatchKey or its name was required; a ", type_name(Py_TYPE(o)), " was given.");
  return parseDispatchKey(to_text(o));
}

PyObject* key_repr(PyObject* o) { return PyUnicode_FromFormat("DispatchKey.%s", toString(reinterpret_cast<PyKey*>(o)->key)); }
PyObject* key_name(PyObject* o, void*) { return PyUnicode_FromString(toString(reinterpret_cast<PyKey*>(o)->key)); }
PyObject* key_value(PyObject* o, void*) { return PyLong_FromLong(static_cast<long>(reinterpret_cast<PyKey*>(o)->key)); }
PyGetSetDef key_properties[] = {{"name", key_name, nullptr, nullptr, nullptr}, {"value", key_value, nullptr, nullptr, nullptr}, {}};

void init_keys(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(&key_repr)},
                         {Py_nb_int, reinterpret_cast<void*>(+[](PyObject* o) { return key_value(o, nullptr); })},
                         {Py_tp_getset, key_properties},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.DispatchKey", sizeof(PyKey), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  key_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  const Ref members = checked(PyDict_New());
  for (int i = 0; i <= static_cast<int>(DispatchKey::NestedTensorPrivateUse1); ++i) {
    const auto key = static_cast<DispatchKey>(i);
    if (key == DispatchKey::NumKeys) continue;
    auto* o = PyObject_New(PyKey, key_type);
    if (!o) throw ErrorAlreadySet();
    o->key = key;
    const Ref member = Ref::steal(reinterpret_cast<PyObject*>(o));
    checked(PyDict_SetItemString(members.get(), toString(key), member.get()));
    checked(PyDict_SetItemString(key_type->tp_dict, toString(key), member.get()));
  }
  checked(PyDict_SetItemString(key_type->tp_dict, "__members__", members.get()));
  PyType_Modified(key_type);
  checked(PyModule_AddObjectRef(module, "DispatchKey", reinterpret_cast<PyObject*>(key_type)));
}

PyObject* key_set_new(PyTypeObject*, PyObject* args, PyObject*) {
  CRESSET_PY_TRY
  DispatchKeySet ks;
  uint64_t foreign = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    const DispatchKey key = to_key(PyTuple_GET_ITEM(args, i));
    ks = ks.add(key);
    foreign |= foreign_bit(key);
  }
  return wrap_key_set(ks, foreign);
  CRESSET_PY_CATCH(nullptr)
}
std::string key_set_text(PyObject* o) {
  std::string text = to_string(key_set_of(o));
  for (int i = 0; i < 64; ++i) {
    if (!(foreign_keys_of(o) >> i & 1)) continue;
    const bool first = text.ends_with("()");
    text.insert(text.size() - 1,
                (first ? "" : ", ") + std::string(toString(static_cast<DispatchKey>(static_cast<int>(DispatchKey::FirstForeign) + i))));
  }
  return text;
}
PyObject* key_set_repr(PyObject* o) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(key_set_text(o).c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* key_set_binary(PyObject* a, PyObject* b, DispatchKeySet (*f)(DispatchKeySet, DispatchKeySet),
                         uint64_t (*bits)(uint64_t, uint64_t)) {
  CRESSET_PY_TRY
  if (Py_TYPE(a) != key_set_type || Py_TYPE(b) != key_set_type) Py_RETURN_NOTIMPLEMENTED;
  return wrap_key_set(f(key_set_of(a), key_set_of(b)), bits(foreign_keys_of(a), foreign_keys_of(b)));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* key_set_or(PyObject* a, PyObject* b) {
  return key_set_binary(a, b, [](DispatchKeySet x, DispatchKeySet y) { return x | y; }, [](uint64_t x, uint64_t y) { return x | y; });
}
PyObject* key_set_and(PyObject* a, PyObject* b) {
  return key_set_binary(a, b, [](DispatchKeySet x, DispatchKeySet y) { return x & y; }, [](uint64_t x, uint64_t y) { return x & y; });
}
PyObject* key_set_sub(PyObject* a, PyObject* b) {
  return key_set_binary(a, b, [](DispatchKeySet x, DispatchKeySet y) { return x - y; }, [](uint64_t x, uint64_t y) { return x & ~y; });
}
PyObject* key_set_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != key_set_type || Py_TYPE(b) != key_set_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((key_set_of(a) == key_set_of(b) && foreign_keys_of(a) == foreign_keys_of(b)) == (op == Py_EQ));
}
Py_hash_t key_set_hash(PyObject* o) { return static_cast<Py_hash_t>(reinterpret_cast<PyKeySet*>(o)->bits >> 1); }
PyObject* key_set_has(PyObject* o, PyObject* key) {
  CRESSET_PY_TRY
  const DispatchKey k = to_key(key);
  return PyBool_FromLong(isForeignDispatchKey(k) ? (foreign_keys_of(o) & foreign_bit(k)) != 0 : key_set_of(o).has(k));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* key_set_add(PyObject* o, PyObject* key) {
  CRESSET_PY_TRY
  return wrap_key_set(key_set_of(o).add(to_key(key)), foreign_keys_of(o) | foreign_bit(to_key(key)));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* key_set_remove(PyObject* o, PyObject* key) {
  CRESSET_PY_TRY
  return wrap_key_set(key_set_of(o).remove(to_key(key)), foreign_keys_of(o) & ~foreign_bit(to_key(key)));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* key_set_raw(PyObject* o, PyObject*) { return PyLong_FromUnsignedLongLong(reinterpret_cast<PyKeySet*>(o)->bits); }
PyObject* key_set_highest(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(toString(key_set_of(o).highestPriorityTypeId()));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* key_set_from_raw(PyObject*, PyObject* bits) {
  CRESSET_PY_TRY
  return wrap_key_set(DispatchKeySet::from_raw_repr(Convert<uint64_t>::from(bits)));
  CRESSET_PY_CATCH(nullptr)
}
PyMethodDef key_set_methods[] = {{"has", key_set_has, METH_O, "Is the key in the set?"},
                                 {"add", key_set_add, METH_O, "The set with the key."},
                                 {"remove", key_set_remove, METH_O, "The set without the key's functionality."},
                                 {"raw_repr", key_set_raw, METH_NOARGS, "The bits."},
                                 {"_highest_name", key_set_highest, METH_NOARGS, nullptr},
                                 {"from_raw_repr", key_set_from_raw, METH_O | METH_STATIC, nullptr},
                                 {}};

// Guards: made with a set (or sets), active between __enter__ and __exit__.
struct KeyGuard {
  PyObject_HEAD DispatchKeySet first, second;
  cresset::detail::LocalDispatchKeyState saved;
};
enum class GuardKind { Include, Exclude, Force };

template <GuardKind K>
PyObject* guard_new(PyTypeObject* type, PyObject* args, PyObject*) {
  CRESSET_PY_TRY
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  CRESSET_CHECK_TYPE(n == (K == GuardKind::Force ? 2 : 1),
                     "dispatch key guard: ", K == GuardKind::Force ? "two key sets were" : "one key set was", " required.");
  const auto set_of = [](PyObject* o) { return Py_TYPE(o) == key_set_type ? key_set_of(o) : DispatchKeySet(to_key(o)); };
  auto* g = reinterpret_cast<KeyGuard*>(type->tp_alloc(type, 0));
  if (!g) return nullptr;
  g->first = set_of(PyTuple_GET_ITEM(args, 0));
  if (n > 1) g->second = set_of(PyTuple_GET_ITEM(args, 1));
  return reinterpret_cast<PyObject*>(g);
  CRESSET_PY_CATCH(nullptr)
}
template <GuardKind K>
PyObject* guard_enter(PyObject* o, PyObject*) {
  auto* g = reinterpret_cast<KeyGuard*>(o);
  auto& keys = cresset::detail::local_keys;
  g->saved = keys;
  if (K == GuardKind::Include) keys.included |= g->first.raw_repr();
  if (K == GuardKind::Exclude) keys.excluded |= g->first.raw_repr() & ~DispatchKeySet::kBackendMask;
  if (K == GuardKind::Force) keys = {g->first.raw_repr(), g->second.raw_repr()};
  return Py_NewRef(o);
}
PyObject* guard_exit(PyObject* o, PyObject*) {
  cresset::detail::local_keys = reinterpret_cast<KeyGuard*>(o)->saved;
  Py_RETURN_NONE;
}
template <GuardKind K>
void add_guard(PyObject* module, const char* full_name) {
  static PyMethodDef methods[] = {{"__enter__", guard_enter<K>, METH_NOARGS, nullptr}, {"__exit__", guard_exit, METH_VARARGS, nullptr}, {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&guard_new<K>)}, {Py_tp_methods, methods}, {0, nullptr}};
  PyType_Spec spec{full_name, sizeof(KeyGuard), 0, Py_TPFLAGS_DEFAULT, slots};
  checked(PyModule_AddObjectRef(module, std::strrchr(full_name, '.') + 1, checked(PyType_FromSpec(&spec)).get()));
}

// _AutoDispatchBelowAutograd(): no autograd kernels for this thread while the object lives, or until __exit__.
struct BelowAutograd {
  PyObject_HEAD uint64_t added;
};
void leave_below_autograd(PyObject* o) {
  cresset::detail::local_keys.excluded &= ~std::exchange(reinterpret_cast<BelowAutograd*>(o)->added, 0);
}
PyObject* below_autograd_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* g = reinterpret_cast<BelowAutograd*>(type->tp_alloc(type, 0));
  if (!g) return nullptr;
  uint64_t& excluded = cresset::detail::local_keys.excluded;
  g->added = autograd_dispatch_keyset.raw_repr() & ~DispatchKeySet::kBackendMask & ~excluded;
  excluded |= g->added;
  return reinterpret_cast<PyObject*>(g);
}
void below_autograd_dealloc(PyObject* o) {
  leave_below_autograd(o);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* below_autograd_enter(PyObject* o, PyObject*) { return Py_NewRef(o); }
PyObject* below_autograd_exit(PyObject* o, PyObject*) {
  leave_below_autograd(o);
  Py_RETURN_NONE;
}
void init_below_autograd(PyObject* module) {
  static PyMethodDef methods[] = {
      {"__enter__", below_autograd_enter, METH_NOARGS, nullptr}, {"__exit__", below_autograd_exit, METH_VARARGS, nullptr}, {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&below_autograd_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&below_autograd_dealloc)},
                         {Py_tp_methods, methods},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._AutoDispatchBelowAutograd", sizeof(BelowAutograd), 0, Py_TPFLAGS_DEFAULT, slots};
  checked(PyModule_AddObjectRef(module, "_AutoDispatchBelowAutograd", checked(PyType_FromSpec(&spec)).get()));
}

OperatorName parse_name(const std::string& text) {
  OperatorName n = parse_operator_name(text);
  return n;
}
std::optional<OperatorHandle> find_op(const std::string& name) { return Dispatcher::singleton().findOp(parse_name(name)); }
OperatorHandle require_op(const std::string& name) {
  const auto op = find_op(name);
  CRESSET_CHECK(op, "operator ", name, " does not exist.");
  return *op;
}

// The first alias set of an argument, of a list's elements too; empty when there is none.
std::string alias_name(const cresset::Argument& a) {
  for (const AliasInfo* i = a.alias ? &*a.alias : nullptr; i; i = i->contained.get())
    if (!i->before.empty()) return *i->before.begin();
  return "";
}

void init_key_functions(PyObject* module) {
  def(module, "_dispatch_key_name", [](PyObject* key) { return std::string(toString(to_key(key))); });
  def(module, "_dispatch_key_parse", [](std::string name) { return parseDispatchKey(name); });
  def(module, "_dispatch_is_alias_key", [](PyObject* key) { return isAliasDispatchKey(to_key(key)); });
  def(module, "_dispatch_key_names", [] {
    // (name, value) of every key.
    Ref list = checked(PyList_New(0));
    for (int i = 0; i < static_cast<int>(DispatchKey::NumKeys); ++i) {
      const Ref pair = checked(Py_BuildValue("(si)", toString(static_cast<DispatchKey>(i)), i));
      checked(PyList_Append(list.get(), pair.get()));
    }
    return Object(std::move(list));
  });
  def(module, "_dispatch_keys", [](Tensor t) { return Object(wrap_key_set(t.key_set(), foreign_keys(t))); });
  def(module, "_dispatch_key_set", [](Tensor t) { return to_string(t.key_set()); });
  def(module, "_dispatch_keyset_full", [] { return Object(wrap_key_set(DispatchKeySet(DispatchKeySet::FULL))); });
  def(module, "_dispatch_keyset_full_after",
      [](PyObject* key) { return Object(wrap_key_set(DispatchKeySet(DispatchKeySet::FULL_AFTER, to_key(key)))); });
  def(module, "_dispatch_keyset_to_string", [](PyObject* ks) { return key_set_text(ks); });
  def(module, "_dispatch_tls_local_include_set", [] { return Object(wrap_key_set(impl::tls_local_dispatch_key_set().included)); });
  def(module, "_dispatch_tls_local_exclude_set", [] { return Object(wrap_key_set(impl::tls_local_dispatch_key_set().excluded)); });
  def(module, "_dispatch_tls_is_dispatch_key_included", [](PyObject* key) { return impl::tls_is_dispatch_key_included(to_key(key)); });
  def(module, "_dispatch_tls_is_dispatch_key_excluded", [](PyObject* key) { return impl::tls_is_dispatch_key_excluded(to_key(key)); });
  def(module, "_dispatch_tls_set_dispatch_key_included",
      [](PyObject* key, bool on) { impl::tls_set_dispatch_key_included(to_key(key), on); });
  def(module, "_dispatch_tls_set_dispatch_key_excluded",
      [](PyObject* key, bool on) { impl::tls_set_dispatch_key_excluded(to_key(key), on); });
}

}  // namespace

Ref schema_parts(const FunctionSchema& s) {
  Ref arguments = checked(PyList_New(0)), returns = checked(PyList_New(0));
  for (const cresset::Argument& a : s.arguments()) {
    const Ref value = a.default_value ? checked(to_python(*a.default_value, false)) : Ref::borrow(Py_None);
    const Ref item =
        checked(Py_BuildValue("(ssOOOOs)", a.name.c_str(), a.type->str().c_str(), value.get(), a.default_value ? Py_True : Py_False,
                              a.kwarg_only ? Py_True : Py_False, a.is_mutable() ? Py_True : Py_False, alias_name(a).c_str()));
    checked(PyList_Append(arguments.get(), item.get()));
  }
  for (const cresset::Argument& r : s.returns()) {
    const Ref item =
        checked(Py_BuildValue("(ssOs)", r.name.c_str(), r.type->str().c_str(), r.is_mutable() ? Py_True : Py_False, alias_name(r).c_str()));
    checked(PyList_Append(returns.get(), item.get()));
  }
  return checked(Py_BuildValue("(ssOO)", s.name().c_str(), s.overload_name().c_str(), arguments.get(), returns.get()));
}

namespace {

void init_schemas(PyObject* module) {
  def(module, "_parse_schema", [](std::string text) { return parse_schema(text).str(); });
  def(module, "_schema_parts", [](std::string text) { return Object(schema_parts(parse_schema(text))); });
}

void init_queries(PyObject* module) {
  def(module, "_dispatch_dump", [](std::string name) {
    const auto op = find_op(name);
    return op ? op->dumpState() : std::string();
  });
  def(module, "_dispatch_dump_table", [](std::string name) {
    const auto op = find_op(name);
    return op ? op->dumpComputedTable() : std::string();
  });
  def(module, "_dispatch_check_invariants", [](std::string name) {
    const auto op = find_op(name);
    if (!op) return;
    const std::string wrong = op->checkInvariants();
    CRESSET_CHECK(wrong.empty(), wrong);
  });
  def(module, "_dispatch_check_all_invariants", [] { Dispatcher::singleton().checkInvariants(); });
  def(module, "_dispatch_has_kernel", [](std::string name) { return Dispatcher::singleton().findSchema(parse_name(name)).has_value(); });
  def(module, "_dispatch_has_kernel_for_dispatch_key",
      [](std::string name, PyObject* key) { return require_op(name).hasKernelForDispatchKey(to_key(key)); });
  def(module, "_dispatch_has_kernel_for_any_dispatch_key",
      [](std::string name, PyObject* keys) { return require_op(name).hasKernelForAnyDispatchKey(key_set_of(keys)); });
  def(module, "_dispatch_has_computed_kernel_for_dispatch_key",
      [](std::string name, PyObject* key) { return require_op(name).hasComputedKernelForDispatchKey(to_key(key)); });
  def(module, "_dispatch_kernel_for_dispatch_key_is_fallthrough",
      [](std::string name, PyObject* key) { return require_op(name).isKernelFallthroughKernel(to_key(key)); });
  def(module, "_dispatch_find_dangling_impls", [] {
    std::vector<std::string> out;
    for (const OperatorHandle& op : Dispatcher::singleton().findDanglingImpls()) out.push_back(op.dumpState());
    return out;
  });
  def(module, "_dispatch_get_all_op_names", [] {
    std::vector<std::string> out;
    for (const OperatorName& n : Dispatcher::singleton().getAllOpNames()) out.push_back(n.str());
    return out;
  });
  def(module, "_dispatch_get_registrations_for_dispatch_key", [](std::optional<std::string> key) {
    std::vector<std::string> out;
    const auto k = key && !key->empty() ? std::make_optional(parseDispatchKey(*key)) : std::nullopt;
    for (const OperatorName& n : Dispatcher::singleton().getRegistrationsForDispatchKey(k)) out.push_back(n.str());
    return out;
  });
  def(module, "_dispatch_print_registrations_for_dispatch_key", [](std::optional<std::string> key) {
    const auto k = key && !key->empty() ? std::make_optional(parseDispatchKey(*key)) : std::nullopt;
    for (const OperatorName& n : Dispatcher::singleton().getRegistrationsForDispatchKey(k)) PySys_WriteStdout("%s\n", n.str().c_str());
  });
  def(module, "_dispatch_has_backend_fallback",
      [](PyObject* key) { return Dispatcher::singleton().hasBackendFallbackForDispatchKey(to_key(key)); });
  // (operator name, argument values): the text of explain.
  def(module, "_dispatch_explain", [](std::string name, PyObject* args) {
    const OperatorHandle op = require_op(name);
    Stack stack;
    const Ref items = checked(PySequence_Fast(args, "a sequence was required"));
    const auto& parameters = op.schema().arguments();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (static_cast<Py_ssize_t>(i) < PySequence_Fast_GET_SIZE(items.get()))
        stack.push_back(
            to_ivalue(PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)), *parameters[i].type, parameters[i].name));
      else
        stack.push_back(parameters[i].default_value.value_or(IValue()));
    }
    return Dispatcher::singleton().explain(op, stack);
  });
}

}  // namespace

DispatchKey to_dispatch_key(PyObject* o) { return to_key(o); }
DispatchKeySet to_key_set(PyObject* o) { return key_set_of(o); }

void init_dispatch(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&key_set_new)},
                         {Py_tp_repr, reinterpret_cast<void*>(&key_set_repr)},
                         {Py_nb_or, reinterpret_cast<void*>(&key_set_or)},
                         {Py_nb_and, reinterpret_cast<void*>(&key_set_and)},
                         {Py_nb_subtract, reinterpret_cast<void*>(&key_set_sub)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(&key_set_compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(&key_set_hash)},
                         {Py_tp_methods, key_set_methods},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.DispatchKeySet", sizeof(PyKeySet), 0, Py_TPFLAGS_DEFAULT, slots};
  key_set_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "DispatchKeySet", reinterpret_cast<PyObject*>(key_set_type)));
  init_keys(module);
  add_guard<GuardKind::Include>(module, "cresset._C._IncludeDispatchKeyGuard");
  add_guard<GuardKind::Exclude>(module, "cresset._C._ExcludeDispatchKeyGuard");
  add_guard<GuardKind::Force>(module, "cresset._C._ForceDispatchKeyGuard");
  init_below_autograd(module);
  checked(PyModule_AddObject(module, "_after_autograd_keyset", wrap_key_set(after_autograd_keyset)));
  init_queries(module);
  init_key_functions(module);
  init_schemas(module);
}

PyObject* make_key_set(DispatchKeySet ks) { return wrap_key_set(ks); }

}  // namespace cresset::python
