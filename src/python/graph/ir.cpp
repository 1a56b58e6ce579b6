// Graph, Node, Value and Block in Python, with PyTorch's method names.
#include "python/graph/ir.h"

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/canonicalize.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/native_code.h>
#include <cresset/ir/operator.h>

#include "python/convert.h"
#include "python/dispatch.h"
#include "python/graph/script_convert.h"

namespace cresset::python {

PyTypeObject *graph_type = nullptr, *ir_node_type = nullptr, *ir_value_type = nullptr, *ir_block_type = nullptr;

namespace {

using jit::AttributeKind;

// ---- objects

template <class Py, class... Members>
void destroy_members(PyObject* o, Members... members) {
  auto* self = reinterpret_cast<Py*>(o);
  (std::destroy_at(&(self->*members)), ...);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
void graph_dealloc(PyObject* o) { destroy_members<PyGraph>(o, &PyGraph::graph); }
template <class T>
void part_dealloc(PyObject* o) {
  destroy_members<PyPart<T>>(o, &PyPart<T>::handle, &PyPart<T>::graph);
}

PyObject* graph_new(PyTypeObject*, PyObject*, PyObject*) {
  CRESSET_PY_TRY
  return wrap_graph(std::make_shared<Graph>());
  CRESSET_PY_CATCH(nullptr)
}

template <class T>
PyObject* new_part(PyTypeObject* type, T* part) {
  PyObject* o = checked(type->tp_alloc(type, 0)).release();
  auto* self = reinterpret_cast<PyPart<T>*>(o);
  new (&self->handle) std::shared_ptr<jit::Handle<T>>(part->handle());
  new (&self->graph) std::shared_ptr<Graph>(part->owningGraph()->shared_from_this());
  return o;
}
template <class T>
T* part_of(PyObject* o, PyTypeObject* type, const char* what) {
  CRESSET_CHECK_TYPE(PyObject_TypeCheck(o, type), "a ", what, " was required; a ", type_name(Py_TYPE(o)), " was given.");
  T* part = reinterpret_cast<PyPart<T>*>(o)->handle->target;
  CRESSET_CHECK(part, "the ", what, " was destroyed and its object invalidated; it cannot be used any more.");
  return part;
}

// One part, one identity: equal objects are the same part.
template <class T>
PyObject* part_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const bool same = reinterpret_cast<PyPart<T>*>(a)->handle == reinterpret_cast<PyPart<T>*>(b)->handle;
  return PyBool_FromLong(same == (op == Py_EQ));
}
template <class T>
Py_hash_t part_hash(PyObject* o) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(reinterpret_cast<PyPart<T>*>(o)->handle.get()) >> 4);
}
template <class F>
PyObject* text_of(F&& f) {
  CRESSET_PY_TRY
  return Convert<std::string>::to(f());
  CRESSET_PY_CATCH(nullptr)
}

// ---- arguments

Symbol to_kind(const std::string& name) { return Symbol::fromQualString(name.find("::") == std::string::npos ? "aten::" + name : name); }

// A constant of Python's value.
IValue to_constant(PyObject* o) { return to_ivalue(o, *basic_type(TypeKind::Any), "constant"); }

std::vector<Node*> nodes_of(const Block* b) {
  std::vector<Node*> out;
  for (Node* n : b->nodes()) out.push_back(n);
  return out;
}

std::vector<Node*> find_nodes(const Block* b, const std::string& kind, bool recurse, bool first_only) {
  const Symbol symbol = Symbol::fromQualString(kind);
  std::vector<Node*> out;
  // Depth first, as PyTorch searches: a node's blocks are looked at behind the node itself.
  std::vector<Node*> stack{b->param_node()->next()};
  while (!stack.empty()) {
    Node* n = stack.back();
    if (n->kind() == jit::prim::Return) {
      stack.pop_back();
      continue;
    }
    stack.back() = n->next();
    if (n->kind() == symbol) {
      out.push_back(n);
      if (first_only) return out;
    }
    if (recurse)
      for (std::size_t i = n->blocks().size(); i-- > 0;) stack.push_back(n->blocks()[i]->param_node()->next());
  }
  return out;
}
Node* find_node(const Block* b, const std::string& kind, bool recurse) {
  const auto found = find_nodes(b, kind, recurse, true);
  return found.empty() ? nullptr : found[0];
}

