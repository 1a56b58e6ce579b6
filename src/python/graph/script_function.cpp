// Functions with graphs as Python callables, passes by name, and the alias analysis for tests.
#include <unordered_map>

#include <cresset/dispatch/script_values.h>
#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/archive.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/pass.h>
#include <cresset/ir/subgraph_rewriter.h>

#include "ir/frontend/sugared_value.h"
#include "python/convert.h"
#include "python/dispatch.h"
#include "python/graph/ir.h"
#include "python/graph/tracer.h"

namespace cresset::python {

PyTypeObject* script_function_type = nullptr;

Object schema_object(const FunctionSchema& schema) {
  const Ref parts = schema_parts(schema), package = checked(PyImport_ImportModule("cresset._ops"));
  return Object(PyObject_CallMethod(package.get(), "FunctionSchema", "sO", schema.str().c_str(), parts.get()));
}

namespace {

using GraphRef = std::shared_ptr<Graph>;

jit::Function& function_of(PyObject* o) { return *reinterpret_cast<PyFunction*>(o)->function; }

int function_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(reinterpret_cast<PyFunction*>(o)->dict);
  return 0;
}
int function_clear(PyObject* o) {
  Py_CLEAR(reinterpret_cast<PyFunction*>(o)->dict);
  return 0;
}
void function_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  Py_CLEAR(reinterpret_cast<PyFunction*>(o)->dict);
  std::destroy_at(&reinterpret_cast<PyFunction*>(o)->function);
  std::destroy_at(&reinterpret_cast<PyFunction*>(o)->unit);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* function_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return call_function(function_of(self), nullptr, args, kwargs);
}

// Which member of a Union the value would have been.
std::string cast_details(PyObject* o, const Type& type) {
  if (const auto cls = type.cast<jit::ClassType>(); cls && !cls->is_module()) {
    for (const jit::ClassAttribute& a : cls->attributes())
      if (!PyObject_HasAttrString(o, a.name.c_str()))
        return "\nCast error details: Tried to cast object to type " + cls->name + " but object was missing attribute " + a.name;
  }
  if (type.kind != TypeKind::Union) return "";
  std::string found = type_name(Py_TYPE(o));
  try {
    found = to_ivalue(o, *basic_type(TypeKind::Any), "").type()->annotation_str();
  } catch (const Error&) {  // no value of scripts at all
  }
  return "\nCast error details: Expected a member of " + type.annotation_str() + " but instead found type " + found;
}

bool is_module_interface(const Type& type) {
  const auto interface = type.cast<jit::InterfaceType>();
  return interface && interface->is_module();
}

std::string module_details(PyObject* o, const Type& type) {
  if (!is_module_interface(type)) return "";
  std::string found;
  try {
    const IValue v = to_ivalue(o, *basic_type(TypeKind::Any), "");
    const auto cls = v.isScriptObject() ? v.type()->cast<jit::ClassType>() : nullptr;
    if (cls && cls->is_module()) found = cls->name;
  } catch (const Error&) {  // no value of scripts at all
  }
  if (found.empty()) return "\nOnly ScriptModule class can be subtype of module interface";
  return "\nCast error details: Object of type " + found + " is not compatible with interface " + type.annotation_str();
}

