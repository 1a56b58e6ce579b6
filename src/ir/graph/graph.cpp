// Blocks and graphs: ownership, construction, cloning.
#include <algorithm>
#include <deque>

#include <cresset/ir/class_type.h>
#include <cresset/ir/ir.h>
#include <cresset/ir/operator.h>

#include "ir/graph/fetch_ahead.h"
#include "ir/graph/pointer_map.h"

namespace cresset::jit {

// ---- scopes and call stacks

std::string Scope::namesFromRoot(std::string_view separator) const {
  std::vector<const Scope*> path;
  for (const Scope* s = this; s; s = s->parent_.get()) path.push_back(s);
  std::string out;
  for (auto s = path.rbegin(); s != path.rend(); ++s) {
    if ((*s)->name_.empty()) continue;
    if (!out.empty()) out += separator;
    out += (*s)->name_;
  }
  return out;
}

ScopePtr Scope::parse(std::string_view path) {
  ScopePtr scope;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t slash = std::min(path.find('/', start), path.size());
    if (slash > start) scope = std::make_shared<Scope>(std::move(scope), std::string(path.substr(start, slash - start)));
    start = slash + 1;
  }
  return scope;
}

std::string InlinedCallStack::str() const {
  std::string out;
  for (const InlinedCallStack* c = this; c; c = c->callee.get()) {
    if (!out.empty()) out += " > ";
    out += c->function_name;
    if (!c->module_path.empty()) out += " [" + c->module_path + "]";
  }
  return out;
}

// ---- blocks

Block::Block(Graph* graph, Node* owner) : graph_(graph), owning_node_(owner) {
  param_node_ = graph->make_node(prim::Param);
  return_node_ = graph->make_node(prim::Return);
  param_node_->owning_block_ = return_node_->owning_block_ = this;
  param_node_->next_ = param_node_->prev_ = return_node_;
  return_node_->next_ = return_node_->prev_ = param_node_;
  graph->adopt(this);
}

NodeList NodeList::reverse() const {
  return backwards_ ? NodeList(end_->next(), first_->next()) : NodeList(end_->prev(), first_->prev(), true);
}

Value* Block::addInput(const std::string& name) { return param_node_->addOutput()->setDebugName(name); }
Value* Block::insertInput(std::size_t i, const std::string& name) { return param_node_->insertOutput(i)->setDebugName(name); }
std::size_t Block::registerOutput(Value* v) {
  return_node_->addInput(v);
  return outputs().size() - 1;
}
std::size_t Block::insertOutput(std::size_t i, Value* v) {
  return_node_->insertInput(i, v);
  return i;
}

void Block::renumber() {
  int64_t at = 0;
  for (Node* n : nodes()) n->position_ = at += int64_t{1} << 32;
}

void Block::visit(const std::function<void(Node*)>& f) const {
  std::vector<Node*> stack;
  const auto push_block = [&](const Block* b) { stack.push_back(b->param_node()->next()); };
  push_block(this);
  while (!stack.empty()) {
    Node* n = stack.back();
    if (n->kind() == prim::Return) {
      stack.pop_back();
      continue;
    }
    stack.back() = n->next();
    fetch_later_node(n);
    f(n);
    for (std::size_t i = n->blocks().size(); i-- > 0;) push_block(n->blocks()[i]);
  }
}

// Innermost nodes first, by a stack of blocks, so that deep nesting needs no deep recursion.
void Block::clear() {
  std::vector<Block*> order{this};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (Node* n : order[i]->nodes())
      for (Block* b : n->blocks()) order.push_back(b);
  for (Block* b : order) {
    b->return_node_->removeAllInputs();
    for (Node* n : b->nodes()) n->removeAllInputs();
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    Block* b = order[i];
    while (b->return_node_->prev() != b->param_node_) {
      Node* n = b->return_node_->prev();
      // Its blocks were emptied before: they lie behind b in the order.
      n->destroy();
    }
    if (b == this) continue;
    while (!b->inputs().empty()) b->eraseInput(b->inputs().size() - 1);
  }
}