// create(kind), create(kind, outputs), create(kind, inputs), create(kind, inputs, outputs)
Node* create(Graph& g, const std::string& kind, PyObject* a, PyObject* b) {
  std::vector<Value*> inputs;
  int64_t outputs = 1;
  if (a && PyLong_Check(a)) {
    outputs = to_int(a);
  } else {
    if (a && a != Py_None)
      for (PyObject* o : Convert<std::vector<PyObject*>>::from(a)) {
        CRESSET_CHECK_VALUE(o != Py_None, "create: inputs that are Values were required; None was given.");
        inputs.push_back(to_value(o));
      }
    if (b && b != Py_None) outputs = to_int(b);
  }
  CRESSET_CHECK(outputs >= 0, "create: a number of outputs from 0 up was required; ", outputs, " was given.");
  return g.create(to_kind(kind), inputs, static_cast<std::size_t>(outputs));
}

Object uses_of(const Value* v) {
  static PyObject* use_type = nullptr;
  if (!use_type) {
    const Ref collections = checked(PyImport_ImportModule("collections"));
    use_type = checked(PyObject_CallMethod(collections.get(), "namedtuple", "s(ss)", "Use", "user", "offset")).release();
  }
  const Ref list = checked(PyList_New(0));
  for (const jit::Use& u : v->uses()) {
    const Ref user = checked(wrap_part(u.user));
    const Ref use = checked(PyObject_CallFunction(use_type, "On", user.get(), static_cast<Py_ssize_t>(u.offset)));
    checked(PyList_Append(list.get(), use.get()));
  }
  return Object(Ref::borrow(list.get()));
}

// ---- attributes of nodes

Symbol attribute_symbol(const std::string& name) { return Symbol::attr(name); }

