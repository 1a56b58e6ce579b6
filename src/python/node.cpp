// Nodes of the backward graph as Python objects, and hooks written in Python.
#include <map>

#include "autograd/nodes.h"
#include "ops/shared/shape_util.h"
#include "python/autograd.h"
#include "python/bind.h"

namespace cresset::python {

PyTypeObject* node_type = nullptr;

std::shared_ptr<autograd::Node> node_of_object(PyObject* o) {
  std::shared_ptr<autograd::Node> node =
      reinterpret_cast<PyNode*>(o)->node ? reinterpret_cast<PyNode*>(o)->node : reinterpret_cast<PyNode*>(o)->weak.lock();
  CRESSET_CHECK(node, "this node of the backward graph does not exist any more (or not yet): keep a tensor of the graph.");
  return node;
}

namespace {

using autograd::Node;
using autograd::variable_list;

PyNode* py_node_of(PyObject* o) { return reinterpret_cast<PyNode*>(o); }
Node& node_of(PyObject* o) { return *node_of_object(o); }

// One class a name, made when the first node of that name is shown.
PyTypeObject* type_of_node(const std::string& name) {
  static auto& types = *new std::map<std::string, PyTypeObject*>();
  PyTypeObject*& type = types[name];
  if (!type) {
    const Ref namespace_dict = checked(Py_BuildValue("{s:s,s:()}", "__module__", "builtins", "__slots__"));
    type = reinterpret_cast<PyTypeObject*>(
        checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O)O", name.c_str(), node_type, namespace_dict.get()))
            .release());
  }
  return type;
}

// Who holds a Python object on behalf of C++. The collector may be told of the object only when nobody else shares the holder, and only
// once.
struct HoldsDict {
  explicit HoldsDict(PyObject* dict) : dict_(share(dict)) {}
  std::shared_ptr<PyObject> dict_;
};

template <class Hook>
int visit_hook(const std::shared_ptr<Hook>& hook, long holders, visitproc visit, void* arg) {
  const auto* held = hook && hook.use_count() == holders ? dynamic_cast<const HoldsDict*>(hook.get()) : nullptr;
  if (held && held->dict_.use_count() == 1) Py_VISIT(held->dict_.get());
  return 0;
}

int visit_extras(autograd::NodeExtras& extras, visitproc visit, void* arg) {
  const std::lock_guard<autograd::detail::SpinLock> lock(extras.lock);
  int r = 0;
  for (const auto& [nr, h] : extras.tensor_pre_hooks)
    if ((r = visit_hook(h, 1, visit, arg))) return r;
  for (const auto& h : extras.pre_hooks)
    if ((r = visit_hook(h, 1, visit, arg))) return r;
  for (const auto& h : extras.post_hooks)
    if ((r = visit_hook(h, 1, visit, arg))) return r;
  if (extras.metadata && extras.metadata.use_count() == 1) Py_VISIT(static_cast<PyObject*>(extras.metadata.get()));
  return 0;
}

// Of a node that one object alone holds.
int visit_node(Node& node, visitproc visit, void* arg) {
  if (const auto* own = dynamic_cast<const PythonNode*>(&node))
    if (const int r = own->traverse(visit, arg)) return r;
  return node.extras() ? visit_extras(*node.extras(), visit, arg) : 0;
}

// Cycles through a node break where its hooks and contexts do.
int node_clear(PyObject*) { return 0; }

void node_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyNode* self = py_node_of(o);
  if (self->node && self->node->pyobj() == o) self->node->set_pyobj(nullptr);
  std::shared_ptr<Node> node = std::move(self->node);
  self->node.~shared_ptr();
  self->weak.~weak_ptr();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
  // The graph may be long: it is taken apart without recursion.
  if (node) autograd::detail::release_node(std::move(node));
}

PyObject* node_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "Can't instantiate abstract class Node with abstract methods metadata, name, next_functions, register_hook, "
                  "register_prehook");
  return nullptr;
}

PyObject* node_repr(PyObject* o) {
  CRESSET_PY_TRY
  return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(o)->tp_name, static_cast<void*>(o));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* node_name(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(node_of(o).name().c_str());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* next_functions(PyObject* o, void*) {
  CRESSET_PY_TRY
  const auto& edges = node_of(o).next_edges();
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Ref next = checked(wrap_node(edges[i].function));
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(Py_BuildValue("(OI)", next.get(), edges[i].input_nr)).release());
  }
  return out.release();
  CRESSET_PY_CATCH(nullptr)
}

