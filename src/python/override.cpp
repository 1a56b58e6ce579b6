// The __torch_function__ protocol.
#include "python/override.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include <cresset/base/warn_always.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "python/bind.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace cresset::python {

thread_local int active_modes = 0;

namespace {

PyObject* protocol_name = nullptr;     // "__torch_function__"
PyObject* disabled_impl = nullptr;     // the function that types set to opt out
PyObject* nowrap_functions = nullptr;  // set of functions whose results stay as they are, or null

void refresh_modes() {
  const OverrideState& s = override_state();
  active_modes = s.all_disabled ? 0 : static_cast<int>(s.modes.size());
}

PyObject* disabled_torch_function(PyObject*, PyObject* args, PyObject* kwargs) {
  ProtocolCall call;
  if (!call.parse(args, kwargs)) return nullptr;
  OverrideState& s = override_state();
  const bool saved = s.subclasses_disabled;
  s.subclasses_disabled = true;
  PyObject* r = call.run();
  s.subclasses_disabled = saved;
  return r;
}
PyObject* has_variadic(PyObject*, PyObject* const* args, Py_ssize_t n) {
  bool found = active_modes > 0;
  for (Py_ssize_t i = 0; i < n && !found; ++i) found = !is_plain(args[i]) && !PyType_Check(args[i]) && type_overrides(Py_TYPE(args[i]));
  return PyBool_FromLong(found);
}
PyMethodDef override_functions[] = {
    {"_has_torch_function_variadic", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&has_variadic)), METH_FASTCALL, nullptr}, {}};
PyMethodDef disabled_def = {"_disabled_torch_function_impl",
                            reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&disabled_torch_function)), METH_VARARGS | METH_KEYWORDS,
                            "Runs the function itself: for types that do not override operations."};

// Tensor.__torch_function__(func, types, args=(), kwargs=None): runs func, results become cls.
PyObject* default_torch_function(PyObject* cls, PyObject* args, PyObject* kwargs) {
  ProtocolCall call;
  if (!call.parse(args, kwargs, "OO|OO:__torch_function__")) return nullptr;
  const Ref type_list = Ref::steal(PySequence_Tuple(call.types));
  if (!type_list) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type_list.get()); ++i) {
    const int r = PyObject_IsSubclass(cls, PyTuple_GET_ITEM(type_list.get(), i));
    if (r < 0) return nullptr;
    if (r == 0) Py_RETURN_NOTIMPLEMENTED;
  }
  OverrideState& s = override_state();
  const bool saved = s.subclasses_disabled;
  // Functions of this package do not ask again while they are told not to.
  static thread_local PyObject* running = nullptr;
  if (saved && running == call.func) {
    PyErr_Format(PyExc_TypeError,
                 "%R is no function of Cresset, and cannot work with a tensor of it. Convert the tensor: torch.from_dlpack(t) makes one of "
                 "PyTorch that shares its memory, cresset.from_dlpack(t) one of Cresset.",
                 call.func);
    return nullptr;
  }
  PyObject* const outer = std::exchange(running, call.func);
  s.subclasses_disabled = true;
  Ref result = Ref::steal(call.run());
  s.subclasses_disabled = saved;
  running = outer;
  if (!result) return nullptr;
  if (nowrap_functions) {
    const int r = PySet_Contains(nowrap_functions, call.func);
    if (r > 0) return result.release();
    if (r < 0) PyErr_Clear();  // an unhashable callable is in no set
  }
  return convert_to_subclass(result.release(), reinterpret_cast<PyTypeObject*>(cls));
}

// with DisableTorchFunctionSubclass(): …; also usable by hand through __enter__ and __exit__.
struct DisableGuard {
  PyObject_HEAD bool saved_subclasses, saved_all;
};
template <bool All>
PyObject* override_guard_enter(PyObject* o, PyObject*) {
  auto* g = reinterpret_cast<DisableGuard*>(o);
  OverrideState& s = override_state();
  g->saved_subclasses = s.subclasses_disabled;
  g->saved_all = s.all_disabled;
  s.subclasses_disabled = true;
  if (All) s.all_disabled = true;
  refresh_modes();
  return Py_NewRef(o);
}
PyObject* override_guard_exit(PyObject* o, PyObject*) {
  auto* g = reinterpret_cast<DisableGuard*>(o);
  OverrideState& s = override_state();
  s.subclasses_disabled = g->saved_subclasses;
  s.all_disabled = g->saved_all;
  refresh_modes();
  Py_RETURN_NONE;
}
PyMethodDef guard_methods[] = {
    {"__enter__", override_guard_enter<false>, METH_NOARGS, nullptr}, {"__exit__", override_guard_exit, METH_VARARGS, nullptr}, {}};