// What Python makes of a value where scripts want another one: numbers, None and tensors that are true or false, flags that are numbers,
// and containers of them. Null where it makes nothing.
Ref converted_argument(PyObject* o, const Type& type) {
  if (fits(o, type)) return Ref::borrow(o);
  if ((type.kind == TypeKind::Int || type.kind == TypeKind::Float) && is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (t.numel() != 1 || isComplexType(t.scalar_type())) return {};
    return checked(type.kind == TypeKind::Int ? PyNumber_Long(o) : PyNumber_Float(o));
  }
  switch (type.kind) {
    case TypeKind::Bool: {
      const PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
      if (!number || !number->nb_bool) return {};
      const int truth = PyObject_IsTrue(o);
      if (truth < 0) PyErr_Clear();
      return truth < 0 ? Ref() : Ref::borrow(truth ? Py_True : Py_False);
    }
    case TypeKind::Int: return PyBool_Check(o) ? checked(PyLong_FromLong(o == Py_True)) : Ref();
    case TypeKind::Float: return PyBool_Check(o) ? checked(PyFloat_FromDouble(o == Py_True)) : Ref();
    case TypeKind::String: {
      if (!PyBytes_Check(o)) return {};
      Ref text = Ref::steal(PyUnicode_DecodeUTF8(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o), nullptr));
      if (!text) PyErr_Clear();
      return text;
    }
    case TypeKind::Optional: return converted_argument(o, *type.element());
    case TypeKind::List:
    case TypeKind::Tuple: {
      const bool is_list = type.kind == TypeKind::List;
      if (!PyList_Check(o) && !PyTuple_Check(o)) return {};
      const Ref items = checked(PySequence_Fast(o, ""));
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.get());
      if (!is_list && static_cast<std::size_t>(size) != type.contained.size()) return {};
      Ref out = checked(is_list ? PyList_New(size) : PyTuple_New(size));
      for (Py_ssize_t i = 0; i < size; ++i) {
        Ref item = converted_argument(PySequence_Fast_GET_ITEM(items.get(), i), *type.contained[is_list ? 0 : static_cast<std::size_t>(i)]);
        if (!item) return {};
        is_list ? PyList_SET_ITEM(out.get(), i, item.release()) : PyTuple_SET_ITEM(out.get(), i, item.release());
      }
      return out;
    }
    case TypeKind::Dict: {
      if (!PyDict_Check(o)) return {};
      const Ref out = checked(PyDict_New());
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
        const Ref k = converted_argument(key, *type.contained[0]), v = converted_argument(value, *type.contained[1]);
        if (!k || !v) return {};
        checked(PyDict_SetItem(out.get(), k.get(), v.get()));
      }
      return Ref::borrow(out.get());
    }
    default: return {};
  }
}

// " (aka NamedTuple(a, b))" of an instance of a class of named tuples.
std::string named_fields(PyObject* o) {
  if (!PyTuple_Check(o) || !PyObject_HasAttrString(o, "_fields")) return "";
  const Ref fields = checked(PyObject_GetAttrString(o, "_fields"));
  const Ref separator = checked(PyUnicode_FromString(", "));
  return " (aka NamedTuple(" + to_text(checked(PyUnicode_Join(separator.get(), fields.get())).get()) + "))";
}

// The value of an argument, or the error that a call with it is.
IValue argument_value(const jit::Function& f, PyObject* o, const cresset::Argument& formal, std::size_t position) {
  const Type& list = formal.type->kind == TypeKind::Optional ? *formal.type->element() : *formal.type;
  if (formal.N && list.kind == TypeKind::List && o != Py_None && fits(o, *list.element())) {
    std::vector<IValue> values(static_cast<std::size_t>(*formal.N), to_fitting_ivalue(o, *list.element()));
    return make_intrusive<ivalue::ListImpl>(std::move(values), list.element());
  }
  if (list.kind == TypeKind::List && PyRange_Check(o)) {
    const Ref elements = checked(PySequence_List(o));
    return argument_value(f, elements.get(), formal, position);
  }
  if (CRESSET_UNLIKELY(!fits(o, *formal.type))) {
    if (const Ref converted = converted_argument(o, *formal.type)) return to_fitting_ivalue(converted.get(), *formal.type);
    const std::string inferred =
        formal.type == jit::inferred_tensor() ? "\n" + jit::inferred_words("'" + formal.name + "'") : std::string();
    CRESSET_THROW(Error, f.name(), "() Expected a value of type '", jit::type_words(formal.type), "' for argument '", formal.name,
                  "' but instead found type '", type_name(Py_TYPE(o)), named_fields(o), "'.", inferred, "\nPosition: ", position,
                  "\nValue: ", to_text(checked(PyObject_Repr(o)).get()), "\nDeclaration: ", f.getSchema().str(),
                  module_details(o, *formal.type), cast_details(o, *formal.type));
  }
  if (CRESSET_UNLIKELY(is_tracing())) return traced_ivalue(formal.name, o, *formal.type);
  return to_fitting_ivalue(o, *formal.type);
}

// Of what Python called last, as long as it lives. Under the GIL.
std::weak_ptr<Graph>& last_graph() {
  static auto& graph = *new std::weak_ptr<Graph>();
  return graph;
}

std::shared_ptr<Graph> inlined_copy(const GraphRef& g) {
  CRESSET_CHECK(g, "the function has no graph.");
  GraphRef copy = g->copy();
  jit::inline_calls(copy);
  return copy;
}

