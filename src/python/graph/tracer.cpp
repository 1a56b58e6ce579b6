// Traces of Python functions: begin and end, sizes as tensors, warnings, and where the Python program is.
#include "python/graph/tracer.h"

#include <frameobject.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"

namespace cresset::python {

namespace {

namespace tracer = jit::tracer;

PyObject* warning_type = nullptr;
bool warns = true;  // for the process, under the GIL

// The innermost line of Python.
jit::SourceRange python_place() {
  const GilAcquire gil;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const Ref file = Ref::steal(PyObject_GetAttrString(code.get(), "co_filename"));
  if (!file) {
    PyErr_Clear();
    return {};
  }
  return jit::SourceRange::at(to_text(file.get()), static_cast<std::size_t>(PyFrame_GetLineNumber(frame)), 0);
}

// The innermost local variable that is this tensor.
std::string python_name(const Tensor& t) {
  const GilAcquire gil;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  const Ref locals = Ref::steal(PyFrame_GetLocals(frame));
  if (!locals || !PyDict_Check(locals.get())) {
    PyErr_Clear();
    return {};
  }
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(locals.get(), &at, &key, &value)) {
    if (!is_tensor(value) || !unwrap(value).is_same(t)) continue;
    std::string name = to_text(key);
    return name == "self" ? std::string() : name;
  }
  return {};
}

[[noreturn]] void raise_untraceable(PyObject* o, const std::string& why) {
  const impl::ExcludeDispatchKeyGuard guard(DispatchKey::Tracer);  // printing is no part of the program
  const Ref text = checked(PyObject_Str(o));
  CRESSET_THROW(Error, "Tracer cannot infer type of ", to_text(text.get()), "\n:", why);
}

// Tensors in tuples, lists and dictionaries as values of the IR.
IValue traced_value(PyObject* o, int depth = 0) {
  constexpr int kDeepest = 100;
  CRESSET_CHECK(depth <= kDeepest, "trace: containers nested at most ", kDeepest, " deep were required.");
  if (is_tensor(o)) return unwrap(o);
  if (o == Py_None) return {};
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) return to_int(o);
  if (PyFloat_Check(o)) return to_double(o);
  if (PyUnicode_Check(o)) return to_text(o);
  const auto same_type = [&](const IValue& a, const IValue& b, const char* what) {
    const TypePtr x = tracer::without_shapes(a.type()), y = tracer::without_shapes(b.type());
    if (!(*x == *y))
      raise_untraceable(o, std::string(what) + " to traced functions must have consistent element type. Found " + x->annotation_str() +
                               " and " + y->annotation_str());
  };
  if (PyTuple_Check(o) || PyList_Check(o)) {
    std::vector<IValue> parts;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) parts.push_back(traced_value(PySequence_Fast_GET_ITEM(o, i), depth + 1));
    if (PyTuple_Check(o)) return make_intrusive<ivalue::TupleImpl>(std::move(parts));
    if (parts.empty()) raise_untraceable(o, "List trace inputs must have elements");
    for (const IValue& part : parts) same_type(parts[0], part, "List inputs");
    TypePtr element = tracer::without_shapes(parts[0].type());
    return make_intrusive<ivalue::ListImpl>(std::move(parts), std::move(element));
  }
  if (PyDict_Check(o)) {
    auto out = make_intrusive<ivalue::DictImpl>();
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(o, &at, &key, &value)) out->items.insert_or_assign(traced_value(key, depth + 1), traced_value(value, depth + 1));
    if (out->items.empty()) raise_untraceable(o, "Dictionary inputs must have entries");
    const auto& first = *out->items.begin();
    for (const auto& [k, v] : out->items) {
      same_type(first.first, k, "Dictionary inputs");
      same_type(first.second, v, "Dictionary inputs");
    }
    out->key_type = first.first.type();
    out->value_type = tracer::without_shapes(first.second.type());
    return out;
  }
  raise_untraceable(o,
                    "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of traced "
                    "functions, but instead got value of type " +
                        type_name(Py_TYPE(o)) + ".");
}

jit::tracer::TracingState& state() {
  CRESSET_CHECK(tracer::current(), "no trace is running on this thread.");
  return *tracer::current();
}

