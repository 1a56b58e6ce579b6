// The __torch_dispatch__ protocol: what stands behind the dispatch key Python.
#include "python/dispatch_mode.h"

#include <cresset/autograd/variable.h>
#include <cresset/core/tensor_impl.h>
#include <cresset/dispatch/dispatcher.h>

#include "python/bind.h"
#include "python/convert.h"
#include "python/dispatch.h"
#include "python/python_kernel.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace cresset::python {

namespace {

PyObject* protocol_name = nullptr;  // "__torch_dispatch__"
PyObject* disabled_impl = nullptr;  // what Tensor itself has
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
struct ModeGuard {
  PyObject* mode;
  ModeGuard() : mode(modes().back()) {
    modes().pop_back();
    refresh_key();
  }
  ~ModeGuard() {
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
        PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), argument_to_python(values[i], *parameters[i].type, true).release());
      } else if (parameters[i].kwarg_only && !is_default(i)) {
        const Ref value = argument_to_python(values[i], *parameters[i].type, true);
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
    const Ref method = checked(PyObject_GetAttr(object, protocol_name));
    return checked(PyObject_CallFunctionObjArgs(method.get(), function.get(), types, args.get(), kwargs.get(), nullptr));
  }
};

// Asks the innermost mode, then the arguments; null when there is nobody to ask.
Ref dispatch_call(const OperatorHandle& op, const IValue* values, std::size_t n) {
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
    const ModeGuard guard;
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
  CRESSET_THROW(TypeError, "Multiple dispatch failed for '", to_text(checked(PyObject_Str(call.function.get())).get()),
                "'; all __torch_dispatch__ handlers returned NotImplemented:", refused);
}

void python_fallback(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  {
    GilAcquire gil;
    try {
      const FunctionSchema& schema = op.schema();
      const std::size_t n = schema.arguments().size();
      if (const Ref result = dispatch_call(op, stack->data() + (stack->size() - n), n)) {
        replace_by_results(schema, result.get(), *stack);
        return;
      }
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }
  // The key without an object: a copy that C++ made of a tensor whose class dispatches. Its memory is an ordinary one.
  op.redispatchBoxed(keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Python), stack);
}

// A tensor whose copies are made in Python, so that they are wrapped as the original is.
struct DispatchingTensorImpl final : TensorImpl {
  using TensorImpl::TensorImpl;

  intrusive_ptr<TensorImpl> shallow_copy_and_detach(bool share_version) const override {
    const bool excluded = impl::tls_is_dispatch_key_excluded(DispatchKey::Python);
    if (pyobject() && !excluded) {
      if (auto made = detached_in_python(share_version)) return made;
    }
    auto r = storage_
                 ? make_intrusive<DispatchingTensorImpl>(storage_, key_set_, dtype_, IntArrayRef(sizes_), IntArrayRef(strides_), offset_)
                 : make_intrusive<DispatchingTensorImpl>(key_set_, dtype_, std::optional<Device>(device_));
    if (!storage_) r->set_sizes_and_strides(sizes_, strides_, offset_);
    set_version(*r, share_version);
    return r;
  }
  const char* tensorimpl_type_name() const override { return "DispatchingTensorImpl"; }

 protected:
  // Kernels ask for the address of what they read and write: one that meets a wrapper stops here.
  void* data_without_storage() const override {
    CRESSET_CHECK(numel() == 0,
                  "The tensor has a non-zero number of elements, but its data is not allocated yet: it is a wrapper, whose "
                  "class sees operators in __torch_dispatch__. Unwrap it there before an operator runs on its memory.");
    return nullptr;
  }

