// autograd.Function: custom functions written in Python. The context is also the Python object of the node.
#include <cresset/autograd/custom_function.h>
#include <cresset/autograd/saved_values.h>

#include "autograd/nodes.h"
#include "batching/batched_tensor.h"
#include "python/autograd.h"
#include "python/bind.h"
#include "python/override.h"

namespace cresset::python {

namespace {

using autograd::variable_list;

struct FunctionNode;

// ctx. It and its node hold each other in turn (PythonNode).
struct PyContext {
  PyNode base;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* needs_input_grad;   // tuple of bools
  PyObject* to_save;            // tuple given to save_for_backward, or null
  PyObject* saved_for_forward;  // tuple given to save_for_forward, or null
  PyObject* non_differentiable;
  PyObject* dirty;
  bool materialize_grads;
  bool clear_saved_on_access;
};
PyTypeObject* context_type = nullptr;

PyContext* ctx_of(PyObject* o) { return reinterpret_cast<PyContext*>(o); }

struct FunctionNode final : PythonNode {
  FunctionNode(PyObject* context, PyObject* cls) : context(context), held(share(context)), cls(share(cls)) {}
  PyObject* show() override {
    PyObject* const out = Py_NewRef(context);
    if (held) {
      ctx_of(context)->base.node = shared_from_this();
      held.reset();
    }
    return out;
  }
  int traverse(visitproc visit, void* arg) const override {
    if (held.use_count() == 1) Py_VISIT(context);
    if (cls.use_count() == 1) Py_VISIT(cls.get());
    return 0;
  }
  std::string name() const override { return name_; }
  void release_variables() override {
    const autograd::SavedLock lock(*this);
    saved.clear();
    released = true;
  }
  void visit_saved(autograd::SavedValueVisitor& visitor) override { visitor.tensors("tensors", saved, released); }

  PyObject* const context;
  std::shared_ptr<PyObject> held, cls;  // held: the context, or null while that holds this
  std::string name_;
  std::vector<bool> is_tensor;  // by argument of forward
  std::vector<autograd::SavedVariable> saved;
  std::vector<bool> saved_is_none;
  std::vector<autograd::InputMetadata> outputs;  // for zeros
  bool released = false;

 protected:
  variable_list apply(variable_list&& grads) override {
    GilAcquire gil;
    try {
      return run(std::move(grads));
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }

 private:
  variable_list run(variable_list&& grads) {
    const Ref kept = Ref::borrow(context);  // backward may drop the last one of a program
    if (ctx_of(context)->materialize_grads)
      for (std::size_t i = 0; i < grads.size() && i < outputs.size(); ++i)
        if (!grads[i].defined() && !outputs[i].was_default_constructed()) grads[i] = outputs[i].zeros_like();
    const Ref backward = checked(PyObject_GetAttrString(cls.get(), "_resolve_backward"));
    const Ref function = checked(PyObject_CallNoArgs(backward.get()));
    const auto n = static_cast<Py_ssize_t>(grads.size());
    const Ref args = checked(PyTuple_New(n + 1));
    PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(context));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(args.get(), i + 1, checked(wrap(grads[static_cast<std::size_t>(i)])).release());
    const Ref result = checked(PyObject_Call(function.get(), args.get(), nullptr));
    const Ref items = PyTuple_Check(result.get()) ? result : checked(PyTuple_Pack(1, result.get()));
    variable_list out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      PyObject* g = PyTuple_GET_ITEM(items.get(), i);
      if (g == Py_None) {
        out.emplace_back();
        continue;
      }
      if (!is_tensor_object(g)) {
        const auto n = static_cast<std::size_t>(PyTuple_GET_SIZE(items.get()));
        if (n < is_tensor.size()) autograd::check_custom_gradients(*this, variable_list(n), is_tensor);  // their number is named first
        CRESSET_THROW(Error, "expected Variable or None (got ", Py_TYPE(g)->tp_name, ")");
      }
      out.push_back(unwrap(g));
    }
    return autograd::check_custom_gradients(*this, std::move(out), is_tensor);
  }
  static bool is_tensor_object(PyObject* o) { return cresset::python::is_tensor(o); }
};

// Whether backward gets zeros for outputs that have no gradient: not when ctx._materialize_non_diff_grads is false.
bool fills_non_differentiable(PyObject* ctx) {
  static PyObject* name = interned("_materialize_non_diff_grads");
  PyObject* dict = ctx_of(ctx)->dict;
  PyObject* said = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
  return said != Py_False;
}

std::shared_ptr<FunctionNode> function_node_of(PyObject* ctx) {
  return std::static_pointer_cast<FunctionNode>(ctx_of(ctx)->base.weak.lock());
}

// --- the context ------------------------------------------------------------------------------------------------------------

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* c = reinterpret_cast<PyContext*>(type->tp_alloc(type, 0));
  if (!c) return nullptr;
  new (&c->base.node) std::shared_ptr<autograd::Node>();
  new (&c->base.weak) std::weak_ptr<autograd::Node>();
  c->materialize_grads = true;
  return reinterpret_cast<PyObject*>(c);
}

