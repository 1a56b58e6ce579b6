// Calls of modules in a trace: while it runs, a pair of markers around their nodes; afterwards, methods of the modules' classes.
#include <unordered_set>

#include <cresset/ir/tracer.h>

namespace cresset::jit::tracer {

namespace {

std::string joined(const AttributePath& path) {
  std::string out = "__module";
  for (const std::string& part : path) out += "." + part;
  return out;
}

bool starts_with(const AttributePath& path, const AttributePath& head) {
  return path.size() >= head.size() && std::equal(head.begin(), head.end(), path.begin());
}

// The path of a value that is an attribute of `self`, from GetAttr nodes.
std::optional<AttributePath> path_of(const Value* v, const Value* self) {
  AttributePath path;
  for (; v != self; v = v->node()->input(0)) {
    if (v->node()->kind() != prim::GetAttr) return std::nullopt;
    path.insert(path.begin(), v->node()->s(attr::name));
  }
  return path;
}

// The graph of one method under construction.
class MethodBuilder {
 public:
  MethodBuilder(const TypePtr& module, Value* outer_self, AttributePath path) : outer_self_(outer_self), path_(std::move(path)) {
    Value* self = graph->addInput("self");
    self->setType(module);
    attributes_.emplace("", self);
  }

  void add(const Node* n) {
    Node* copy = graph->appendNode(graph->createClone(n, [&](Value* v) { return inner(v); }));
    for (std::size_t i = 0; i < n->outputs().size(); ++i) map_[n->output(i)] = copy->output(i);
  }
  Value* inner(Value* v) {
    Value*& known = map_[v];
    if (known) return known;
    if (const auto path = path_of(v, outer_self_); path && starts_with(*path, path_)) return known = attribute(*path);
    if (v->node()->kind() == prim::Constant)
      return known = graph->appendNode(graph->createClone(v->node(), [](Value* x) { return x; }))->output();
    Value* input = graph->addInput();
    input->copyMetadata(v);
    inputs.push_back(v);
    return known = input;
  }

  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::vector<Value*> inputs;  // outer values that became inputs behind self

 private:
  Value* attribute(const AttributePath& path) {
    std::string name;
    Value* object = attributes_.at("");
    for (std::size_t i = path_.size(); i < path.size(); ++i) {
      name += "." + path[i];
      Value*& v = attributes_[name];
      if (!v) {
        Node* n = graph->createGetAttr(object, path[i]);
        n->insertAfter(attributes_end_ ? attributes_end_ : graph->param_node());
        attributes_end_ = n;
        v = n->output();
        v->setType(without_shapes(v->type()));
        v->setDebugName(Value::isValidName(path[i]) ? path[i] : "_" + path[i]);
      }
      object = v;
    }
    return object;
  }