namespace {

// Clones blocks breadth first with an explicit queue.
struct BlockCloner {
  const std::function<Value*(Value*)>& outer;
  PointerMap<Value*>& map;

  void run(const Block* from, Block* to) {
    struct Frame {
      const Block* from;
      Block* to;
      Node* next;
    };
    std::vector<Frame> stack;
    const auto open = [&](const Block* f, Block* t) {
      for (const Value* v : f->inputs()) *map.insert(v).first = t->addInput()->copyMetadata(v);
      stack.push_back({f, t, f->param_node()->next()});
    };
    open(from, to);
    const auto mapped = [&](Value* v) {
      Value* const* found = map.find(v);
      return found ? *found : outer(v);
    };
    while (!stack.empty()) {
      Frame& frame = stack.back();
      Node* n = frame.next;
      if (n->kind() == prim::Return) {
        for (Value* v : frame.from->outputs()) frame.to->registerOutput(mapped(v));
        frame.to->return_node()->copyMetadata(frame.from->return_node());
        stack.pop_back();
        continue;
      }
      frame.next = n->next();
      fetch_later_node(n);
      if (n->kind() == prim::Constant && map.find(n->output())) continue;  // met before, behind its use
      Node* copy = frame.to->appendNode(frame.to->owningGraph()->createClone(n, mapped, false));
      for (std::size_t i = 0; i < n->outputs().size(); ++i) *map.insert(n->outputs()[i]).first = copy->outputs()[i];
      for (std::size_t i = n->blocks().size(); i-- > 0;) {
        // The first block must be walked first; all are made before.
        if (i == n->blocks().size() - 1)
          for (std::size_t k = 0; k < n->blocks().size(); ++k) copy->addBlock();
        open(n->blocks()[i], copy->blocks()[i]);
      }
    }
  }
};

}  // namespace

void Block::cloneFrom(const Block* from, const std::function<Value*(Value*)>& outer) {
  PointerMap<Value*> map;
  BlockCloner{outer, map}.run(from, this);
}

namespace {
template <class T>
const std::shared_ptr<Handle<T>>& handle_of(std::shared_ptr<Handle<T>>& slot, T* self) {
  if (!slot) slot = std::make_shared<Handle<T>>(Handle<T>{self});
  return slot;
}
}  // namespace

const std::shared_ptr<Handle<Value>>& Value::handle() { return handle_of(handle_, this); }
const std::shared_ptr<Handle<Node>>& Node::handle() { return handle_of(handle_, this); }
const std::shared_ptr<Handle<Block>>& Block::handle() { return handle_of(handle_, this); }

// ---- the graph

Graph::Graph() {
  block_ = new Block(this, nullptr);
  insert_before_ = block_->return_node();
}

// Subgraphs are released one after the other: a chain of nested ones must not nest destructors.
Graph::~Graph() {
  thread_local std::vector<std::shared_ptr<Graph>>* pending = nullptr;
  std::vector<std::shared_ptr<Graph>> own;
  const bool outermost = pending == nullptr;
  if (outermost) pending = &own;
  for (Node* n : all_nodes_) {
    for (Attribute& a : n->attributes_) {
      if (auto* g = std::get_if<std::shared_ptr<Graph>>(&a.value)) pending->push_back(std::move(*g));
      if (auto* gs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&a.value))
        for (auto& g : *gs) pending->push_back(std::move(g));
    }
    n->~Node();
  }
  for (Value* v : all_values_) v->~Value();
  for (Block* b : all_blocks_) delete b;
  if (outermost) {
    while (!own.empty()) {
      std::shared_ptr<Graph> g = std::move(own.back());
      own.pop_back();
    }
    pending = nullptr;
  }
}