int context_traverse(PyObject* o, visitproc visit, void* arg) {
  PyContext* c = ctx_of(o);
  if (const int r = node_traverse(o, visit, arg)) return r;
  Py_VISIT(c->dict);
  Py_VISIT(c->needs_input_grad);
  Py_VISIT(c->to_save);
  Py_VISIT(c->saved_for_forward);
  Py_VISIT(c->non_differentiable);
  Py_VISIT(c->dirty);
  return 0;
}
int context_clear(PyObject* o) {
  PyContext* c = ctx_of(o);
  Py_CLEAR(c->dict);
  Py_CLEAR(c->needs_input_grad);
  Py_CLEAR(c->to_save);
  Py_CLEAR(c->saved_for_forward);
  Py_CLEAR(c->non_differentiable);
  Py_CLEAR(c->dirty);
  return 0;
}
// No program has it any more. A node that others have takes it back.
bool go_back_to_node(PyObject* o, std::shared_ptr<autograd::Node>& node) {
  if (!node || node.use_count() == 1) return false;
  _Py_NewReference(o);
  PyObject_GC_Track(o);
  const Ref only = Ref::steal(o);
  static_cast<FunctionNode&>(*std::exchange(node, nullptr)).held = share(o);
  return true;
}
void context_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyContext* c = ctx_of(o);
  if (go_back_to_node(o, c->base.node)) return;
  std::shared_ptr<autograd::Node> node = std::move(c->base.node);
  if (c->weakrefs) PyObject_ClearWeakRefs(o);
  context_clear(o);
  c->base.node.~shared_ptr();
  c->base.weak.~weak_ptr();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
  if (node) autograd::detail::release_node(std::move(node));
}

PyObject* saved_tensors(PyObject* o, void*);
PyObject* saved_variables(PyObject* o, void* closure) {
  if (PyErr_WarnEx(PyExc_DeprecationWarning, "'saved_variables' is deprecated; use 'saved_tensors'", 0) < 0) return nullptr;
  return saved_tensors(o, closure);
}
PyObject* saved_tensors(PyObject* o, void*) {
  CRESSET_PY_TRY
  PyContext* c = ctx_of(o);
  if (c->saved_for_forward) return Py_NewRef(c->saved_for_forward);
  const std::shared_ptr<FunctionNode> node = function_node_of(o);
  if (!node) {
    const std::weak_ptr<autograd::Node> none, &weak = c->base.weak;
    const bool had_one = weak.owner_before(none) || none.owner_before(weak);
    if (had_one) node_of_object(o);  // raises: it is gone, and what it saved
    return PyTuple_New(0);
  }
  if (node->released) autograd::raise_backward_twice();
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(node->saved.size())));
  for (std::size_t i = 0; i < node->saved.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                     checked(node->saved_is_none[i] ? Py_NewRef(Py_None) : wrap(node->saved[i].unpack(node))).release());
  return out.release();
  CRESSET_PY_CATCH(nullptr)
}