PyMethodDef guard_all_methods[] = {
    {"__enter__", override_guard_enter<true>, METH_NOARGS, nullptr}, {"__exit__", override_guard_exit, METH_VARARGS, nullptr}, {}};

void add_override_guard(PyObject* module, const char* full_name, PyMethodDef* methods, const char* doc) {
  PyType_Slot slots[] = {{Py_tp_methods, methods}, {Py_tp_doc, const_cast<char*>(doc)}, {0, nullptr}};
  PyType_Spec spec{full_name, sizeof(DisableGuard), 0, Py_TPFLAGS_DEFAULT, slots};
  const Ref type = checked(PyType_FromSpec(&spec));
  checked(PyModule_AddObjectRef(module, std::strrchr(full_name, '.') + 1, type.get()));
}

// Takes the innermost mode off for the time of its own call.
struct ModeGuard {
  PyObject* mode;
  ModeGuard() : mode(override_state().modes.back()) {
    override_state().modes.pop_back();
    refresh_modes();
  }
  ~ModeGuard() {
    override_state().modes.push_back(mode);
    refresh_modes();
  }
};

// The questions that wait for their answers on this thread.
struct Question {
  Question(PyObject* function, PyObject* object) : function(function), object(object), outer(innermost) {
    constexpr int kMost = 16;
    int same = 0;
    for (const Question* q = outer; q; q = q->outer) same += q->function == function && q->object == object;
    endless = same >= kMost || (endless && outer);
    CRESSET_CHECK_TYPE(
        same < kMost, "a tensor-like object of type ", Py_TYPE(object)->tp_name, " from the module ", module_of(object),
        " gives the call of a function of Cresset back to it. A tensor of PyTorch is to be converted: cresset.from_dlpack(t) "
        "shares its memory.");
    innermost = this;
  }
  ~Question() { innermost = outer; }
  static std::string module_of(PyObject* object) {
    const Ref name = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__"));
    if (!name) PyErr_Clear();
    return name ? to_text(name.get()) : "?";
  }
  PyObject *const function, *const object;
  Question* const outer;
  static thread_local constinit Question* innermost;
  static thread_local constinit bool endless;
};
thread_local constinit Question* Question::innermost = nullptr;
thread_local constinit bool Question::endless = false;

Ref ask(PyObject* object, bool warn_plain, PyObject* function, PyObject* types, PyObject* args, PyObject* kwargs) {
  const Question question(function, object);
  const Ref method = checked(PyObject_GetAttr(object, protocol_name));
  static std::atomic<bool> warned = false;
  if (CRESSET_UNLIKELY(warn_plain && PyMethod_Check(method.get()) && PyMethod_GET_SELF(method.get()) == object) &&
      (!warned.exchange(true, std::memory_order_relaxed) || warn_always()))
    checked(PyErr_WarnEx(
        PyExc_UserWarning,
        "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define it as a "
        "classmethod.",
        1));
  PyObject* argv[] = {function, types, args, kwargs};
  return checked(PyObject_Vectorcall(method.get(), argv, kwargs ? 4 : 3, nullptr));
}

}  // namespace

bool was_endless_question() { return Question::endless; }

bool ProtocolCall::parse(PyObject* given, PyObject* named, const char* format) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject* sequence = nullptr;
  if (!PyArg_ParseTupleAndKeywords(given, named, format, const_cast<char**>(names), &func, &types, &sequence, &kwargs)) return false;
  args = Ref::steal(sequence ? PySequence_Tuple(sequence) : PyTuple_New(0));
  return static_cast<bool>(args);
}

OverrideState& override_state() {
  thread_local OverrideState state;
  return state;
}

bool type_overrides(PyTypeObject* type) {
  if (type == tensor_type) return false;
  PyObject* impl = _PyType_Lookup(type, protocol_name);
  if (!impl || impl == disabled_impl) return false;
  return !override_state().subclasses_disabled;
}