  Value* outer_self_;
  AttributePath path_;
  Node* attributes_end_ = nullptr;
  std::unordered_map<Value*, Value*> map_;
  std::unordered_map<std::string, Value*> attributes_;
};

// A schema whose arguments have names of their own and types without shapes.
FunctionSchema method_schema(const Graph& g, const std::string& name) {
  FunctionSchema exact = schema_of_graph(g, name);
  std::vector<Argument> arguments = exact.arguments(), returns = exact.returns();
  std::unordered_set<std::string> taken;
  for (Argument& a : arguments) {
    a.type = without_shapes(a.type);
    std::string unique = a.name;
    for (int i = 1; !taken.insert(unique).second; ++i) unique = a.name + "_" + std::to_string(i);
    a.name = unique;
  }
  for (Argument& r : returns) r.type = without_shapes(r.type);
  return FunctionSchema(OperatorName{name, ""}, std::move(arguments), std::move(returns));
}

}  // namespace

FunctionSchema traced_schema(const Graph& g, const std::string& name) { return method_schema(g, name); }

void TracingState::enter_module(const AttributePath& path) {
  const auto scope = std::make_shared<Scope>(graph->current_scope(), joined(path));
  Node* begin = graph->insertNode(graph->create(prim::TracedModuleForward, 0));
  open_calls_.push_back(calls_.size());
  calls_.push_back({path, graph->current_scope(), begin});
  graph->set_current_scope(scope);
}

void TracingState::leave_module() {
  CRESSET_CHECK(!open_calls_.empty(), "trace: a module was left that was not entered.");
  ModuleCall& call = calls_[open_calls_.back()];
  open_calls_.pop_back();
  call.end = graph->insertNode(graph->create(prim::TracedModuleForward, 0));
  graph->set_current_scope(call.scope);
}

void TracingState::make_methods() {
  // The first call of a module is its forward, further ones are forward1, forward2, …
  std::unordered_map<const ivalue::Object*, int> counts;
  std::vector<std::string> names;
  for (const ModuleCall& call : calls_) {
    const auto module = object_at(call.path);
    int& n = counts[module.get()];
    do {
      names.push_back("forward" + (n ? std::to_string(n) : ""));
      ++n;
    } while (module->type->expect<ClassType>()->findMethod(names.back()) && (names.pop_back(), true));
  }
  // Inner calls began later: they are done first.
  for (std::size_t i = calls_.size(); i-- > 0;) make_method(calls_[i], names[i]);
  calls_.clear();
}

intrusive_ptr<ivalue::Object> TracingState::object_at(const AttributePath& path) const {
  intrusive_ptr<ivalue::Object> object = self_;
  for (const std::string& part : path) object = object->slot(object->type->expect<ClassType>()->getAttributeSlot(part)).toObject();
  return object;
}

namespace {

// The values of these nodes that others use, in the order of their first uses behind `end`: so PyTorch orders the results of a method.
std::vector<Value*> used_behind(const std::vector<Node*>& nodes, const std::unordered_set<const Node*>& inside, Node* end) {
  std::vector<Value*> escaping;
  std::unordered_set<const Value*> left;
  for (Node* n : nodes)
    for (Value* v : n->outputs())
      if (std::any_of(v->uses().begin(), v->uses().end(), [&](const Use& u) { return !inside.contains(u.user); })) {
        escaping.push_back(v);
        left.insert(v);
      }
  if (escaping.size() < 2) return escaping;
  std::vector<Value*> ordered;
  for (Node* n = end->next();; n = n->next()) {
    for (Value* v : n->inputs())
      if (left.erase(v)) ordered.push_back(v);
    if (n->kind() == prim::Return) break;
  }
  for (Value* v : escaping)
    if (left.contains(v)) ordered.push_back(v);  // used in a block, or in front
  return ordered;
}

}  // namespace

void TracingState::make_method(const ModuleCall& call, const std::string& name) {
  CRESSET_CHECK(call.end, "trace: a module was entered and not left.");
  std::vector<Node*> nodes;
  std::unordered_set<const Node*> inside;
  for (Node* n = call.begin->next(); n != call.end; n = n->next()) {
    nodes.push_back(n);
    inside.insert(n);
  }
  Value* self = graph->inputs()[0];
  Value* module = attribute(call.path);
  MethodBuilder builder(module->type(), self, call.path);
  for (const Node* n : nodes) builder.add(n);
  std::vector<Value*> escaping = used_behind(nodes, inside, call.end);
  // A constant that is used further down is made again there.
  std::erase_if(escaping, [&](Value* v) {
    if (v->node()->kind() != prim::Constant) return false;
    Node* again = graph->createClone(v->node(), [](Value* x) { return x; });
    again->insertBefore(call.begin);
    for (const Use& u : std::vector<Use>(v->uses()))
      if (!inside.contains(u.user)) u.user->replaceInput(u.offset, again->output());
    return true;
  });

  Graph& g = *builder.graph;
  std::vector<Value*> results;
  for (Value* v : escaping) results.push_back(builder.inner(v));
  if (results.size() == 1)
    g.registerOutput(results[0]);
  else
    g.registerOutput(g.appendNode(results.empty() ? g.createNone() : g.createTuple(results))->output());
  clean_up(builder.graph);

  const auto cls = module->type()->expect<ClassType>();
  auto function = make_intrusive<GraphFunction>(cls->name + "." + name, builder.graph);
  function->setSchema(method_schema(g, name));
  cls->addMethod(std::move(function));

  std::vector<Value*> operands = {module};
  operands.insert(operands.end(), builder.inputs.begin(), builder.inputs.end());
  Node* call_node = graph->create(prim::CallMethod, operands)->s_(attr::name, name);
  call_node->setScope(call.scope);
  call_node->output()->setType(without_shapes(g.outputs()[0]->type()));
  call_node->insertBefore(call.begin);
  std::vector<Value*> outer;
  if (escaping.size() == 1) outer.push_back(call_node->output());
  if (escaping.size() > 1) {
    Node* unpack = graph->createTupleUnpack(call_node->output())->setScope(call.scope);
    unpack->insertBefore(call.begin);
    outer = unpack->outputs();
  }
  for (std::size_t i = 0; i < escaping.size(); ++i) escaping[i]->replaceAllUsesWith(outer[i]);
  for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) (*n)->destroy();
  call.begin->destroy();
  call.end->destroy();
}

}  // namespace cresset::jit::tracer