// The metadata dict lives in the node, so that it survives the object.
PyObject* metadata(PyObject* o, void*) {
  CRESSET_PY_TRY
  std::shared_ptr<void>& slot = node_of(o).mutable_extras().metadata;
  if (!slot) slot = share(checked(PyDict_New()).get());
  return Py_NewRef(static_cast<PyObject*>(slot.get()));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* variable(PyObject* o, void*) {
  CRESSET_PY_TRY
  auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(&node_of(o));
  CRESSET_CHECK_AS(AttributeError, leaf, "'", Py_TYPE(o)->tp_name, "' object has no attribute 'variable'");
  return wrap(leaf->variable);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* has_pre_hooks(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  autograd::NodeExtras* extras = node_of(o).extras();
  if (!extras) Py_RETURN_FALSE;
  const std::lock_guard<autograd::detail::SpinLock> lock(extras->lock);
  return PyBool_FromLong(!extras->tensor_pre_hooks.empty() || !extras->pre_hooks.empty());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* sequence_nr(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyLong_FromUnsignedLongLong(node_of(o).sequence_nr());
  CRESSET_PY_CATCH(nullptr)
}

// What the node saves is found by name when it is no attribute of the class.
PyObject* node_getattro(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) || !is_saved_attribute(name)) return found;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const std::shared_ptr<Node> node = py_node_of(o)->node ? py_node_of(o)->node : py_node_of(o)->weak.lock();
  found = node ? saved_attribute(*node, name) : nullptr;
  if (found || PyErr_Occurred()) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return found;
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

PyObject* node_dir(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  const std::shared_ptr<Node> node = py_node_of(o)->node ? py_node_of(o)->node : py_node_of(o)->weak.lock();
  const Ref names = checked(node ? saved_attribute_names(*node) : PyList_New(0));
  const Ref inherited = checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", o));
  return PySequence_Concat(names.get(), inherited.get());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* node_call(PyObject* o, PyObject* args, PyObject*) {
  CRESSET_PY_TRY
  const auto given = static_cast<std::size_t>(PyTuple_GET_SIZE(args)), wanted = static_cast<std::size_t>(node_of(o).num_inputs());
  CRESSET_CHECK_TYPE(given == wanted, "expected ", wanted, " arguments, got ", given, " instead");
  variable_list inputs = to_tensors(args, "node", true);
  variable_list outputs;
  {
    GilRelease release;
    outputs = node_of(o)(std::move(inputs));
  }
  if (outputs.size() == 1) return wrap(outputs[0]);
  return from_tensors(outputs).release();
  CRESSET_PY_CATCH(nullptr)
}

// "hook 'scale'"
std::string shown_hook(PyObject* hook) {
  const Ref name = Ref::steal(PyObject_GetAttrString(hook, "__name__"));
  if (!name) PyErr_Clear();
  return "hook '" + (name && PyUnicode_Check(name.get()) ? to_text(name.get()) : std::string("<unknown>")) + "'";
}

Tensor hook_result(PyObject* r, const Tensor& before, PyObject* hook) {
  if (r == Py_None) return before;
  CRESSET_CHECK_TYPE(is_tensor(r), "expected Variable, but hook returned '", type_name(Py_TYPE(r)), "'");
  const Tensor& t = unwrap(r);
  if (before.defined()) {
    CRESSET_CHECK(t.sizes() == before.sizes(), shown_hook(hook), " has changed the size of value");
    CRESSET_CHECK(t.scalar_type() == before.scalar_type(), shown_hook(hook), " has changed the type of value (was ", ops::type_name(before),
                  " got ", ops::type_name(t), ")");
  }
  return t;
}

// The values of a dict of hooks, as they are now: hooks may remove themselves.
Ref hooks_of(PyObject* dict) { return checked(PyObject_CallMethod(dict, "values", nullptr)); }

template <class F>
auto with_python(F f) {
  GilAcquire gil;
  try {
    return f();
  } catch (const ErrorAlreadySet&) {
    throw_python_error();
  }
}

// Hooks of a tensor: each sees the gradient of output nr and may replace it.
struct TensorHook final : autograd::FunctionPreHook, HoldsDict {
  TensorHook(PyObject* dict, uint32_t nr) : HoldsDict(dict), nr_(nr) {}
  variable_list operator()(const variable_list& grads) override {
    return with_python([&] {
      variable_list out = grads;
      const Ref hooks = checked(PySequence_List(hooks_of(dict_.get()).get()));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
        PyObject* hook = PyList_GET_ITEM(hooks.get(), i);
        const Ref grad = checked(wrap(out[nr_]));
        const Ref r = checked(PyObject_CallOneArg(hook, grad.get()));
        out[nr_] = hook_result(r.get(), out[nr_], hook);
      }
      return out;
    });
  }

 private:
  uint32_t nr_;
};

variable_list replaced(PyObject* result, const variable_list& before, PyObject* hook) {
  if (result == Py_None) return before;
  CRESSET_CHECK_TYPE(PyTuple_Check(result), "expected tuple, but hook returned '", type_name(Py_TYPE(result)), "'");
  CRESSET_CHECK(static_cast<std::size_t>(PyTuple_GET_SIZE(result)) == before.size(), shown_hook(hook),
                " has returned an incorrect number of values (got ", static_cast<int64_t>(PyTuple_GET_SIZE(result)), ", but expected ",
                before.size(), ")");
  variable_list out;
  for (std::size_t i = 0; i < before.size(); ++i) {
    PyObject* r = PyTuple_GET_ITEM(result, static_cast<Py_ssize_t>(i));
    if (r == Py_None) {
      CRESSET_CHECK_TYPE(!before[i].defined(), "can't replace a ", "Tensor", " with None");
      out.emplace_back();
    } else {
      out.push_back(hook_result(r, before[i], hook));
    }
  }
  return out;
}

struct NodePreHook final : autograd::FunctionPreHook, HoldsDict {
  using HoldsDict::HoldsDict;
  variable_list operator()(const variable_list& grads) override {
    return with_python([&] {
      variable_list out = grads;
      const Ref hooks = checked(PySequence_List(hooks_of(dict_.get()).get()));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
        PyObject* hook = PyList_GET_ITEM(hooks.get(), i);
        const Ref r = checked(PyObject_CallOneArg(hook, from_tensors(out).get()));
        out = replaced(r.get(), out, hook);
      }
      return out;
    });
  }
};

struct NodePostHook final : autograd::FunctionPostHook, HoldsDict {
  using HoldsDict::HoldsDict;
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    return with_python([&] {
      variable_list out = outputs;
      const Ref in = from_tensors(inputs);
      const Ref hooks = checked(PySequence_List(hooks_of(dict_.get()).get()));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
        const Ref given = from_tensors(out);
        PyObject* argv[] = {given.get(), in.get()};
        PyObject* hook = PyList_GET_ITEM(hooks.get(), i);
        const Ref r = checked(PyObject_Vectorcall(hook, argv, 2, nullptr));
        out = replaced(r.get(), out, hook);
      }
      return out;
    });
  }
};

