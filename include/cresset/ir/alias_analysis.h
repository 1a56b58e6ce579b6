// Which values may share memory, who writes it, and which moves of nodes keep the program's meaning.
#pragma once

#include <memory>
#include <unordered_set>

#include <cresset/ir/ir.h>

namespace cresset::jit {

using ValueSet = std::unordered_set<const Value*>;
template <class T>
concept ValueList = std::is_convertible_v<const T&, ArrayRef<Value*>> && !std::is_convertible_v<const T&, const Value*>;

/// Built for one graph and valid until the graph changes; the moves of this class keep it valid, and so do replacements that only remove
/// aliases. Conservative: "may" answers are never wrongly no.
class CRESSET_API AliasDb {
 public:
  struct Options {
    /// Raise for nodes whose operator is unknown instead of taking them as writing everything.
    bool strict = false;
    /// Inputs are memory of their own instead of the wildcard: what a graph does to given arguments (patterns).
    bool independent_inputs = false;
    /// Nodes without operator give new values and write nothing.
    bool unknown_is_pure = false;
  };
  explicit AliasDb(std::shared_ptr<const Graph> graph, Options options);
  explicit AliasDb(std::shared_ptr<const Graph> graph) : AliasDb(std::move(graph), Options()) {}
  /// The same. What PyTorch's two switches allow to know more is not asked for: answers stay the conservative ones.
  AliasDb(std::shared_ptr<const Graph> graph, bool is_frozen, bool descend_function_calls = false) : AliasDb(std::move(graph)) {
    static_cast<void>(is_frozen), static_cast<void>(descend_function_calls);
  }
  ~AliasDb();
  AliasDb(const AliasDb&) = delete;

  /// Does anything write the value's memory?
  bool hasWriters(const Value* v) const;
  /// Does anything write an input or output of the node (values used in nested blocks included)?
  bool hasWriters(const Node* n) const { return hasInputWriters(n) || hasOutputWriters(n); }
  bool hasInputWriters(const Node* n) const;
  bool hasOutputWriters(const Node* n) const;
  /// Does the node (or what is nested in it) write any memory at all?
  bool isMutable(const Node* n) const;
  /// Does it write memory of one of the values, or memory that one of them contains?
  bool writesToAlias(const Node* n, const ValueSet& values) const;
  /// Does it write memory that is visible outside or came out of a container?
  bool writesToWildcard(const Node* n) const;

  /// Memory by sorted numbers, for questions about many nodes and values at once: what a node writes, and a value's own with all that it
  /// contains (valid until the next question).
  std::vector<uint32_t> writtenMemory(const Node* n) const;
  const std::vector<uint32_t>& reachableMemory(const Value* v) const;

  bool mayAlias(const Value* a, const Value* b) const;
  bool mayAlias(const ValueSet& a, const ValueSet& b) const;
  /// The same for the values and all that they contain.
  bool mayContainAlias(const Value* a, const Value* b) const;
  bool mayContainAlias(const ValueSet& a, const ValueSet& b) const;
  bool mayAliasWildcard(const Value* v) const;
  /// Can the caller see one of the values: through an input, an output, or the wildcard?
  bool escapesScope(const ValueSet& values) const;
  /// May a and b be made aliases of each other: neither has writers, and not both can be seen by the caller.
  bool safeToChangeAliasingRelationship(const ValueSet& a, const ValueSet& b) const;
  bool safeToChangeAliasingRelationship(const Value* a, const Value* b) const {
    return safeToChangeAliasingRelationship(ValueSet{a}, ValueSet{b});
  }

  // The same for lists of values: a node's inputs, a vector.
  template <ValueList A, ValueList B>
  bool mayAlias(const A& a, const B& b) const {
    return mayAlias(set_of(a), set_of(b));
  }
  template <ValueList A, ValueList B>
  bool mayContainAlias(const A& a, const B& b) const {
    return mayContainAlias(set_of(a), set_of(b));
  }
  template <ValueList B>
  bool mayContainAlias(Value* a, const B& b) const {
    return mayContainAlias(ValueSet{a}, set_of(b));
  }
  template <ValueList A>
  bool mayContainAlias(const A& a, const Value* b) const {
    return mayContainAlias(set_of(a), ValueSet{b});
  }
  template <ValueList A>
  bool mayAliasWildcard(const A& values) const {
    for (const Value* v : ArrayRef<Value*>(values))
      if (mayAliasWildcard(v)) return true;
    return false;
  }
  template <ValueList A>
  bool escapesScope(const A& values) const {
    return escapesScope(set_of(values));
  }
  template <ValueList A, ValueList B>
  bool safeToChangeAliasingRelationship(const A& a, const B& b) const {
    return safeToChangeAliasingRelationship(set_of(a), set_of(b));
  }
  /// Does it write, or call what may?
  bool hasUntrackedEffects(const Node* n) const { return isMutable(n) || n->hasSideEffects(); }

  /// Moves `n` directly behind (in front of) `target`, with the nodes in between that depend on it where that helps. False, and nothing
  /// changed, when a dependency forbids it, and for nodes with side effects, unless they lie there already. Both must be in one block.
  bool moveAfterTopologicallyValid(Node* n, Node* target);
  bool moveBeforeTopologicallyValid(Node* n, Node* target);
  bool couldMoveAfterTopologically(Node* n, Node* target);
  bool couldMoveBeforeTopologically(Node* n, Node* target);

  /// Types whose values have memory: tensors, lists, dicts, objects, futures, Any, and what contains one.
  static bool isMutableType(const Type& t);
  static bool isMutableType(const TypePtr& t) { return isMutableType(*t); }
  static bool isMutableType(const Value* v) { return isMutableType(*v->type()); }
  /// The value is new and has memory of its own, as far as its type has any.
  void createValue(const Value* v);
  /// The value is new and a copy of another one's knowledge (a node that was cloned or replaced).
  void copyValue(const Value* from, const Value* to);
  void replaceWithNewValue(const Value* existing, const Value* fresh) { copyValue(existing, fresh); }
  /// To the standard output.
  void dump() const;
  /// Each value with memory and where it points, one a line.
  std::string toString() const;
  struct Impl;

 private:
  static ValueSet set_of(ArrayRef<Value*> values) { return {values.begin(), values.end()}; }
  std::unique_ptr<Impl> impl_;
};

}  // namespace cresset::jit