int set_slot(PyObject*& slot, PyObject* value) {
  Py_XSETREF(slot, Py_NewRef(value));
  return 0;
}
// As methods written in Python refuse keywords, which these are for readers.
bool no_keywords(const char* method, PyObject* kwargs) {
  if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) return true;
  PyObject* key = nullptr;
  Py_ssize_t at = 0;
  PyDict_Next(kwargs, &at, &key, nullptr);
  PyErr_Format(PyExc_TypeError, "FunctionCtx.%s() got an unexpected keyword argument '%U'", method, key);
  return false;
}
// Methods that keep the tuple of their arguments.
PyObject* save_for_backward(PyObject* o, PyObject* args, PyObject* kwargs) {
  if (!no_keywords("save_for_backward", kwargs)) return nullptr;
  set_slot(ctx_of(o)->to_save, args);
  Py_RETURN_NONE;
}
PyObject* save_for_forward(PyObject* o, PyObject* args, PyObject* kwargs) {
  if (!no_keywords("save_for_forward", kwargs)) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* t = PyTuple_GET_ITEM(args, i);
    if (t == Py_None || cresset::python::is_tensor(t)) continue;
    PyErr_SetString(PyExc_AssertionError,
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.");
    return nullptr;
  }
  set_slot(ctx_of(o)->saved_for_forward, args);
  Py_RETURN_NONE;
}
PyObject* mark_dirty(PyObject* o, PyObject* args, PyObject* kwargs) {
  if (!no_keywords("mark_dirty", kwargs)) return nullptr;
  set_slot(ctx_of(o)->dirty, args);
  Py_RETURN_NONE;
}
PyObject* mark_non_differentiable(PyObject* o, PyObject* args, PyObject* kwargs) {
  if (!no_keywords("mark_non_differentiable", kwargs)) return nullptr;
  set_slot(ctx_of(o)->non_differentiable, args);
  Py_RETURN_NONE;
}
PyObject* set_materialize_grads(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"value", nullptr};
  PyObject* value = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:FunctionCtx.set_materialize_grads", const_cast<char**>(names), &value)) return nullptr;
  if (!PyBool_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "set_materialize_grads received an invalid combination of arguments - got (), but expected (bool)");
    return nullptr;
  }
  ctx_of(o)->materialize_grads = value == Py_True;
  Py_RETURN_NONE;
}
PyObject* get_needs_input_grad(PyObject* o, void*) {
  PyObject* v = ctx_of(o)->needs_input_grad;
  return Py_NewRef(v ? v : Py_None);
}
int set_needs_input_grad(PyObject* o, PyObject* v, void*) { return set_slot(ctx_of(o)->needs_input_grad, v ? v : Py_None); }
// What the methods were told, for programs that read or set it by these names; None before and after forward.
template <PyObject* PyContext::*slot>
PyObject* get_told(PyObject* o, void*) {
  PyObject* v = ctx_of(o)->*slot;
  return Py_NewRef(v ? v : Py_None);
}
template <PyObject* PyContext::*slot>
int set_told(PyObject* o, PyObject* v, void*) {
  if (v && v != Py_None && !PyTuple_Check(v)) {
    PyErr_Format(PyExc_TypeError, "a tuple of tensors was expected; got %.200s", Py_TYPE(v)->tp_name);
    return -1;
  }
  Py_XSETREF(ctx_of(o)->*slot, v && v != Py_None ? Py_NewRef(v) : nullptr);
  return 0;
}
template <PyObject* PyContext::*slot>
constexpr PyGetSetDef told(const char* name, const char* doc) {
  return {name, get_told<slot>, set_told<slot>, doc, nullptr};
}
PyObject* get_materialize(PyObject* o, void*) { return PyBool_FromLong(ctx_of(o)->materialize_grads); }

template <PyObject* (*f)(PyObject*, PyObject*, PyObject*)>
PyMethodDef with_keywords(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_VARARGS | METH_KEYWORDS, doc};
}
PyMethodDef context_methods[] = {
    with_keywords<save_for_backward>("save_for_backward",
                                     "Keeps tensors for backward, where they are ctx.saved_tensors. Once, from forward or setup_context."),
    with_keywords<save_for_forward>("save_for_forward", "Keeps tensors for jvp, where they are ctx.saved_tensors."),
    with_keywords<mark_dirty>("mark_dirty", "Says which inputs forward changed in place; they must be returned."),
    with_keywords<mark_non_differentiable>("mark_non_differentiable", "Says which outputs have no gradient."),
    with_keywords<set_materialize_grads>("set_materialize_grads", "Are missing gradients zeros (the default) or None?"),
    {}};
PyGetSetDef context_properties[] = {
    {"saved_tensors", saved_tensors, nullptr, "The tensors given to save_for_backward, checked for changes in place.", nullptr},
    {"saved_variables", saved_variables, nullptr, "The older name of saved_tensors.", nullptr},
    {"needs_input_grad", get_needs_input_grad, set_needs_input_grad, "For each argument of forward: does it need a gradient?", nullptr},
    told<&PyContext::to_save>("to_save", "The tensors given to save_for_backward, until forward has ended."),
    told<&PyContext::saved_for_forward>("saved_for_forward", "The tensors given to save_for_forward, until jvp has ended."),
    told<&PyContext::dirty>("dirty_tensors", "The tensors given to mark_dirty, until forward has ended."),
    told<&PyContext::non_differentiable>("non_differentiable", "The tensors given to mark_non_differentiable, until forward has ended."),
    {"materialize_grads", get_materialize, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMemberDef context_members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyContext, dict), READONLY, nullptr},
                                 {"__weaklistoffset__", T_PYSSIZET, offsetof(PyContext, weakrefs), READONLY, nullptr},
                                 {}};

