// Lowering in Python: modules and graphs through the phase, single passes, passes written in Python, loggers. cresset/lowering makes the
// public form of it.
#include <cresset/ir/graph_diff.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/lowering.h>
#include <cresset/ir/subgraph_rewriter.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/lowering_settings.h"
#include "python/graph/script_convert.h"

namespace cresset::python {
namespace {

using GraphRef = std::shared_ptr<Graph>;

std::vector<IValue> values_of(PyObject* sequence) {
  std::vector<IValue> out;
  for (PyObject* o : Convert<std::vector<PyObject*>>::from(sequence)) out.push_back(to_ivalue(o, *basic_type(TypeKind::Any), "inputs"));
  return out;
}

// Of each input what is known of it, as text (else None), and its device (else None).
jit::InputSpecs input_specs(const std::vector<std::optional<std::string>>& texts, const std::vector<std::optional<std::string>>& devices) {
  CRESSET_CHECK_VALUE(texts.size() == devices.size(), "input_devices: one for each input was required.");
  jit::InputSpecs out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    out.emplace_back();
    if (texts[i]) out.back() = jit::parse_input_spec(*texts[i]);
    if (texts[i] && devices[i]) out.back()->device = Device(*devices[i]);
  }
  return out;
}

// (index, name, changed, seconds, [(level, file:line:column or "", text)])
Ref report_tuple(const jit::PassReport& r) {
  const Ref notes = checked(PyList_New(0));
  for (const jit::PassNote& n : r.notes)
    checked(
        PyList_Append(notes.get(), checked(Py_BuildValue("(sss)", to_string(n.log_level()), n.where.str().c_str(), n.text.c_str())).get()));
  return checked(Py_BuildValue("(nsOdO)", static_cast<Py_ssize_t>(r.index), r.pass->name.c_str(), r.changed ? Py_True : Py_False, r.seconds,
                               notes.get()));
}

Ref parameter_list(std::vector<IValue> values) {
  const Ref list = checked(PyList_New(0));
  for (IValue& v : values) checked(PyList_Append(list.get(), checked(to_python(std::move(v), false)).get()));
  return Ref::borrow(list.get());
}

// (graph, parameters, reports) of a module's method or of a graph, which is changed in place. names: which passes; None: the phase.
PyObject* lower(PyObject* target, std::string method, PyObject* settings, std::optional<std::vector<std::string>> names) {
  jit::PipelineOptions options = pipeline_options(settings);
  const Ref reports = checked(PyList_New(0));
  options.report = [&](const jit::PassReport& r) { checked(PyList_Append(reports.get(), report_tuple(r).get())); };
  GraphRef graph;
  std::vector<IValue> parameters;
  if (PyObject_TypeCheck(target, graph_type)) {
    graph = to_graph(target);
    jit::run_passes(graph, names.value_or(jit::lowering_passes()), options);
  } else if (names) {
    jit::PassedModule passed = jit::run_module_passes(module_of(target), method, *names, options);
    graph = std::move(passed.graph);
    parameters = std::move(passed.parameters);
  } else {
    jit::LoweredModule lowered = jit::lower(module_of(target), method, options);
    graph = std::move(lowered.graph);
    parameters = std::move(lowered.parameters);
  }
  return Py_BuildValue("(NOO)", wrap_graph(std::move(graph)), parameter_list(std::move(parameters)).get(), reports.get());
}

// PyTorch's form of freezing, on the C++ objects.
PyObject* freeze_module(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"module", "preservedAttrs", "freezeInterfaces", "preserveParameters", nullptr};
  PyObject *module, *preserved = nullptr;
  int interfaces = 1, parameters = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|Opp", const_cast<char**>(names), &module, &preserved, &interfaces, &parameters))
    return nullptr;
  CRESSET_PY_TRY
  CRESSET_CHECK_NOT_IMPLEMENTED(interfaces && !parameters,
                                "_freeze_module: freezeInterfaces=False and preserveParameters=True are not implemented.");
  return wrap_object(
      jit::freeze_module(module_of(module), preserved ? Convert<std::vector<std::string>>::from(preserved) : std::vector<std::string>()));
  CRESSET_PY_CATCH(nullptr)
}

// ---- passes written in Python

// The function's reference lives as long as the pass; it goes under the interpreter's lock.
std::shared_ptr<PyObject> shared(PyObject* o) {
  return {Py_NewRef(o), [](PyObject* p) {
            if (!Py_IsInitialized()) return;
            GilAcquire gil;
            Py_DECREF(p);
          }};
}

