// backward and grad, grad modes, forward mode, anomaly mode.
#include "python/autograd.h"

#include <cresset/autograd/anomaly_mode.h>
#include <cresset/autograd/engine.h>
#include <cresset/autograd/fallback.h>
#include <cresset/autograd/forward_ad.h>
#include <cresset/core/grad_mode.h>

#include <memory>

#include "autograd/captured_tensors.h"
#include "autograd/gradient_layout.h"
#include "python/bind.h"
#include "python/override.h"

namespace cresset::python {

namespace {

using autograd::variable_list;

std::optional<bool> optional_bool(PyObject* o) {
  if (!o || o == Py_None) return std::nullopt;
  const int r = PyObject_IsTrue(o);
  checked(r);
  return r == 1;
}

// Is `inputs` an edge (node, number), or a list or tuple that starts with one?
bool names_edges(PyObject* inputs) {
  if (!PyTuple_Check(inputs) && !PyList_Check(inputs)) return false;
  if (PySequence_Fast_GET_SIZE(inputs) == 0) return false;
  PyObject* first = PySequence_Fast_GET_ITEM(inputs, 0);
  return is_node(first) || PyTuple_Check(first);
}

variable_list to_inputs(PyObject* inputs) {
  if (!is_tensor(inputs)) {
    const Ref items = checked(PySequence_Fast(inputs, "inputs: tensors were required"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      PyObject* o = PySequence_Fast_GET_ITEM(items.get(), i);
      CRESSET_CHECK(is_tensor(o), "all inputs have to be Tensors or GradientEdges, but got ", type_name(Py_TYPE(o)));
    }
  }
  return to_tensors(inputs, "backward", false);
}

// Tensor.backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)
void check_outside_of_transforms() {
  CRESSET_CHECK(
      !autograd::transforms::inside_function(),
      "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead or "
      "call backward() outside of functorch transforms.");
}

PyObject* py_backward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  CRESSET_PY_TRY
  const Py_ssize_t given = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  static const char* const names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
  PyObject* values[4] = {};
  CRESSET_CHECK_TYPE(n <= 4, "backward() takes from 0 to 4 positional arguments but ", static_cast<int64_t>(n), " were given");
  for (Py_ssize_t i = 0; i < n; ++i) values[i] = args[i];
  for (Py_ssize_t i = n; i < given; ++i) {
    const std::string key = to_text(PyTuple_GET_ITEM(kwnames, i - n));
    const auto* found = std::find(std::begin(names), std::end(names), key);
    CRESSET_CHECK_TYPE(found != std::end(names), "backward() got an unexpected keyword argument '", key, "'");
    values[found - std::begin(names)] = args[i];
  }
  if (CRESSET_UNLIKELY(may_override(self))) {  // who overrides it is told of every argument, by keyword
    const Ref none = checked(PyTuple_New(0)), named = checked(PyDict_New());
    for (std::size_t i = 0; i < std::size(names); ++i)
      checked(PyDict_SetItemString(named.get(), names[i], values[i] ? values[i] : i == 2 ? Py_False : Py_None));
    PyObject* r = override_method(self, "backward", none.get(), named.get());
    if (r || PyErr_Occurred()) return r;
  }
  check_outside_of_transforms();
  if (values[3] && values[3] != Py_None && !is_tensor(values[3]) && names_edges(values[3])) {
    const Ref module = checked(PyImport_ImportModule("cresset.autograd"));
    const auto given_or = [&](int i, PyObject* other) { return values[i] ? values[i] : other; };
    return checked(PyObject_CallMethod(module.get(), "_backward_to_edges", "OOOOO", self, given_or(0, Py_None), given_or(1, Py_None),
                                       given_or(2, Py_False), values[3]))
        .release();
  }
  Tensor gradient;
  if (values[0] && values[0] != Py_None) {
    if (!is_tensor(values[0])) checked(PySequence_Tuple(values[0]));  // what is no sequence is refused as such
    CRESSET_CHECK_TYPE(is_tensor(values[0]), "gradients can be either Tensors or None, but got ", type_name(Py_TYPE(values[0])));
    gradient = unwrap(values[0]);
  }
  variable_list inputs;
  if (values[3] && values[3] != Py_None) {
    inputs = to_inputs(values[3]);
    CRESSET_CHECK(!inputs.empty(), "`inputs` argument to `backward()` cannot be empty.");
  }
  const std::optional<bool> retain = optional_bool(values[1]);
  const bool create = optional_bool(values[2]).value_or(false);
  const Tensor t = unwrap(self);
  {
    GilRelease release;
    autograd::backward({t}, {gradient}, retain, create, inputs);
  }
  Py_RETURN_NONE;
  CRESSET_PY_CATCH(nullptr)
}

PyObject* py_retain_grad(PyObject* self, PyObject*) {
  if (CRESSET_UNLIKELY(may_override(self))) {
    PyObject* r = override_method(self, "retain_grad");
    if (r || PyErr_Occurred()) return r;
  }
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  if (CRESSET_UNLIKELY(autograd::transforms::inside_function()) && t.requires_grad()) autograd::transforms::refuse_retain_grad();
  t.retain_grad();
  Py_RETURN_NONE;
  CRESSET_PY_CATCH(nullptr)
}

// Elements of a tuple may be (node, number) in place of tensors.
bool has_edges(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_Check(PyTuple_GET_ITEM(tuple, i))) return true;
  return false;
}

autograd::Edge to_edge(PyObject* o) {
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    CRESSET_CHECK(t.requires_grad(), "One of the differentiated Tensors does not require grad");
    return autograd::impl::gradient_edge(t);
  }
  CRESSET_CHECK_TYPE(PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 && is_node(PyTuple_GET_ITEM(o, 0)),
                     "a Tensor or a GradientEdge (node, output number) was required; a ", type_name(Py_TYPE(o)), " was given.");
  std::shared_ptr<autograd::Node> node = node_of_object(PyTuple_GET_ITEM(o, 0));
  const long long nr = PyLong_AsLongLong(PyTuple_GET_ITEM(o, 1));
  if (nr == -1 && PyErr_Occurred()) throw ErrorAlreadySet();
  CRESSET_CHECK_INDEX(nr >= 0 && nr < static_cast<long long>(node->num_inputs()), "GradientEdge: ", node->name(), " has ",
                      node->num_inputs(), " outputs; number ", static_cast<int64_t>(nr), " was given.");
  return {std::move(node), static_cast<uint32_t>(nr)};
}