template <AttributeKind K, class T>
PyObject* attribute_to_python(const Node* n, const std::string& name) {
  const jit::AttributeValue& v = n->attribute(attribute_symbol(name));
  CRESSET_CHECK(static_cast<AttributeKind>(v.index()) == K, "attribute '", name, "' is of kind '",
                toString(static_cast<AttributeKind>(v.index())), "', not '", toString(K), "'.");
  const auto& held = std::get<static_cast<std::size_t>(K)>(v);
  if constexpr (K == AttributeKind::c)
    return PyComplex_FromDoubles(held.real(), held.imag());
  else if constexpr (K == AttributeKind::cs) {
    const Ref list = checked(PyList_New(0));
    for (const auto& c : held) checked(PyList_Append(list.get(), checked(PyComplex_FromDoubles(c.real(), c.imag())).get()));
    return Py_NewRef(list.get());
  } else if constexpr (K == AttributeKind::ival)
    return to_python(held, false);
  else
    return Convert<T>::to(held);
}
template <AttributeKind K, class T>
Node* set_attribute(Node* n, const std::string& name, PyObject* value) {
  if constexpr (K == AttributeKind::c) {
    n->setAttribute(attribute_symbol(name),
                    jit::AttributeValue(std::in_place_index<static_cast<std::size_t>(K)>, to_scalar(value).toComplexDouble()));
  } else if constexpr (K == AttributeKind::cs) {
    const Ref items = checked(PySequence_Fast(value, "a sequence of complex numbers was required"));
    std::vector<std::complex<double>> all;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      all.push_back(to_scalar(PySequence_Fast_GET_ITEM(items.get(), i)).toComplexDouble());
    n->setAttribute(attribute_symbol(name), jit::AttributeValue(std::in_place_index<static_cast<std::size_t>(K)>, std::move(all)));
  } else if constexpr (K == AttributeKind::ival) {
    n->setAttribute(attribute_symbol(name), jit::AttributeValue(std::in_place_index<static_cast<std::size_t>(K)>, to_constant(value)));
  } else {
    n->setAttribute(attribute_symbol(name), jit::AttributeValue(std::in_place_index<static_cast<std::size_t>(K)>, Convert<T>::from(value)));
  }
  return n;
}
#define CRESSET_PY_ATTRIBUTE(k, ...)                                                                                         \
  method(#k, [](Node* n, std::string name) { return Object(attribute_to_python<AttributeKind::k, __VA_ARGS__>(n, name)); }), \
      method(#k "_", [](Node* n, std::string name, PyObject* v) { return set_attribute<AttributeKind::k, __VA_ARGS__>(n, name, v); })

std::vector<std::string> attribute_names(const Node* n) {
  std::vector<std::string> out;
  for (const Symbol s : n->attributeNames()) out.emplace_back(s.toUnqualString());
  return out;
}

// "layer1(Sequential).0(Conv2d)": the modules whose methods were inlined around the node, each by its name; SELF for another
// method of the same module, and PyTorch's words for functions.
std::string module_hierarchy(const Node* n) {
  std::string out, before;
  for (const jit::InlinedCallStack* c = n->callstack().get(); c; c = c->callee.get()) {
    if (!c->module_type) {
      out += ".UNKNOWN_INSTANCE(UNKNOWN_TYPE)";
      continue;
    }
    const std::string& path = c->module_path;
    const std::string type = c->module_type->annotation_str();
    out += out.empty() ? "" : ".";
    out += (path == before ? "SELF" : path.substr(path.rfind('.') + 1)) + "(" + type.substr(type.rfind('.') + 1) + ")";
    before = path;
  }
  return out;
}

// Is the node a call of this operator? A schema, or its text; overloads are told apart by their arguments.
bool matches(const Node* n, PyObject* wanted) {
  const std::string text = PyUnicode_Check(wanted) ? Convert<std::string>::from(wanted) : to_text(checked(PyObject_Str(wanted)).get());
  const FunctionSchema schema = parse_schema(text);
  if (Symbol::fromQualString(schema.name()) != n->kind() || n->inputs().size() > schema.arguments().size()) return false;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& formal = schema.arguments()[i];
    if (i >= n->inputs().size()) return false;
    if (!n->input(i)->type()->is_subtype_of(*formal.type)) return false;
  }
  return true;
}

PyMethodDef node_methods[] = {
    method("matches", [](Node* n, PyObject* schema) { return matches(n, schema); }),
    method("kind", [](Node* n) { return std::string(n->kind().toQualString()); }),
    method("inputs", [](Node* n) { return iterate(n->inputs()); }),
    method("outputs", [](Node* n) { return iterate(n->outputs()); }),
    method("inputsSize", [](Node* n) { return static_cast<int64_t>(n->inputs().size()); }),
    method("outputsSize", [](Node* n) { return static_cast<int64_t>(n->outputs().size()); }),
    method("inputsAt",
           [](Node* n, int64_t i) {
             CRESSET_CHECK_INDEX(i >= 0 && i < static_cast<int64_t>(n->inputs().size()), "inputsAt: an index below ", n->inputs().size(),
                                 " was required; ", i, " was given.");
             return n->input(static_cast<std::size_t>(i));
           }),
    method("outputsAt",
           [](Node* n, int64_t i) {
             CRESSET_CHECK_INDEX(i >= 0 && i < static_cast<int64_t>(n->outputs().size()), "outputsAt: an index below ", n->outputs().size(),
                                 " was required; ", i, " was given.");
             return n->output(static_cast<std::size_t>(i));
           }),
    method("input", [](Node* n) { return n->input(); }),
    method("output", [](Node* n) { return n->output(); }),
    method("namedInput", [](Node* n, std::string name) { return n->namedInput(name); }),
    method("hasMultipleOutputs", [](Node* n) { return n->outputs().size() > 1; }),
    method("hasUses", [](Node* n) { return n->hasUses(); }),
    method("addInput", [](Node* n, Value* v) { return n->addInput(v); }),
    method("replaceInput", [](Node* n, int64_t i, Value* v) { return n->replaceInput(static_cast<std::size_t>(i), v); }),
    method("replaceInputWith", [](Node* n, Value* a, Value* b) { n->replaceInputWith(a, b); }),
    method("removeInput", [](Node* n, int64_t i) { n->removeInput(static_cast<std::size_t>(i)); }),
    method("removeAllInputs", [](Node* n) { n->removeAllInputs(); }),
    method("addOutput", [](Node* n) { return n->addOutput(); }),
    method("eraseOutput", [](Node* n, int64_t i) { n->eraseOutput(static_cast<std::size_t>(i)); }),
    method("replaceAllUsesWith", [](Node* n, Node* o) { n->replaceAllUsesWith(o); }),
    method("blocks", [](Node* n) { return iterate(n->blocks()); }),
    method("addBlock", [](Node* n) { return n->addBlock(); }),
    method("owningBlock", [](Node* n) { return n->owningBlock(); }),
    method("prev", [](Node* n) { return n->prev(); }),
    method("next", [](Node* n) { return n->next(); }),
    method("insertBefore", [](Node* n, Node* o) { return n->insertBefore(o); }),
    method("insertAfter", [](Node* n, Node* o) { return n->insertAfter(o); }),
    method("moveBefore", [](Node* n, Node* o) { n->moveBefore(o); }),
    method("moveAfter", [](Node* n, Node* o) { n->moveAfter(o); }),
    method("isBefore", [](Node* n, Node* o) { return n->isBefore(o); }),
    method("isAfter", [](Node* n, Node* o) { return n->isAfter(o); }),
    method("destroy", [](Node* n) { n->destroy(); }),
    method("copyMetadata", [](Node* n, Node* o) { return n->copyMetadata(o); }),
    method("copyAttributes", [](Node* n, Node* o) { return n->copyAttributes(*o); }),
    method("findNode",
           [](Node* n, std::string kind, std::optional<bool> recurse) -> Node* {
             for (const Block* b : n->blocks())
               if (Node* found = find_node(b, kind, recurse.value_or(true))) return found;
             return nullptr;
           }),
    method("findAllNodes",
           [](Node* n, std::string kind, std::optional<bool> recurse) {
             std::vector<Node*> out;
             for (const Block* b : n->blocks())
               for (Node* found : find_nodes(b, kind, recurse.value_or(true), false)) out.push_back(found);
             return out;
           }),
    method("attributeNames", [](Node* n) { return attribute_names(n); }),
    method("hasAttribute", [](Node* n, std::string name) { return n->hasAttribute(attribute_symbol(name)); }),
    method("hasAttributes", [](Node* n) { return n->hasAttributes(); }),
    method("kindOf", [](Node* n, std::string name) { return std::string(toString(n->kindOf(attribute_symbol(name)))); }),
    method("removeAttribute", [](Node* n, std::string name) { return n->removeAttribute(attribute_symbol(name)); }),
    CRESSET_PY_ATTRIBUTE(f, double),
    CRESSET_PY_ATTRIBUTE(fs, std::vector<double>),
    CRESSET_PY_ATTRIBUTE(c, double),
    CRESSET_PY_ATTRIBUTE(cs, double),
    CRESSET_PY_ATTRIBUTE(i, int64_t),
    CRESSET_PY_ATTRIBUTE(is, std::vector<int64_t>),
    CRESSET_PY_ATTRIBUTE(s, std::string),
    CRESSET_PY_ATTRIBUTE(ss, std::vector<std::string>),
    CRESSET_PY_ATTRIBUTE(t, Tensor),
    CRESSET_PY_ATTRIBUTE(ts, std::vector<Tensor>),
    CRESSET_PY_ATTRIBUTE(g, std::shared_ptr<Graph>),
    CRESSET_PY_ATTRIBUTE(gs, std::vector<std::shared_ptr<Graph>>),
    CRESSET_PY_ATTRIBUTE(ty, TypePtr),
    CRESSET_PY_ATTRIBUTE(tys, std::vector<TypePtr>),
    CRESSET_PY_ATTRIBUTE(ival, IValue),
    method("schema",
           [](Node* n) {
             const FunctionSchema* s = n->maybeSchema();
             return s ? s->str() : std::string("(no schema)");
           }),
    method("matches", [](Node* n, std::string schema) { return n->matches(schema); }),
    method("mustBeNone", [](Node* n) { return n->mustBeNone(); }),
    method("isNondeterministic", [](Node* n) { return n->isNondeterministic(); }),
    method("hasSideEffects", [](Node* n) { return n->hasSideEffects(); }),
    method("sourceRange", [](Node* n) { return n->sourceRange().str(); }),
    method("setSourceRange",
           [](Node* n, std::string file, int64_t line, int64_t column) {
             n->setSourceRange(jit::SourceRange::at(std::move(file), static_cast<std::size_t>(line), static_cast<std::size_t>(column)));
           }),
    method("scopeName", [](Node* n) { return n->scopeName(); }),
    method("setScope", [](Node* n, std::string path) { n->setScope(jit::Scope::parse(path)); }),
    method("callStack", [](Node* n) { return n->callstack() ? n->callstack()->str() : std::string(); }),
    method("getModuleHierarchy", [](Node* n) { return module_hierarchy(n); }),
    method("owningGraph", [](Node* n) { return n->owningGraph()->shared_from_this(); }),
    {}};

void init_nodes(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(&part_dealloc<Node>)},
      {Py_tp_richcompare, reinterpret_cast<void*>(&part_compare<Node>)},
      {Py_tp_hash, reinterpret_cast<void*>(&part_hash<Node>)},
      {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* o) { return text_of([&] { return to_node(o)->str() + "\n"; }); })},
      {Py_tp_methods, node_methods},
      {Py_tp_doc, const_cast<char*>("One operation of a graph.")},
      {0, nullptr}};
  PyType_Spec spec{"cresset._C.Node", sizeof(PyPart<Node>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  ir_node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(ir_node_type)));
}