// Rules that C++ matches and rewrites; only guards are called, once for a match.
struct Rules {
  jit::SubgraphRewriter rewriter;
  std::vector<jit::MatchFilter> guards;
};
constexpr const char* kRules = "cresset.lowering.rules";

// {name in the pattern: value of the graph}.
Ref values_of(const jit::Match& match, const std::unordered_map<std::string, Value*>& names) {
  Ref values = checked(PyDict_New());
  for (const auto& [name, v] : names)
    if (const auto found = match.values_map.find(v); found != match.values_map.end())
      if (PyDict_SetItemString(values.get(), name.c_str(), checked(wrap_part(found->second)).get()) != 0) throw ErrorAlreadySet();
  return values;
}

jit::MatchFilter guard_of(std::shared_ptr<PyObject> f) {
  return [f = std::move(f)](const jit::Match& match, const std::unordered_map<std::string, Value*>& names) {
    GilAcquire gil;
    const Ref answer = checked(PyObject_CallOneArg(f.get(), values_of(match, names).get()));
    const int yes = PyObject_IsTrue(answer.get());
    if (yes < 0) throw ErrorAlreadySet();
    return yes == 1;
  };
}

PyObject* make_rules(std::string before, std::string after, PyObject* guard) {
  auto rules = std::make_unique<std::shared_ptr<Rules>>(std::make_shared<Rules>());
  (*rules)->rewriter.RegisterRewritePattern(before, after);
  if (guard != Py_None) (*rules)->guards.push_back(guard_of(shared(guard)));
  return PyCapsule_New(rules.release(), kRules,
                       [](PyObject* capsule) { delete static_cast<std::shared_ptr<Rules>*>(PyCapsule_GetPointer(capsule, kRules)); });
}
std::shared_ptr<Rules> rules_of(PyObject* capsule) {
  CRESSET_CHECK_TYPE(PyCapsule_IsValid(capsule, kRules), "a pattern of cresset.lowering was required.");
  return *static_cast<std::shared_ptr<Rules>*>(PyCapsule_GetPointer(capsule, kRules));
}
int64_t run_rules(const Rules& rules, const GraphRef& graph) {
  auto rewriter = rules.rewriter;
  return static_cast<int64_t>(rewriter.runOnGraph(graph, rules.guards));
}

// {name in the pattern: value} for each match.
Ref matches_of(const std::string& pattern, const GraphRef& graph) {
  std::unordered_map<std::string, Value*> names;
  const auto wanted = jit::parse_ir(pattern, {}, &names);
  const Ref list = checked(PyList_New(0));
  for (const jit::Match& m : jit::findPatternMatches(*wanted, *graph, /*skip_marked=*/true))
    if (PyList_Append(list.get(), values_of(m, names).get()) != 0) throw ErrorAlreadySet();
  return Ref::borrow(list.get());
}

// The text, and which tensors its constants are: their contents would take longer than most passes.
std::string state_of(const Graph& graph) {
  std::string out = graph.toString({.source_ranges = false, .constants = false});
  graph.block()->visit([&](const Node* n) {
    if (n->kind() != jit::prim::Constant) return;
    if (const auto value = jit::toIValue(n->outputs()[0]); value && value->isTensor() && value->toTensor().defined())
      out += " " + std::to_string(reinterpret_cast<std::uintptr_t>(value->toTensor().unsafeGetTensorImpl()));
  });
  return out;
}

void register_pass(std::string name, PyObject* function, std::string phase, std::string summary, std::string device, std::string before,
                   std::string after) {
  jit::Pass pass;
  pass.name = std::move(name);
  pass.phase = std::move(phase);
  pass.summary = std::move(summary);
  pass.device = std::move(device);
  if (PyTuple_Check(function)) {
    std::vector<std::shared_ptr<Rules>> all;
    for (PyObject* capsule : Convert<std::vector<PyObject*>>::from(function)) all.push_back(rules_of(capsule));
    pass.run_in = [all](jit::PassContext& context) {
      int64_t rewrites = 0;
      for (const auto& rules : all) rewrites += run_rules(*rules, context.graph);
      return rewrites > 0;
    };
  } else {
    CRESSET_CHECK_TYPE(PyCallable_Check(function), "register_pass: a function or patterns were required; a ", type_name(Py_TYPE(function)),
                       " was given.");
    pass.run_in = [f = shared(function)](jit::PassContext& context) {
      GilAcquire gil;
      // A function may say whether it changed something; of one that does not, the graph tells.
      const std::string before = state_of(*context.graph);
      const Ref graph = checked(wrap_graph(context.graph));
      const Ref answer = checked(PyObject_CallOneArg(f.get(), graph.get()));
      if (PyBool_Check(answer.get())) return answer.get() == Py_True;
      return state_of(*context.graph) != before;
    };
  }
  jit::register_pass(std::move(pass), {.before = std::move(before), .after = std::move(after)});
}