// --- apply --------------------------------------------------------------------------------------------------------------------

std::vector<TensorImpl*> marked(PyObject* tuple, const char* refusal) {
  std::vector<TensorImpl*> out;
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* t = PyTuple_GET_ITEM(tuple, i);
    CRESSET_CHECK(is_tensor(t), refusal, type_name(Py_TYPE(t)));
    out.push_back(unwrap(t).unsafeGetTensorImpl());
  }
  return out;
}

void save_tensors(PyObject* ctx, const std::shared_ptr<FunctionNode>& node) {
  PyContext* c = ctx_of(ctx);
  if (!c->to_save) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->to_save); ++i) {
    PyObject* o = PyTuple_GET_ITEM(c->to_save, i);
    if (o == Py_None) {
      node->saved.emplace_back();
      node->saved_is_none.push_back(true);
      continue;
    }
    CRESSET_CHECK_TYPE(is_tensor(o), "save_for_backward can only save variables, but argument ", static_cast<int64_t>(i), " is of type ",
                       type_name(Py_TYPE(o)));
    node->saved.push_back(autograd::save_for(node, unwrap(o)));
    node->saved_is_none.push_back(false);
  }
  Py_CLEAR(c->to_save);
}

// A result of forward as its caller sees it: of the class of the tensor that forward returned, where that class wants it.
PyObject* wrap_like(PyObject* returned, const Tensor& t) {
  if (CRESSET_LIKELY(is_exact_tensor(returned)) || unwrap(returned).is_same(t) || !type_overrides(Py_TYPE(returned))) return wrap(t);
  return wrap_as(Py_TYPE(returned), t);
}

// Is there a batched tensor in a tuple, list or dictionary, however deep?
bool holds_batched(PyObject* o) {
  if (is_tensor(o)) return unwrap(o).key_set().has(DispatchKey::FuncTorchBatched);
  if (PyDict_CheckExact(o)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (holds_batched(value)) return true;
    return false;
  }
  if (!PyTuple_Check(o) && !PyList_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (holds_batched(PySequence_Fast_GET_ITEM(o, i))) return true;
  return false;
}

// What apply was called with.
struct Arguments {
  variable_list tensors;
  Ref all, needs_grad;  // tuples; needs_grad has bools
  bool any_grad = false, any_batched = false;
};

Arguments read_arguments(PyObject* const* args, Py_ssize_t n, FunctionNode& node) {
  Arguments out;
  const bool under_vmap = !batching::levels().empty();
  out.all = checked(PyTuple_New(n));
  out.needs_grad = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    const bool tensor = is_tensor(args[i]);
    node.is_tensor.push_back(tensor);
    bool grad = false;
    if (tensor) {
      out.tensors.push_back(unwrap(args[i]));
      grad = autograd::impl::requires_grad(out.tensors.back());
      out.any_batched |= out.tensors.back().key_set().has(DispatchKey::FuncTorchBatched);
    }
    if (!tensor && under_vmap) out.any_batched |= holds_batched(args[i]);
    out.any_grad |= grad;
    PyTuple_SET_ITEM(out.needs_grad.get(), i, PyBool_FromLong(grad));
    PyTuple_SET_ITEM(out.all.get(), i, Py_NewRef(args[i]));
  }
  return out;
}

autograd::edge_list edges_of(const variable_list& inputs, bool executable) {
  autograd::edge_list edges;
  for (const Tensor& t : inputs) {
    if (executable && autograd::impl::requires_grad(t))
      edges.push_back(autograd::impl::gradient_edge(t));
    else
      edges.emplace_back();
  }
  return edges;
}

// (first, *rest)
Ref with_first(PyObject* first, PyObject* rest) {
  const Py_ssize_t n = PyTuple_GET_SIZE(rest);
  Ref out = checked(PyTuple_New(n + 1));
  PyTuple_SET_ITEM(out.get(), 0, Py_NewRef(first));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(out.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(rest, i)));
  return out;
}

