// The graph IR: Graph owns Blocks, Nodes and Values. Strict SSA, text form in ir_parser.h and Graph::toString.
//
// A block is a circular list of nodes closed by two sentinels: the parameter node (its outputs are the block's inputs) and
// the return node (its inputs are the block's outputs). Iterating from the first node meets the return node at the end; the
// node behind the return node is the parameter node.
#pragma once

#include <complex>
#include <functional>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <cresset/dispatch/function_schema.h>
#include <cresset/dispatch/tensor_type.h>
#include <cresset/ir/object_pool.h>
#include <cresset/ir/source_range.h>
#include <cresset/ir/symbols.h>
#include <cresset/ir/use_list.h>

namespace cresset::jit {

using cresset::TensorType;
using cresset::Type;
using cresset::TypeKind;
using cresset::TypePtr;

using cresset::ArrayRef;

class Block;
class Graph;
class Node;
class NodeListIterator;
class Value;
class WithInsertPoint;
struct Operator;
class OperatorSet;
struct NamedValues;
template <class T>
class PointerMap;

/// What bindings hold on to: null once the object was destroyed.
template <class T>
struct Handle {
  T* target;
};

/// A path of names, from the module that was traced down ("__module.layer1/aten::relu").
class CRESSET_API Scope {
 public:
  Scope(std::shared_ptr<const Scope> parent, std::string name) : parent_(std::move(parent)), name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  const std::shared_ptr<const Scope>& parent() const { return parent_; }
  /// The names from the root, with '/' between them.
  std::string namesFromRoot(std::string_view separator = "/") const;
  static std::shared_ptr<const Scope> parse(std::string_view path);

 private:
  std::shared_ptr<const Scope> parent_;
  std::string name_;
};
using ScopePtr = std::shared_ptr<const Scope>;

/// The calls that inlining removed around a node, outermost first: which function was called, from where, on which module.
struct CRESSET_API InlinedCallStack {
  std::string function_name;
  SourceRange call_site;
  std::string module_path;  // instance path below the root module, "layer1.0"; empty for functions
  TypePtr module_type;      // may be null
  std::shared_ptr<const InlinedCallStack> callee;
  /// "forward [layer1.0] > helper".
  std::string str() const;
};
using InlinedCallStackPtr = std::shared_ptr<const InlinedCallStack>;

// ---- attributes ------------------------------------------------------------------------------------------------------

/// In the order of the alternatives of AttributeValue, named as PyTorch's accessors are.
enum class AttributeKind : uint8_t { f, fs, c, cs, i, is, s, ss, t, ts, g, gs, ty, tys, ival };
CRESSET_API const char* toString(AttributeKind kind);

using AttributeValue = std::variant<double, std::vector<double>, std::complex<double>, std::vector<std::complex<double>>, int64_t,
                                    std::vector<int64_t>, std::string, std::vector<std::string>, Tensor, std::vector<Tensor>,
                                    std::shared_ptr<Graph>, std::vector<std::shared_ptr<Graph>>, TypePtr, std::vector<TypePtr>, IValue>;

struct Attribute {
  Symbol name;
  AttributeValue value;
  AttributeKind kind() const { return static_cast<AttributeKind>(value.index()); }
};

// ---- values ----------------------------------------------------------------------------------------------------------

// What passes look at comes first: it lies on one cache line.
class CRESSET_API Value {
 public:
  Value(const Value&) = delete;
  const TypePtr& type() const { return type_; }
  Value* setType(TypePtr type);
  /// The type of a tensor's value.
  Value* inferTypeFrom(const Tensor& t) { return setType(TensorType::create(t)); }
  bool requires_grad() const { return type_->requires_grad(); }
  bool isCompleteTensor() const;
  std::size_t unique() const { return unique_; }
  bool hasDebugName() const { return name_ != nullptr; }
  /// The name, or the number of an anonymous value.
  std::string debugName() const { return name_ ? name_->first : std::to_string(unique_); }
  /// "x" of "x.12".
  std::string debugNameBase() const;
  /// An earlier owner of a taken name is renamed with a number behind a dot. Empty: anonymous. Names of digits alone are refused.
  Value* setDebugName(const std::string& name);
  static bool isValidName(std::string_view name);
  Node* node() const { return node_; }
  std::size_t offset() const { return offset_; }
  Value* setOffset(std::size_t offset) {
    offset_ = offset;
    return this;
  }
  Graph* owningGraph() const;
  Block* owningBlock() const;
  /// Const, so that programs' `auto& uses = value->uses()` keeps the list.
  const UseList uses() const { return UseList(uses_); }
  /// uses().size() without a list.
  std::size_t use_count() const { return uses_.size() - gaps_; }
  bool hasUses() const { return !uses_.empty(); }
  void replaceAllUsesWith(Value* other);
  /// Uses by nodes that stand behind `node` in the order of the program.
  void replaceAllUsesAfterNodeWith(const Node* node, Value* other);
  /// Uses by nodes that `node` dominates: behind it, in its block or in blocks nested there.
  void replaceAllUsesDominatedByNodeWith(const Node* node, Value* other);
  /// Type and, if present, name.
  Value* copyMetadata(const Value* from);
  bool mustBeNone() const;
  bool mustNotBeNone() const;
  const std::shared_ptr<Handle<Value>>& handle();
  ~Value() {
    if (handle_) handle_->target = nullptr;
  }