// ---- loggers, as objects

struct PyLogger {
  PyObject_HEAD std::shared_ptr<jit::logging::Logger> logger;
};
PyTypeObject* logger_type = nullptr;
jit::logging::Logger& logger_of(PyObject* o) {
  CRESSET_CHECK_TYPE(PyObject_TypeCheck(o, logger_type), "a Logger was required.");
  return *reinterpret_cast<PyLogger*>(o)->logger;
}
PyObject* wrap_logger(std::shared_ptr<jit::logging::Logger> logger) {
  PyObject* o = checked(logger_type->tp_alloc(logger_type, 0)).release();
  new (&reinterpret_cast<PyLogger*>(o)->logger) std::shared_ptr<jit::logging::Logger>(std::move(logger));
  return o;
}
void logger_dealloc(PyObject* o) {
  std::destroy_at(&reinterpret_cast<PyLogger*>(o)->logger);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

void init_loggers(PyObject* module) {
  static PyMethodDef methods[] = {
      method("level", [](PyObject* o) { return std::string(to_string(logger_of(o).level())); }),
      method("set_level", [](PyObject* o, std::string level) { logger_of(o).set_level(jit::logging::level_from(level)); }),
      method("prefix", [](PyObject* o) { return logger_of(o).prefix(); }),
      method("set_prefix", [](PyObject* o, std::string prefix) { logger_of(o).set_prefix(std::move(prefix)); }),
      method("colour", [](PyObject* o) { return logger_of(o).colour(); }),
      method("set_colour", [](PyObject* o, bool on) { logger_of(o).set_colour(on); }),
      method("set_sink",
             [](PyObject* o, PyObject* f) {
               if (f == Py_None) {
                 logger_of(o).set_sink({});
                 return;
               }
               logger_of(o).set_sink([f = shared(f)](jit::logging::Level level, const std::string& line) {
                 GilAcquire gil;
                 checked(PyObject_CallFunction(f.get(), "ss", to_string(level), line.c_str()));
               });
             }),
      method("log",
             [](PyObject* o, std::string level, std::string message) { logger_of(o).log(jit::logging::level_from(level), message); }),
      {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&logger_dealloc)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("Where messages of lowering go.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.LoweringLogger", sizeof(PyLogger), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  logger_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "LoweringLogger", reinterpret_cast<PyObject*>(logger_type)));
  def(module, "_lowering_logger", [] { return Object(wrap_logger(jit::logging::current())); });
  def(module, "_lowering_new_logger", [](std::string prefix, std::string level) {
    return Object(wrap_logger(std::make_shared<jit::logging::Logger>(std::move(prefix), jit::logging::level_from(level))));
  });
  // Contexts of this thread: Python enters and leaves them in pairs.
  static thread_local std::vector<std::unique_ptr<jit::logging::WithLogger>> contexts;
  def(module, "_lowering_push_logger", [](PyObject* o) {
    logger_of(o);
    contexts.push_back(std::make_unique<jit::logging::WithLogger>(reinterpret_cast<PyLogger*>(o)->logger));
  });
  def(module, "_lowering_pop_logger", [] {
    if (!contexts.empty()) contexts.pop_back();
  });
}

}  // namespace

jit::PipelineOptions pipeline_options(PyObject* dict) {
  jit::PipelineOptions o;
  const auto get = [&](const char* key) -> PyObject* {
    PyObject* v = PyDict_GetItemString(dict, key);
    return v == Py_None ? nullptr : v;
  };
  using Names = std::vector<std::string>;
  if (PyObject* v = get("options"))
    for (const std::string& option : Convert<Names>::from(v)) jit::set_lowering_option(o.lowering, option);
  using Texts = std::vector<std::optional<std::string>>;
  if (PyObject* v = get("inputs")) o.inputs = input_specs(Convert<Texts>::from(v), Convert<Texts>::from(get("input_devices")));
  if (PyObject* v = get("only")) o.only = Convert<Names>::from(v);
  if (PyObject* v = get("stop_after")) o.stop_after = to_text(v);
  if (PyObject* v = get("dump_before")) o.dump_before = Convert<Names>::from(v);
  if (PyObject* v = get("dump_after")) o.dump_after = Convert<Names>::from(v);
  if (PyObject* v = get("check_with")) o.check_with = values_of(v);
  if (PyObject* v = get("verify")) o.verify = PyObject_IsTrue(v) == 1;
  return o;
}