struct PostAccumulateHook final : autograd::PostAccumulateGradHook, HoldsDict {
  using HoldsDict::HoldsDict;
  void operator()(const Tensor& variable) override {
    with_python([&] {
      const Ref hooks = checked(PySequence_List(hooks_of(dict_.get()).get()));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
        const Ref t = checked(wrap(variable));
        const Ref r = checked(PyObject_CallOneArg(PyList_GET_ITEM(hooks.get(), i), t.get()));
        CRESSET_CHECK_TYPE(r.get() == Py_None || is_tensor(r.get()), "expected Variable, but hook returned '", type_name(Py_TYPE(r.get())),
                           "'");
        // What works in place returns the variable itself, as a lambda then does.
        CRESSET_CHECK(r.get() == Py_None || unwrap(r.get()).is_same(variable), "Tensor post accumulate grad hooks should return None.");
      }
    });
  }
};

PyGetSetDef node_properties[] = {
    {"next_functions", next_functions, nullptr, "((node, input number), …) of the nodes that get the results.", nullptr},
    {"metadata", metadata, nullptr, "A dict for anything the user wants to keep with the node.", nullptr},
    {"variable", variable, nullptr, "The leaf of an AccumulateGrad node.", nullptr},
    {}};
PyMethodDef node_methods[] = {{"name", node_name, METH_NOARGS, "The name of the node."},
                              {"__dir__", node_dir, METH_NOARGS, nullptr},
                              {"_has_pre_hooks", has_pre_hooks, METH_NOARGS, "Are there hooks that see gradients before the node does?"},
                              {"_sequence_nr", sequence_nr, METH_NOARGS, "Number of the node in its thread."},
                              {}};

}  // namespace

std::shared_ptr<PyObject> share(PyObject* o) {
  return std::shared_ptr<PyObject>(Py_NewRef(o), [](PyObject* p) {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    Py_DECREF(p);
  });
}