autograd::edge_list to_edges(PyObject* tuple, bool retain) {
  autograd::edge_list edges;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* o = PyTuple_GET_ITEM(tuple, i);
    if (retain && is_tensor(o)) unwrap(o).retain_grad();
    edges.push_back(to_edge(o));
  }
  return edges;
}

// An inference-mode scope that Python enters and leaves.
struct InferenceGuard {
  PyObject_HEAD std::unique_ptr<InferenceMode> mode;
  bool on;
};
PyObject* inference_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int on = 1;
  if (!PyArg_ParseTuple(args, "|p:_InferenceMode", &on)) return nullptr;
  auto* g = reinterpret_cast<InferenceGuard*>(type->tp_alloc(type, 0));
  if (!g) return nullptr;
  new (&g->mode) std::unique_ptr<InferenceMode>();
  g->on = on;
  return reinterpret_cast<PyObject*>(g);
}
void inference_dealloc(PyObject* o) {
  reinterpret_cast<InferenceGuard*>(o)->mode.~unique_ptr();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* inference_enter(PyObject* o, PyObject*) {
  auto* g = reinterpret_cast<InferenceGuard*>(o);
  g->mode = std::make_unique<InferenceMode>(g->on);
  return Py_NewRef(o);
}
PyObject* inference_exit(PyObject* o, PyObject*) {
  reinterpret_cast<InferenceGuard*>(o)->mode.reset();
  Py_RETURN_NONE;
}
PyMethodDef inference_methods[] = {
    {"__enter__", inference_enter, METH_NOARGS, nullptr}, {"__exit__", inference_exit, METH_VARARGS, nullptr}, {}};

// Text of the Python stack, for anomaly mode.
std::string python_trace() {
  if (!Py_IsInitialized()) return {};
  GilAcquire gil;
  const Ref traceback = Ref::steal(PyImport_ImportModule("traceback"));
  const Ref lines = traceback ? Ref::steal(PyObject_CallMethod(traceback.get(), "format_stack", nullptr)) : Ref();
  const Ref empty = Ref::steal(PyUnicode_FromString(""));
  const Ref text = lines && empty ? Ref::steal(PyUnicode_Join(empty.get(), lines.get())) : Ref();
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string out = utf8 ? utf8 : "";
  PyErr_Clear();
  return out;
}

}  // namespace

