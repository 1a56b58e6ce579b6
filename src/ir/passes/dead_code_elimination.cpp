// Removes what nobody needs: marks from the outputs and effects, then sweeps. A write is needed when memory is written that a needed value
// may share or that is visible outside.
#include <limits>
#include <unordered_map>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/pass.h>

#include "ir/graph/pointer_map.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

class DeadCode {
 public:
  DeadCode(const std::shared_ptr<Graph>& graph, const DeadCodeOptions& options) : graph_(graph), options_(options) {
    if (options.with_aliases) aliases_ = std::make_unique<AliasDb>(graph);
    const std::size_t nodes = graph->node_count();
    live_nodes_.reserve(nodes);
    live_values_.reserve(nodes);
  }

  bool run() {
    mark();
    if (options_.live_values) options_.live_values(live());
    return sweep();
  }
  /// Did something go that kept a write visible, such as a list that nobody reads? Then a new analysis may find the write dead.
  bool again() const { return wild_writers_ && container_went_; }

 private:
  // ---- marking

  void mark() {
    for (const Value* v : graph_->outputs()) need(v);
    graph_->block()->visit([&](Node* n) {
      if (!n->blocks().empty()) {  // its contents decide, but for loops that may have no end, which is an effect
        if (!options_.delete_effects && is_while(n)) need(n);
        return;
      }
      if ((!options_.delete_effects && n->hasSideEffects()) || (!aliases_ && n->isInplaceOrWrites()))
        need(n);
      else if (aliases_ && aliases_->isMutable(n))
        writer(n);
    });
    work();
  }

  static bool is_while(const Node* n) {
    if (n->kind() != prim::Loop) return false;
    const auto most = constant_as<int64_t>(n->input(0));
    return most && *most == std::numeric_limits<int64_t>::max();
  }

  // A write is needed when others may see it, or once a value is needed that may share the memory.
  void writer(const Node* n) {
    if (aliases_->writesToWildcard(n)) {
      wild_writers_ = true;
      return need(n);
    }
    for (const uint32_t memory : aliases_->writtenMemory(n)) writers_[memory].push_back(n);
  }
  void need_writers_of(const Value* v) {
    if (writers_.empty()) return;
    for (const uint32_t memory : aliases_->reachableMemory(v)) {
      const auto found = writers_.find(memory);
      if (found == writers_.end()) continue;
      for (const Node* n : found->second) need(n);
      writers_.erase(found);
    }
  }

  void need(const Value* v) {
    if (live_values_.insert(v).second) values_.push_back(v);
  }
  void need(const Node* n) {
    if (live_nodes_.insert(n).second) nodes_.push_back(n);
  }

  void work() {
    while (!values_.empty() || !nodes_.empty()) {
      if (!nodes_.empty()) {
        const Node* n = nodes_.back();
        nodes_.pop_back();
        node(n);
      } else {
        const Value* v = values_.back();
        values_.pop_back();
        value(v);
      }
    }
  }

  // What a needed node needs besides the values behind its needed outputs.
  void node(const Node* n) {
    if (const Node* owner = n->owningBlock()->owningNode()) need(owner);
    if (n->kind() == prim::If) {
      need(n->input(0));
    } else if (n->kind() == prim::Loop) {
      need(n->input(0));
      need(n->input(1));
      need(n->blocks()[0]->outputs()[0]);
    } else {
      for (const Value* v : n->inputs()) need(v);
      for (const Block* b : n->blocks())
        for (const Value* v : b->outputs()) need(v);
    }
  }

  void value(const Value* v) {
    need_writers_of(v);
    const Node* n = v->node();
    const std::size_t i = v->offset();
    if (n->kind() == prim::Param) {
      const Node* owner = n->owningBlock()->owningNode();
      if (!owner) return;
      need(owner);
      if (owner->kind() == prim::Loop && i > 0) {
        need(owner->input(i + 1));
        need(owner->blocks()[0]->outputs()[i]);
      }
      return;
    }
    need(n);
    if (n->kind() == prim::If) {
      for (const Block* b : n->blocks()) need(b->outputs()[i]);
    } else if (n->kind() == prim::Loop) {
      need(n->input(i + 2));
      need(n->blocks()[0]->outputs()[i + 1]);
      need(n->blocks()[0]->inputs()[i + 1]);
    }
  }

  std::unordered_set<const Value*> live() const {
    std::unordered_set<const Value*> out;
    live_values_.each([&](const void* v, Nothing) { out.insert(static_cast<const Value*>(v)); });
    return out;
  }

  // ---- sweeping