// The graph's lists hold objects in any order; each object knows its place.
Node* Graph::make_node(Symbol kind) {
  Node* n = new (node_pool_.take()) Node(this, kind);
  n->owner_index_ = all_nodes_.size();
  all_nodes_.push_back(n);
  return n;
}
void Graph::release(Node* n) {
  while (!n->outputs_.empty()) {  // of parameter nodes
    Value* v = n->outputs_.back();
    CRESSET_INTERNAL_ASSERT(!v->hasUses(), "a value with uses is released: %", v->debugName());
    n->outputs_.pop_back();
    release(v);
  }
  for (std::size_t i = n->inputs_.size(); i-- > 0;) n->dropInput(i);
  all_nodes_[n->owner_index_] = all_nodes_.back();
  all_nodes_[n->owner_index_]->owner_index_ = n->owner_index_;
  all_nodes_.pop_back();
  n->~Node();
  node_pool_.give(n);
}
Value* Graph::make_value(Node* node, std::size_t offset) {
  Value* v = new (value_pool_.take()) Value(node, offset);
  v->unique_ = next_unique_++;
  v->owner_index_ = all_values_.size();
  all_values_.push_back(v);
  return v;
}
void Graph::release(Value* v) {
  if (v->name_) names_.erase(names_.find(v->name_->first));
  all_values_[v->owner_index_] = all_values_.back();
  all_values_[v->owner_index_]->owner_index_ = v->owner_index_;
  all_values_.pop_back();
  v->~Value();
  value_pool_.give(v);
}
void Graph::adopt(Block* b) {
  b->owner_index_ = all_blocks_.size();
  all_blocks_.push_back(b);
}
void Graph::release(Block* b) {
  all_blocks_[b->owner_index_] = all_blocks_.back();
  all_blocks_[b->owner_index_]->owner_index_ = b->owner_index_;
  all_blocks_.pop_back();
  delete b;
}

void Graph::setInsertPoint(Node* n) {
  CRESSET_CHECK(n && n->owningGraph() == this && n->inBlockList() && n->kind() != prim::Param,
                "setInsertPoint: a node in a block of this graph was required.");
  insert_before_ = n;
}

void Graph::leave_insert_points(const Node* n) noexcept {
  Node* const next = n->inBlockList() && n->next() ? n->next() : block_->return_node();
  if (insert_before_ == n) insert_before_ = next;
  for (WithInsertPoint* g = insert_point_guards_; g; g = g->outer_)
    if (g->old_ == n) g->old_ = next;
}
void Graph::leave_insert_points(const Block* b) noexcept {
  if (insert_before_->owningBlock() == b) insert_before_ = block_->return_node();
  for (WithInsertPoint* g = insert_point_guards_; g; g = g->outer_)
    if (g->old_->owningBlock() == b) g->old_ = block_->return_node();
}

WithInsertPoint::WithInsertPoint(Node* n) : graph_(n->owningGraph()), old_(graph_->insertPoint()) {
  graph_->setInsertPoint(n);
  outer_ = std::exchange(graph_->insert_point_guards_, this);
}
// A node that was only taken out of its list is no place either.
WithInsertPoint::~WithInsertPoint() {
  WithInsertPoint** at = &graph_->insert_point_guards_;
  while (*at != this) at = &(*at)->outer_;
  *at = outer_;
  graph_->insert_before_ = old_->inBlockList() ? old_ : graph_->block_->return_node();
}

Node* Graph::create(Symbol kind, std::size_t outputs) {
  Node* n = make_node(kind);
  for (std::size_t i = 0; i < outputs; ++i) n->addOutput();
  return n;
}
Node* Graph::create(Symbol kind, ArrayRef<Value*> inputs, std::size_t outputs) {
  Node* n = create(kind, outputs);
  n->reserve_inputs(inputs.size());
  for (Value* v : inputs) n->addInput(v);
  return n;
}