 private:
  friend class Block;
  friend class Graph;
  friend class Node;
  Value(Node* node, std::size_t offset);
  void remove_use(std::size_t place);

  Node* node_;
  std::size_t offset_, unique_;
  TypePtr type_;
  // Each input knows the place of its use. A removed one leaves a gap, so that removing takes constant time whatever the number of uses;
  // there are never more gaps than uses.
  std::vector<Use> uses_;
  // The entry in the graph's table, which therefore knows one owner of each name. Null: anonymous.
  std::pair<const std::string, Value*>* name_ = nullptr;
  std::size_t owner_index_;
  std::shared_ptr<Handle<Value>> handle_;
  std::size_t gaps_ = 0;  // places of uses_ without user, none of them the last
};

// ---- nodes -----------------------------------------------------------------------------------------------------------

// What every walk looks at comes first and lies on one cache line, what most passes look at on the next.
class CRESSET_API Node {
 public:
  Node(const Node&) = delete;

  Symbol kind() const { return kind_; }
  /// The same node as another operator.
  Node* changeKind(Symbol kind) {
    kind_ = kind;
    operator_ = nullptr;
    changed();
    return this;
  }
  Graph* owningGraph() const { return graph_; }
  /// Null while the node is in no block.
  Block* owningBlock() const { return owning_block_; }
  /// How many blocks lie between the node and the graph's own, its own included: 0 for a node of the graph.
  std::size_t blocksFromGraphBlock() const;
  Node* next() const { return next_; }
  Node* prev() const { return prev_; }
  bool inBlockList() const { return next_ != nullptr; }
  // Where the node stands in its block's list, forwards and backwards.
  NodeListIterator iterator() const;
  NodeListIterator reverseIterator() const;

  const SourceRange& sourceRange() const { return source_range_; }
  Node* setSourceRange(SourceRange r) {
    source_range_ = std::move(r);
    return this;
  }
  const ScopePtr& scope() const { return scope_; }
  Node* setScope(ScopePtr s) {
    scope_ = std::move(s);
    return this;
  }
  std::string scopeName() const { return scope_ ? scope_->namesFromRoot() : std::string(); }
  const InlinedCallStackPtr& callstack() const { return callstack_; }
  void setCallStack(InlinedCallStackPtr s) { callstack_ = std::move(s); }
  /// Source range, scope, call stack and the fallback mark of another node.
  Node* copyMetadata(const Node* from);

  const Sequence<Value*>& inputs() const { return inputs_; }
  const Sequence<Value*>& outputs() const { return outputs_; }
  Value* input() const;
  Value* input(std::size_t i) const { return inputs_.at(i); }
  Value* output() const;
  Value* output(std::size_t i) const { return outputs_.at(i); }
  /// The input at the place of a schema's argument.
  Value* namedInput(std::string_view name) const;
  Value* namedInput(Symbol name) const { return namedInput(std::string_view(name.toUnqualString())); }
  /// Does the node's operator have an argument of this name?
  bool hasNamedInput(const std::string& name) const;
  bool hasUses() const;

  Value* addInput(Value* v);
  Value* insertInput(std::size_t i, Value* v);
  /// The value that was there.
  Value* replaceInput(std::size_t i, Value* v);
  void replaceInputWith(Value* from, Value* to);
  void removeInput(std::size_t i);
  void removeAllInputs();
  void permuteInputs(const std::vector<std::size_t>& order);
  Value* addOutput();
  Value* insertOutput(std::size_t i);
  void eraseOutput(std::size_t i);
  void permuteOutputs(const std::vector<std::size_t>& order);
  void replaceAllUsesWith(Node* other);

