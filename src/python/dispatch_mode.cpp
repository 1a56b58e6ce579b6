// The __torch_dispatch__ protocol: what stands behind the dispatch key Python.
#include "python/dispatch_mode.h"

#include <cresset/core/tensor_impl.h>
#include <cresset/dispatch/dispatcher.h>

#include <algorithm>

#include "python/bind.h"
#include "python/convert.h"
#include "python/dispatch.h"
#include "python/override.h"
#include "python/printed_name.h"
#include "python/python_kernel.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace cresset::python {

namespace {

PyObject* dispatch_name = nullptr;  // "__torch_dispatch__"
PyObject* no_dispatch = nullptr;    // what Tensor itself has
PyObject* rules = nullptr;          // {(overload, class): function}, from register_torch_dispatch
constexpr DispatchKeySet kPythonKeys{DispatchKey::Python, DispatchKey::PythonTLSSnapshot};

// Modes of this thread, the innermost last; owned.
std::vector<PyObject*>& modes() {
  thread_local std::vector<PyObject*> stack;
  return stack;
}

// While a mode is active every call has the key Python.
void refresh_key() {
  constexpr uint64_t bit = DispatchKeySet(DispatchKey::Python).raw_repr();
  auto& included = cresset::detail::local_keys.included;
  included = modes().empty() ? included & ~bit : included | bit;
}

// Takes the innermost mode off for the time of its own call.
struct DispatchModeGuard {
  PyObject* mode;
  DispatchModeGuard() : mode(modes().back()) {
    modes().pop_back();
    refresh_key();
  }
  ~DispatchModeGuard() {
    modes().push_back(mode);
    refresh_key();
  }
};

PyObject* object_of(const Tensor& t) {
  if (!t.defined() || !t.key_set().has(DispatchKey::Python)) return nullptr;
  auto* o = static_cast<PyObject*>(t.unsafeGetTensorImpl()->pyobject());
  return o && type_dispatches(Py_TYPE(o)) ? o : nullptr;
}

// Arguments whose class takes part: subclasses first, then left to right, each class once.
struct Asked {
  std::vector<Ref> objects;

  void add(const IValue& v) {
    if (v.isTensor()) {
      if (PyObject* o = object_of(v.toTensor())) insert(o, v.toTensor());
    } else if (v.isList()) {
      for (const IValue& e : v.toListRef()) add(e);
    }
  }
  void insert(PyObject* o, const Tensor& t) {
    std::size_t at = objects.size();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      PyTypeObject* other = Py_TYPE(objects[i].get());
      if (other == Py_TYPE(o)) return;
      if (at == objects.size() && PyType_IsSubtype(Py_TYPE(o), other)) at = i;
    }
    objects.insert(objects.begin() + static_cast<std::ptrdiff_t>(at), checked(wrap(t)));
  }
  Ref types() const {
    Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(objects.size())));
    for (std::size_t i = 0; i < objects.size(); ++i)
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects[i].get()))));
    return out;
  }
};

struct PythonCall {
  Ref function, args, kwargs;

  // Trailing positional arguments and keyword-only ones that have their default are left out.
  PythonCall(const OperatorHandle& op, const IValue* values) : function(checked(wrap_overload(op))), kwargs(checked(PyDict_New())) {
    const auto& parameters = op.schema().arguments();
    const auto is_default = [&](std::size_t i) {
      const auto& standard = parameters[i].default_value;
      return standard && !values[i].isTensor() && values[i] == *standard;
    };
    std::size_t positional = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!parameters[i].kwarg_only && !is_default(i)) positional = i + 1;
    args = checked(PyTuple_New(static_cast<Py_ssize_t>(positional)));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (i < positional) {
        PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), argument_to_python(values[i], *parameters[i].type).release());
      } else if (parameters[i].kwarg_only && !is_default(i)) {
        const Ref value = argument_to_python(values[i], *parameters[i].type);
        checked(PyDict_SetItemString(kwargs.get(), parameters[i].name.c_str(), value.get()));
      }
    }
  }

  Ref ask(PyObject* object, PyObject* types) const {
    if (PyDict_GET_SIZE(rules) != 0) {
      // A rule for exactly this operator and class: rule(mode, …), or rule(class, …) for tensors.
      PyObject* cls = reinterpret_cast<PyObject*>(Py_TYPE(object));
      const Ref key = checked(PyTuple_Pack(2, function.get(), cls));
      if (PyObject* rule = PyDict_GetItemWithError(rules, key.get()))
        return checked(
            PyObject_CallFunctionObjArgs(rule, is_tensor(object) ? cls : object, function.get(), types, args.get(), kwargs.get(), nullptr));
      if (PyErr_Occurred()) throw ErrorAlreadySet();
    }
    const Ref method = checked(PyObject_GetAttr(object, dispatch_name));
    return checked(PyObject_CallFunctionObjArgs(method.get(), function.get(), types, args.get(), kwargs.get(), nullptr));
  }
};

}  // namespace

