// Nodes: inputs and outputs, place in the block, attributes.
#include <algorithm>
#include <unordered_set>

#include <cresset/ir/ir.h>
#include <cresset/ir/operator.h>

#include "ir/graph/loose_match.h"

namespace cresset::jit {

Node::Node(Graph* graph, Symbol kind) : kind_(kind), graph_(graph), scope_(graph->current_scope()) {}

Node* Node::copyMetadata(const Node* from) {
  source_range_ = from->source_range_;
  scope_ = from->scope_;
  callstack_ = from->callstack_;
  if (from->hasAttribute(attr::to_compile)) i_(attr::to_compile, from->i(attr::to_compile));
  return this;
}

Value* Node::input() const {
  CRESSET_CHECK(inputs_.size() == 1, "Node::input: one input is required; ", str(), " has ", inputs_.size(), ".");
  return inputs_[0];
}
Value* Node::output() const {
  CRESSET_CHECK(outputs_.size() == 1, "Node::output: one output is required; ", str(), " has ", outputs_.size(), ".");
  return outputs_[0];
}
Value* Node::namedInput(std::string_view name) const {
  const auto index = schema().argument_index(name);
  CRESSET_CHECK(index && *index < inputs_.size(), "Node: no argument '", name, "' in ", schema().str());
  return inputs_[*index];
}
bool Node::hasNamedInput(const std::string& name) const {
  const FunctionSchema* schema = maybeSchema();
  return schema && schema->argument_index(name);
}
bool Node::hasUses() const {
  return std::any_of(outputs_.begin(), outputs_.end(), [](const Value* v) { return v->hasUses(); });
}

// ---- inputs and outputs

void Node::reserve_inputs(std::size_t n) {
  if (n <= inputs_.capacity()) return;
  inputs_.reserve(std::max(n, 2 * inputs_.capacity()));
  std::unique_ptr<uint32_t[]> places(new uint32_t[inputs_.capacity()]);
  std::copy_n(use_places_.get(), inputs_.size(), places.get());
  use_places_ = std::move(places);
}

void Node::add_use(std::size_t i) {
  std::vector<Use>& uses = inputs_[i]->uses_;
  use_places_[i] = static_cast<uint32_t>(uses.size());
  uses.push_back({this, i});
}

void Node::remove_use(std::size_t i) { inputs_[i]->remove_use(use_places_[i]); }

bool Node::knowsUse(std::size_t i) const {
  const std::vector<Use>& uses = inputs_[i]->uses_;
  const std::size_t place = use_places_[i];
  return place < uses.size() && uses[place].user == this && uses[place].offset == i;
}

Value* Node::dropInput(std::size_t i) {
  remove_use(i);
  return std::exchange(inputs_[i], nullptr);
}

Value* Node::addInput(Value* v) {
  CRESSET_CHECK(v->owningGraph() == graph_, "addInput: %", v->debugName(), " belongs to another graph.");
  changed();
  reserve_inputs(inputs_.size() + 1);
  inputs_.push_back(v);
  add_use(inputs_.size() - 1);
  return v;
}

Value* Node::insertInput(std::size_t i, Value* v) {
  CRESSET_CHECK_INDEX(i <= inputs_.size(), "insertInput: a place up to ", inputs_.size(), " was required; ", i, " was given.");
  CRESSET_CHECK(v->owningGraph() == graph_, "insertInput: %", v->debugName(), " belongs to another graph.");
  changed();
  reserve_inputs(inputs_.size() + 1);
  inputs_.insert(inputs_.begin() + static_cast<std::ptrdiff_t>(i), v);
  for (std::size_t k = inputs_.size() - 1; k > i; --k) {
    use_places_[k] = use_places_[k - 1];
    inputs_[k]->uses_[use_places_[k]].offset = k;
  }
  add_use(i);
  return v;
}

Value* Node::replaceInput(std::size_t i, Value* v) {
  CRESSET_CHECK_INDEX(i < inputs_.size(), "replaceInput: an input below ", inputs_.size(), " was required; ", i, " was given.");
  CRESSET_CHECK(v->owningGraph() == graph_, "replaceInput: %", v->debugName(), " belongs to another graph.");
  changed();
  Value* old = dropInput(i);
  inputs_[i] = v;
  add_use(i);
  return old;
}

void Node::replaceInputWith(Value* from, Value* to) {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] == from) replaceInput(i, to);
}

void Node::removeInput(std::size_t i) {
  CRESSET_CHECK_INDEX(i < inputs_.size(), "removeInput: an input below ", inputs_.size(), " was required; ", i, " was given.");
  changed();
  dropInput(i);
  for (std::size_t k = i + 1; k < inputs_.size(); ++k) {
    use_places_[k - 1] = use_places_[k];
    inputs_[k]->uses_[use_places_[k]].offset = k - 1;
  }
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
}