PyObject* function_graph_for(PyObject* self, PyObject* args, PyObject* kwargs) { return graph_for(function_of(self), self, args, kwargs); }

}  // namespace

PyObject* graph_for(jit::Function& f, PyObject* callable, PyObject* args, PyObject* kwargs) {
  const Ref result = Ref::steal(PyObject_Call(callable, args, kwargs));  // as the program calls it: its class may have another __call__
  if (!result) return nullptr;
  CRESSET_PY_TRY
  return wrap_graph(inlined_copy(f.graph()));
  CRESSET_PY_CATCH(nullptr)
}

// Scripts may take long and call operators that want the interpreter themselves.
PyObject* call_function(jit::Function& f, const IValue* self, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  const auto& formals = f.getSchema().arguments();
  if (CRESSET_UNLIKELY(is_tracing())) forget_traced_arguments();
  Stack stack;
  if (self) stack.push_back(*self);
  const auto value = [&](PyObject* o, std::size_t position) {
    return position < formals.size() ? argument_value(f, o, formals[position], position)
                                     : to_ivalue(o, *basic_type(TypeKind::Any), f.name() + "()");
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) stack.push_back(value(PyTuple_GET_ITEM(args, i), stack.size()));
  std::vector<std::pair<std::string, IValue>> named;
  if (kwargs) {
    PyObject *key, *object;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &object);) {
      const std::string name = to_text(key);
      named.emplace_back(name, value(object, f.getSchema().argument_index(name).value_or(formals.size())));
    }
  }
  f.checkAndNormalize(stack, named);
  last_graph() = f.graph();
  {
    const GilRelease release;
    f.run(stack);
  }
  if (stack.empty()) Py_RETURN_NONE;
  if (stack.size() == 1) return to_python(std::move(stack[0]), false);
  return to_python(IValue(make_intrusive<ivalue::TupleImpl>(std::move(stack))), false);
  CRESSET_PY_CATCH(nullptr)
}

intrusive_ptr<jit::Function> to_function(PyObject* o) {
  CRESSET_CHECK_TYPE(PyObject_TypeCheck(o, script_function_type), "a ScriptFunction was required; a ", type_name(Py_TYPE(o)),
                     " was given.");
  return reinterpret_cast<PyFunction*>(o)->function;
}

using FunctionRef = intrusive_ptr<jit::Function>;

PyObject* wrap_function(intrusive_ptr<jit::Function> f) {
  PyObject* o = checked(script_function_type->tp_alloc(script_function_type, 0)).release();
  new (&reinterpret_cast<PyFunction*>(o)->unit) std::shared_ptr<void>(f->unit());
  new (&reinterpret_cast<PyFunction*>(o)->function) intrusive_ptr<jit::Function>(std::move(f));
  return o;
}

std::shared_ptr<Graph> graph_of(const jit::Function& f) {
  const auto owners = std::make_shared<std::pair<std::shared_ptr<void>, GraphRef>>(f.unit(), f.graph());
  return owners->second ? GraphRef(owners, owners->second.get()) : nullptr;
}