Node* Graph::createNone() {
  Node* n = create(prim::Constant);
  n->output()->setType(basic_type(TypeKind::None));
  return n;
}
Node* Graph::createUninitialized(TypePtr type) {
  Node* n = create(prim::Uninitialized);
  n->output()->setType(std::move(type));
  return n;
}
Node* Graph::createWithSubgraph(Symbol kind) {
  Node* n = create(kind, 0);
  n->g_(attr::Subgraph, std::make_shared<Graph>(current_scope_));
  return n;
}
Node* Graph::createTuple(ArrayRef<Value*> members, TypePtr named) {
  Node* n = create(prim::TupleConstruct, members);
  if (!named) {
    std::vector<TypePtr> types;
    for (const Value* v : members) types.push_back(v->type());
    named = tuple_of(std::move(types));
  }
  n->output()->setType(std::move(named));
  return n;
}
Node* Graph::createTupleUnpack(Value* tuple) {
  CRESSET_CHECK(tuple->type()->kind == TypeKind::Tuple, "createTupleUnpack: a tuple was required; %", tuple->debugName(), " is of type '",
                tuple->type()->str(), "'.");
  Node* n = create(prim::TupleUnpack, {tuple}, 0);
  for (const TypePtr& t : tuple->type()->contained) n->addOutput()->setType(t);
  return n;
}
Node* Graph::createTupleIndex(Value* tuple, Value* index, TypePtr type) {
  Node* n = create(prim::TupleIndex, {tuple, index});
  n->output()->setType(std::move(type));
  return n;
}
Node* Graph::createTupleSlice(Value* tuple, int64_t begin, int64_t end) {
  const auto size = static_cast<int64_t>(tuple->type()->contained.size());
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  Node* n = create(prim::TupleSlice, {tuple});
  n->i_(attr::beg, begin)->i_(attr::end, end);
  std::vector<TypePtr> types;
  for (int64_t i = clamp(begin); i < clamp(end); ++i) types.push_back(tuple->type()->contained[static_cast<std::size_t>(i)]);
  n->output()->setType(tuple_of(std::move(types)));
  return n;
}
Node* Graph::createTupleSlice(Value* tuple, int64_t begin, int64_t step, int64_t count) {
  if (step == 1) return createTupleSlice(tuple, begin, begin + count);
  const WithInsertPoint guard(insert_before_);
  std::vector<Value*> members;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = begin + i * step;
    Value* index = insertConstant(IValue(at));
    members.push_back(insertNode(createTupleIndex(tuple, index, tuple->type()->contained.at(static_cast<std::size_t>(at))))->output());
  }
  return createTuple(members);
}
Node* Graph::createEnumName(Value* e) {
  Node* n = create(prim::EnumName, {e});
  n->output()->setType(basic_type(TypeKind::String));
  return n;
}
Node* Graph::createEnumValue(Value* e) {
  CRESSET_CHECK(e->type()->kind == TypeKind::Enum, "createEnumValue: an enumerator was required; %", e->debugName(), " is of type '",
                e->type()->str(), "'.");
  Node* n = create(prim::EnumValue, {e});
  n->output()->setType(e->type()->containedType(0));
  return n;
}
Node* Graph::createIsInstance(Value* v, std::vector<TypePtr> types) {
  Node* n = create(prim::isinstance, {v});
  n->tys_(attr::types, std::move(types));
  n->output()->setType(basic_type(TypeKind::Bool));
  return n;
}
Node* Graph::createImplicitTensorToNum(TypePtr type, Value* tensor) {
  const TypeKind kind = type->kind;
  Node* n = create(kind == TypeKind::Int       ? aten::IntImplicit
                   : kind == TypeKind::Float   ? aten::FloatImplicit
                   : kind == TypeKind::Complex ? aten::ComplexImplicit
                                               : aten::ScalarImplicit,
                   {tensor});
  n->output()->setType(std::move(type));
  return n;
}
Node* Graph::createAutogradZero() { return create(prim::AutogradZero); }
Node* Graph::createList(TypePtr element, ArrayRef<Value*> members) {
  for (const Value* v : members)
    CRESSET_CHECK(v->type()->is_subtype_of(*element), "createList: an element of type '", element->str(), "' was required; %",
                  v->debugName(), " is of type '", v->type()->str(), "'.");
  Node* n = create(prim::ListConstruct, members);
  n->output()->setType(list_of(std::move(element)));
  return n;
}
Node* Graph::createListUnpack(Value* list, std::size_t count) {
  CRESSET_CHECK(list->type()->kind == TypeKind::List, "createListUnpack: a list was required; %", list->debugName(), " is of type '",
                list->type()->str(), "'.");
  Node* n = create(prim::ListUnpack, {list}, 0);
  for (std::size_t i = 0; i < count; ++i) n->addOutput()->setType(list->type()->element());
  return n;
}
Node* Graph::createDict(TypePtr key, TypePtr value, ArrayRef<Value*> keys, ArrayRef<Value*> values) {
  CRESSET_CHECK(keys.size() == values.size(), "createDict: one value for each key was required; ", keys.size(), " keys and ", values.size(),
                " values were given.");
  Node* n = create(prim::DictConstruct);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    n->addInput(keys[i]);
    n->addInput(values[i]);
  }
  n->output()->setType(dict_of(std::move(key), std::move(value)));
  return n;
}
Node* Graph::createNumToTensor(Value* number) {
  Node* n = create(prim::NumToTensor, {number});
  const TypeKind k = number->type()->kind;
  const std::optional<ScalarType> dtype = k == TypeKind::Int     ? std::optional(ScalarType::Long)
                                          : k == TypeKind::Float ? std::optional(ScalarType::Double)
                                          : k == TypeKind::Bool  ? std::optional(ScalarType::Bool)
                                                                 : std::nullopt;
  if (dtype) n->output()->setType(TensorType::create(dtype, TensorType::Dims{}, {}, false, Device("cpu")));
  return n;
}
Node* Graph::createObject(TypePtr type) {
  Node* n = create(prim::CreateObject);
  n->output()->setType(std::move(type));
  return n;
}
Node* Graph::createGetAttr(Value* object, const std::string& name, TypePtr type) {
  Node* n = create(prim::GetAttr, {object});
  n->s_(attr::name, name);
  if (!type) {
    const auto cls = object->type()->cast<ClassType>();
    CRESSET_CHECK(cls, "createGetAttr: an object of a known class was required; %", object->debugName(), " is of type '",
                  object->type()->str(), "'.");
    type = cls->getAttribute(name);
  }
  n->output()->setType(std::move(type));
  return n;
}
Node* Graph::createSetAttr(Value* object, const std::string& name, Value* value) {
  Node* n = create(prim::SetAttr, {object, value}, 0);
  n->s_(attr::name, name);
  return n;
}
Node* Graph::createLoad(const std::string& name, TypePtr type) {
  Node* n = create(prim::Load);
  n->s_(attr::name, name);
  n->output()->setType(std::move(type));
  return n;
}
Node* Graph::createStore(const std::string& name, Value* v) {
  Node* n = create(prim::Store, {v}, 0);
  n->s_(attr::name, name);
  return n;
}