void Node::removeAllInputs() {
  changed();
  for (std::size_t i = inputs_.size(); i-- > 0;) remove_use(i);
  inputs_.clear();
}

namespace {
void check_order(const std::vector<std::size_t>& order, std::size_t n, const char* what) {
  std::vector<bool> seen(n);
  bool good = order.size() == n;
  for (std::size_t i : order) {
    good = good && i < n && !seen[i];
    if (good) seen[i] = true;
  }
  CRESSET_CHECK(good, what, ": each number below ", n, " exactly once was required.");
}
}  // namespace

void Node::permuteInputs(const std::vector<std::size_t>& order) {
  check_order(order, inputs_.size(), "permuteInputs");
  const std::vector<Value*> old = inputs_;
  removeAllInputs();
  for (std::size_t i : order) addInput(old[i]);
}

Value* Node::addOutput() {
  changed();
  outputs_.push_back(graph_->make_value(this, outputs_.size()));
  return outputs_.back();
}

Value* Node::insertOutput(std::size_t i) {
  CRESSET_CHECK_INDEX(i <= outputs_.size(), "insertOutput: a place up to ", outputs_.size(), " was required; ", i, " was given.");
  changed();
  outputs_.insert(outputs_.begin() + static_cast<std::ptrdiff_t>(i), graph_->make_value(this, i));
  for (std::size_t k = i + 1; k < outputs_.size(); ++k) outputs_[k]->offset_ = k;
  return outputs_[i];
}

void Node::eraseOutput(std::size_t i) {
  CRESSET_CHECK_INDEX(i < outputs_.size(), "eraseOutput: an output below ", outputs_.size(), " was required; ", i, " was given.");
  CRESSET_CHECK(!outputs_[i]->hasUses(), "eraseOutput: %", outputs_[i]->debugName(), " still has uses.");
  changed();
  Value* dead = outputs_[i];
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
  for (std::size_t k = i; k < outputs_.size(); ++k) outputs_[k]->offset_ = k;
  graph_->release(dead);
}

void Node::permuteOutputs(const std::vector<std::size_t>& order) {
  check_order(order, outputs_.size(), "permuteOutputs");
  const std::vector<Value*> old = outputs_;
  for (std::size_t k = 0; k < order.size(); ++k) {
    outputs_[k] = old[order[k]];
    outputs_[k]->offset_ = k;
  }
  changed();
}

void Node::replaceAllUsesWith(Node* other) {
  CRESSET_CHECK(outputs_.size() == other->outputs_.size(), "replaceAllUsesWith: as many outputs as ", str(), " were required; ",
                other->str(), " has ", other->outputs_.size(), ".");
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i]->replaceAllUsesWith(other->outputs_[i]);
}

Block* Node::addBlock() {
  changed();
  blocks_.push_back(new Block(graph_, this));
  return blocks_.back();
}

void Node::eraseBlock(std::size_t i) {
  CRESSET_CHECK_INDEX(i < blocks_.size(), "eraseBlock: a block below ", blocks_.size(), " was required; ", i, " was given.");
  changed();
  Block* dead = blocks_[i];
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
  dead->clear();
  graph_->leave_insert_points(dead);
  graph_->release(dead->param_node_);
  graph_->release(dead->return_node_);
  graph_->release(dead);
}

// ---- place

namespace {
constexpr int64_t kPositionStep = int64_t{1} << 32;
constexpr int64_t kFirstPosition = INT64_MIN, kLastPosition = INT64_MAX;
}  // namespace

// Positions are sparse: a node between two others takes the middle; when there is none the block is numbered anew.
void Node::assign_position() {
  const Block& b = *owning_block_;
  const int64_t before = prev_ == b.param_node() ? kFirstPosition : prev_->position_;
  const int64_t after = next_ == b.return_node() ? kLastPosition : next_->position_;
  if (prev_ == b.param_node() && next_ == b.return_node()) {
    position_ = 0;
  } else if (next_ == b.return_node()) {
    if (before > kLastPosition - kPositionStep) return owning_block_->renumber();
    position_ = before + kPositionStep;
  } else if (prev_ == b.param_node()) {
    if (after < kFirstPosition + kPositionStep) return owning_block_->renumber();
    position_ = after - kPositionStep;
  } else {
    // No overflow: the distance of two ordered numbers fits an unsigned one.
    const uint64_t gap = static_cast<uint64_t>(after) - static_cast<uint64_t>(before);
    if (gap < 2) return owning_block_->renumber();
    position_ = static_cast<int64_t>(static_cast<uint64_t>(before) + gap / 2);
  }
}