namespace {

// ---- alias analysis, as an object of its own

struct PyAliasDb {
  PyObject_HEAD std::shared_ptr<jit::AliasDb> db;
  std::shared_ptr<Graph> graph;
};
PyTypeObject* alias_db_type = nullptr;
void alias_db_dealloc(PyObject* o) {
  auto* self = reinterpret_cast<PyAliasDb*>(o);
  std::destroy_at(&self->db);
  std::destroy_at(&self->graph);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
jit::AliasDb& alias_db_of(PyObject* o) {
  CRESSET_CHECK_TYPE(PyObject_TypeCheck(o, alias_db_type), "an AliasDb was required.");
  return *reinterpret_cast<PyAliasDb*>(o)->db;
}
}  // namespace

Object make_alias_db(GraphRef g, bool strict) {
  jit::AliasDb::Options options;
  options.strict = strict;
  auto db = std::make_shared<jit::AliasDb>(g, options);
  PyObject* o = checked(alias_db_type->tp_alloc(alias_db_type, 0)).release();
  new (&reinterpret_cast<PyAliasDb*>(o)->db) std::shared_ptr<jit::AliasDb>(std::move(db));
  new (&reinterpret_cast<PyAliasDb*>(o)->graph) GraphRef(std::move(g));
  return Object(o);
}

namespace {

jit::ValueSet value_set(const std::vector<Value*>& values) { return {values.begin(), values.end()}; }

// Edges from values to the memory that they may share: that of other values, or what comes from outside.
std::string graphviz(const PyAliasDb& o) {
  std::vector<Value*> values(o.graph->inputs().begin(), o.graph->inputs().end());
  o.graph->block()->visit([&](Node* n) {
    for (Value* v : n->outputs())
      if (jit::AliasDb::isMutableType(v)) values.push_back(v);
  });
  const auto name = [](const Value* v) { return "\"%" + v->debugName() + "\""; };
  std::string out = "digraph alias_db {\n  rankdir=LR\n  node [shape=rect, color=gray];\n  edge [color=black];\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!jit::AliasDb::isMutableType(values[i])) continue;
    if (o.db->mayAliasWildcard(values[i])) out += "  " + name(values[i]) + " -> \"WILDCARD for " + values[i]->type()->str() + "\"\n";
    for (std::size_t j = 0; j < i; ++j) {
      if (o.db->mayAlias(values[i], values[j]))
        out += "  " + name(values[i]) + " -> " + name(values[j]) + "\n";
      else if (o.db->mayContainAlias(values[i], values[j]))
        out += "  " + name(values[i]) + " -> " + name(values[j]) + " [style=dashed, color=blue]\n";
    }
  }
  return out + "}\n";
}

void init_alias_db(PyObject* module) {
  using Values = std::vector<Value*>;
  static PyMethodDef methods[] = {
      method("has_writers",
             [](PyObject* db, PyObject* o) {
               return is_value(o) ? alias_db_of(db).hasWriters(to_value(o)) : alias_db_of(db).hasWriters(to_node(o));
             }),
      method("to_graphviz_str", [](PyObject* db) { return graphviz(*reinterpret_cast<PyAliasDb*>(db)); }),
      method("is_mutable", [](PyObject* db, Node* n) { return alias_db_of(db).isMutable(n); }),
      method("may_alias", [](PyObject* db, Value* a, Value* b) { return alias_db_of(db).mayAlias(a, b); }),
      method("may_contain_alias", [](PyObject* db, Value* a, Value* b) { return alias_db_of(db).mayContainAlias(a, b); }),
      method("may_alias_wildcard", [](PyObject* db, Value* a) { return alias_db_of(db).mayAliasWildcard(a); }),
      method("writes_to_alias", [](PyObject* db, Node* n, Values values) { return alias_db_of(db).writesToAlias(n, value_set(values)); }),
      method("writes_to_wildcard", [](PyObject* db, Node* n) { return alias_db_of(db).writesToWildcard(n); }),
      method("escapes_scope", [](PyObject* db, Values values) { return alias_db_of(db).escapesScope(value_set(values)); }),
      method("safe_to_change_aliasing",
             [](PyObject* db, Value* a, Value* b) { return alias_db_of(db).safeToChangeAliasingRelationship(a, b); }),
      method("move_after_topologically_valid",
             [](PyObject* db, Node* n, Node* t) { return alias_db_of(db).moveAfterTopologicallyValid(n, t); }),
      method("move_before_topologically_valid",
             [](PyObject* db, Node* n, Node* t) { return alias_db_of(db).moveBeforeTopologicallyValid(n, t); }),
      method("could_move_after_topologically",
             [](PyObject* db, Node* n, Node* t) { return alias_db_of(db).couldMoveAfterTopologically(n, t); }),
      method("could_move_before_topologically",
             [](PyObject* db, Node* n, Node* t) { return alias_db_of(db).couldMoveBeforeTopologically(n, t); }),
      {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&alias_db_dealloc)},
                         {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* o) -> PyObject* {
                            CRESSET_PY_TRY
                            return Convert<std::string>::to(alias_db_of(o).toString());
                            CRESSET_PY_CATCH(nullptr)
                          })},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("Which values of a graph may share memory.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.AliasDb", sizeof(PyAliasDb), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  alias_db_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "AliasDb", reinterpret_cast<PyObject*>(alias_db_type)));
  def(module, "_jit_alias_db", [](GraphRef g, std::optional<bool> strict) { return make_alias_db(std::move(g), strict.value_or(false)); });
}