// `separate`: the class has a setup_context, and its forward no context.
Ref call_forward(PyObject* cls, PyObject* ctx, PyObject* arguments, bool separate) {
  const AutoGradMode no_grad(false);
  const AutoFwGradMode no_forward(false);
  const Ref forward = checked(PyObject_GetAttrString(cls, "forward"));
  if (!separate) return checked(PyObject_Call(forward.get(), with_first(ctx, arguments).get(), nullptr));
  Ref result = checked(PyObject_Call(forward.get(), arguments, nullptr));
  const Ref setup = checked(PyObject_GetAttrString(cls, "setup_context"));
  checked(PyObject_CallFunctionObjArgs(setup.get(), ctx, arguments, result.get(), nullptr));
  return result;
}

variable_list call_jvp(PyObject* cls, PyObject* ctx, const FunctionNode& node, const variable_list& inputs, const variable_list& tangents) {
  const std::size_t n = node.is_tensor.size();
  const Ref given = checked(PyTuple_New(static_cast<Py_ssize_t>(n) + 1));
  PyTuple_SET_ITEM(given.get(), 0, Py_NewRef(ctx));
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Tensor t;
    if (node.is_tensor[i]) {
      t = tangents[at];
      if (!t.defined() && ctx_of(ctx)->materialize_grads) t = autograd::InputMetadata(inputs[at]).zeros_like();
      ++at;
    }
    PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i) + 1, checked(wrap(std::move(t))).release());
  }
  const Ref method = checked(PyObject_GetAttrString(cls, "jvp"));
  const Ref result = checked(PyObject_Call(method.get(), given.get(), nullptr));
  const Ref items = PyTuple_Check(result.get()) ? result : checked(PyTuple_Pack(1, result.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* t = PyTuple_GET_ITEM(items.get(), i);
    CRESSET_CHECK(t == Py_None || is_tensor(t), "expected Variable or None (got ", Py_TYPE(t)->tp_name, ") for grad output ",
                  static_cast<int64_t>(i), ".");
  }
  return to_tensors(items.get(), "jvp", true);
}

// With a setup_context of its own, forward's results are new to the context only where forward made them: an input that came back as it was
// stands for two tensors, and which of them is meant by saving it cannot be known.
void check_saved(PyObject* to_save, const variable_list& inputs, const variable_list& raw, const std::vector<TensorImpl*>& dirty) {
  const auto among = [](const variable_list& tensors, const Tensor& t) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& other) { return other.is_same(t); });
  };
  for (Py_ssize_t i = 0; to_save && i < PyTuple_GET_SIZE(to_save); ++i) {
    if (!is_tensor(PyTuple_GET_ITEM(to_save, i))) continue;
    const Tensor& t = unwrap(PyTuple_GET_ITEM(to_save, i));
    const bool changed = std::find(dirty.begin(), dirty.end(), t.unsafeGetTensorImpl()) != dirty.end();
    CRESSET_CHECK(changed || !among(raw, t) || !among(inputs, t),
                  "An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
                  "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the "
                  "forward function itself.");
  }
}

// The outputs of forward with `wrapped` in the places of its tensors.
Ref wrap_outputs(PyObject* outputs, const variable_list& wrapped) {
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(wrapped.size())));
  for (std::size_t i = 0; i < wrapped.size(); ++i) {
    PyObject* o = PyTuple_GET_ITEM(outputs, static_cast<Py_ssize_t>(i));
    if (!is_tensor(o)) {
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), Py_NewRef(o));
      continue;
    }
    // Its node holds Python objects, which may hold it in turn: the collector must see it.
    Ref wrapped_output = checked(wrap_like(o, wrapped[i]));
    note_state(wrapped_output.get());
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), wrapped_output.release());
  }
  return out;
}

void note_outputs(FunctionNode& node, const variable_list& wrapped, bool all_zeros) {
  for (const Tensor& t : wrapped)
    if (all_zeros || (t.defined() && t.requires_grad()))
      node.outputs.emplace_back(t);
    else
      node.outputs.emplace_back();
}