void init_values(PyObject* module) {
  static PyMethodDef methods[] = {
      method("debugName", [](Value* v) { return v->debugName(); }),
      method("setDebugName", [](Value* v, std::string name) { return v->setDebugName(name); }),
      method("unique", [](Value* v) { return static_cast<int64_t>(v->unique()); }),
      method("offset", [](Value* v) { return static_cast<int64_t>(v->offset()); }),
      method("node", [](Value* v) { return v->node(); }),
      method("uses", [](Value* v) { return uses_of(v); }),
      method("hasUses", [](Value* v) { return v->hasUses(); }),
      method("type", [](Value* v) { return v->type(); }),
      method("setType", [](Value* v, TypePtr t) { return v->setType(std::move(t)); }),
      method("setTypeAs", [](Value* v, Value* o) { return v->setType(o->type()); }),
      method("inferTypeFrom", [](Value* v, Tensor t) { return v->inferTypeFrom(t); }),
      method("isCompleteTensor", [](Value* v) { return v->isCompleteTensor(); }),
      method("requires_grad",
             [](Value* v) {
               const auto* t = dynamic_cast<const TensorType*>(v->type().get());
               return t && t->requires_grad.value_or(true);
             }),
      method("requiresGrad",
             [](Value* v) {
               const auto* t = dynamic_cast<const TensorType*>(v->type().get());
               return t ? t->requiresGrad() : std::nullopt;
             }),
      method("replaceAllUsesWith", [](Value* v, Value* o) { v->replaceAllUsesWith(o); }),
      method("replaceAllUsesAfterNodeWith", [](Value* v, Node* n, Value* o) { v->replaceAllUsesAfterNodeWith(n, o); }),
      method("replaceAllUsesDominatedByNodeWith", [](Value* v, Node* n, Value* o) { v->replaceAllUsesDominatedByNodeWith(n, o); }),
      method("copyMetadata", [](Value* v, Value* o) { return v->copyMetadata(o); }),
      method("mustBeNone", [](Value* v) { return v->mustBeNone(); }),
      method("toIValue",
             [](Value* v) {
               const auto constant = jit::toIValue(v);
               if (!constant) return Object(Py_NewRef(Py_None));
               // A number that an operator took as a tensor is a number again.
               if (constant->isTensor() && constant->toTensor().defined() &&
                   constant->toTensor().unsafeGetTensorImpl()->is_wrapped_number())
                 return Object(item_of(constant->toTensor()));
               return Object(to_python(*constant, false));
             }),
      {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&part_dealloc<Value>)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(&part_compare<Value>)},
                         {Py_tp_hash, reinterpret_cast<void*>(&part_hash<Value>)},
                         {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* o) {
                            return text_of([&] {
                              Value* v = to_value(o);
                              return v->debugName() + " defined in (" + v->node()->str() + ")\n";
                            });
                          })},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("One value of a graph.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.Value", sizeof(PyPart<Value>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  ir_value_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Value", reinterpret_cast<PyObject*>(ir_value_type)));
}

void init_blocks(PyObject* module) {
  static PyMethodDef methods[] = {
      method("nodes", [](Block* b) { return iterate(nodes_of(b)); }),
      method("inputs", [](Block* b) { return iterate(b->inputs()); }),
      method("outputs", [](Block* b) { return iterate(b->outputs()); }),
      method("paramNode", [](Block* b) { return b->param_node(); }),
      method("returnNode", [](Block* b) { return b->return_node(); }),
      method("owningNode", [](Block* b) { return b->owningNode(); }),
      method("addInputToBlock", [](Block* b, std::optional<std::string> name) { return b->addInput(name.value_or("")); }),
      method("registerOutput", [](Block* b, Value* v) { return static_cast<int64_t>(b->registerOutput(v)); }),
      method("eraseInput", [](Block* b, int64_t i) { b->eraseInput(static_cast<std::size_t>(i)); }),
      method("eraseOutput", [](Block* b, int64_t i) { b->eraseOutput(static_cast<std::size_t>(i)); }),
      method("appendNode", [](Block* b, Node* n) { return b->appendNode(n); }),
      method("addNode", [](Block* b, std::string kind,
                           std::vector<Value*> inputs) { return b->appendNode(b->owningGraph()->create(to_kind(kind), inputs)); }),
      method("findNode",
             [](Block* b, std::string kind, std::optional<bool> recurse) { return find_node(b, kind, recurse.value_or(true)); }),
      method("findAllNodes",
             [](Block* b, std::string kind, std::optional<bool> recurse) { return find_nodes(b, kind, recurse.value_or(true), false); }),
      {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&part_dealloc<Block>)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(&part_compare<Block>)},
                         {Py_tp_hash, reinterpret_cast<void*>(&part_hash<Block>)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("A list of nodes with inputs and outputs.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.Block", sizeof(PyPart<Block>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  ir_block_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Block", reinterpret_cast<PyObject*>(ir_block_type)));
}

using GraphRef = std::shared_ptr<Graph>;

PyMethodDef graph_methods[] = {
      method("inputs", [](GraphRef g) { return iterate(g->inputs()); }),
      method("outputs", [](GraphRef g) { return iterate(g->outputs()); }),
      method("nodes", [](GraphRef g) { return iterate(nodes_of(g->block())); }),
      method("block", [](GraphRef g) { return g->block(); }),
      method("param_node", [](GraphRef g) { return g->param_node(); }),
      method("return_node", [](GraphRef g) { return g->return_node(); }),
      method("copy", [](GraphRef g) { return g->copy(); }),
      method(
          "str",
          [](GraphRef g, std::optional<bool> ranges, std::optional<bool> constants) {
            return g->toString(jit::PrintOptions{ranges.value_or(true), constants.value_or(true)});
          },
          "str(print_source_ranges=True, constants=True)\n\nThe text; without constants large tensors show as <Tensor>."),
      method(
          "lint", [](GraphRef g) { g->lint(); }, "Raises with the first rule of well-formed IR that is broken."),
      method("findNode",
             [](GraphRef g, std::string kind, std::optional<bool> recurse) { return find_node(g->block(), kind, recurse.value_or(true)); }),
      method("findAllNodes", [](GraphRef g, std::string kind,
                                std::optional<bool> recurse) { return find_nodes(g->block(), kind, recurse.value_or(true), false); }),
      method("addInput", [](GraphRef g, std::optional<std::string> name) { return g->addInput(name.value_or("")); }),
      method("eraseInput", [](GraphRef g, int64_t i) { g->eraseInput(static_cast<std::size_t>(i)); }),
      method("permuteInputs", [](GraphRef g, std::vector<int64_t> order) { g->block()->permuteInputs({order.begin(), order.end()}); }),
      method("registerOutput", [](GraphRef g, Value* v) { return static_cast<int64_t>(g->registerOutput(v)); }),
      method("eraseOutput", [](GraphRef g, int64_t i) { g->eraseOutput(static_cast<std::size_t>(i)); }),
      method("makeMultiOutputIntoTuple",
             [](GraphRef g) {
               if (g->outputs().size() == 1) return;
               const jit::WithInsertPoint guard(g->block());
               Value* tuple = g->insertNode(g->createTuple(g->outputs()))->output();
               while (!g->outputs().empty()) g->eraseOutput(g->outputs().size() - 1);
               g->registerOutput(tuple);
             }),
      method("create", [](GraphRef g, std::string kind, std::optional<PyObject*> a,
                          std::optional<PyObject*> b) { return create(*g, kind, a.value_or(nullptr), b.value_or(nullptr)); }),
      method("createClone",
             [](GraphRef g, Node* n, PyObject* f) {
               return g->createClone(n, [f](Value* v) {
                 const Ref wrapped = checked(wrap_part(v));
                 const Ref mapped = Ref::steal(PyObject_CallOneArg(f, wrapped.get()));
                 if (!mapped) throw_python_error();
                 return to_value(mapped.get());
               });
             }),
      method("createTuple", [](GraphRef g, std::vector<Value*> members) { return g->createTuple(members); }),
      method("appendNode", [](GraphRef g, Node* n) { return g->appendNode(n); }),
      method("prependNode", [](GraphRef g, Node* n) { return g->prependNode(n); }),
      method("insertNode", [](GraphRef g, Node* n) { return g->insertNode(n); }),
      method("insert",
             [](GraphRef g, std::string kind, PyObject* args) {
               const Ref items = checked(PySequence_Fast(args, "insert: a list of values was required"));
               std::vector<Value*> values;
               for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
                 PyObject* o = PySequence_Fast_GET_ITEM(items.get(), i);
                 values.push_back(is_value(o) ? to_value(o) : g->insertConstant(to_constant(o)));
               }
               return g->insert(to_kind(kind), values);
             }),
      method("insertConstant", [](GraphRef g, PyObject* v) { return g->insertConstant(to_constant(v)); }),
      method("insertGraph", [](GraphRef g, GraphRef callee, std::vector<Value*> inputs) { return g->insertGraph(*callee, inputs); }),
      method(
          "insert_point_guard",
          [](GraphRef g, PyObject* place) {
            const Ref part = checked(PyImport_ImportModule("cresset.jit._insert_points"));
            const Ref graph = checked(wrap_graph(std::move(g)));
            return Object(checked(PyObject_CallMethod(part.get(), "InsertPointGuard", "OO", graph.get(), place)).release());
          },
          "A context in which new nodes go in front of this node, or to the end of this block."),
      method("insertPoint", [](GraphRef g) { return g->insertPoint(); }),
      method("setInsertPoint",
             [](GraphRef g, PyObject* place) {
               if (PyObject_TypeCheck(place, ir_block_type))
                 g->setInsertPoint(to_block(place));
               else
                 g->setInsertPoint(to_node(place));
             }),
      // Functions that a graph calls are looked into in any case.
      method("alias_db", [](GraphRef g, std::optional<bool> strict, std::optional<bool>) { return make_alias_db(std::move(g), strict.value_or(false)); }),
      method("dump_alias_db", [](GraphRef g) { return jit::AliasDb(g).toString(); }),
      method("canonicalize", [](GraphRef g, std::optional<bool> keep_names) { return jit::canonicalize(g, keep_names.value_or(false)); }),
      method(
          "check_operators", [](GraphRef g) { jit::check_operators(*g); }, "Raises for the first node whose operator is unknown."),
      {}};

void init_graphs(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(&graph_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&graph_dealloc)},
      {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* o) { return text_of([&] { return to_graph(o)->toString(); }); })},
      {Py_tp_richcompare, reinterpret_cast<void*>(+[](PyObject* a, PyObject* b, int op) -> PyObject* {
         if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
         const bool same = reinterpret_cast<PyGraph*>(a)->graph == reinterpret_cast<PyGraph*>(b)->graph;
         return PyBool_FromLong(same == (op == Py_EQ));
       })},
      {Py_tp_hash, reinterpret_cast<void*>(+[](PyObject* o) {
         return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(reinterpret_cast<PyGraph*>(o)->graph.get()) >> 4);
       })},
      {Py_tp_methods, graph_methods},
      {Py_tp_doc, const_cast<char*>("A graph of the IR; str() is its text, which parse_ir reads.")},
      {0, nullptr}};
  PyType_Spec spec{"cresset._C.Graph", sizeof(PyGraph), 0, Py_TPFLAGS_DEFAULT, slots};
  graph_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Graph", reinterpret_cast<PyObject*>(graph_type)));
}