// ---- passes: _jit_pass_NAME for each that is registered

// As in PyTorch, whose names these are, the types of the graph are the caller's word, those that a trace wrote included.
jit::PassContext context_of(PyObject* graph) {
  jit::PassContext context{.graph = to_graph(graph)};
  context.options.trust_examples = true;
  return context;
}

PyObject* run_pass(PyObject* name, PyObject* const* args, Py_ssize_t n) {
  CRESSET_PY_TRY
  const std::string pass = to_text(name);
  CRESSET_CHECK_TYPE(n == 1, "_jit_pass_", pass, "() takes a Graph.");
  jit::PassContext context = context_of(args[0]);
  context.options.documented_forms = pass == "fuse_linear";  // asks for no sizes, there
  return PyBool_FromLong(jit::find_pass(pass)->run_in(context));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* rewrite_by_pattern(PyObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  const char* names[] = {"pattern", "fused_node_name", "g", "value_name_pairs", "trust_rules", nullptr};
  PyObject *pattern = nullptr, *replacement = nullptr, *graph = nullptr, *pairs = nullptr;
  int trust_rules = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|Op:_jit_pass_custom_pattern_based_rewrite_graph", const_cast<char**>(names), &pattern,
                                   &replacement, &graph, &pairs, &trust_rules))
    return nullptr;
  std::vector<std::pair<std::string, std::string>> values;
  if (pairs && pairs != Py_None)
    for (const std::vector<std::string>& pair : Convert<std::vector<std::vector<std::string>>>::from(pairs))
      values.emplace_back(pair.at(0), pair.at(1));
  jit::SubgraphRewriter rewriter({.trust_rules = trust_rules != 0, .skip_marked = trust_rules == 0});
  rewriter.RegisterRewritePattern(to_text(pattern), to_text(replacement), std::move(values));
  return PyLong_FromSize_t(rewriter.runOnGraph(to_graph(graph)));
  CRESSET_PY_CATCH(nullptr)
}

// The forms of peephole that take a graph and a flag.
template <bool jit::LoweringOptions::*option, bool value_when_set>
PyObject* peephole_with_flag(const char* name, const char* flag_name, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  const char* names[] = {"graph", flag_name, nullptr};
  PyObject* graph = nullptr;
  int flag = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, (std::string("O|p:") + name).c_str(), const_cast<char**>(names), &graph, &flag))
    return nullptr;
  jit::PassContext context = context_of(graph);
  if (flag) context.options.*option = value_when_set;
  return PyBool_FromLong(jit::find_pass("peephole")->run_in(context));
  CRESSET_PY_CATCH(nullptr)
}

PyObject* pass_peephole(PyObject*, PyObject* args, PyObject* kwargs) {
  return peephole_with_flag<&jit::LoweringOptions::trust_types, false>("_jit_pass_peephole", "disable_shape_peepholes", args, kwargs);
}

PyObject* pass_peephole_list_idioms(PyObject*, PyObject* args, PyObject* kwargs) {
  return peephole_with_flag<&jit::LoweringOptions::refine_list_lengths, true>("_jit_pass_peephole_list_idioms", "refine_list_len", args,
                                                                              kwargs);
}

