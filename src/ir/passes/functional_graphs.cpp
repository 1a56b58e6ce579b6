// Nodes that neither write nor see writes are gathered in prim::FunctionalGraph nodes, of at least six nodes each, as in PyTorch.
//
// Each node that has no effect sinks to the last one that uses it, as far as what it reads is not written in between, and joins that one's
// graph. What leaves a block stays outside when it may be memory that others see.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass_functions.h>
#include <cresset/ir/subgraph_utils.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kFewestFunctional = 6;

class FunctionalGraphs {
 public:
  /// Which nodes stand in one graph, by their numbers in the order of the program.
  using Groups = std::vector<std::vector<std::size_t>>;

  explicit FunctionalGraphs(std::shared_ptr<Graph> graph) : graph_(std::move(graph)), aliases_(graph_) {
    graph_->block()->visit([this](const Node* n) { numbers_.emplace(n, numbers_.size()); });
  }
  /// Makes all graphs that can be made.
  Groups gather_all() {
    find(graph_->block());
    gather(graph_->block());
    return groups_;
  }
  /// Makes these.
  void gather_these(const Groups& groups) {
    std::unordered_map<std::size_t, std::size_t> group_of;
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const std::size_t number : groups[g]) group_of[number] = g;
    for (const auto& [n, number] : numbers_)
      if (const auto found = group_of.find(number); found != group_of.end()) functional_.emplace(n, found->second);
    gather(graph_->block());
  }

 private:
  static constexpr std::size_t kAnyGroup = 0;

  // What they do can be seen by nobody, and nothing changes what they give.
  void find(const Block* block) {
    for (Node* n : block->nodes()) {
      bool all = true;
      for (const Block* b : n->blocks()) {
        find(b);
        for (const Node* inner : b->nodes()) all = all && (inner->kind() == prim::Constant || functional_.contains(inner));
      }
      if (all && is_functional(n)) functional_.emplace(n, kAnyGroup);
    }
  }
  bool is_functional(const Node* n) const {
    if (n->kind() == prim::Constant || is_marked(n) || subgraph_of(n) || n->isNondeterministic()) return false;
    const bool has_arms = n->kind() == prim::If || n->kind() == prim::Loop;
    if (!has_arms && (!n->blocks().empty() || n->hasSideEffects())) return false;
    if (!has_arms && !n->maybeOperator() && n->kind() != prim::ListConstruct && n->kind() != prim::TupleConstruct) return false;
    return !aliases_.isMutable(n) && !aliases_.hasOutputWriters(n) && !escapes(n);
  }
  // May others see the memory of what it gives?
  bool escapes(const Node* n) const {
    return std::any_of(n->outputs().begin(), n->outputs().end(), [&](Value* v) { return aliases_.escapesScope({v}); });
  }
  // The node, and what is nested in it, goes: another one may take its place in memory.
  void forget(const Node* n) {
    functional_.erase(n);
    numbers_.erase(n);
    for (const Block* b : n->blocks()) b->visit([&](const Node* inner) { functional_.erase(inner), numbers_.erase(inner); });
  }

  void gather(Block* block) {
    for (Node* n = block->return_node()->prev(); n->kind() != prim::Param; n = n->prev()) {
      const auto found = functional_.find(n);
      if (found == functional_.end()) {
        for (Block* b : n->blocks()) gather(b);
        continue;
      }
      const std::size_t group = found->second;
      groups_.push_back({numbers_.at(n)});
      forget(n);
      Node* outer = SubgraphUtils::createSingletonSubgraphAndUpdateAliasing(n, prim::FunctionalGraph, aliases_);
      while (take_one_in(outer, group)) {
      }
      n = outer;
    }
  }
  // A node in front of the subgraph that can stand right before it.
  bool take_one_in(Node* outer, std::size_t group) {
    for (Node* n = outer->prev(); n->kind() != prim::Param; n = n->prev()) {
      const auto found = functional_.find(n);
      if (found == functional_.end() || found->second != group || !aliases_.moveBeforeTopologicallyValid(n, outer)) continue;
      groups_.back().push_back(numbers_.at(n));
      forget(n);
      SubgraphUtils::mergeNodeIntoSubgraphAndUpdateAliasing(n, outer, aliases_);
      return true;
    }
    return false;
  }

  std::shared_ptr<Graph> graph_;
  AliasDb aliases_;
  std::unordered_map<const Node*, std::size_t> numbers_, functional_;  // of functional nodes: the group
  Groups groups_;
};

bool create_some_functional_graphs(const std::shared_ptr<Graph>& graph) {
  // Small groups are seen when they have been made: on a copy.
  FunctionalGraphs::Groups groups = FunctionalGraphs(graph->copy()).gather_all();
  std::erase_if(groups, [](const auto& group) { return group.size() < kFewestFunctional; });
  if (groups.empty()) return false;
  FunctionalGraphs(graph).gather_these(groups);
  return true;
}
// What a graph takes away may let others come together.
bool create_functional_graphs(const std::shared_ptr<Graph>& graph) {
  bool changed = false;
  while (create_some_functional_graphs(graph)) changed = true;
  return changed;
}

const RegisterPass create_functional_graphs_pass({
    .name = "create_functional_graphs",
    .phase = "fuse",
    .summary = "nodes without effects stand together in graphs of their own",
    .needs = {},
    .keeps = {"marks"},
    .run = create_functional_graphs,
});

const RegisterPass inline_functional_graphs_pass({
    .name = "inline_functional_graphs",
    .phase = "fuse",
    .summary = "what stands in functional graphs stands in the graph around them",
    .needs = {},
    .keeps = {"marks"},
    .run =
        [](const std::shared_ptr<Graph>& g) {
          const std::vector<Node*> nodes = innermost_first(*g, [](const Node* n) { return n->kind() == prim::FunctionalGraph; });
          for (Node* n : nodes) SubgraphUtils::unmergeSubgraph(n);
          return !nodes.empty();
        },
});

}  // namespace

void CreateFunctionalGraphs(const std::shared_ptr<Graph>& graph) { create_functional_graphs(graph); }
void InlineFunctionalGraphs(const std::shared_ptr<Graph>& graph) { find_pass("inline_functional_graphs")->run(graph); }

}  // namespace cresset::jit