 private:
  void set_version(TensorImpl& copy, bool share_version) const {
    if (is_inference()) {
      copy.set_inference(true);
    } else if (share_version) {
      copy.share_version_with(*this);
    } else {
      copy.new_version_counter();
    }
  }
  intrusive_ptr<TensorImpl> detached_in_python(bool share_version) const {
    GilAcquire gil;
    try {
      static const OperatorHandle detach = Dispatcher::singleton().findSchemaOrThrow("aten::detach", "");
      auto self = intrusive_ptr<TensorImpl>::reclaim_copy(const_cast<DispatchingTensorImpl*>(this));
      const IValue argument{Tensor(std::move(self))};
      const Ref result = dispatch_call(detach, &argument, 1);
      if (!result) return {};
      CRESSET_CHECK(is_tensor(result.get()), "aten::detach: Unable to cast the result of __torch_dispatch__, a ",
                    type_name(Py_TYPE(result.get())), ", to Tensor.");
      const Tensor t = unwrap(result.get());
      TensorImpl* made = t.unsafeGetTensorImpl();
      if (made == this || made->autograd_meta()) return {};
      set_version(*made, share_version);
      return intrusive_ptr<TensorImpl>::reclaim_copy(made);
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }
};

// Tensor._make_wrapper_subclass(cls, size, …): a tensor with sizes, dtype and device but without memory.
PyObject* make_wrapper_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"cls",
                                "size",
                                "strides",
                                "storage_offset",
                                "memory_format",
                                "dtype",
                                "layout",
                                "device",
                                "pin_memory",
                                "requires_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                "_extra_dispatch_keys",
                                "storage_size",
                                nullptr};
  PyObject *cls, *size, *strides = Py_None, *offset = Py_None, *format = Py_None, *dtype = Py_None, *layout = Py_None, *device = Py_None,
                        *policy = Py_None, *extra = Py_None, *storage_size = Py_None;
  int pin = 0, requires_grad = 0, dispatch_device = 0, dispatch_layout = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOOOOOppOppOO:_make_wrapper_subclass", const_cast<char**>(names), &cls, &size,
                                   &strides, &offset, &format, &dtype, &layout, &device, &pin, &requires_grad, &policy, &dispatch_device,
                                   &dispatch_layout, &extra, &storage_size))
    return nullptr;
  CRESSET_CHECK_TYPE(PyType_Check(cls), "cls must be a type (got ", type_name(Py_TYPE(cls)), ")");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  CRESSET_CHECK_TYPE(PyType_IsSubtype(type, tensor_type), "_make_wrapper_subclass: cls must be a subclass of Tensor; ", type_name(type),
                     " is not.");
  CRESSET_CHECK_TYPE(type_dispatches(type), type_name(type), " must define __torch_dispatch__");
  CRESSET_CHECK_NOT_IMPLEMENTED(policy == Py_None && !dispatch_device && !dispatch_layout,
                                "_make_wrapper_subclass: sizes, strides, device and layout are those given at construction; asking "
                                "__torch_dispatch__ for them is not supported.");
  CRESSET_CHECK_NOT_IMPLEMENTED(layout == Py_None || static_cast<Layout>(constant_value(layout)) == kStrided,
                                "_make_wrapper_subclass: only the strided layout is supported.");
  const auto integers = [](PyObject* o, const char* what) {
    CRESSET_CHECK_TYPE(is_int_sequence(o), "_make_wrapper_subclass(): argument '", what, "' must be tuple of ints, not ",
                       type_name(Py_TYPE(o)));
    const Ref items = checked(PySequence_Fast(o, what));
    DimVector out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) out.push_back(to_int(PySequence_Fast_GET_ITEM(items.get(), i)));
    return out;
  };
  const DimVector sizes = integers(size, "size");
  for (int64_t s : sizes) CRESSET_CHECK(s >= 0, "_make_wrapper_subclass: sizes must not be negative; given ", s);
  const Device where = device == Py_None ? Device(kCPU) : to_device(device);
  DispatchKeySet keys = key_set_for_device(where.type()) | keys_of_type(type);
  if (extra != Py_None)
    keys |= DispatchKeySet::from_raw_repr(Convert<uint64_t>::from(checked(PyObject_CallMethod(extra, "raw_repr", nullptr)).get()));
  auto made = make_intrusive<DispatchingTensorImpl>(keys, dtype == Py_None ? get_default_dtype() : to_scalar_type(dtype),
                                                    std::optional<Device>(where));
  if (strides == Py_None) {
    made->set_sizes_contiguous(sizes);
  } else {
    const DimVector given = integers(strides, "strides");
    CRESSET_CHECK(given.size() == sizes.size(), "_make_wrapper_subclass: as many strides as sizes were required; given ", given.size(),
                  " and ", sizes.size());
    made->set_sizes_and_strides(sizes, given);
  }
  if (offset != Py_None) made->set_storage_offset(to_int(offset));
  made->new_version_counter();
  Tensor t(std::move(made));
  if (requires_grad) t.requires_grad_(true);
  return wrap_as(type, std::move(t));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* disabled_torch_dispatch(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *func, *types, *call_args = nullptr, *call_kwargs = nullptr;
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO", const_cast<char**>(names), &func, &types, &call_args, &call_kwargs))
    return nullptr;
  const Ref positional = Ref::steal(call_args ? PySequence_Tuple(call_args) : PyTuple_New(0));
  if (!positional) return nullptr;
  const impl::ExcludeDispatchKeyGuard guard(kPythonKeys);
  return PyObject_Call(func, positional.get(), call_kwargs == Py_None ? nullptr : call_kwargs);
}
PyMethodDef disabled_def = {"_disabled_torch_dispatch_impl",
                            reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&disabled_torch_dispatch)), METH_VARARGS | METH_KEYWORDS,
                            "Runs the function itself: for classes that do not see operators."};

