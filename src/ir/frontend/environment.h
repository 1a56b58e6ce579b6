// The names of a function while it is compiled. Values of the graph live in variables that prim::Store writes and prim::Load reads
// (ssa.cpp makes SSA of them); things of the compiler are only known here.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/frontend/sugared_value.h"

namespace cresset::jit {

struct BlockNames;

/// What a name means at some place.
struct Variable {
  SugaredValuePtr thing;                    // of the compiler; null for values of the graph
  TypePtr type;                             // of values: what is known of the value it holds now
  TypePtr declared;                         // what an assignment in a nested block must fit
  const BlockNames* declared_in = nullptr;  // the block that it belongs to
  std::string slot;                         // the name that Load and Store use
  bool annotated = false;                   // `type` is only that of the value in x: T = value; loops hold T
};

/// The names that one block of the graph defines, refines or assigns.
struct BlockNames {
  Block* block;
  BlockNames* outer;
  std::map<std::string, Variable> variables;            // ordered: results must not depend on hashes
  std::unordered_map<std::string, std::string> errors;  // why a name cannot be used here
  bool exits = false;                                   // what follows cannot be reached: break, continue, return or raise came before
};

/// A type that a variable is known to have behind a condition.
using Refinements = std::map<std::string, TypePtr>;

class Environment {
 public:
  explicit Environment(GraphFunction& m) : m_(m) { push(m.graph()->block()); }

  void push(Block* block);
  /// The innermost frame, which ends here.
  std::unique_ptr<BlockNames> pop();
  BlockNames& top() { return *frames_.back(); }

  /// Null when no variable has this name; raises when it has one that cannot be used here.
  SugaredValuePtr find(const std::string& name, const SourceRange& range);
  /// The variable without reading it; null when there is none.
  const Variable* lookup(const std::string& name) const;
  /// The type of the annotation that a variable got in this block or around it, or null.
  TypePtr declared_type(const std::string& name) const;

  /// Values of the graph become variables, other things are only known under the name.
  void assign(const SourceRange& range, const std::string& name, const SugaredValuePtr& value);
  /// x: T without a value.
  void declare(const SourceRange& range, const std::string& name, TypePtr type);
  /// The variable that was assigned in this block holds values of this type (x: T = v).
  void annotate(const std::string& name, const TypePtr& declared);
  void remove(const SourceRange& range, const std::string& name);
  /// A new variable of this block, whatever the name means around it.
  void hide(const std::string& name);
  void refine(const SourceRange& range, const Refinements& refinements);
  /// In front of a loop: variables that its body assigns are held in the types of their annotations.
  void widen(const SourceRange& range, const std::set<std::string>& assigned);
  /// In its body: what they are known to be in front of the loop holds for each round, so assignments must fit.
  void hold(const std::set<std::string>& assigned);
  /// Behind an If: what the names of its arms mean now.
  void merge_arms(const SourceRange& range, BlockNames& then_arm, BlockNames& else_arm);

 private:
  void store(const SourceRange& range, const std::string& slot, Value* v);
  void merge(const SourceRange& range, const std::string& name, const Variable* then_one, const Variable* else_one);
  Value* load(const SourceRange& range, const Variable& v);

  GraphFunction& m_;
  std::vector<std::unique_ptr<BlockNames>> frames_;
  std::size_t hidden_ = 0;
};

/// The type of a variable: tensors without their shapes.
TypePtr unshaped(const TypePtr& t);
/// Inserts a node that comes from a place of the script.
Node* insert_node(GraphFunction& m, Node* n, const SourceRange& range);

}  // namespace cresset::jit