  bool sweep() {
    std::vector<Node*> dead, structured, with_subgraph;
    graph_->block()->visit([&](Node* n) {
      if (live_nodes_.contains(n)) {
        if (n->kind() == prim::If || n->kind() == prim::Loop) structured.push_back(n);
        if (subgraph_of(n)) with_subgraph.push_back(n);
        return;
      }
      // What is inside of a dead node goes with it.
      const Node* owner = n->owningBlock()->owningNode();
      if (!owner || live_nodes_.contains(owner)) dead.push_back(n);
    });
    bool changed = !dead.empty();
    for (const Node* n : dead) container_went_ = container_went_ || may_keep_operands(n);
    // Results of arms and bodies and initial values of loops go first, so that nothing uses the dead nodes any more.
    for (Node* n : structured) {
      const std::size_t skip = n->kind() == prim::Loop ? 1 : 0;
      for (std::size_t i = n->outputs().size(); i-- > 0;) {
        if (needed_output(n, i)) continue;
        for (Block* b : n->blocks()) b->eraseOutput(i + skip);
        if (skip) n->removeInput(i + 2);
        changed = true;
      }
    }
    // Programs insert constants at the end, behind their uses: the order of the block says nothing about who goes first.
    for (Node* n : dead) n->removeAllInputs();
    for (auto n = dead.rbegin(); n != dead.rend(); ++n) (*n)->destroy();
    for (Node* n : structured) {
      for (std::size_t i = n->outputs().size(); i-- > 0;) {
        if (needed_output(n, i)) continue;
        n->eraseOutput(i);
        if (n->kind() == prim::Loop) n->blocks()[0]->eraseInput(i + 1);
      }
    }
    for (Node* n : with_subgraph) changed = subgraph(n) || changed;
    return changed;
  }

  static bool may_keep_operands(const Node* n) {
    return n->kind() == prim::ListConstruct || n->kind() == prim::TupleConstruct || n->kind() == prim::DictConstruct ||
           !n->blocks().empty() || n->isInplaceOrWrites();
  }

  bool needed_output(const Node* n, std::size_t i) const {
    if (live_values_.contains(n->output(i))) return true;
    return n->kind() == prim::Loop && live_values_.contains(n->blocks()[0]->inputs()[i + 1]);
  }

  // Bodies of forks and regions: their own dead code, and captures that they do not use.
  bool subgraph(Node* n) const {
    const std::shared_ptr<Graph> body = subgraph_of(n);
    bool changed = eliminate_dead_code(body, {.with_aliases = options_.with_aliases, .delete_effects = options_.delete_effects});
    if (body->inputs().size() != n->inputs().size()) return changed;
    for (std::size_t i = body->inputs().size(); i-- > 0;) {
      if (body->inputs()[i]->hasUses()) continue;
      body->eraseInput(i);
      n->removeInput(i);
      changed = true;
    }
    return changed;
  }

  std::shared_ptr<Graph> graph_;
  const DeadCodeOptions& options_;
  std::unique_ptr<AliasDb> aliases_;
  PointerSet live_values_, live_nodes_;
  std::unordered_map<uint32_t, std::vector<const Node*>> writers_;  // by the memory they write, those not known to be needed
  std::vector<const Value*> values_;
  std::vector<const Node*> nodes_;
  bool wild_writers_ = false, container_went_ = false;
};

const RegisterPass dead_code_elimination_pass({
    .name = "dce",
    .phase = "cleanup",
    .summary = "removes nodes, If and Loop results and captures that nothing needs",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run = [](const std::shared_ptr<Graph>& g) { return eliminate_dead_code(g); },
    .title = "eliminate-dead-code",
});

const RegisterPass dead_code_elimination_deletes_effects_pass({
    .name = "dce_allow_deleting_nodes_with_side_effects",
    .phase = "cleanup",
    .summary = "the same, effects included: prints and checks whose results nobody needs go",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run = [](const std::shared_ptr<Graph>& g) { return eliminate_dead_code(g, {.delete_effects = true}); },
    .title = "eliminate-dead-code-and-effects",
});

}  // namespace

namespace {
// Objects that are made here and only written: nobody sees the writes.
bool drop_written_objects(const Graph& graph) {
  bool changed = false;
  for (Node* n : nodes_where(graph, [](const Node* m) { return m->kind() == prim::CreateObject; })) {
    const std::vector<Use> uses = n->output()->uses();
    if (!std::all_of(uses.begin(), uses.end(), [](const Use& u) { return u.user->kind() == prim::SetAttr && u.offset == 0; })) continue;
    for (const Use& u : uses) u.user->destroy();
    n->destroy();
    changed = true;
  }
  return changed;
}
}  // namespace

bool eliminate_dead_code(const std::shared_ptr<Graph>& graph, const DeadCodeOptions& options) {
  bool changed = drop_written_objects(*graph);
  for (bool again = true; again;) {
    DeadCode dead(graph, options);
    changed = dead.run() || changed;
    again = dead.again();
  }
  return changed;
}

}  // namespace cresset::jit
