// Moves constants to the front of the graph, in the order they had, and keeps one of equal ones. Tensors that somebody writes or that the
// caller sees twice are not merged. Nothing need run before it. ConstantPooling(), for programs written for PyTorch, leaves the order that
// moving one after another to the front gives: such programs compare the texts.
#include <unordered_map>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/pass.h>
#include <cresset/ir/pass_functions.h>

#include "ir/graph/node_equality.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {

namespace {
enum class Order { AsTheyWere, NewestFirst };

bool pool(const std::shared_ptr<Graph>& graph, Order order) {
  std::optional<AliasDb> aliases;  // only asked for equal constants with memory
  const auto may_merge = [&](const Value* a, const Value* b) {
    if (!AliasDb::isMutableType(*b->type())) return true;
    if (!aliases) aliases.emplace(graph);
    return aliases->safeToChangeAliasingRelationship(a, b);
  };
  std::unordered_multimap<std::size_t, Node*> known;
  bool changed = false;
  Node* last = graph->block()->param_node();
  for (Node* n : nodes_where(*graph, [](const Node* m) { return m->kind() == prim::Constant; })) {
    const std::size_t hash = hash_node(n);
    const auto [begin, end] = known.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& candidate) {
      return equal_nodes(candidate.second, n) && may_merge(candidate.second->output(), n->output());
    });
    if (same != end) {
      hand_on(n->output(), same->second->output());
      n->destroy();
      changed = true;
      continue;
    }
    known.emplace(hash, n);
    if (last->next() != n) {
      n->moveAfter(last);
      changed = true;
    }
    if (order == Order::AsTheyWere) last = n;
  }
  return in_subgraphs(*graph, [order](const std::shared_ptr<Graph>& inner) { return pool(inner, order); }) || changed;
}
}  // namespace

bool pool_constants(const std::shared_ptr<Graph>& graph) { return pool(graph, Order::AsTheyWere); }
void ConstantPooling(const std::shared_ptr<Graph>& graph) { pool(graph, Order::NewestFirst); }

namespace {
const RegisterPass constant_pooling_pass({
    .name = "constant_pooling",
    .phase = "cleanup",
    .summary = "moves constants to the front and keeps one of equal ones",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run = pool_constants,
});
}  // namespace

}  // namespace cresset::jit