void Overriders::scan_slow(PyObject* o) {
  if (PyTuple_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      if (PyObject* e = PyTuple_GET_ITEM(o, i); !is_plain(e) && !PyTuple_Check(e) && !PyList_Check(e)) add(e);
  } else if (PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
      if (PyObject* e = PyList_GET_ITEM(o, i); !is_plain(e) && !PyTuple_Check(e) && !PyList_Check(e)) add(e);
  } else {
    add(o);
  }
}

void Overriders::add(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (PyType_Check(o) || !type_overrides(type)) return;
  std::size_t at = count_;
  for (std::size_t i = 0; i < count_; ++i) {
    PyTypeObject* other = Py_TYPE(objects_[i]);
    if (other == type) return;
    if (at == count_ && PyType_IsSubtype(type, other)) at = i;
  }
  if (count_ == kMax) return;
  for (std::size_t i = count_; i > at; --i) objects_[i] = objects_[i - 1];
  objects_[at] = o;
  ++count_;
}

Ref Overriders::arguments() const {
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(count_)));
  for (std::size_t i = 0; i < count_; ++i) PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), Py_NewRef(objects_[i]));
  return out;
}

PyObject* Overriders::call(PyObject* function, PyObject* args, PyObject* kwargs, const char* name, PyObject* self) const {
  const bool tell_self = self && count_ == 0;
  const Ref types = tell_self ? checked(PyTuple_Pack(1, Py_TYPE(self))) : checked(PyTuple_New(static_cast<Py_ssize_t>(count_)));
  for (std::size_t i = 0; i < count_; ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i), Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects_[i]))));
  if (active_modes > 0) {
    ModeGuard guard;
    const Ref keep = Ref::borrow(guard.mode);
    Ref r = ask(guard.mode, false, function, types.get(), args, kwargs);
    if (r.get() != Py_NotImplemented) return r.release();
    if (count_ == 0)
      CRESSET_THROW(TypeError, "Multiple dispatch failed for '", name,
                    "'; all __torch_function__ handlers returned NotImplemented:\n\n  - mode object ",
                    to_text(checked(PyObject_Repr(guard.mode)).get()),
                    "\n\nFor more information, try re-running with TORCH_LOGS=not_implemented");
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const Ref keep = Ref::borrow(objects_[i]);
    Ref r = ask(objects_[i], true, function, types.get(), args, kwargs);
    if (r.get() != Py_NotImplemented) return r.release();
  }
  std::string list;
  for (std::size_t i = 0; i < count_; ++i) {
    if (i) list += ", ";
    list += type_name(Py_TYPE(objects_[i]));
  }
  CRESSET_THROW(TypeError, "no implementation found for '", name, "' on types that implement __torch_function__: [", list, "]");
}

PyObject* override_method(PyObject* self, const char* name, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  Overriders overriders;
  overriders.scan(self);
  if (args) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) overriders.scan(PyTuple_GET_ITEM(args, i));
  }
  if (overriders.empty()) return nullptr;
  const Ref function = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
  const Py_ssize_t n = args ? PyTuple_GET_SIZE(args) : 0;
  const Ref all = checked(PyTuple_New(n + 1));
  PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  static constexpr std::string_view parsed[] = {"size",    "stride", "is_contiguous", "to",           "type",          "cpu",
                                                "float",   "double", "half",          "bfloat16",     "long",          "int",
                                                "short",   "char",   "byte",          "bool",         "chalf",         "cfloat",
                                                "cdouble", "numpy",  "is_set_to",     "is_same_size", "requires_grad_"};
  const bool as_operator = std::find(std::begin(parsed), std::end(parsed), name) != std::end(parsed);
  return overriders.call(function.get(), all.get(), kwargs, (std::string("torch.Tensor.") + name).c_str(), as_operator ? nullptr : self);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* override_property(PyObject* self, const char* name) {
  CRESSET_PY_TRY
  Overriders overriders;
  overriders.scan(self);
  if (overriders.empty()) return nullptr;
  const Ref property = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
  const Ref getter = checked(PyObject_GetAttrString(property.get(), "__get__"));
  const Ref args = checked(PyTuple_Pack(1, self));
  return overriders.call(getter.get(), args.get(), nullptr, (std::string("torch.Tensor.") + name + ".__get__").c_str(), self);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* as_subclass(const Tensor& t, PyTypeObject* type) {
  Tensor view = without_lock(may_wait(t), [&] { return cresset::alias(t); });
  return type == tensor_type ? wrap(std::move(view)) : wrap_as(type, std::move(view));
}

PyObject* convert_to_subclass(PyObject* result, PyTypeObject* type) {
  Ref r = Ref::steal(result);
  CRESSET_PY_TRY
  if (type == tensor_type) return r.release();
  if (is_tensor(r.get())) {
    if (PyType_IsSubtype(Py_TYPE(r.get()), type)) return r.release();
    return as_subclass(unwrap(r.get()), type);
  }
  const bool tuple = PyTuple_Check(r.get());
  if (Py_TYPE(r.get()) == size_type || (!tuple && !PyList_Check(r.get()))) return r.release();
  const Ref items = checked(PySequence_Fast(r.get(), ""));
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  Ref out = checked(tuple ? PyTuple_New(n) : PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* e = checked(convert_to_subclass(Py_NewRef(PySequence_Fast_GET_ITEM(items.get(), i)), type)).release();
    if (tuple)
      PyTuple_SET_ITEM(out.get(), i, e);
    else
      PyList_SET_ITEM(out.get(), i, e);
  }
  if (PyTuple_CheckExact(r.get()) || PyList_CheckExact(r.get())) return out.release();
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(r.get())), out.get());
  CRESSET_PY_CATCH(nullptr)
}