void init_passes(PyObject* module) {
  static std::vector<std::unique_ptr<PyMethodDef>> definitions;
  static std::vector<std::unique_ptr<std::string>> texts;
  for (const auto& pass : jit::passes()) {
    texts.push_back(std::make_unique<std::string>("_jit_pass_" + pass->name));
    definitions.push_back(std::make_unique<PyMethodDef>(PyMethodDef{
        texts.back()->c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&run_pass)), METH_FASTCALL, pass->summary.c_str()}));
    const Ref name = checked(PyUnicode_FromString(pass->name.c_str()));
    const Ref function = checked(PyCFunction_NewEx(definitions.back().get(), name.get(), nullptr));
    checked(PyObject_SetAttrString(module, texts.back()->c_str(), function.get()));
  }
  def(
      module, "_jit_pass_remove_mutation",
      [](GraphRef g) {
        const bool lists = jit::find_pass("remove_list_mutation")->run(g);
        return jit::find_pass("remove_tensor_mutation")->run(g) || lists;
      },
      "Writes into lists and tensors that only this graph sees become new ones.");
  def(
      module, "_jit_pass_constant_propagation",
      [](GraphRef g) {
        const bool changed = jit::propagate_constants(g);
        return jit::eliminate_dead_code(g) || changed;
      },
      "Nodes whose operands are known become constants, and what nobody needs goes.");
  static PyMethodDef with_names[] = {
      {"_jit_pass_custom_pattern_based_rewrite_graph", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&rewrite_by_pattern)),
       METH_VARARGS | METH_KEYWORDS,
       "Rewrites what matches a pattern, both given as graphs; value_name_pairs says where new nodes come from."},
      {"_jit_pass_peephole", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&pass_peephole)), METH_VARARGS | METH_KEYWORDS,
       "Small local simplifications; with disable_shape_peepholes none that types of tensors answer."},
      {"_jit_pass_peephole_list_idioms", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&pass_peephole_list_idioms)),
       METH_VARARGS | METH_KEYWORDS, "Lists whose elements and lengths are known; with refine_list_len from conditions, too."},
      {nullptr, nullptr, 0, nullptr}};
  checked(PyModule_AddFunctions(module, with_names));
  def(module, "_jit_passes", [] {
    std::vector<std::vector<std::string>> out;
    for (const auto& p : jit::passes()) out.push_back({p->name, p->phase, p->summary, p->command_name()});
    return out;
  });
  def(module, "_jit_lowering_passes", [] { return jit::lowering_passes(); });
}

// Running passes by name, for tests and tools.
void init_pass_runs(PyObject* module) {
  // What a pass did and said: "changed" or "unchanged", then "level: file:line:column: text", ….
  def(module, "_jit_run_pass", [](std::string name, GraphRef g, std::vector<std::string> options) {
    jit::PipelineOptions pipeline;
    pipeline.verify = false;
    for (const std::string& option : options) jit::set_lowering_option(pipeline.lowering, option);
    std::vector<std::string> said{"unchanged"};
    pipeline.report = [&](const jit::PassReport& r) {
      if (r.changed) said[0] = "changed";
      for (const jit::PassNote& n : r.notes) said.push_back(std::string(to_string(n.log_level())) + ": " + n.str());
    };
    jit::run_passes(g, {name}, pipeline);
    return said;
  });
  def(module, "_jit_run_difference", [](GraphRef a, GraphRef b, std::vector<PyObject*> args) {
    Stack stack;
    for (PyObject* o : args) stack.push_back(to_ivalue(o, *basic_type(TypeKind::Any), "graph"));
    const GilRelease release;
    return jit::run_difference(a, b, stack);
  });
  def(module, "_jit_run_passes", [](GraphRef g, std::vector<std::string> names) {
    std::vector<std::string> report;
    jit::PipelineOptions options;
    options.report = [&](const jit::PassReport& r) { report.push_back(jit::pass_heading(r) + "\n" + r.graph->toString()); };
    jit::run_passes(g, names, options);
    return report;
  });
  def(module, "_jit_count_pattern_matches", [](std::string pattern, GraphRef g) {
    return static_cast<int64_t>(jit::findPatternMatches(*jit::parse_ir(pattern), *g, /*skip_marked=*/true).size());
  });
}

void set_list_size(jit::Function& f, const std::string& name, int64_t n) {
  auto* function = dynamic_cast<jit::GraphFunction*>(&f);
  CRESSET_CHECK(function, "a function with a graph was required.");
  const FunctionSchema schema = function->getSchema();
  std::vector<cresset::Argument> arguments = schema.arguments();
  const auto is_list = [](const Type& t) {
    return t.kind == TypeKind::List || (t.kind == TypeKind::Optional && t.containedTypes().at(0)->kind == TypeKind::List);
  };
  for (cresset::Argument& a : arguments)
    if (a.name == name && is_list(*a.type)) a.N = static_cast<decltype(a.N)::value_type>(n);
  function->setSchema(FunctionSchema(OperatorName{schema.name(), ""}, std::move(arguments), schema.returns()));
}