Ref ask_torch_dispatch(const OperatorHandle& op, const IValue* values, std::size_t n, bool question) {
  Asked asked;
  for (std::size_t i = 0; i < n; ++i) asked.add(values[i]);
  if (modes().empty() && asked.objects.empty()) return {};
  const AutoDispatchBelowAutograd below;
  const PythonCall call(op, values);
  const Ref types = asked.types();
  std::string refused;
  const auto refuse = [&](const char* what, PyObject* o) {
    refused += std::string("\n\n  - ") + what + to_text(checked(PyObject_Repr(o)).get());
  };
  if (!modes().empty()) {
    const DispatchModeGuard guard;
    const Ref mode = Ref::borrow(guard.mode);
    Ref r = call.ask(mode.get(), types.get());
    if (r.get() != Py_NotImplemented) return r;
    refuse("mode object ", mode.get());
  }
  for (const Ref& o : asked.objects) {
    Ref r = call.ask(o.get(), types.get());
    if (r.get() != Py_NotImplemented) return r;
    refuse("tensor subclass ", reinterpret_cast<PyObject*>(Py_TYPE(o.get())));
  }
  std::string name = to_text(checked(PyObject_Str(call.function.get())).get());
  name = question ? ".ops." + name.substr(0, name.rfind('.')) : "._ops." + name;
  CRESSET_THROW(TypeError, "Multiple dispatch failed for '", printed_name, name,
                "'; all __torch_dispatch__ handlers returned NotImplemented:", refused,
                "\n\nFor more information, try re-running with TORCH_LOGS=not_implemented");
}

namespace {

// The argument that a view operator gives views of; undefined for other operators.
Tensor base_of_views(const FunctionSchema& schema, const IValue* values) {
  const auto shares = [](const auto& a) { return a.alias && !a.is_mutable(); };
  if (!std::any_of(schema.returns().begin(), schema.returns().end(), shares)) return {};
  for (std::size_t i = 0; i < schema.arguments().size(); ++i)
    if (shares(schema.arguments()[i]) && values[i].isTensor()) return values[i].toTensor();
  return {};
}

// Views of wrappers count their changes with what they are views of, as those of tensors with memory do: what autograd saved must notice.
void count_with(const Tensor& base, const IValue& result) {
  if (result.isList()) {
    for (const IValue& e : result.toListRef()) count_with(base, e);
  } else if (result.isTensor() && result.toTensor().defined()) {
    const Tensor& view = result.toTensor();
    if (!view.has_storage() && !view.is_same(base) && !view.is_inference())
      view.unsafeGetTensorImpl()->share_version_with(*base.unsafeGetTensorImpl());
  }
}

void python_fallback(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  {
    GilAcquire gil;
    try {
      const FunctionSchema& schema = op.schema();
      const std::size_t n = schema.arguments().size();
      if (const Ref result = ask_torch_dispatch(op, stack->data() + (stack->size() - n), n)) {
        const Tensor base = base_of_views(schema, stack->data() + (stack->size() - n));
        replace_by_results(schema, result.get(), *stack);
        if (base.defined() && !base.has_storage() && !base.is_inference())
          for (std::size_t i = 0; i < schema.returns().size(); ++i) count_with(base, (*stack)[stack->size() - 1 - i]);
        return;
      }
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }
  // The key without an object: a copy that C++ made of a tensor whose class dispatches. Its memory is an ordinary one.
  op.redispatchBoxed(keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Python), stack);
}

PyObject* disabled_torch_dispatch(PyObject*, PyObject* args, PyObject* kwargs) {
  ProtocolCall call;
  if (!call.parse(args, kwargs)) return nullptr;
  const impl::ExcludeDispatchKeyGuard guard(kPythonKeys);
  return call.run();
}
PyMethodDef no_dispatch_def = {"_disabled_torch_dispatch_impl",
                               reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&disabled_torch_dispatch)),
                               METH_VARARGS | METH_KEYWORDS, "Runs the function itself: for classes that do not see operators."};

