// Side effects and non-determinism of nodes. Facts of operators come from their rows, schemas and tags, those of the language itself from
// the table of kinds.
#include <cresset/ir/ir.h>
#include <cresset/ir/operator.h>

#include "ir/graph/kinds.h"

namespace cresset::jit {
namespace {

bool own_effect(const Node& n) {
  const KindRow& row = kind_row(n.kind());
  if (row.effect == Effect::own) return true;
  if (row.needs == Needs::nothing) return false;
  // Kinds of delegated and fused regions have no operator; their bodies are looked at below.
  if (n.hasAttribute(attr::Subgraph)) return false;
  // Where the inputs fit no operator, the table still says what the kind does.
  const Operator* op = n.maybeOperator();
  return op ? op->facts().side_effects : row.memory == MemoryRole::schema;
}

}  // namespace

// With an explicit stack: blocks and subgraphs may be nested deeply.
bool Node::hasSideEffects() const {
  if (own_effect(*this)) return true;
  if (blocks_.empty() && !hasAttribute(attr::Subgraph)) return false;
  std::vector<const Block*> pending(blocks_.begin(), blocks_.end());
  const auto add_subgraph = [&](const Node& n) {
    if (n.hasAttribute(attr::Subgraph) && n.kindOf(attr::Subgraph) == AttributeKind::g && n.g(attr::Subgraph))
      pending.push_back(n.g(attr::Subgraph)->block());
  };
  add_subgraph(*this);
  while (!pending.empty()) {
    const Block* b = pending.back();
    pending.pop_back();
    for (const Node* n : b->nodes()) {
      if (own_effect(*n)) return true;
      pending.insert(pending.end(), n->blocks().begin(), n->blocks().end());
      add_subgraph(*n);
    }
  }
  return false;
}

bool Node::isNondeterministic() const {
  const Operator* op = maybeOperator();
  if (!op || !op->facts().nondeterministic) return false;
  const FunctionSchema& s = op->schema();
  const auto is_zero = [&](const std::optional<size_t>& probability) {
    const auto constant = probability ? constant_as<double>(inputs_.at(*probability)) : std::nullopt;
    return constant && *constant == 0;
  };
  if (is_zero(s.argument_index("dropout_p"))) return false;
  const auto train = s.argument_index("train");
  if (!train) return true;
  // Dropout that does not train, or drops nothing, gives its input.
  const auto constant = constant_as<bool>(inputs_.at(*train));
  return !(constant && !*constant) && !is_zero(s.argument_index("p"));
}

bool Node::isInplaceOrWrites() const {
  if (kind_ == prim::SetAttr) return true;
  const FunctionSchema* s = maybeSchema();
  return s && s->is_mutable();
}

}  // namespace cresset::jit