// _function_apply(cls, context class, separate setup_context?, has jvp?, *args)
PyObject* function_apply(PyObject*, PyObject* const* argv, Py_ssize_t total) {
  CRESSET_PY_TRY
  PyObject* cls = argv[0];
  const bool separate = argv[2] == Py_True, has_jvp = argv[3] == Py_True;
  const Ref ctx = checked(PyObject_CallNoArgs(argv[1]));
  CRESSET_CHECK_TYPE(PyType_IsSubtype(Py_TYPE(ctx.get()), context_type), "Function.apply: the class has no context type of its own.");
  PyContext* c = ctx_of(ctx.get());
  auto node = std::make_shared<FunctionNode>(ctx.get(), cls);
  node->name_ = Py_TYPE(ctx.get())->tp_name;
  c->base.weak = node;

  Arguments given = read_arguments(argv + 4, total - 4, *node);
  if (CRESSET_UNLIKELY(given.any_batched)) {
    // The function's vmap rule decides; it calls apply again on tensors without the batch.
    const Ref module = checked(PyImport_ImportModule("cresset._vmap"));
    return checked(PyObject_CallMethod(module.get(), "apply_function", "OO", cls, given.all.get())).release();
  }
  const bool executable = GradMode::is_enabled() && given.any_grad;
  c->needs_input_grad = given.needs_grad.release();
  node->set_next_edges(edges_of(given.tensors, executable));

  const Ref result = call_forward(cls, ctx.get(), given.all.get(), separate);
  const bool several = PyTuple_Check(result.get());
  const Ref outputs = several ? result : checked(PyTuple_Pack(1, result.get()));
  variable_list raw(static_cast<std::size_t>(PyTuple_GET_SIZE(outputs.get())));
  for (std::size_t i = 0; i < raw.size(); ++i) {
    PyObject* o = PyTuple_GET_ITEM(outputs.get(), static_cast<Py_ssize_t>(i));
    if (is_tensor(o)) raw[i] = unwrap(o);
  }
  autograd::CustomFunctionMarks marks{marked(c->non_differentiable, "mark_non_differentiable only accepts variable arguments, but got "),
                                      marked(c->dirty, "mark_dirty can only accept variables, but got ")};
  if (separate) check_saved(c->to_save, given.tensors, raw, marks.dirty);
  autograd::CustomJvp jvp;
  if (has_jvp) jvp = [&](variable_list tangents) { return call_jvp(cls, ctx.get(), *node, given.tensors, tangents); };
  const std::shared_ptr<autograd::Node> recorded = executable ? std::shared_ptr<autograd::Node>(node) : nullptr;
  const variable_list wrapped = autograd::wrap_outputs(given.tensors, marks, raw, recorded, jvp);
  note_outputs(*node, wrapped, fills_non_differentiable(ctx.get()));
  const Ref out = wrap_outputs(outputs.get(), wrapped);
  if (executable)
    save_tensors(ctx.get(), node);
  else
    Py_CLEAR(c->to_save);
  Py_CLEAR(c->saved_for_forward);
  Py_CLEAR(c->dirty);
  Py_CLEAR(c->non_differentiable);
  if (Py_REFCNT(ctx.get()) > 2) checked(node->show());  // forward kept it
  return Py_NewRef(several ? out.get() : PyTuple_GET_ITEM(out.get(), 0));
  CRESSET_PY_CATCH(nullptr)
}

// _delayed_error(message, tensors): tensors of the same data whose backward raises.
Object delayed_error(std::string message, std::vector<Tensor> tensors) {
  auto node = std::make_shared<autograd::ErrorNode>(std::move(message));
  for (const Tensor& t : tensors)
    node->add_next_edge(autograd::impl::requires_grad(t) ? autograd::impl::gradient_edge(t) : autograd::Edge());
  variable_list out;
  for (const Tensor& t : tensors) {
    if (!t.defined()) {
      out.emplace_back();
      continue;
    }
    Tensor d = autograd::detach_shared(t);
    autograd::impl::set_gradient_edge(d, autograd::Edge(node, node->add_input_metadata(d)));
    out.push_back(std::move(d));
  }
  return Object(from_tensors(out));
}

}  // namespace

void init_function(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&context_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&context_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&context_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&context_clear)},
                         {Py_tp_methods, context_methods},
                         {Py_tp_getset, context_properties},
                         {Py_tp_members, context_members},
                         {Py_tp_repr, reinterpret_cast<void*>(PyBaseObject_Type.tp_repr)},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._FunctionBase", sizeof(PyContext), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  const Ref bases = checked(PyTuple_Pack(1, node_type));
  context_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())).release());
  checked(PyModule_AddObjectRef(module, "_FunctionBase", reinterpret_cast<PyObject*>(context_type)));
  static PyMethodDef functions[] = {
      {"_function_apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&function_apply)), METH_FASTCALL, nullptr}, {}};
  checked(PyModule_AddFunctions(module, functions));
  def(module, "_delayed_error",
      [](std::string message, PyObject* tensors) { return delayed_error(std::move(message), to_tensors(tensors, "delayed error", true)); });
}

}  // namespace cresset::python