// guard = _DisableTorchDispatch(): neither classes nor modes see operators while the object lives.
struct DisableDispatchGuard {
  PyObject_HEAD uint64_t saved;
};
PyObject* disable_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* g = reinterpret_cast<DisableDispatchGuard*>(type->tp_alloc(type, 0));
  if (!g) return nullptr;
  g->saved = cresset::detail::local_keys.excluded;
  cresset::detail::local_keys.excluded |= kPythonKeys.raw_repr();
  return reinterpret_cast<PyObject*>(g);
}
void disable_dealloc(PyObject* o) {
  cresset::detail::local_keys.excluded = reinterpret_cast<DisableDispatchGuard*>(o)->saved;
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

}  // namespace

bool type_dispatches(PyTypeObject* type) {
  if (type == tensor_type || !dispatch_name) return false;
  PyObject* f = _PyType_Lookup(type, dispatch_name);
  return f && f != no_dispatch;
}

bool any_dispatch_mode() { return !modes().empty(); }

DispatchKeySet keys_of_type(PyTypeObject* type) { return type_dispatches(type) ? kPythonKeys : DispatchKeySet(); }

void init_dispatch_mode(PyObject* module) {
  dispatch_name = interned("__torch_dispatch__");
  no_dispatch = checked(PyCFunction_New(&no_dispatch_def, nullptr)).release();
  checked(PyModule_AddObjectRef(module, "_disabled_torch_dispatch_impl", no_dispatch));
  checked(PyDict_SetItem(tensor_type->tp_dict, dispatch_name, no_dispatch));
  PyType_Modified(tensor_type);

  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(&disable_new)}, {Py_tp_dealloc, reinterpret_cast<void*>(&disable_dealloc)}, {0, nullptr}};
  PyType_Spec spec{"cresset._C._DisableTorchDispatch", sizeof(DisableDispatchGuard), 0, Py_TPFLAGS_DEFAULT, slots};
  checked(PyModule_AddObjectRef(module, "_DisableTorchDispatch", checked(PyType_FromSpec(&spec)).get()));

  // The first counts its changes together with the second from now on, and shows the same storage where both are wrappers.
  def(module, "_mark_alias", [](Tensor view, Tensor base) {
    share_shown_storage(view, base);
    if (!view.is_inference() && !base.is_inference()) view.unsafeGetTensorImpl()->share_version_with(*base.unsafeGetTensorImpl());
  });
  rules = checked(PyDict_New()).release();
  def(module, "_register_torch_dispatch_rule", [](PyObject* overload, PyObject* cls, PyObject* rule) {
    const Ref key = checked(PyTuple_Pack(2, overload, cls));
    checked(PyDict_SetItem(rules, key.get(), rule));
  });
  def(module, "_push_on_torch_dispatch_stack", [](PyObject* mode) {
    modes().push_back(Py_NewRef(mode));
    refresh_key();
  });
  def(module, "_pop_torch_dispatch_stack", [] {
    CRESSET_CHECK(!modes().empty(), "Trying to pop from empty mode stack");
    Object mode(Ref::steal(modes().back()));
    modes().pop_back();
    refresh_key();
    return mode;
  });
  def(module, "_len_torch_dispatch_stack", [] { return static_cast<int64_t>(modes().size()); });
  def(module, "_get_dispatch_stack_at", [](int64_t i) {
    CRESSET_CHECK_INDEX(i >= 0 && i < static_cast<int64_t>(modes().size()), "Tried to get stack at idx that's too big");
    return Object(Ref::borrow(modes()[static_cast<std::size_t>(i)]));
  });

  static auto& registration = *new RegistrationHandleRAII(Dispatcher::singleton().registerFallback(
      DispatchKey::Python, KernelFunction::makeFromBoxedFunction<&python_fallback>(), str("registered at ", __FILE__, ":", __LINE__)));
  (void)registration;
}

}  // namespace cresset::python