// parse_ir(input, parse_tensor_constants=False, *, like=None)
PyObject* parse_ir(PyObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"input", "parse_tensor_constants", "like", nullptr};
  PyObject *text = nullptr, *like = Py_None;
  int constants = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|p$O:parse_ir", const_cast<char**>(names), &text, &constants, &like)) return nullptr;
  jit::ParseOptions options;
  options.parse_tensor_constants = constants != 0;
  // Classes, enums and named tuples are those of a graph, or of the scripts of this program.
  options.resolver = like == Py_None ? python_unit()->resolver() : jit::types_in(*to_graph(like));
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (!data) return nullptr;
  return wrap_graph(jit::parse_ir(std::string_view(data, static_cast<std::size_t>(size)), options));
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

PyObject* wrap_graph(std::shared_ptr<Graph> g) {
  if (!g) Py_RETURN_NONE;
  PyObject* o = checked(graph_type->tp_alloc(graph_type, 0)).release();
  new (&reinterpret_cast<PyGraph*>(o)->graph) std::shared_ptr<Graph>(std::move(g));
  return o;
}
PyObject* wrap_part(Node* n) { return new_part(ir_node_type, n); }
PyObject* wrap_part(Value* v) { return new_part(ir_value_type, v); }
PyObject* wrap_part(Block* b) { return new_part(ir_block_type, b); }
Node* to_node(PyObject* o) { return part_of<Node>(o, ir_node_type, "Node"); }
Value* to_value(PyObject* o) { return part_of<Value>(o, ir_value_type, "Value"); }
Block* to_block(PyObject* o) { return part_of<Block>(o, ir_block_type, "Block"); }
std::shared_ptr<Graph> to_graph(PyObject* o) {
  CRESSET_CHECK_TYPE(PyObject_TypeCheck(o, graph_type), "a Graph was required; a ", type_name(Py_TYPE(o)), " was given.");
  return reinterpret_cast<PyGraph*>(o)->graph;
}