  const Sequence<Block*>& blocks() const { return blocks_; }
  Block* addBlock();
  void eraseBlock(std::size_t i);

  Node* insertBefore(Node* n);
  Node* insertAfter(Node* n);
  void moveBefore(Node* n);
  void moveAfter(Node* n);
  bool isBefore(const Node* n) const;
  bool isAfter(const Node* n) const { return n != this && !isBefore(n); }
  /// Does `n` stand in front of this node, in its block or in one around it?
  bool isDominatedBy(const Node* n) const;
  /// The innermost block in which both nodes are, nested or not; null when there is none.
  Block* findCommonAncestorBlockWith(Node* n);
  /// Out of its block's list; the graph keeps it.
  void removeFromList();
  /// Removes the node and all that is nested in it. No output may have uses.
  void destroy();

  // Attributes, in the order they were set.
  const std::vector<Attribute>& attributes() const { return attributes_; }
  bool hasAttributes() const { return !attributes_.empty(); }
  std::size_t numAttributes() const { return attributes_.size(); }
  bool hasAttribute(Symbol name) const { return find(name) != nullptr; }
  bool hasAttributeS(std::string_view name) const { return hasAttribute(Symbol::attr(name)); }
  AttributeKind kindOf(Symbol name) const;
  AttributeKind kindOfS(std::string_view name) const { return kindOf(Symbol::attr(name)); }
  std::vector<Symbol> attributeNames() const;
  std::vector<const char*> attributeNamesS() const;
  Node* removeAttributeS(std::string_view name) { return removeAttribute(Symbol::attr(name)); }
  Node* removeAttribute(Symbol name);
  Node* copyAttributes(const Node& from);
  Node* setAttribute(Symbol name, AttributeValue value);
  const AttributeValue& attribute(Symbol name) const;
#define CRESSET_ATTRIBUTE(k, ...)                                                                                             \
  Node* k##_(Symbol name, __VA_ARGS__ v) {                                                                                    \
    return setAttribute(name, AttributeValue(std::in_place_index<static_cast<std::size_t>(AttributeKind::k)>, std::move(v))); \
  }                                                                                                                           \
  const __VA_ARGS__& k(Symbol name) const { return std::get<static_cast<std::size_t>(AttributeKind::k)>(typed(name, AttributeKind::k)); }
  CRESSET_ATTRIBUTE(f, double)
  CRESSET_ATTRIBUTE(fs, std::vector<double>)
  CRESSET_ATTRIBUTE(c, std::complex<double>)
  CRESSET_ATTRIBUTE(cs, std::vector<std::complex<double>>)
  CRESSET_ATTRIBUTE(i, int64_t)
  CRESSET_ATTRIBUTE(is, std::vector<int64_t>)
  CRESSET_ATTRIBUTE(s, std::string)
  CRESSET_ATTRIBUTE(ss, std::vector<std::string>)
  CRESSET_ATTRIBUTE(t, Tensor)
  CRESSET_ATTRIBUTE(ts, std::vector<Tensor>)
  CRESSET_ATTRIBUTE(g, std::shared_ptr<Graph>)
  CRESSET_ATTRIBUTE(gs, std::vector<std::shared_ptr<Graph>>)
  CRESSET_ATTRIBUTE(ty, TypePtr)
  CRESSET_ATTRIBUTE(tys, std::vector<TypePtr>)
  CRESSET_ATTRIBUTE(ival, IValue)
#undef CRESSET_ATTRIBUTE

  // The operator behind the node: found among the overloads of its kind by number and types of the inputs, kept until the node changes.
  /// Null when no overload fits.
  const Operator* maybeOperator() const;
  /// Raises with the node, its place and the candidates when no overload fits.
  const Operator& getOperator() const;
  const FunctionSchema* maybeSchema() const;
  const FunctionSchema& schema() const;
  /// Does this schema's name and arguments fit?
  bool matches(const FunctionSchema& schema) const;
  /// The same for a schema's text.
  bool matches(std::string_view schema) const;
  /// And are the arguments of these names constants?
  bool matches(std::string_view schema, ArrayRef<Symbol> constants) const;
  bool isMemberOf(const OperatorSet& operators) const;
  /// What runs the node; raises when no overload fits.
  std::function<void(Stack&)> getOperation() const;
  bool hasSideEffects() const;
  bool isNondeterministic() const;
  bool isInplaceOrWrites() const;
  bool mustBeNone() const;