Node* Node::insertBefore(Node* n) {
  CRESSET_CHECK(n->inBlockList(), "insertBefore: a node in a block was required; ", n->str(), " is in none.");
  return insertAfter(n->prev_);
}

Node* Node::insertAfter(Node* n) {
  CRESSET_CHECK(!inBlockList() || kind_ == prim::Return, "insertAfter: ", str(), " is in a block already. Use moveAfter.");
  CRESSET_CHECK(n->inBlockList(), "insertAfter: a node in a block was required; ", n->str(), " is in none.");
  CRESSET_CHECK(n->graph_ == graph_, "insertAfter: nodes of one graph are required.");
  CRESSET_CHECK(n->kind_ != prim::Return, "insertAfter: nothing can stand behind the return node.");
  owning_block_ = n->owning_block_;
  prev_ = n;
  next_ = n->next_;
  prev_->next_ = this;
  next_->prev_ = this;
  assign_position();
  return this;
}

void Node::moveBefore(Node* n) {
  if (n == this) return;
  removeFromList();
  insertBefore(n);
}
void Node::moveAfter(Node* n) {
  if (n == this) return;
  removeFromList();
  insertAfter(n);
}

std::size_t Node::blocksFromGraphBlock() const {
  std::size_t depth = 0;
  for (const Block* b = owning_block_; b && b->owningNode(); b = b->owningNode()->owningBlock()) ++depth;
  return depth;
}
void Node::removeFromList() {
  CRESSET_CHECK(inBlockList() && kind_ != prim::Return && kind_ != prim::Param, "removeFromList: a node in a block was required; ", str(),
                " is in none.");
  prev_->next_ = next_;
  next_->prev_ = prev_;
  owning_block_ = nullptr;
  next_ = prev_ = nullptr;
}

namespace {
std::size_t depth_of(const Block* b) {
  std::size_t depth = 0;
  for (; b->owningNode(); b = b->owningNode()->owningBlock()) ++depth;
  return depth;
}
}  // namespace

bool Node::isBefore(const Node* n) const {
  CRESSET_CHECK(owning_block_ && n->owning_block_, "isBefore: two nodes in blocks are required.");
  const Node *a = this, *b = n;
  if (a->owning_block_ != b->owning_block_) {
    std::size_t da = depth_of(a->owning_block_), db = depth_of(b->owning_block_);
    for (; da > db; --da) a = a->owning_block_->owningNode();
    for (; db > da; --db) b = b->owning_block_->owningNode();
    while (a->owning_block_ != b->owning_block_) {
      a = a->owning_block_->owningNode();
      b = b->owning_block_->owningNode();
    }
    if (a == b) {
      // One holds the other, or both are in different blocks of one node: the holder is first; blocks are in order.
      if (a == this) return true;
      if (b == n) return false;
      const auto arm_of = [&](const Node* x) {
        while (x->owning_block_->owningNode() != a) x = x->owning_block_->owningNode();
        return std::find(a->blocks_.begin(), a->blocks_.end(), x->owning_block_) - a->blocks_.begin();
      };
      return arm_of(this) < arm_of(n);
    }
  }
  if (a == b) return false;
  if (a->kind_ == prim::Return || b->kind_ == prim::Param) return false;
  if (a->kind_ == prim::Param || b->kind_ == prim::Return) return true;
  return a->position_ < b->position_;
}

void Node::destroy() {
  for (const Value* v : outputs_) CRESSET_CHECK(!v->hasUses(), "destroy: %", v->debugName(), " of ", str(), " still has uses.");
  while (!blocks_.empty()) eraseBlock(blocks_.size() - 1);
  removeAllInputs();
  while (!outputs_.empty()) eraseOutput(outputs_.size() - 1);
  graph_->leave_insert_points(this);
  if (inBlockList()) removeFromList();
  graph_->release(this);
}

// ---- attributes

const char* toString(AttributeKind kind) {
  constexpr const char* names[] = {"f", "fs", "c", "cs", "i", "is", "s", "ss", "t", "ts", "g", "gs", "ty", "tys", "ival"};
  return names[static_cast<std::size_t>(kind)];
}

const Attribute* Node::find(Symbol name) const {
  for (const Attribute& a : attributes_)
    if (a.name == name) return &a;
  return nullptr;
}

const AttributeValue& Node::attribute(Symbol name) const {
  const Attribute* a = find(name);
  CRESSET_CHECK(a, "required keyword attribute '", name.toUnqualString(), "' is undefined in ", str());
  return a->value;
}

