// The families of small rules (peephole_*.cpp) and what they may ask.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/ir.h>
#include <cresset/ir/lowering_options.h>

#include "ir/passes/condition_facts.h"
#include "ir/rewrite/pass_tools.h"
#include "ir/rewrite/type_facts.h"

namespace cresset::jit {

/// The list whose length a value is, for facts about it.
inline const Value* measured_list(const Value* v) {
  static const Symbol len = Symbol::aten("len");
  const Node* n = v->node();
  return n->kind() == len && n->input(0)->type()->kind == TypeKind::List ? n->input(0) : nullptr;
}

struct Peephole {
  std::shared_ptr<Graph> graph;
  AliasDb aliases;
  const LoweringOptions& options;
  NumberFacts lengths;    // what conditions say of them
  bool reshapes = false;  // somewhere a tensor that exists may get other sizes

  Peephole(const std::shared_ptr<Graph>& graph, const LoweringOptions& options) : graph(graph), aliases(graph), options(options) {
    if (options.refine_list_lengths) lengths = number_facts(*graph, measured_list);
    graph->block()->visit([&](const Node* n) { reshapes = reshapes || may_reshape(n); });
  }
  /// What is certain of a tensor; null when it is nothing.
  const TensorType* tensor(const Value* v) const { return reshapes && aliases.hasWriters(v) ? nullptr : tensor_facts(v, options); }
  /// A container that is made here and that nobody changes: its construction. Null otherwise.
  const Node* constant_container(const Value* v, Symbol construct) const {
    return v->node()->kind() == construct && !aliases.hasWriters(v) ? v->node() : nullptr;
  }
};

/// What a rule does with a node: gives the value for its only result, or nothing. New nodes go in front of the node (the insertion point).
using PeepholeRule = Value* (*)(Node*, Peephole&);
/// Changes a node itself (its results, its operands); true when it did.
using PeepholeEdit = bool (*)(Node*, Peephole&);
using PeepholeRules = std::unordered_multimap<std::string, PeepholeRule>;
using PeepholeEdits = std::unordered_multimap<std::string, PeepholeEdit>;

const PeepholeRules& tensor_rules();
const PeepholeRules& number_rules();
const PeepholeRules& optional_rules();
const PeepholeRules& container_rules();
const PeepholeRules& addmm_rules();
const PeepholeEdits& control_edits();
const PeepholeEdits& container_edits();

/// An int's constant, for operands.
inline std::optional<int64_t> int_constant(const Node* n, std::size_t i) {
  return i < n->inputs().size() ? constant_as<int64_t>(n->input(i)) : std::nullopt;
}
inline bool is_kind(const Value* v, TypeKind k) { return v->type()->kind == k; }

}  // namespace cresset::jit