Node* Graph::createClone(const Node* n, const std::function<Value*(Value*)>& map, bool copy_blocks) {
  Node* copy = create(n->kind(), 0);
  copy->source_range_ = n->source_range_;
  copy->scope_ = n->scope_;
  copy->callstack_ = n->callstack_;
  copy->attributes_ = n->attributes_;
  for (Attribute& a : copy->attributes_) {
    if (auto* g = std::get_if<std::shared_ptr<Graph>>(&a.value); g && *g) *g = (*g)->copy();
    if (auto* gs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&a.value))
      for (auto& g : *gs) g = g->copy();
  }
  copy->reserve_inputs(n->inputs().size());
  for (Value* v : n->inputs()) copy->addInput(map(v));
  for (const Value* v : n->outputs()) copy->addOutput()->copyMetadata(v);
  if (copy_blocks)
    for (const Block* b : n->blocks()) copy->addBlock()->cloneFrom(b, map);
  return copy;
}

Node* Graph::insertNode(Node* n) { return n->insertBefore(insert_before_); }

Value* NamedValue::value(Graph& g) const { return value_ ? value_ : g.insertConstant(constant_, range_); }

Value* Graph::insert(Symbol op, const NamedValues& args, const NamedValues& kwargs, std::optional<SourceRange> range) {
  std::vector<Value*> positional;
  std::vector<std::pair<std::string, Value*>> by_name;
  for (const NamedValue& a : args) {
    if (a.name().empty())
      positional.push_back(a.value(*this));
    else
      by_name.emplace_back(a.name(), a.value(*this));
  }
  for (const NamedValue& a : kwargs) by_name.emplace_back(a.name(), a.value(*this));
  return emit_operator_call(*this, op, positional, by_name, range ? std::move(*range) : SourceRange());
}