const AttributeValue& Node::typed(Symbol name, AttributeKind kind) const {
  const AttributeValue& v = attribute(name);
  CRESSET_CHECK(static_cast<AttributeKind>(v.index()) == kind, "attribute '", name.toUnqualString(), "' is of kind '",
                jit::toString(static_cast<AttributeKind>(v.index())), "', not '", jit::toString(kind), "'.");
  return v;
}

AttributeKind Node::kindOf(Symbol name) const { return static_cast<AttributeKind>(attribute(name).index()); }

std::vector<Symbol> Node::attributeNames() const {
  std::vector<Symbol> out;
  for (const Attribute& a : attributes_) out.push_back(a.name);
  return out;
}

Node* Node::setAttribute(Symbol name, AttributeValue value) {
  CRESSET_CHECK(name.is_attr(), "attribute: a name in attr:: was required; ", name.toQualString(), " was given.");
  changed();
  for (Attribute& a : attributes_) {
    if (a.name != name) continue;
    a.value = std::move(value);
    return this;
  }
  attributes_.push_back({name, std::move(value)});
  return this;
}

Node* Node::removeAttribute(Symbol name) {
  const Attribute* a = find(name);
  CRESSET_CHECK(a, "removeAttribute: ", str(), " has no attribute '", name.toUnqualString(), "'.");
  changed();
  attributes_.erase(attributes_.begin() + (a - attributes_.data()));
  return this;
}

Node* Node::copyAttributes(const Node& from) {
  changed();
  attributes_ = from.attributes_;
  return this;
}

bool Node::mustBeNone() const {
  return kind_ == prim::AutogradZero || (kind_ == prim::Constant && !hasAttribute(attr::value) && outputs_.size() == 1 &&
                                         (outputs_[0]->type()->kind == TypeKind::None || outputs_[0]->type()->kind == TypeKind::Optional));
}

// ---- operators

// A node keeps the overload that it had when no other one fits its new inputs.
const Operator* Node::maybeOperator() const {
  const uint64_t now = operator_registry_generation();
  if (operator_generation_ != now) {
    if (const Operator* fitting = find_operator_for(*this)) operator_ = fitting;
    operator_generation_ = now;
  }
  return operator_;
}
const FunctionSchema* Node::maybeSchema() const {
  const Operator* op = maybeOperator();
  return op ? &op->schema() : nullptr;
}
const Operator& Node::getOperator() const {
  if (const Operator* op = maybeOperator()) return *op;
  raise_no_operator(*this);
}
const FunctionSchema& Node::schema() const { return getOperator().schema(); }

bool Node::matches(const FunctionSchema& s) const {
  if (s.name() != kind_.toQualString() || !inputs_match_schema(*this, s)) return false;
  const FunctionSchema* own = takes_bool_as_number(s, inputs_) ? maybeSchema() : &s;
  return own && own->overload_name() == s.overload_name();
}
bool Node::matches(std::string_view schema) const { return matches(parsed_schema(schema)); }

bool Node::matches(std::string_view schema, ArrayRef<Symbol> constants) const {
  return matches(schema) && std::all_of(constants.begin(), constants.end(), [&](Symbol name) { return is_constant(name); });
}
bool Node::isMemberOf(const OperatorSet& operators) const { return operators.find(*this) != nullptr; }
std::function<void(Stack&)> Node::getOperation() const {
  const Operator* op = &getOperator();
  return [op](Stack& stack) { op->call(stack); };
}

bool Node::isDominatedBy(const Node* n) const {
  for (const Node* at = this; at;) {
    if (at->owningBlock() == n->owningBlock()) return n->isBefore(at);
    const Block* around = at->owningBlock();
    at = around ? around->owningNode() : nullptr;
  }
  return false;
}
Block* Node::findCommonAncestorBlockWith(Node* n) {
  std::unordered_set<const Block*> own;
  const auto outer = [](Block* b) { return b->owningNode() ? b->owningNode()->owningBlock() : nullptr; };
  for (Block* b = owningBlock(); b; b = outer(b)) own.insert(b);
  Block* b = n->owningBlock();
  while (b && !own.contains(b)) b = outer(b);
  return b;
}
Node* Node::replaceWithNewSymbol(Symbol kind) {
  Node* other = graph_->create(kind, inputs_, outputs_.size());
  other->insertBefore(this);
  other->copyMetadata(this);
  other->copyAttributes(*this);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    other->output(i)->copyMetadata(outputs_[i]);
    outputs_[i]->replaceAllUsesWith(other->output(i));
  }
  return other;
}
std::vector<const char*> Node::attributeNamesS() const {
  std::vector<const char*> names;
  for (const Attribute& a : attributes_) names.push_back(a.name.toUnqualString());
  return names;
}

std::optional<IValue> Node::get(std::string_view argument) const { return toIValue(namedInput(argument)); }

}  // namespace cresset::jit
