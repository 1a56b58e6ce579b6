// Small things that many passes need.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// Does the node carry a fallback mark? Passes leave such nodes as they are.
inline bool is_marked(const Node* n) { return n->hasAttribute(attr::to_compile); }

/// All nodes in the order of the program for which the question is answered with yes, blocks included, attribute graphs not.
template <class F>
std::vector<Node*> nodes_where(const Graph& g, F&& wanted) {
  std::vector<Node*> out;
  g.block()->visit([&](Node* n) {
    if (wanted(n)) out.push_back(n);
  });
  return out;
}
/// The same, nodes behind what is nested in them.
template <class F>
std::vector<Node*> innermost_first(const Graph& g, F&& wanted) {
  std::vector<Node*> out = nodes_where(g, wanted);
  // In the order of the program an owner stands before its contents; backwards it stands behind them.
  return {out.rbegin(), out.rend()};
}

/// The graph of a fork or region, or null.
inline std::shared_ptr<Graph> subgraph_of(const Node* n) {
  return n->hasAttribute(attr::Subgraph) && n->kindOf(attr::Subgraph) == AttributeKind::g ? n->g(attr::Subgraph) : nullptr;
}
/// Runs a pass on the graphs of forks and regions; true when one changed.
template <class F>
bool in_subgraphs(const Graph& g, F&& pass) {
  bool changed = false;
  g.block()->visit([&](Node* n) {
    if (const auto body = subgraph_of(n)) changed = pass(body) || changed;
  });
  return changed;
}

/// The node around `n` (or itself) that stands in this block; null when there is none.
inline Node* in_block(Node* n, const Block* b) {
  while (n && n->owningBlock() != b) n = n->owningBlock() ? n->owningBlock()->owningNode() : nullptr;
  return n;
}

/// A constant in front of a node.
inline Value* constant_before(Node* n, const IValue& v) {
  const WithInsertPoint guard(n);
  return n->owningGraph()->insertConstant(v, n->sourceRange());
}

/// Users of a value see another one; the node behind it stays (dead).
inline void hand_on(Value* old, Value* replacement) {
  if (old->hasDebugName() && !replacement->hasDebugName() && replacement->node()->kind() != prim::Param) {
    const std::string name = old->debugName();
    old->setDebugName("");
    replacement->setDebugName(name);
  }
  old->replaceAllUsesWith(replacement);
}

}  // namespace cresset::jit