  /// One line, without blocks.
  std::string str() const;
  /// The node with its blocks, as the graph's text has it.
  std::string toString() const;
  std::ostream& print(std::ostream& out) const;
  /// The same, indented by twice `level`, with or without the places in the source, the attributes and the blocks. Nodes with graphs of
  /// their own are added to `groups`. Scopes are no part of the text.
  std::ostream& print(std::ostream& out, std::size_t level, std::vector<const Node*>* groups, bool print_source_locations = true,
                      bool print_attributes = true, bool print_scopes = true, bool print_body = true) const;
  /// To the standard output.
  void dump() const;

  /// The constant value of the input at the place of a schema's argument.
  std::optional<IValue> get(std::string_view argument) const;
  std::optional<IValue> get(Symbol argument) const { return get(std::string_view(argument.toUnqualString())); }
  /// The same as a C++ type.
  template <class T, class Name>
  std::optional<T> get(const Name& argument) const {
    const auto value = get(argument);
    return value ? std::optional<T>(value->template to<T>()) : std::nullopt;
  }
  bool is_constant(Symbol argument) const { return get(argument).has_value(); }
  /// A node of another kind with these inputs, outputs and attributes in its place; gives it. This one is without uses then.
  Node* replaceWithNewSymbol(Symbol kind);
  /// Does the use list of input i's value have this input where the node thinks it is? The verifier asks.
  bool knowsUse(std::size_t i) const;
  const std::shared_ptr<Handle<Node>>& handle();
  ~Node() {
    if (handle_) handle_->target = nullptr;
  }

 private:
  friend class Block;
  friend class Graph;
  friend class Value;
  Node(Graph* graph, Symbol kind);
  const Attribute* find(Symbol name) const;
  const AttributeValue& typed(Symbol name, AttributeKind kind) const;
  // The operator must be looked up again; the one there is stays when no other fits.
  void changed() { operator_generation_ = 0; }
  void reserve_inputs(std::size_t n);
  void add_use(std::size_t i);
  void remove_use(std::size_t i);
  void assign_position();
  Value* dropInput(std::size_t i);

  Symbol kind_;
  Block* owning_block_ = nullptr;
  Node *next_ = nullptr, *prev_ = nullptr;
  int64_t position_ = 0;
  Sequence<Block*> blocks_;

  Sequence<Value*> inputs_, outputs_;
  mutable const Operator* operator_ = nullptr;
  mutable uint64_t operator_generation_ = 0;  // of the operator registry, when operator_ was looked up; 0: not looked up

  std::vector<Attribute> attributes_;
  Graph* graph_;
  std::size_t owner_index_ = 0;
  SourceRange source_range_;
  ScopePtr scope_;
  InlinedCallStackPtr callstack_;
  std::shared_ptr<Handle<Node>> handle_;
  // Of each input the place of its use in the value's list; room for as many as inputs_ has.
  std::unique_ptr<uint32_t[]> use_places_;
};

/// A place in a block's list of nodes. The current node may be destroyed only after stepping past it.
class NodeListIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = Node*;
  using difference_type = std::ptrdiff_t;
  using pointer = Node**;
  using reference = Node*;
  explicit NodeListIterator(Node* n = nullptr, bool backwards = false) : node_(n), backwards_(backwards) {}
  Node* operator*() const { return node_; }
  Node* operator->() const { return node_; }
  NodeListIterator& operator++() {
    node_ = backwards_ ? node_->prev() : node_->next();
    return *this;
  }
  NodeListIterator operator++(int) {
    NodeListIterator old = *this;
    ++*this;
    return old;
  }
  NodeListIterator& operator--() {
    node_ = backwards_ ? node_->next() : node_->prev();
    return *this;
  }
  /// Destroys the node and stands on the one before, so that ++ goes on behind it.
  void destroyCurrent() {
    Node* dead = node_;
    --*this;
    dead->destroy();
  }
  friend bool operator==(const NodeListIterator& a, const NodeListIterator& b) { return a.node_ == b.node_; }

 private:
  Node* node_;
  bool backwards_;
};
inline NodeListIterator Node::iterator() const { return NodeListIterator(const_cast<Node*>(this)); }
inline NodeListIterator Node::reverseIterator() const { return NodeListIterator(const_cast<Node*>(this), true); }