PyMethodDef function_methods[] = {
    {"graph_for", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&function_graph_for)), METH_VARARGS | METH_KEYWORDS,
     "graph_for(*args, **kwargs)\n\nCalls the function and gives the graph that ran, with all calls inlined."},
    method("graph_copy", [](FunctionRef f) { return f->graph()->copy(); }),
    method(
        "dump_code", [](FunctionRef f) { return f->code()->dump(); }, "The instructions that run."),
    method(
        "_invalidate",
        [](FunctionRef f) {
          if (auto* g = dynamic_cast<jit::GraphFunction*>(f.get())) g->invalidate();
        },
        "Forgets compiled code, after the graph was changed."),
    method(
        "_set_list_size", [](FunctionRef f, std::string name, int64_t n) { set_list_size(*f, name, n); },
        "The parameter, a list, takes one value for n equal ones."),
    method(
        "save",
        [](FunctionRef f, PyObject* file, std::optional<PyObject*> extra_files) { save_function(f, file, extra_files.value_or(Py_None)); },
        "Write an archive whose module's forward is this function."),
    {}};

PyGetSetDef function_properties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                     property("graph", [](FunctionRef f) { return graph_of(*f); }),
                                     property("inlined_graph", [](FunctionRef f) { return inlined_copy(f->graph()); }),
                                     property("code", [](FunctionRef f) { return jit::code_of(*f); }),
                                     property("name", [](FunctionRef f) { return f->name(); }),
                                     property("__name__", [](FunctionRef f) { return f->name(); }),
                                     property("qualified_name", [](FunctionRef f) { return std::string(f->qualname()); }),
                                     property("schema", [](FunctionRef f) { return schema_object(f->getSchema()); }),
                                     {}};

// Graphs that run without a function.
void init_runs(PyObject* module) {
  def(
      module, "_jit_interpret_graph",
      [](GraphRef g, std::vector<PyObject*> args) {
        Stack stack;
        for (PyObject* o : args) stack.push_back(to_ivalue(o, *basic_type(TypeKind::Any), "graph"));
        {
          const GilRelease release;
          jit::Code::compile(g->copy())->run(stack);
        }
        if (stack.size() == 1) return Object(to_python(std::move(stack[0]), false));
        return Object(to_python(IValue(make_intrusive<ivalue::TupleImpl>(std::move(stack))), false));
      },
      "What the graph gives for these inputs.");
  def(module, "_jit_run_graph", [](GraphRef g, std::vector<PyObject*> args) {
    Stack stack;
    for (PyObject* o : args) stack.push_back(to_ivalue(o, *basic_type(TypeKind::Any), "graph"));
    {
      const GilRelease release;
      jit::Code::compile(g->copy())->run(stack);
    }
    const Ref list = checked(PyList_New(0));
    for (IValue& v : stack) checked(PyList_Append(list.get(), checked(to_python(std::move(v), false)).get()));
    return Object(Ref::borrow(list.get()));
  });
}

}  // namespace

void init_script_function(PyObject* module) {
  static PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyFunction, dict), READONLY, nullptr}, {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&function_dealloc)},
                         {Py_tp_call, reinterpret_cast<void*>(&function_call)},
                         {Py_tp_methods, function_methods},
                         {Py_tp_getset, function_properties},
                         {Py_tp_members, members},
                         {Py_tp_traverse, reinterpret_cast<void*>(&function_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&function_clear)},
                         {Py_tp_doc, const_cast<char*>("A function with a graph.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.ScriptFunction", sizeof(PyFunction), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  script_function_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "ScriptFunction", reinterpret_cast<PyObject*>(script_function_type)));
  def(module, "_last_executed_optimized_graph", [] {
    const GraphRef g = last_graph().lock();
    CRESSET_CHECK(g, "no script was called yet, or the last one is gone.");
    return inlined_copy(g);
  });
  def(
      module, "_jit_assert_is_instance",
      [](PyObject* value, TypePtr type) { to_ivalue(value, *type, "an instance of " + type->annotation_str()); },
      "Raises when scripts would not take the value for one of this type.");
  def(module, "_create_function_from_graph",
      [](std::string name, GraphRef g) { return FunctionRef(make_intrusive<jit::GraphFunction>(std::move(name), std::move(g))); });
  init_runs(module);
  // print() of scripts goes where Python's sys.stdout goes.
  jit::set_print_handler([](const std::string& text) {
    GilAcquire gil;
    PyObject* out = PySys_GetObject("stdout");
    if (!out || out == Py_None || PyFile_WriteString(text.c_str(), out) < 0) PyErr_Clear();
  });
  init_alias_db(module);
  init_passes(module);
  init_pass_runs(module);
}

}  // namespace cresset::python