Value* Graph::insertConstant(const IValue& v, std::optional<SourceRange> range, std::optional<ScopePtr> scope) {
  return jit::insertConstant(*this, v, std::move(range), std::move(scope));
}
Value* Graph::insertUncheckedCast(Value* v, TypePtr type) {
  Node* n = insertNode(create(prim::unchecked_cast, {v}));
  n->output()->setType(std::move(type));
  return n->output();
}
Value* Graph::insertToList(Value* v, TypePtr type) {
  int64_t depth = 0;
  TypePtr element = type;
  for (; element->kind == TypeKind::List; element = element->element()) ++depth;
  const TypeKind kind = element->kind;
  CRESSET_CHECK(depth > 0 && (kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Complex || kind == TypeKind::Bool),
                "insertToList: a type of lists of int, float, complex or bool was required; '", type->str(), "' was given.");
  const int64_t number = kind == TypeKind::Int ? 0 : kind == TypeKind::Float ? 1 : kind == TypeKind::Complex ? 2 : 3;
  Node* n = insertNode(create(prim::tolist, {v, insertConstant(IValue(depth)), insertConstant(IValue(number))}));
  n->output()->setType(std::move(type));
  return n->output();
}
void Graph::remapTypes(const std::function<TypePtr(TypePtr)>& map) {
  for (Value* v : all_values_) v->setType(map(v->type()));
  for (Node* n : all_nodes_)
    for (const Symbol name : n->attributeNames()) {
      const AttributeKind kind = n->kindOf(name);
      if (kind == AttributeKind::g) n->g(name)->remapTypes(map);
      if (kind == AttributeKind::gs)
        for (const auto& g : n->gs(name)) g->remapTypes(map);
      if (kind == AttributeKind::ty) n->ty_(name, map(n->ty(name)));
      if (kind == AttributeKind::tys) {
        std::vector<TypePtr> types = n->tys(name);
        for (TypePtr& t : types) t = map(t);
        n->tys_(name, std::move(types));
      }
    }
}

std::vector<Value*> Graph::insertGraph(const Graph& callee, ArrayRef<Value*> inputs, std::unordered_map<Value*, Value*>* value_map) {
  CRESSET_CHECK(callee.inputs().size() == inputs.size(), "insertGraph: ", callee.inputs().size(), " inputs were required; ", inputs.size(),
                " were given.");
  std::unordered_map<Value*, Value*> own;
  std::unordered_map<Value*, Value*>& map = value_map ? *value_map : own;
  for (std::size_t i = 0; i < inputs.size(); ++i) map[callee.inputs()[i]] = inputs[i];
  const auto mapped = [&](Value* v) { return map.at(v); };
  for (const Node* n : callee.nodes()) {
    Node* copy = insertNode(createClone(n, mapped));
    for (std::size_t i = 0; i < n->outputs().size(); ++i) map[n->outputs()[i]] = copy->outputs()[i];
  }
  std::vector<Value*> results;
  for (Value* v : callee.outputs()) results.push_back(map.at(v));
  return results;
}