// guard = _DisableTorchDispatch(): neither classes nor modes see operators while the object lives.
struct DisableGuard {
  PyObject_HEAD uint64_t saved;
};
PyObject* disable_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* g = reinterpret_cast<DisableGuard*>(type->tp_alloc(type, 0));
  if (!g) return nullptr;
  g->saved = cresset::detail::local_keys.excluded;
  cresset::detail::local_keys.excluded |= kPythonKeys.raw_repr();
  return reinterpret_cast<PyObject*>(g);
}
void disable_dealloc(PyObject* o) {
  cresset::detail::local_keys.excluded = reinterpret_cast<DisableGuard*>(o)->saved;
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

}  // namespace

bool type_dispatches(PyTypeObject* type) {
  if (type == tensor_type || !protocol_name) return false;
  PyObject* f = _PyType_Lookup(type, protocol_name);
  return f && f != disabled_impl;
}

DispatchKeySet keys_of_type(PyTypeObject* type) { return type_dispatches(type) ? kPythonKeys : DispatchKeySet(); }

Tensor dispatching_alias(const Tensor& t) {
  if (!t.has_storage()) return autograd::detach_shared(t);
  auto made = make_intrusive<DispatchingTensorImpl>(t.storage(), t.key_set(), t.scalar_type(), t.sizes(), t.strides(), t.storage_offset());
  if (t.is_inference())
    made->set_inference(true);
  else
    made->share_version_with(*t.unsafeGetTensorImpl());
  return Tensor(std::move(made));
}

PyMethodDef dispatch_mode_methods[] = {
    {"_make_wrapper_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&make_wrapper_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_wrapper_subclass(cls, size, strides=None, storage_offset=None, …)\n\nAn instance without memory of a class with "
     "__torch_dispatch__."},
    {}};

void init_dispatch_mode(PyObject* module) {
  protocol_name = interned("__torch_dispatch__");
  disabled_impl = checked(PyCFunction_New(&disabled_def, nullptr)).release();
  checked(PyModule_AddObjectRef(module, "_disabled_torch_dispatch_impl", disabled_impl));
  checked(PyDict_SetItem(tensor_type->tp_dict, protocol_name, disabled_impl));
  PyType_Modified(tensor_type);

  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(&disable_new)}, {Py_tp_dealloc, reinterpret_cast<void*>(&disable_dealloc)}, {0, nullptr}};
  PyType_Spec spec{"cresset._C._DisableTorchDispatch", sizeof(DisableGuard), 0, Py_TPFLAGS_DEFAULT, slots};
  checked(PyModule_AddObjectRef(module, "_DisableTorchDispatch", checked(PyType_FromSpec(&spec)).get()));

  // The first counts its changes together with the second from now on.
  def(module, "_share_version", [](Tensor view, Tensor base) {
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