PyMethodDef tensor_autograd_methods[] = {
    {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_backward)), METH_FASTCALL | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\nAdds into .grad of the leaves the gradient of this "
     "tensor."},
    {"retain_grad", py_retain_grad, METH_NOARGS, "Makes a non-leaf keep its gradient in .grad."},
    {}};

namespace {

// grads: one or None each.
Object run_backward(PyObject* tensors, PyObject* grads, bool keep, bool create, PyObject* inputs, bool allow_unused, bool accumulate) {
  if (accumulate) check_outside_of_transforms();
  if (has_edges(tensors) || has_edges(inputs)) {
    const autograd::edge_list roots = to_edges(tensors, false), targets = to_edges(inputs, accumulate);
    variable_list given = to_tensors(grads, "backward", true), out;
    {
      const GilRelease release;
      out = autograd::run_backward(roots, std::move(given), keep, create, targets, allow_unused, accumulate);
    }
    return Object(from_tensors(out));
  }
  const variable_list roots = to_tensors(tensors, "backward", false), grad_list = to_tensors(grads, "backward", true),
                      input_list = to_inputs(inputs);
  variable_list out;
  {
    const GilRelease release;
    out = autograd::run_backward(roots, grad_list, keep, create, input_list, allow_unused, accumulate);
  }
  return Object(from_tensors(out));
}

void init_engine_functions(PyObject* module) {
  def(module, "_run_backward",
      [](PyObject* tensors, PyObject* grads, bool keep, bool create, PyObject* inputs, bool allow_unused, bool accumulate) {
        return run_backward(tensors, grads, keep, create, inputs, allow_unused, accumulate);
      });
  def(module, "_queue_callback", [](PyObject* f) {
    autograd::Engine::get_default_engine().queue_callback([callback = share(f)] {
      GilAcquire gil;
      const Ref r = Ref::steal(PyObject_CallNoArgs(callback.get()));
      if (!r) throw_python_error();
    });
  });
  def(module, "_current_graph_task_id", [] { return autograd::get_current_graph_task_id(); });
  def(module, "_is_partial_backward", [] { return autograd::detail::partial_pass; }, "Does this pass compute only some gradients?");
  def(module, "_will_engine_execute_node", [](PyObject* node) {
    CRESSET_CHECK_TYPE(is_node(node), "a node was required");
    return autograd::will_engine_execute_node(node_of_object(node).get());
  });
  def(module, "_current_autograd_node", [] { return Object(wrap_node(autograd::current_node())); });
  // Zeros of the sizes that a gradient along an edge has.
  def(module, "_edge_zeros", [](PyObject* o) {
    const autograd::Edge edge = to_edge(o);
    return without_lock(true, [&] { return edge.function->input_metadata(edge.input_nr).zeros_like(); });
  });
}

void init_versions(PyObject* module) {
  def(module, "_increment_version", [](std::vector<Tensor> tensors) {
    for (const Tensor& t : tensors)
      if (!t.is_inference()) autograd::impl::bump_version(t);  // those have no count
  });
  // Tensors count from these versions on, and so do those that share their memory.
  def(module, "_unsafe_set_version_counter", [](std::vector<Tensor> tensors, std::vector<int64_t> versions) {
    CRESSET_CHECK(tensors.size() == versions.size(), "as many versions as tensors were required; given ", versions.size(), " for ",
                  tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      CRESSET_CHECK(versions[i] >= 0, "Cannot set a version_counter to a value below 0: ", versions[i]);
      TensorImpl* impl = tensors[i].unsafeGetTensorImpl();
      const auto version = static_cast<uint32_t>(versions[i]);
      if (tensors[i].has_storage()) impl->unsafe_storage().unsafeGetStorageImpl()->set_version(version);
      if (impl->version() != version) impl->new_version_counter(version);
    }
  });
}

void init_forward_mode(PyObject* module) {
  def(module, "_enter_dual_level", [] { return autograd::forward_ad::enter_dual_level(); });
  def(module, "_exit_dual_level", [](std::optional<int64_t> level) { autograd::forward_ad::exit_dual_level(level.value_or(-1)); });
  def(module, "_current_dual_level", [] { return autograd::forward_ad::current_level(); });
  def(module, "_make_dual", [](Tensor p, Tensor t, std::optional<int64_t> level) {
    return without_lock(may_wait(p), [&] { return autograd::forward_ad::make_dual(p, t, level.value_or(-1)); });
  });
  def(module, "_unpack_dual", [](Tensor t, std::optional<int64_t> level) {
    auto [primal, tangent] = without_lock(may_wait(t), [&] { return autograd::forward_ad::unpack_dual(t, level.value_or(-1)); });
    return std::vector<Tensor>{primal, tangent};
  });
}

void init_settings(PyObject* module) {
  def(module, "_is_grad_layout_enforced", [] { return autograd::is_gradient_layout_enforced(); });
  def(module, "_set_grad_layout_enforced", [](bool on) { autograd::set_gradient_layout_enforced(on); });
  def(module, "_grad_accumulator", [](Tensor t) { return Object(wrap_node(autograd::impl::grad_accumulator(t))); });
  def(module, "_set_multithreading_enabled", [](bool on) { autograd::set_multithreading_enabled(on); });
  def(module, "_set_view_replay_enabled", [](bool on) { autograd::set_view_replay_enabled(on); });
  def(module, "_is_view_replay_enabled", [] { return autograd::is_view_replay_enabled(); });
  def(module, "_is_multithreading_enabled", [] { return autograd::is_multithreading_enabled(); });

  def(module, "is_anomaly_enabled", [] { return autograd::AnomalyMode::is_enabled(); });
  def(module, "is_anomaly_check_nan_enabled", [] { return autograd::AnomalyMode::should_check_nan(); });
  def(module, "set_anomaly_enabled",
      [](bool on, std::optional<bool> check_nan) { autograd::AnomalyMode::set_enabled(on, check_nan.value_or(true)); });
  def(module, "_set_autograd_fallback_mode", [](std::string mode) {
    using autograd::AutogradFallbackMode;
    CRESSET_CHECK_VALUE(mode == "nothing" || mode == "warn" || mode == "error",
                        "autograd fallback mode: nothing, warn or error was required; '", mode, "' was given.");
    autograd::set_autograd_fallback_mode(mode == "nothing" ? AutogradFallbackMode::Nothing
                                         : mode == "warn"  ? AutogradFallbackMode::Warn
                                                           : AutogradFallbackMode::Error);
  });
  def(module, "_get_autograd_fallback_mode", [] {
    const auto mode = autograd::get_autograd_fallback_mode();
    return std::string(mode == autograd::AutogradFallbackMode::Nothing ? "nothing"
                       : mode == autograd::AutogradFallbackMode::Warn  ? "warn"
                                                                       : "error");
  });
}

}  // namespace