/// Nodes of a block, forwards or (by reverse()) backwards.
class NodeList {
 public:
  using iterator = NodeListIterator;
  NodeList(Node* first, Node* end, bool backwards = false) : first_(first), end_(end), backwards_(backwards) {}
  iterator begin() const { return iterator(first_, backwards_); }
  iterator end() const { return iterator(end_, backwards_); }
  CRESSET_API NodeList reverse() const;
  // From the other end.
  iterator rbegin() const { return reverse().begin(); }
  iterator rend() const { return reverse().end(); }
  Node* front() const { return first_; }
  Node* back() const { return *--end(); }

 private:
  Node *first_, *end_;
  bool backwards_;
};

using graph_node_list = NodeList;
using const_graph_node_list = NodeList;
using graph_node_list_iterator = NodeList::iterator;

// ---- blocks ----------------------------------------------------------------------------------------------------------

class CRESSET_API Block {
 public:
  Block(const Block&) = delete;
  const Sequence<Value*>& inputs() const { return param_node_->outputs(); }
  const Sequence<Value*>& outputs() const { return return_node_->inputs(); }
  NodeList nodes() const { return NodeList(param_node_->next(), return_node_); }
  Node* param_node() const { return param_node_; }
  Node* return_node() const { return return_node_; }
  /// Null for the graph's own block.
  Node* owningNode() const { return owning_node_; }
  Graph* owningGraph() const { return graph_; }
  Value* addInput(const std::string& name = {});
  Value* insertInput(std::size_t i, const std::string& name = {});
  void eraseInput(std::size_t i) { param_node_->eraseOutput(i); }
  void permuteInputs(const std::vector<std::size_t>& order) { param_node_->permuteOutputs(order); }
  std::size_t registerOutput(Value* v);
  std::size_t insertOutput(std::size_t i, Value* v);
  void eraseOutput(std::size_t i) { return_node_->removeInput(i); }
  void replaceOutput(std::size_t i, Value* v) { return_node_->replaceInput(i, v); }
  void permuteOutputs(const std::vector<std::size_t>& order) { return_node_->permuteInputs(order); }
  Node* appendNode(Node* n) { return n->insertBefore(return_node_); }
  Node* prependNode(Node* n) { return n->insertAfter(param_node_); }
  /// Copies inputs, nodes and outputs of `from` into this empty block; values from outside go through the map.
  void cloneFrom(const Block* from, const std::function<Value*(Value*)>& outer);
  /// Destroys all nodes and outputs.
  void clear();
  /// All nodes of this block and of blocks nested in it, in the order of the program.
  void visit(const std::function<void(Node*)>& f) const;
  const std::shared_ptr<Handle<Block>>& handle();
  ~Block() {
    if (handle_) handle_->target = nullptr;
  }

 private:
  std::shared_ptr<Handle<Block>> handle_;
  friend class Graph;
  friend class Node;
  Block(Graph* graph, Node* owner);
  void renumber();
  Graph* graph_;
  Node *owning_node_, *param_node_, *return_node_;
  std::size_t owner_index_ = 0;
};

// ---- the graph -------------------------------------------------------------------------------------------------------

struct PrintOptions {
  bool source_ranges = true;
  /// Tensor constants as base64 below the graph; otherwise large ones print as <Tensor> and cannot be read back.
  bool constants = true;
  bool attributes = true;
};

/// An argument of a call: a value or a constant, by keyword or not.
struct CRESSET_API NamedValue {
  NamedValue(Value* value) : value_(value) {}
  NamedValue(std::string name, Value* value) : name_(std::move(name)), value_(value) {}
  NamedValue(SourceRange range, Value* value) : value_(value), range_(std::move(range)) {}
  NamedValue(SourceRange range, std::string name, Value* value) : name_(std::move(name)), value_(value), range_(std::move(range)) {}
  /// A constant.
  template <class T>
    requires(!std::is_pointer_v<std::decay_t<T>> && !std::is_same_v<std::decay_t<T>, NamedValue> && std::is_constructible_v<IValue, T>)
  NamedValue(T&& constant) : constant_(std::forward<T>(constant)) {}
  template <class T>
    requires(!std::is_pointer_v<std::decay_t<T>> && std::is_constructible_v<IValue, T>)
  NamedValue(std::string name, T&& constant) : name_(std::move(name)), constant_(std::forward<T>(constant)) {}