void init_ir(PyObject* module) {
  init_graphs(module);
  init_nodes(module);
  init_values(module);
  init_blocks(module);
  static PyMethodDef parse = {"parse_ir", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&parse_ir)), METH_VARARGS | METH_KEYWORDS,
                              "parse_ir(input, parse_tensor_constants=False, *, like=None)\n\nReads a graph from its text. Names of types "
                              "are those of the program's "
                              "scripts, or those of the graph `like` (of an archive, say)."};
  const Ref function = checked(PyCFunction_NewEx(&parse, nullptr, nullptr));
  checked(PyObject_SetAttrString(module, "parse_ir", function.get()));
  def(module, "_jit_pass_canonicalize",
      [](GraphRef g, std::optional<bool> keep_names) { return jit::canonicalize(g, keep_names.value_or(true)); });
  def(module, "_jit_pass_lint", [](GraphRef g) { g->lint(); });
  def(module, "_jit_graph_difference", [](GraphRef a, GraphRef b) -> std::optional<std::string> {
    std::string why;
    if (jit::graph_equal(*a, *b, &why)) return std::nullopt;
    return why;
  });
  def(module, "_schema_texts_for_operator", [](std::string name) {
    std::vector<std::string> out;
    for (const jit::Operator* op : jit::operators_of(to_kind(name))) out.push_back(op->schema().str());
    return out;
  });
  def(module, "_jit_operator_kinds", [] { return jit::operator_kinds(); });
  def(module, "_jit_native_target", [] { return std::string(jit::native_code_target()); });
  def(module, "_jit_native_enabled", [] { return jit::native_code_enabled(); });
  def(module, "_jit_set_native", [](bool on) { jit::set_native_code(on); });
  def(module, "_jit_set_native_rounds", [](uint64_t rounds) { return jit::set_native_code_rounds(rounds); });
  def(module, "_jit_native_functions", [] { return jit::native_code_functions(); });
}

}  // namespace cresset::python