// Names and numbers stay as they are, so that the copy's text is the original's.
void Graph::copy_into(Graph& out, PointerMap<Value*>& map) const {
  const std::function<Value*(Value*)> outer = [&](Value* v) -> Value* {
    CRESSET_INTERNAL_ASSERT(v->owningGraph() == this && v->node()->kind() == prim::Constant, "copy: %", v->debugName(),
                            " is used outside of its block.");
    // A constant that a program inserted behind its use stands in front of it in the copy.
    Node* constant = out.prependNode(out.createClone(v->node(), [](Value* input) { return input; }, false));
    *map.insert(v).first = constant->output();
    return constant->output();
  };
  map.reserve(all_values_.size());
  out.names_.reserve(names_.size());
  const bool fresh = out.next_unique_ == 0;
  BlockCloner{outer, map}.run(block_, out.block_);
  if (!fresh) return;
  map.each([](const void* from, Value* to) { to->unique_ = static_cast<const Value*>(from)->unique_; });
  out.next_unique_ = next_unique_;
  out.name_suffixes_ = name_suffixes_;
}

std::shared_ptr<Graph> Graph::copy(PointerMap<Value*>& map) const {
  auto out = std::make_shared<Graph>();
  copy_into(*out, map);
  return out;
}
std::unique_ptr<Graph> Graph::copyUnique() const {
  auto out = std::make_unique<Graph>();
  PointerMap<Value*> map;
  copy_into(*out, map);
  return out;
}
void Graph::copyInto(Graph& out, std::unordered_map<Value*, Value*>& value_map) const {
  PointerMap<Value*> map;
  copy_into(out, map);
  map.each([&](const void* from, Value* to) { value_map.emplace(static_cast<Value*>(const_cast<void*>(from)), to); });
}
std::vector<Value*> createTupleUnpack(Value* tuple) {
  Graph& g = *tuple->owningGraph();
  if (tuple->node()->kind() == prim::TupleConstruct) return tuple->node()->inputs().vec();
  return g.insertNode(g.createTupleUnpack(tuple))->outputs().vec();
}

std::shared_ptr<Graph> Graph::copy() const {
  PointerMap<Value*> map;
  return copy(map);
}

std::shared_ptr<Graph> Graph::copy(std::unordered_map<Value*, Value*>& value_map) const {
  PointerMap<Value*> map;
  auto out = copy(map);
  map.each([&](const void* from, Value* to) { value_map.emplace(static_cast<Value*>(const_cast<void*>(from)), to); });
  return out;
}

void Graph::renumberValue(Value* v, std::size_t unique) {
  v->unique_ = unique;
  next_unique_ = std::max(next_unique_, unique + 1);
}

Value* Graph::findDebugName(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

std::vector<Value*> inlineGraph(Graph& graph, Node* to_replace, const Graph& callee, std::unordered_map<Value*, Value*>* value_map) {
  const WithInsertPoint guard(to_replace);
  std::vector<Value*> results = graph.insertGraph(callee, to_replace->inputs(), value_map);
  CRESSET_CHECK(results.size() == to_replace->outputs().size(), "inlineGraph: ", to_replace->outputs().size(),
                " outputs were required; the graph has ", results.size(), ".");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (to_replace->output(i)->hasDebugName() && !results[i]->hasDebugName()) results[i]->setDebugName(to_replace->output(i)->debugName());
    to_replace->output(i)->replaceAllUsesWith(results[i]);
  }
  to_replace->destroy();
  return results;
}

}  // namespace cresset::jit