  const std::string& name() const { return name_; }
  const SourceRange& range() const { return range_; }
  /// The value; a constant becomes one in front of the insertion point.
  Value* value(Graph& g) const;

 private:
  std::string name_;
  Value* value_ = nullptr;
  IValue constant_;
  SourceRange range_;
};
/// The arguments of a call.
struct NamedValues : std::vector<NamedValue> {
  NamedValues() = default;
  NamedValues(std::initializer_list<NamedValue> values) : std::vector<NamedValue>(values) {}
  NamedValues(const std::vector<NamedValue>& values) : std::vector<NamedValue>(values) {}
  NamedValues(ArrayRef<NamedValue> values) : std::vector<NamedValue>(values.begin(), values.end()) {}
  NamedValues(const std::vector<Value*>& values) : std::vector<NamedValue>(values.begin(), values.end()) {}
  NamedValues(ArrayRef<Value*> values) : std::vector<NamedValue>(values.begin(), values.end()) {}
  NamedValues(const std::vector<std::pair<std::string, Value*>>& values) {
    for (const auto& [name, value] : values) emplace_back(name, value);
  }
};

class CRESSET_API Graph : public std::enable_shared_from_this<Graph> {
 public:
  Graph();
  explicit Graph(ScopePtr scope) : Graph() { current_scope_ = std::move(scope); }
  ~Graph();
  Graph(const Graph&) = delete;

  Block* block() const { return block_; }
  const Sequence<Value*>& inputs() const { return block_->inputs(); }
  const Sequence<Value*>& outputs() const { return block_->outputs(); }
  NodeList nodes() const { return block_->nodes(); }
  Node* param_node() const { return block_->param_node(); }
  Node* return_node() const { return block_->return_node(); }
  Value* addInput(const std::string& name = {}) { return block_->addInput(name); }
  Value* insertInput(std::size_t i, const std::string& name = {}) { return block_->insertInput(i, name); }
  void eraseInput(std::size_t i) { block_->eraseInput(i); }
  std::size_t registerOutput(Value* v) { return block_->registerOutput(v); }
  void eraseOutput(std::size_t i) { block_->eraseOutput(i); }

  /// A node in no block yet.
  Node* create(Symbol kind, std::size_t outputs = 1);
  Node* create(Symbol kind, ArrayRef<Value*> inputs, std::size_t outputs = 1);
  Node* createNone();
  Node* createUninitialized(TypePtr type);
  /// With an attribute Subgraph, an empty graph.
  Node* createWithSubgraph(Symbol kind);
  Node* createTuple(ArrayRef<Value*> members, TypePtr named = nullptr);
  Node* createTupleUnpack(Value* tuple);
  Node* createTupleIndex(Value* tuple, Value* index, TypePtr type);
  Node* createTupleSlice(Value* tuple, int64_t begin, int64_t end);
  /// `count` members from `begin`, `step` apart.
  Node* createTupleSlice(Value* tuple, int64_t begin, int64_t step, int64_t count);
  Node* createEnumName(Value* e);
  Node* createEnumValue(Value* e);
  Node* createIsInstance(Value* v, std::vector<TypePtr> types);
  /// aten::IntImplicit, FloatImplicit, ComplexImplicit or ScalarImplicit, as the type asks.
  Node* createImplicitTensorToNum(TypePtr type, Value* tensor);
  Node* createAutogradZero();
  Node* createList(TypePtr element, ArrayRef<Value*> members);
  Node* createListUnpack(Value* list, std::size_t count);
  Node* createDict(TypePtr key, TypePtr value, ArrayRef<Value*> keys, ArrayRef<Value*> values);
  Node* createNumToTensor(Value* number);
  Node* createObject(TypePtr type);
  Node* createGetAttr(Value* object, const std::string& name, TypePtr type = nullptr);
  Node* createSetAttr(Value* object, const std::string& name, Value* value);
  Node* createLoad(const std::string& name, TypePtr type);
  Node* createStore(const std::string& name, Value* v);
  /// A copy with inputs through the map; nested blocks and attribute graphs are cloned.
  Node* createClone(const Node* n, const std::function<Value*(Value*)>& map, bool copy_blocks = true);