PyMethodDef override_methods[] = {{"__torch_function__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&default_torch_function)),
                                   METH_VARARGS | METH_KEYWORDS | METH_CLASS, "Runs func and turns its results into this class."},
                                  {}};

void init_override(PyObject* module) {
  protocol_name = interned("__torch_function__");
  checked(PyModule_AddFunctions(module, override_functions));
  disabled_impl = checked(PyCFunction_New(&disabled_def, nullptr)).release();
  checked(PyModule_AddObjectRef(module, "_disabled_torch_function_impl", disabled_impl));
  add_override_guard(module, "cresset._C.DisableTorchFunctionSubclass", guard_methods,
                     "Types do not override operations inside of this block.");
  add_override_guard(module, "cresset._C.DisableTorchFunction", guard_all_methods,
                     "Neither types nor modes override operations inside of this block.");
  def(module, "_set_nowrap_functions", [](PyObject* set) {
    Py_INCREF(set);
    Py_XSETREF(nowrap_functions, set);
  });
  def(module, "_push_on_torch_function_stack", [](PyObject* mode) {
    override_state().modes.push_back(Py_NewRef(mode));
    refresh_modes();
  });
  def(module, "_pop_torch_function_stack", [] {
    OverrideState& s = override_state();
    CRESSET_CHECK(!s.modes.empty(), "Trying to pop from empty mode stack");
    Object mode(Ref::steal(s.modes.back()));
    s.modes.pop_back();
    refresh_modes();
    return mode;
  });
  def(module, "_len_torch_function_stack", [] { return static_cast<int64_t>(override_state().modes.size()); });
  def(module, "_get_function_stack_at", [](int64_t i) {
    const OverrideState& s = override_state();
    CRESSET_CHECK_INDEX(i >= 0 && i < static_cast<int64_t>(s.modes.size()), "Tried to get stack at idx that's too big");
    return Object(Ref::borrow(s.modes[static_cast<std::size_t>(i)]));
  });
  def(module, "_is_torch_function_enabled", [] { return !override_state().subclasses_disabled; });
  def(module, "_is_torch_function_all_disabled", [] { return override_state().all_disabled; });
  def(module, "_disable_torch_function", [](bool subclasses, bool all) {
    OverrideState& s = override_state();
    s.subclasses_disabled = subclasses;
    s.all_disabled = all;
    refresh_modes();
  });
  def(module, "_has_torch_function", [](PyObject* args) {
    const Ref items = checked(PySequence_Fast(args, "expected a sequence"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      PyObject* o = PySequence_Fast_GET_ITEM(items.get(), i);
      if (active_modes > 0 || (!is_plain(o) && !PyType_Check(o) && type_overrides(Py_TYPE(o)))) return true;
    }
    return false;
  });
  def(module, "_has_torch_function_unary",
      [](PyObject* o) { return active_modes > 0 || (!is_plain(o) && !PyType_Check(o) && type_overrides(Py_TYPE(o))); });
}

}  // namespace cresset::python