int visit_autograd(const Tensor& tensor, visitproc visit, void* arg) {
  autograd::AutogradMeta* meta = autograd::impl::get_autograd_meta(tensor);
  if (!meta) return 0;
  Node* node = meta->grad_fn_ && meta->grad_fn_.use_count() == 1 ? meta->grad_fn_.get() : nullptr;
  if (autograd::TensorHooks* hooks = meta->hooks_.get()) {
    const std::lock_guard<autograd::detail::SpinLock> lock(hooks->lock);
    for (const auto& h : hooks->pre_hooks) {
      // A hook of a tensor that is no leaf is in the tensor's node too.
      long holders = 1;
      if (autograd::NodeExtras* extras = node ? node->extras() : nullptr) {
        const std::lock_guard<autograd::detail::SpinLock> node_lock(extras->lock);
        for (const auto& [nr, other] : extras->tensor_pre_hooks) holders += other == h;
      }
      if (const int r = visit_hook(h, holders, visit, arg)) return r;
    }
    if (const int r = visit_hook(hooks->post_accumulate, 1, visit, arg)) return r;
  }
  if (node)
    if (const int r = visit_node(*node, visit, arg)) return r;
  if (meta->grad_.defined() && meta->grad_.use_count() == 1) {
    auto* grad = static_cast<PyTensor*>(meta->grad_.unsafeGetTensorImpl()->pyobject());
    if (grad && grad->owned_by_tensor) Py_VISIT(reinterpret_cast<PyObject*>(grad));
  }
  return 0;
}

int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  const std::shared_ptr<Node>& node = py_node_of(o)->node;
  return node && node.use_count() == 1 ? visit_node(*node, visit, arg) : 0;
}

PyObject* wrap_node(const std::shared_ptr<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (auto* own = dynamic_cast<PythonNode*>(node.get())) return own->show();
  if (node->pyobj()) return Py_NewRef(static_cast<PyObject*>(node->pyobj()));
  CRESSET_PY_TRY
  const std::string name = node->name();  // nodes that no operator makes are named by their C++ class
  PyTypeObject* type = type_of_node(name.starts_with("torch::autograd::") ? name.substr(name.rfind(':') + 1) : name);
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  new (&py_node_of(o)->node) std::shared_ptr<Node>(node);
  new (&py_node_of(o)->weak) std::weak_ptr<Node>();
  node->set_pyobj(o);
  return o;
  CRESSET_PY_CATCH(nullptr)
}

variable_list to_tensors(PyObject* sequence, const char* what, bool none_allowed) {
  variable_list out;
  if (is_tensor(sequence)) return {unwrap(sequence)};
  const Ref items = checked(PySequence_Fast(sequence, "a sequence of tensors was required"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(items.get(), i);
    if (o == Py_None && none_allowed) {
      out.emplace_back();
      continue;
    }
    CRESSET_CHECK_TYPE(is_tensor(o), what, ": element ", static_cast<int64_t>(i), " must be a Tensor; a ", type_name(Py_TYPE(o)),
                       " was given.");
    out.push_back(unwrap(o));
  }
  return out;
}

Ref from_tensors(const variable_list& tensors) {
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(wrap(tensors[i])).release());
  return out;
}

void init_node(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&node_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&node_clear)},
                         {Py_tp_repr, reinterpret_cast<void*>(&node_repr)},
                         {Py_tp_call, reinterpret_cast<void*>(&node_call)},
                         {Py_tp_getattro, reinterpret_cast<void*>(&node_getattro)},
                         {Py_tp_getset, node_properties},
                         {Py_tp_methods, node_methods},
                         {Py_tp_doc, const_cast<char*>("A step of the backward graph.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._Node", sizeof(PyNode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "_Node", reinterpret_cast<PyObject*>(node_type)));

  // The hooks of one kind live in a dict that Python fills; C++ is told of the dict once.
  def(module, "_add_tensor_hooks", [](Tensor t, PyObject* dict) {
    autograd::impl::add_hook(t, std::make_shared<TensorHook>(dict, static_cast<uint32_t>(t.output_nr())));
  });
  def(module, "_clear_tensor_hooks", [](Tensor t) { autograd::impl::clear_hooks(t); });
  def(module, "_add_node_hooks", [](PyObject* node, PyObject* dict) {
    CRESSET_CHECK_TYPE(is_node(node), "a node was required");
    node_of(node).add_post_hook(std::make_shared<NodePostHook>(dict));
  });
  def(module, "_add_node_pre_hooks", [](PyObject* node, PyObject* dict) {
    CRESSET_CHECK_TYPE(is_node(node), "a node was required");
    node_of(node).add_pre_hook(std::make_shared<NodePreHook>(dict));
  });
  def(module, "_set_post_accumulate_grad_hooks",
      [](Tensor t, PyObject* dict) { autograd::impl::set_post_acc_grad_hooks(t, std::make_unique<PostAccumulateHook>(dict)); });
}

}  // namespace cresset::python