  Node* appendNode(Node* n) { return block_->appendNode(n); }
  Node* prependNode(Node* n) { return block_->prependNode(n); }
  /// In front of the insertion point.
  Node* insertNode(Node* n);
  /// A call of an operator: inputs in the schema's order, left-out arguments take the schema's defaults as constants. Raises
  /// when no overload fits.
  Value* insert(Symbol op, const NamedValues& args, const NamedValues& kwargs = {}, std::optional<SourceRange> range = {});
  /// A constant in front of the insertion point; raises for values that cannot be constants.
  Value* insertConstant(const IValue& v, std::optional<SourceRange> range = {}, std::optional<ScopePtr> scope = {});
  /// prim::unchecked_cast to a type, in front of the insertion point.
  Value* insertUncheckedCast(Value* v, TypePtr type);
  /// aten::list-like conversion of a tensor: prim::tolist to a type of lists.
  Value* insertToList(Value* v, TypePtr type);
  /// The body of another graph in front of the insertion point; gives the values of its outputs.
  std::vector<Value*> insertGraph(const Graph& callee, ArrayRef<Value*> inputs, std::unordered_map<Value*, Value*>* value_map = nullptr);

  Node* insertPoint() const { return insert_before_; }
  /// New nodes go in front of this node, or to the end of this block.
  void setInsertPoint(Node* n);
  void setInsertPoint(Block* b) { setInsertPoint(b->return_node()); }

  ScopePtr current_scope() const { return current_scope_; }
  void set_current_scope(ScopePtr s) { current_scope_ = std::move(s); }

  void push_scope(const std::string& name) { current_scope_ = std::make_shared<Scope>(current_scope_, name); }
  void pop_scope() {
    if (current_scope_) current_scope_ = current_scope_->parent();
  }
  /// The version of operators that the graph was written for.
  std::optional<std::size_t> get_op_version() const { return op_version_; }
  void set_op_version(std::optional<std::size_t> version) { op_version_ = version; }
  /// Gives each value the type that the function makes of its own.
  void remapTypes(const std::function<TypePtr(TypePtr)>& map);
  /// Is the node one of this graph?
  bool isMember(const Node* n) const { return n->owningGraph() == this; }

  std::shared_ptr<Graph> copy() const;
  std::unique_ptr<Graph> copyUnique() const;
  /// Adds this graph's inputs, nodes and outputs to another one.
  void copyInto(Graph& out, std::unordered_map<Value*, Value*>& value_map) const;
  std::shared_ptr<Graph> copy(std::unordered_map<Value*, Value*>& value_map) const;
  /// Checks every rule of well-formed IR and raises with the first violation.
  void lint() const;
  std::string toString(bool source_ranges = true) const;
  std::string toString(const PrintOptions& options) const;
  std::ostream& print(std::ostream& out, bool source_ranges = true) const;
  /// To the standard output.
  void dump() const;
  /// Gives an anonymous value its number; used by readers, which keep the numbers they read.
  void renumberValue(Value* v, std::size_t unique);
  Value* findDebugName(const std::string& name) const;
  std::size_t node_count() const { return all_nodes_.size(); }

 private:
  friend class Block;
  friend class Node;
  friend class Value;
  std::shared_ptr<Graph> copy(PointerMap<Value*>& map) const;
  void copy_into(Graph& out, PointerMap<Value*>& map) const;
  Node* make_node(Symbol kind);
  Value* make_value(Node* node, std::size_t offset);
  void release(Node* n);
  void release(Value* v);
  void adopt(Block* b);
  void release(Block* b);
  // The node is about to go, or its block: insertion points that stand on it move.
  void leave_insert_points(const Node* n) noexcept;
  void leave_insert_points(const Block* b) noexcept;
  friend class WithInsertPoint;

  ObjectPool<Node> node_pool_;
  ObjectPool<Value> value_pool_;
  std::vector<Node*> all_nodes_;
  std::vector<Value*> all_values_;
  std::vector<Block*> all_blocks_;
  std::unordered_map<std::string, Value*> names_;
  std::unordered_map<std::string, std::size_t> name_suffixes_;
  std::size_t next_unique_ = 0;
  Block* block_;
  Node* insert_before_;
  WithInsertPoint* insert_point_guards_ = nullptr;  // those that will restore a place, innermost first
  ScopePtr current_scope_;
  std::optional<std::size_t> op_version_;
};
CRESSET_API std::string to_string(const Graph& g);

