// Merges nodes that certainly compute the same values: same operator, operands, attributes and result types. A node sees the nodes before
// it in its block and in the blocks around it. Needs nothing before it.
//
// Not merged: effects, random numbers, what somebody writes, nodes with blocks, nodes with a fallback mark, results that the caller would
// then see as one object, and values whose identity is asked for.
#include <unordered_map>
#include <unordered_set>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/pass.h>

#include "ir/graph/fetch_ahead.h"
#include "ir/graph/node_equality.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

// `a is b` of two objects is a question that merging would answer differently.
bool identity_is_asked(const Node* n) {
  for (const Value* v : n->outputs()) {
    if (!AliasDb::isMutableType(*v->type())) continue;
    for (const Use& u : v->uses())
      if ((u.user->kind() == aten::__is__ || u.user->kind() == aten::__isnot__) && !u.user->input(1 - u.offset)->mustBeNone()) return true;
  }
  return false;
}

// Gives an object that is there already: the same one each time, as long as nobody writes what it is taken from.
bool takes_out(Symbol kind) {
  switch (kind) {
    case prim::GetAttr:
    case prim::TupleIndex:
    case prim::TupleUnpack:
    case prim::ListUnpack:
    case prim::unchecked_cast:
    case prim::unchecked_unwrap_optional:
    case aten::_unwrap_optional: return true;
    default: return false;
  }
}

// Behind it the same operator may give another result: gradients are off, or autocast is on.
bool changes_mode(const Node* n) {
  const bool edge = (n->kind() == prim::Enter || n->kind() == prim::Exit) && !n->hasAttribute(attr::compilation_edge);
  return edge || n->kind() == aten::set_grad_enabled;
}

class Merging {
 public:
  explicit Merging(const std::shared_ptr<Graph>& graph) : graph_(graph), aliases_(graph) {
    candidates_.reserve(graph->node_count());
    graph->block()->visit(
        [&](const Node* n) { asks_identity_ = asks_identity_ || n->kind() == aten::__is__ || n->kind() == aten::__isnot__; });
  }

  bool run() {
    struct Frame {
      Node* next;
      std::vector<std::pair<std::size_t, Node*>> added;  // candidates that leave with the block
    };
    std::vector<Frame> stack;
    stack.push_back({graph_->block()->param_node()->next(), {}});
    while (!stack.empty()) {
      Frame& f = stack.back();
      Node* n = f.next;
      if (n->kind() == prim::Return) {
        for (const auto& [hash, node] : f.added) forget(hash, node);
        stack.pop_back();
        continue;
      }
      f.next = n->next();
      fetch_later_node(n);
      if (changes_mode(n)) candidates_.clear();
      if (!n->blocks().empty()) {
        for (std::size_t i = n->blocks().size(); i-- > 0;) stack.push_back({n->blocks()[i]->param_node()->next(), {}});
        continue;
      }
      if (const auto body = subgraph_of(n)) {
        changed_ = eliminate_common_subexpressions(body) || changed_;
        continue;
      }
      if (!mergeable(n)) continue;
      const std::size_t hash = hash_node(n);
      if (merge(n, hash)) continue;
      candidates_.emplace(hash, n);
      f.added.emplace_back(hash, n);
    }
    return changed_;
  }

 private:
  bool mergeable(const Node* n) const {
    if (n->outputs().empty() || is_marked(n)) return false;
    if (takes_out(n->kind())) return !aliases_.hasInputWriters(n);
    return n->kind() != prim::CreateObject && !n->hasSideEffects() && !n->isNondeterministic() && !aliases_.hasWriters(n) &&
           !aliases_.isMutable(n) && !(asks_identity_ && identity_is_asked(n));
  }

  // True when n is no candidate of its own: it went, or an equal node that the caller sees stands for it (what the caller does not see
  // merges with either).
  bool merge(Node* n, std::size_t hash) {
    const auto [begin, end] = candidates_.equal_range(hash);
    for (auto at = begin; at != end; ++at) {
      Node* earlier = at->second;
      if (!equal_nodes(earlier, n)) continue;
      // Two objects that the caller sees stay two; a node that took over such an object counts as seen itself.
      const bool seen = !takes_out(n->kind()) && aliases_.escapesScope({n->outputs().begin(), n->outputs().end()});
      if (seen && (seen_.count(earlier) || aliases_.escapesScope({earlier->outputs().begin(), earlier->outputs().end()}))) return true;
      if (seen) seen_.insert(earlier);
      for (std::size_t i = 0; i < n->outputs().size(); ++i) n->output(i)->replaceAllUsesWith(earlier->output(i));
      n->destroy();
      changed_ = true;
      return true;
    }
    return false;
  }

  void forget(std::size_t hash, const Node* n) {
    const auto [begin, end] = candidates_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
      if (at->second == n) {
        candidates_.erase(at);
        return;
      }
  }

  std::shared_ptr<Graph> graph_;
  AliasDb aliases_;
  std::unordered_multimap<std::size_t, Node*> candidates_;
  std::unordered_set<const Node*> seen_;
  bool asks_identity_ = false, changed_ = false;
};

const RegisterPass common_subexpression_elimination_pass({
    .name = "cse",
    .phase = "cleanup",
    .summary = "merges nodes that compute the same values",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run = eliminate_common_subexpressions,
    .title = "eliminate-common-subexpression",
});

}  // namespace

bool eliminate_common_subexpressions(const std::shared_ptr<Graph>& graph) { return Merging(graph).run(); }

}  // namespace cresset::jit
