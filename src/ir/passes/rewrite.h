// What passes that rewrite single nodes share: emitting calls, asking for constants and types, and the questions of legality.
#pragma once

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit::rewrite {

/// Makes nodes in front of a node that is about to be replaced. They take over its place in the source, its scope and its call stack.
class Emitter {
 public:
  explicit Emitter(Node* at) : at_(at), graph_(*at->owningGraph()), guard_(at) {}
  /// A call of an operator, arguments in the schema's order; left-out ones take their defaults.
  Value* operator()(const char* op, const std::vector<Value*>& args) const;
  Value* constant(const IValue& v, const TypePtr& type = nullptr) const;
  Value* none() const { return constant(IValue()); }
  Value* integer(int64_t v) const { return constant(IValue(v)); }
  Value* number(double v) const { return constant(IValue(v)); }
  Value* flag(bool v) const { return constant(IValue(v)); }
  Value* integers(const std::vector<int64_t>& v) const;
  /// A list of these values.
  Value* list(const TypePtr& element, const std::vector<Value*>& members) const;
  Graph& graph() const { return graph_; }

 private:
  Value* adopt(Value* v, const Node* before) const;

  Node* at_;
  Graph& graph_;
  WithInsertPoint guard_;
};

/// The alias analysis of a run, made when the first rule asks for it. Nodes that are replaced are kept until the end, so that no new value
/// takes the place in memory of one that the analysis knows.
class Aliases {
 public:
  explicit Aliases(const std::shared_ptr<Graph>& graph) : graph_(graph) {}
  ~Aliases();
  Aliases(const Aliases&) = delete;
  AliasDb& operator*() {
    if (!db_) db_ = std::make_unique<AliasDb>(graph_);
    return *db_;
  }
  AliasDb* operator->() { return &**this; }
  /// Takes a node whose results nobody uses out of the graph.
  void bury(Node* n);
  /// Another value stands where `from` stood.
  void moved(const Value* from, const Value* to) {
    if (db_) db_->copyValue(from, to);
  }

 private:
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<AliasDb> db_;
  std::vector<Node*> buried_;
};

/// One node at a time: what stands for its result, or null to leave it. A rule that gives null must not have emitted anything.
struct Site {
  Node* node;
  PassContext& context;
  Aliases& aliases;
};
using Rule = std::function<Value*(const Site&)>;

/// Applies a rule to all nodes of these kinds, in all blocks, in the order of the program. Nodes with a fallback mark are left alone.
/// The result of the rule takes over uses, type and name of the node's first output; the node is destroyed.
bool rewrite_nodes(PassContext& context, const std::vector<std::string>& kinds, const Rule& rule);
/// All unmarked nodes of these kinds.
std::vector<Node*> nodes_of(Graph& graph, const std::vector<std::string>& kinds);
/// Puts `fresh` where `old` is used. A value that is new takes the old one's name, and its type when it says more.
void replace_value(Value* old, Value* fresh, Aliases* aliases = nullptr);

/// Removes a node nobody uses, and then its operands' nodes that nobody uses any more, as long as they are pure.
void destroy_with_operands(Node* n, Aliases& aliases);

// ---- what is known about values

bool is_tensor(const Value* v);
bool is_list_of(const Value* v, TypeKind element);
/// What is certain, from refined types and tensor constants.
std::optional<ScalarType> dtype_of(const Value* v, const LoweringOptions& options);
std::optional<Device> device_of(const Value* v, const LoweringOptions& options);
std::optional<std::size_t> rank_of(const Value* v, const LoweringOptions& options);
/// All sizes, when they are certain.
std::optional<std::vector<int64_t>> sizes_of(const Value* v, const LoweringOptions& options);
/// What was ever said, true or not: for rules that refuse because of it.
std::optional<ScalarType> rumoured_dtype(const Value* v);
std::optional<std::size_t> rumoured_rank(const Value* v);
/// int or float constants (bools are no numbers here) with this value.
bool is_number(const Value* v, double value);
/// The same value, or constants that are equal as numbers.
bool same_number(const Value* a, const Value* b);
std::optional<bool> flag_of(const Value* v);
std::optional<std::string> string_of(const Value* v);
/// A constant list of ints, or a list construct of constants that nobody changes.
std::optional<std::vector<int64_t>> integers_of(const Value* v, Aliases& aliases);
/// The length of a constant list, or of a list construct that nobody changes.
std::optional<std::size_t> length_of(const Value* list, Aliases& aliases);
/// Does the node call this overload ("aten::view", "aten::view.dtype")?
bool calls(const Node* n, std::string_view schema_name);

// ---- legality

/// n writes its first input and gives it back: is everything that is seen of this write seen through n's result? Then `op` may stand for
/// `op_`.
bool write_is_private(const Node* n, AliasDb& aliases);
/// May `result`, a value that may or may not share memory with `operand`, be replaced by it?
bool may_forward(const Value* operand, const Value* result, const PassContext& context, AliasDb& aliases);
/// Does a node between the two (one block, first in front of last) write memory of one of the values?
bool written_between(const Node* first, const Node* last, const ValueSet& values, AliasDb& aliases);

}  // namespace cresset::jit::rewrite