// Texts: a graph's, a node's line with its blocks, a value's name and type.
CRESSET_API std::ostream& operator<<(std::ostream& out, const Graph& g);
CRESSET_API std::ostream& operator<<(std::ostream& out, const Node& n);
CRESSET_API std::ostream& operator<<(std::ostream& out, const Value& v);
CRESSET_API std::ostream& operator<<(std::ostream& out, const Block& b);
CRESSET_API std::ostream& operator<<(std::ostream& out, const SourceRange& r);

/// Sets the insertion point for a scope. What was destroyed meanwhile is no place to go back to: its successor is, and the end of the graph
/// where there is none.
class CRESSET_API WithInsertPoint {
 public:
  explicit WithInsertPoint(Node* n);
  explicit WithInsertPoint(Block* b) : WithInsertPoint(b->return_node()) {}
  ~WithInsertPoint();
  WithInsertPoint(const WithInsertPoint&) = delete;

 private:
  friend class Graph;
  Graph* graph_;
  Node* old_;
  WithInsertPoint* outer_;  // in the graph's list
};

/// Sets the scope of new nodes for a scope of C++.
class WithCurrentScope {
 public:
  WithCurrentScope(Graph& g, ScopePtr scope) : graph_(&g), old_(g.current_scope()) { g.set_current_scope(std::move(scope)); }
  ~WithCurrentScope() { graph_->set_current_scope(old_); }
  WithCurrentScope(const WithCurrentScope&) = delete;

 private:
  Graph* graph_;
  ScopePtr old_;
};

/// The body of `callee` in front of the insertion point of `graph`; gives the values of its outputs.
inline std::vector<Value*> insertGraph(Graph& graph, Graph& callee, ArrayRef<Value*> inputs) { return graph.insertGraph(callee, inputs); }
inline std::vector<Value*> insertGraph(Graph& graph, Graph& callee, ArrayRef<Value*> inputs,
                                       std::unordered_map<Value*, Value*>& value_map) {
  return graph.insertGraph(callee, inputs, &value_map);
}
/// The members of a tuple, unpacked in front of the insertion point.
CRESSET_API std::vector<Value*> createTupleUnpack(Value* tuple);
/// Raises with the first violation of the rules of well-formed IR.
inline void LintGraph(const std::shared_ptr<Graph>& graph) { graph->lint(); }

/// Replaces a node by the body of a graph whose inputs are the node's inputs.
CRESSET_API std::vector<Value*> inlineGraph(Graph& graph, Node* to_replace, const Graph& callee,
                                            std::unordered_map<Value*, Value*>* value_map = nullptr);

// ---- constants (constants.cpp) ----------------------------------------------------------------------------------------

/// The value of a constant's output, or nothing when the value is no constant.
CRESSET_API std::optional<IValue> toIValue(const Value* v);
/// The same as a C++ type; nothing when it is of another one.
template <class T>
std::optional<T> constant_as(const Value* v) {
  const auto iv = toIValue(v);
  if (!iv) return std::nullopt;
  if constexpr (std::is_same_v<T, int64_t>) {
    return iv->isInt() ? std::optional<T>(iv->toInt()) : std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    return iv->isBool() ? std::optional<T>(iv->toBool()) : std::nullopt;
  } else if constexpr (std::is_same_v<T, double>) {
    return iv->isDouble() ? std::optional<T>(iv->toDouble()) : std::nullopt;
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return iv->isTensor() ? std::optional<T>(iv->toTensor()) : std::nullopt;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return iv->isString() ? std::optional<T>(iv->toStringRef()) : std::nullopt;
  } else if constexpr (std::is_same_v<T, IValue>) {
    return iv;
  } else {
    return iv->template to<T>();  // raises when it is of another type
  }
}
/// Can this value be a prim::Constant?
CRESSET_API bool isConstantValue(const IValue& v);
CRESSET_API Value* insertConstant(Graph& g, const IValue& v, std::optional<SourceRange> range = {}, std::optional<ScopePtr> scope = {});
/// A constant with a given type (an empty list of ints), or nothing when it cannot be one.
CRESSET_API std::optional<Value*> tryInsertConstant(Graph& g, const IValue& v, TypePtr type = nullptr);
CRESSET_API std::optional<Value*> tryInsertConstant(Graph& g, const IValue& v, std::optional<SourceRange> range,
                                                    std::optional<ScopePtr> scope = {});
/// Bit-exact equality of constants: types, floats by their bits, tensors by dtype, device, layout and contents.
CRESSET_API bool sameConstant(const IValue& a, const IValue& b);

}  // namespace cresset::jit