void init_autograd(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&inference_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&inference_dealloc)},
                         {Py_tp_methods, inference_methods},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._InferenceMode", sizeof(InferenceGuard), 0, Py_TPFLAGS_DEFAULT, slots};
  checked(PyModule_AddObjectRef(module, "_InferenceMode", checked(PyType_FromSpec(&spec)).get()));

  def(module, "_set_grad_enabled", [](bool on) { GradMode::set_enabled(on); });
  def(module, "is_grad_enabled", [] { return GradMode::is_enabled(); }, "Are operations recorded for backward?");
  def(module, "is_inference_mode_enabled", [] { return InferenceMode::is_enabled(); });
  def(module, "_is_fwd_grad_enabled", [] { return cresset::detail::grad_mode_state.forward_grad; });
  def(module, "_set_fwd_grad_enabled", [](bool on) { cresset::detail::grad_mode_state.forward_grad = on; });
  init_engine_functions(module);
  init_versions(module);
  init_forward_mode(module);
  init_settings(module);
  autograd::set_forward_trace_function(&python_trace);
  autograd::set_engine_thread_hooks({[]() -> void* {
                                       if (!Py_IsInitialized() || !PyGILState_Check()) return nullptr;
                                       signals_come_here();
                                       return PyEval_SaveThread();
                                     },
                                     [](void* state) {
                                       if (state) take_lock_back(static_cast<PyThreadState*>(state));
                                     }});
}

}  // namespace cresset::python
