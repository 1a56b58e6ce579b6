// Moving nodes between a graph and the subgraphs of its nodes.
#include <cresset/ir/subgraph_utils.h>

#include <algorithm>

namespace cresset::jit::SubgraphUtils {
namespace {

void replaced(AliasDb* aliases, const Value* from, const Value* to) {
  if (aliases) aliases->copyValue(from, to);
}

/// One move of a node into a subgraph.
class Merge {
 public:
  Merge(Node* n, Node* subgraph, AliasDb* aliases) : n_(n), outer_(subgraph), body_(*getSubgraph(subgraph)), aliases_(aliases) {
    for (std::size_t i = 0; i < outer_->inputs().size(); ++i) inner_[outer_->input(i)] = body_.inputs()[i];
    for (std::size_t i = 0; i < outer_->outputs().size(); ++i) inner_[outer_->output(i)] = body_.outputs()[i];
  }
  void run() {
    const bool in_front = n_->isBefore(outer_);
    Node* first = in_front && body_.nodes().begin() != body_.nodes().end() ? body_.nodes().front() : body_.return_node();
    const WithInsertPoint guard(in_front ? first : body_.return_node());
    Node* copy = body_.insertNode(body_.createClone(n_, [this](Value* v) { return inner(v); }));
    for (std::size_t i = 0; i < n_->outputs().size(); ++i) hand_on(n_->output(i), copy->output(i));
    used_by_node_.resize(outer_->outputs().size());
    for (std::size_t i = 0; i < used_by_node_.size(); ++i)
      for (const Use& use : outer_->output(i)->uses()) used_by_node_[i] = used_by_node_[i] || use.user == n_;
  }

 private:
  /// What stands for the value in the subgraph: a constant is copied, others become inputs.
  Value* inner(Value* v) {
    const auto [at, fresh] = inner_.emplace(v, nullptr);
    if (!fresh) return at->second;
    if (v->node()->kind() == prim::Constant) {
      at->second = body_.insertNode(body_.createClone(v->node(), [](Value* x) { return x; }))->output();
    } else {
      at->second = body_.addInput()->setType(v->type());
      outer_->addInput(v);
    }
    return at->second;
  }
  /// The subgraph itself takes the result from inside; all others take it from a new output.
  void hand_on(Value* result, Value* inside) {
    for (std::size_t i = outer_->inputs().size(); i-- > 0;) {
      if (outer_->input(i) != result) continue;
      body_.inputs()[i]->replaceAllUsesWith(inside);
      body_.eraseInput(i);
      outer_->removeInput(i);
    }
    if (!result->hasUses()) return;
    body_.registerOutput(inside);
    Value* outside = outer_->addOutput()->copyMetadata(result);
    replaced(aliases_, result, outside);
    result->replaceAllUsesWith(outside);
  }

 public:
  /// Outputs that nothing needs any more, once the node has gone.
  void drop_outputs() {
    for (std::size_t i = outer_->outputs().size(); i-- > 0;) {
      if (outer_->output(i)->hasUses() || !used_by_node_[i]) continue;
      outer_->eraseOutput(i);
      body_.eraseOutput(i);
    }
  }