jit::Module module_of(PyObject* o) {
  const jit::Object object = object_of(o);
  CRESSET_CHECK_TYPE(object.defined(), "a ScriptModule or Graph was required; a ", type_name(Py_TYPE(o)), " was given.");
  return jit::Module(object._ivalue());
}

void init_script_lowering(PyObject* module) {
  init_loggers(module);
  def(module, "_lowering_run", [](PyObject* target, std::string method, PyObject* settings, std::optional<std::vector<std::string>> names) {
    return Object(lower(target, std::move(method), settings, std::move(names)));
  });
  def(module, "_lowering_register_pass",
      [](std::string name, PyObject* f, std::string phase, std::string summary, std::string device, std::string before, std::string after) {
        register_pass(std::move(name), f, std::move(phase), std::move(summary), std::move(device), std::move(before), std::move(after));
      });
  def(module, "_lowering_pattern", [](std::string before, std::string after, PyObject* guard) {
    return Object(make_rules(std::move(before), std::move(after), guard));
  });
  def(module, "_lowering_pattern_run", [](PyObject* capsule, GraphRef g) { return run_rules(*rules_of(capsule), g); });
  def(module, "_lowering_pattern_matches", [](std::string pattern, GraphRef g) { return Object(Py_NewRef(matches_of(pattern, g).get())); });
  def(module, "_lowering_diff", [](GraphRef a, GraphRef b) {
    const jit::GraphDiff d = jit::diff_graphs(*a, *b);
    const auto count = [](std::size_t n) { return static_cast<Py_ssize_t>(n); };
    return Object(Py_BuildValue("(Osnnnn)", d.equal() ? Py_True : Py_False, d.str().c_str(), count(d.same), count(d.changed), count(d.gone),
                                count(d.fresh)));
  });
  def(module, "_lowering_input", [](std::string text) {
    const jit::InputSpec spec = jit::parse_input_spec(text);
    const auto list = [](const std::vector<int64_t>& v) { return checked(Convert<std::vector<int64_t>>::to(v)); };
    return Object(Py_BuildValue("(OOOs)", list(spec.min).get(), list(spec.opt).get(), list(spec.max).get(), dtype_name(spec.dtype)));
  });
  def(module, "_lowering_unregister_pass", [](std::string name) { return jit::unregister_pass(name); });
  def(module, "_lowering_options", [] { return jit::lowering_option_names(); });
  def(module, "_lowering_eliminate_dead_code", [](GraphRef g, bool with_aliases, bool delete_effects, PyObject* live_values) {
    jit::DeadCodeOptions options{.with_aliases = with_aliases, .delete_effects = delete_effects};
    if (live_values != Py_None)
      options.live_values = [&](const std::unordered_set<const Value*>& values) {
        const Ref set = checked(PySet_New(nullptr));
        for (const Value* v : values)
          if (PySet_Add(set.get(), checked(wrap_part(const_cast<Value*>(v))).get()) != 0) throw ErrorAlreadySet();
        checked(PyObject_CallOneArg(live_values, set.get()));
      };
    return jit::eliminate_dead_code(g, options);
  });
  def(module, "_lowering_bisect", [](GraphRef g, PyObject* inputs, PyObject* settings, std::optional<std::vector<std::string>> names) {
    const auto found = jit::bisect_passes(g, names.value_or(jit::lowering_passes()), values_of(inputs), pipeline_options(settings));
    return Object(found ? Py_BuildValue("(nss)", static_cast<Py_ssize_t>(found->index), found->pass.c_str(), found->what.c_str())
                        : Py_NewRef(Py_None));
  });
  def(module, "_lowering_lower_graph", [](PyObject* m, std::string method) {
    auto [graph, values] = jit::lower_graph(module_of(m), method);
    return Object(Py_BuildValue("(NO)", wrap_graph(std::move(graph)), parameter_list(std::move(values)).get()));
  });
  def(module, "_jit_pass_lower_graph", [](GraphRef graph, PyObject* m) {
    auto [lowered, values] = jit::lower_graph(module_of(m), *graph);
    return Object(Py_BuildValue("(NO)", wrap_graph(std::move(lowered)), parameter_list(std::move(values)).get()));
  });
  static PyMethodDef freeze = {"_freeze_module", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&freeze_module)),
                               METH_VARARGS | METH_KEYWORDS, "jit.freeze of a module's C++ object."};
  checked(PyModule_AddObjectRef(module, "_freeze_module", checked(PyCFunction_New(&freeze, nullptr)).get()));
  def(module, "_lowering_freeze",
      [](PyObject* m, std::vector<std::string> preserved) { return Object(wrap_object(jit::freeze_module(module_of(m), preserved))); });
}

}  // namespace cresset::python