void begin(std::vector<std::string> names, PyObject* inputs, PyObject* self, bool force_outplace) {
  CRESSET_CHECK(!tracer::current(), "Tracing can't be nested");
  CRESSET_CHECK(PyTuple_Check(inputs) && static_cast<std::size_t>(PyTuple_GET_SIZE(inputs)) == names.size(),
                "trace: a name for each input was required.");
  intrusive_ptr<ivalue::Object> object;
  if (self != Py_None) object = object_of(self)._ivalue();
  const auto state = std::make_shared<tracer::TracingState>(std::move(object));
  state->force_outplace = force_outplace;
  const IValue values = traced_value(inputs);
  if (!names.empty()) tracer::check_input(values);
  for (std::size_t i = 0; i < names.size(); ++i) state->add_input(names[i], values.toTupleElements()[i]);
  forget_traced_forks();
  tracer::set_current(state);
}

// Ends the trace in any case.
std::shared_ptr<Graph> end(PyObject* output) {
  const auto s = tracer::current();
  CRESSET_CHECK(s, "no trace is running on this thread.");
  struct End {
    ~End() { tracer::set_current(nullptr); }
  };
  {
    const End end;
    CRESSET_CHECK(output != Py_None,
                  "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a no-op.");
    s->names_values = false;  // the program has returned: the variables here are not its own
    s->set_output(traced_value(output));
    finish_traced_forks();
  }
  s->make_methods();
  tracer::clean_up(s->graph);
  return s->graph;
}

// Kinds: "parameter", "buffer" and "attribute", which may be met again (training).
void add_attribute(PyObject* module, const std::string& name, std::string_view kind, PyObject* value) {
  const jit::Module made(object_of(module)._ivalue());
  IValue v = traced_value(value);
  if (made.hasattr(name)) return made.setattr(name, std::move(v));
  TypePtr type = tracer::without_shapes(v.type());
  made.register_attribute(name, std::move(type), std::move(v), kind == "parameter", kind == "buffer");
}

void add_method(PyObject* module, const std::string& name, const std::shared_ptr<Graph>& graph) {
  const auto type = object_of(module).type();
  auto function = make_intrusive<jit::GraphFunction>(type->name + "." + name, graph->shared_from_this());
  function->setSchema(tracer::traced_schema(*graph, name));
  type->addMethod(std::move(function));
}

}  // namespace

IValue traced_result(PyObject* o) { return traced_value(o); }

void warn_tracer(const char* text) {
  if (!warns) return;
  if (PyErr_WarnEx(warning_type, text, 1) < 0) throw ErrorAlreadySet();
}
void warn_conversion(const char* what) {
  warn_tracer((std::string("Converting a tensor to a ") + what +
               " might cause the trace to be incorrect. We can't record the data flow of Python values, so this value will be treated as a "
               "constant in the future. This means that the trace might not generalize to other inputs!")
                  .c_str());
}

void warn_constant(const char* function) {
  warn_tracer((std::string(function) +
               " results are registered as constants in the trace. You can safely ignore this warning if you use this function to create "
               "tensors out of constant variables that would be the same every time you call this function. In any other case, this might "
               "cause the trace to be incorrect.")
                  .c_str());
}

PyObject* traced_size_of(const Tensor& t, int64_t dim) { return wrap(tracer::traced_size(t, dim)); }
PyObject* traced_numel_of(const Tensor& t) { return wrap(tracer::traced_numel(t)); }
PyObject* traced_sizes(const Tensor& t) {
  Ref out = checked(size_type->tp_alloc(size_type, t.dim()));
  for (int64_t i = 0; i < t.dim(); ++i) PyTuple_SET_ITEM(out.get(), i, checked(traced_size_of(t, i)).release());
  return out.release();
}

IValue traced_argument(const char* argument, int64_t element, PyObject* tensor, bool integer) {
  const Ref item = checked(item_of(unwrap(tensor)));
  const IValue number = integer ? IValue(to_int(item.get())) : IValue(to_scalar(item.get()));
  tracer::stash(argument, element, unwrap(tensor), number);
  return number;
}

IValue traced_ivalue(const std::string& argument, PyObject* o, const Type& type) {
  const Type& inner = type.kind == TypeKind::Optional ? *type.element() : type;
  const auto is_number = [](const Type& t) {
    return t.kind == TypeKind::Int || t.kind == TypeKind::SymInt || t.kind == TypeKind::Float || t.kind == TypeKind::Number;
  };
  const auto is_int = [](const Type& t) { return t.kind == TypeKind::Int || t.kind == TypeKind::SymInt; };
  if (is_tensor(o) && is_number(inner)) return traced_argument(argument.c_str(), -1, o, is_int(inner));
  if (inner.kind != TypeKind::List || !is_int(*inner.element()) || !(PyTuple_Check(o) || PyList_Check(o)))
    return to_fitting_ivalue(o, type);
  std::vector<IValue> values;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* e = PySequence_Fast_GET_ITEM(o, i);
    values.push_back(is_tensor(e) ? traced_argument(argument.c_str(), i, e, true) : to_fitting_ivalue(e, *inner.element()));
  }
  return make_intrusive<ivalue::ListImpl>(std::move(values), inner.element());
}