 private:
  Node* n_;
  Node* outer_;
  Graph& body_;
  AliasDb* aliases_;
  std::unordered_map<Value*, Value*> inner_;
  std::vector<bool> used_by_node_;  // of each output
};

// The nodes of a subgraph in the graph around it, in front of its node; gives them in order. The node goes.
std::vector<Node*> take_apart(Node* subgraph, AliasDb* aliases) {
  Graph& graph = *subgraph->owningGraph();
  const std::shared_ptr<Graph> body = getSubgraph(subgraph);
  const WithInsertPoint guard(subgraph);
  std::unordered_map<Value*, Value*> outside;
  for (std::size_t i = 0; i < body->inputs().size(); ++i) outside[body->inputs()[i]] = subgraph->input(i);
  std::vector<Node*> nodes;
  for (Node* n : body->nodes()) {
    Node* copy = graph.insertNode(graph.createClone(n, [&](Value* v) { return outside.at(v); }));
    for (std::size_t i = 0; i < n->outputs().size(); ++i) outside[n->output(i)] = copy->output(i);
    nodes.push_back(copy);
  }
  for (std::size_t i = 0; i < subgraph->outputs().size(); ++i) {
    Value* result = outside.at(body->outputs()[i]);
    replaced(aliases, subgraph->output(i), result);
    subgraph->output(i)->replaceAllUsesWith(result);
  }
  subgraph->destroy();
  return nodes;
}

void merge(Node* n, Node* subgraph, bool destroy, AliasDb* aliases) {
  CRESSET_CHECK(hasSubgraph(subgraph), "mergeNodeIntoSubgraph: a node with a subgraph was required; '", subgraph->str(), "' was given.");
  CRESSET_CHECK(n->owningBlock() == subgraph->owningBlock(), "mergeNodeIntoSubgraph: a node of the subgraph's block was required; '",
                n->str(), "' was given.");
  if (hasSubgraph(n) && n->kind() == subgraph->kind()) {
    CRESSET_CHECK(destroy, "mergeNodeIntoSubgraph: a subgraph that goes into another one cannot stay; '", n->str(), "' was given.");
    const bool in_front = n->isBefore(subgraph);
    std::vector<Node*> nodes = take_apart(n, aliases);
    if (in_front) std::reverse(nodes.begin(), nodes.end());
    for (Node* inner : nodes) merge(inner, subgraph, true, aliases);
    return;
  }
  Merge move(n, subgraph, aliases);
  move.run();
  if (!destroy) return;
  n->destroy();
  move.drop_outputs();
}

Node* create(Node* n, Symbol kind, AliasDb* aliases) {
  Node* subgraph = n->owningGraph()->create(kind, 0)->insertBefore(n)->copyMetadata(n);
  subgraph->g_(attr::Subgraph, std::make_shared<Graph>(n->owningGraph()->current_scope()));
  merge(n, subgraph, true, aliases);
  return subgraph;
}

// The last node of the subgraph that makes an output which may share memory with another one, or with an input; null for none.
Node* maker_of_shared_output(const std::shared_ptr<Graph>& body, bool inputs_only) {
  const AliasDb aliases(body, AliasDb::Options{.strict = false, .independent_inputs = true, .unknown_is_pure = false});
  Node* last = nullptr;
  for (std::size_t i = 0; i < body->outputs().size(); ++i) {
    Value* output = body->outputs()[i];
    const auto shares = [&](const Value* other) { return aliases.mayContainAlias(output, other); };
    bool shared = std::ranges::any_of(body->inputs(), shares);
    for (std::size_t k = 0; !inputs_only && k < body->outputs().size(); ++k) shared = shared || (k != i && shares(body->outputs()[k]));
    Node* maker = output->node();
    if (shared && maker->kind() != prim::Param && (!last || maker->isAfter(last))) last = maker;
  }
  return last;
}

// Puts a node of the subgraph, and what uses it there, behind the subgraph.
void unmerge_node(Node* n, Node* subgraph, AliasDb* aliases) {
  const std::shared_ptr<Graph> body = getSubgraph(subgraph);
  std::vector<Node*> users;
  for (const Use& use : n->output(0)->uses())
    if (use.user->kind() != prim::Return) users.push_back(use.user);
  for (Node* user : users)
    if (user->owningBlock() == body->block()) unmerge_node(user, subgraph, aliases);
  Graph& graph = *subgraph->owningGraph();
  const auto outside = [&](Value* v) -> Value* {
    for (std::size_t i = 0; i < body->inputs().size(); ++i)
      if (body->inputs()[i] == v) return subgraph->input(i);
    for (std::size_t i = 0; i < body->outputs().size(); ++i)
      if (body->outputs()[i] == v) return subgraph->output(i);
    if (v->node()->kind() == prim::Constant)
      return graph.createClone(v->node(), [](Value* x) { return x; })->insertAfter(subgraph)->output();
    body->registerOutput(v);
    return subgraph->addOutput()->copyMetadata(v);
  };
  Node* copy = graph.createClone(n, outside);
  Node* place = subgraph;
  while (place->next()->kind() == prim::Constant) place = place->next();
  copy->insertAfter(place);
  for (std::size_t k = 0; k < n->outputs().size(); ++k) {
    for (std::size_t i = body->outputs().size(); i-- > 0;) {
      if (body->outputs()[i] != n->output(k)) continue;
      replaced(aliases, subgraph->output(i), copy->output(k));
      subgraph->output(i)->replaceAllUsesWith(copy->output(k));
      subgraph->eraseOutput(i);
      body->eraseOutput(i);
    }
  }
  n->destroy();
}

bool unmerge_shared(Node* subgraph, bool inputs_only, AliasDb* aliases) {
  const std::shared_ptr<Graph> body = getSubgraph(subgraph);
  bool changed = false;
  while (Node* maker = maker_of_shared_output(body, inputs_only)) {
    unmerge_node(maker, subgraph, aliases);
    changed = true;
  }
  return changed;
}

}  // namespace

bool hasSubgraph(const Node* n) { return n->hasAttribute(attr::Subgraph); }
std::shared_ptr<Graph> getSubgraph(Node* n) { return n->g(attr::Subgraph); }

Node* createSingletonSubgraph(Node* n, Symbol kind) { return create(n, kind, nullptr); }
void mergeNodeIntoSubgraph(Node* n, Node* subgraph, bool destroy) { merge(n, subgraph, destroy, nullptr); }
Node* createSingletonSubgraphAndUpdateAliasing(Node* n, Symbol kind, AliasDb& aliases) { return create(n, kind, &aliases); }
void mergeNodeIntoSubgraphAndUpdateAliasing(Node* n, Node* subgraph, AliasDb& aliases) { merge(n, subgraph, true, &aliases); }
void unmergeSubgraph(Node* subgraph) { take_apart(subgraph, nullptr); }
bool unmergeAliasedOutputs(Node* subgraph) { return unmerge_shared(subgraph, false, nullptr); }
bool unmergeOutputsAlisingInputs(Node* subgraph) { return unmerge_shared(subgraph, true, nullptr); }
bool unmergeAliasedOutputsAndUpdateAliasing(Node* subgraph, AliasDb& aliases) { return unmerge_shared(subgraph, false, &aliases); }

std::string generateNameForGraph(const std::shared_ptr<Graph>& graph, std::size_t longest, const std::string& prefix) {
  std::string name = prefix;
  for (const Node* n : graph->nodes())
    if (n->kind() != prim::Constant) name += "_" + std::string(n->kind().toUnqualString());
  if (name.size() <= longest) return name;
  const std::string number = "_" + std::to_string(std::hash<std::string>()(name) % 1000000);
  return name.substr(0, longest > number.size() ? longest - number.size() : 0) + number;
}

}  // namespace cresset::jit::SubgraphUtils

namespace cresset::jit {

bool usedOnlyInSize(const Value* v) {
  const auto& uses = v->uses();
  return std::all_of(uses.begin(), uses.end(), [](const Use& u) { return u.user->matches("aten::size(Tensor self) -> int[]"); });
}

Value* broadcastSizes(ArrayRef<Value*> sizes, AliasDb* aliases) {
  CRESSET_CHECK(!sizes.empty(), "broadcastSizes: at least one shape was required.");
  Graph* graph = sizes[0]->owningGraph();
  Value* shape = graph->insertNode(graph->create(prim::BroadcastSizes, sizes))->output();
  shape->setType(ListType::ofInts());
  if (aliases) aliases->createValue(shape);
  return shape;
}

}  // namespace cresset::jit