void forget_traced_arguments() {
  state().stashed.clear();
  state().subscripts.clear();
}

void note_assignment(bool runs) { state().assigning = runs; }

void note_subscript(bool slice, std::initializer_list<PyObject*> parts) {
  tracer::TracingState::Subscript s{slice, {}, {}};
  constexpr int64_t kLeftOut[] = {0, INT64_MAX, 1};  // what the operator is given for a start, stop and step that are left out
  for (PyObject* const& o : parts) {
    if (o == Py_None) {
      s.numbers.emplace_back(kLeftOut[&o - parts.begin()]);
      s.values.push_back(nullptr);
      continue;
    }
    if (!is_tensor(o)) {
      s.numbers.emplace_back(to_int(o));
      s.values.push_back(nullptr);
      continue;
    }
    const IValue number(to_int(checked(item_of(unwrap(o))).get()));
    auto& stashed = state().stashed;
    const std::size_t before = stashed.size();
    tracer::stash("", -1, unwrap(o), number);
    s.numbers.push_back(number);
    s.values.push_back(stashed.size() > before ? stashed.back().value : nullptr);
    stashed.resize(before);
  }
  state().subscripts.push_back(std::move(s));
}

void init_tracer(PyObject* module) {
  warning_type = checked(PyErr_NewExceptionWithDoc("cresset.jit.TracerWarning",
                                                   "A trace may not be what the program does with other inputs.", PyExc_Warning, nullptr))
                     .release();
  checked(PyModule_AddObjectRef(module, "TracerWarning", warning_type));
  tracer::set_source_range_provider(&python_place);
  tracer::set_name_provider(&python_name);
  tracer::set_warning_provider([](const char* text) {
    const GilAcquire gil;
    warn_tracer(text);
  });
  def(module, "_jit_set_tracer_state_warn", [](bool on) { warns = on; }, "Whether traces warn of what they cannot record.");
  def(module, "_jit_get_tracer_state_warn", [] { return warns; });
  def(module, "_trace_push_scope", [](std::string name) {
    const auto& graph = state().graph;
    graph->set_current_scope(std::make_shared<jit::Scope>(graph->current_scope(), std::move(name)));
  });
  def(module, "_trace_pop_scope", [] {
    const auto scope = state().graph->current_scope();
    CRESSET_CHECK(scope, "pop_scope: no scope was pushed.");
    state().graph->set_current_scope(scope->parent());
  });
  def(module, "_trace_begin", [](std::vector<std::string> names, PyObject* inputs, PyObject* self, bool force_outplace) {
    begin(names, inputs, self, force_outplace);
  });
  def(module, "_trace_end", [](PyObject* output) { return end(output); });
  def(module, "_trace_abandon", [] { forget_traced_forks(), tracer::set_current(nullptr); }, "Ends a trace that failed.");
  def(
      module, "_trace_module",
      [](std::string name, std::optional<PyObject*> inside_of) {
        const auto unit = inside_of ? object_of(*inside_of).type()->unit() : std::make_shared<jit::CompilationUnit>();
        return Object(wrap_object(jit::Module(name, unit)));
      },
      "An empty module, of a new class of this name in the unit of another or in one of its own.");
  def(module, "_trace_add_attribute",
      [](PyObject* m, std::string name, std::string kind, PyObject* value) { add_attribute(m, name, kind, value); });
  def(module, "_trace_add_module", [](PyObject* m, std::string name, PyObject* child) {
    jit::Module(object_of(m)._ivalue()).register_module(name, jit::Module(object_of(child)._ivalue()));
  });
  def(module, "_trace_add_method", [](PyObject* m, std::string name, std::shared_ptr<Graph> graph) { add_method(m, name, graph); });
  def(module, "_trace_enter_module", [](std::vector<std::string> path) { state().enter_module(path); });
  def(module, "_trace_leave_module", [] { state().leave_module(); });
  def(module, "_trace_set_schema", [](PyObject* function) {
    auto* f = dynamic_cast<jit::GraphFunction*>(reinterpret_cast<PyFunction*>(function)->function.get());
    CRESSET_CHECK(f, "a function with a graph was required.");
    f->setSchema(tracer::traced_schema(*f->graph(), f->name()));
  });
  init_tracer_forks(module);
}

}  // namespace cresset::python
