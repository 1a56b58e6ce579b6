// What is done to a finished graph: constants once, at the front; tuples that are only taken apart go, and so does code without use.
#include <cresset/ir/pass.h>

#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

void pool_constants(Graph& g) {
  std::unordered_map<std::string, std::vector<Value*>> known;
  std::vector<Node*> constants;
  g.block()->visit([&](Node* n) {
    if (n->kind() == prim::Constant) constants.push_back(n);
  });
  Node* last = nullptr;
  for (Node* n : constants) {
    if (!n->output()->hasUses()) {
      n->destroy();
      continue;
    }
    const auto v = toIValue(n->output());
    // Objects keep their identity; large values are compared, not printed.
    const std::string key = n->output()->type()->str() + "|" +
                            (v && v->isPtrType() && !v->isString() ? std::string(v->tagKind()) : n->str().substr(n->str().find('=')));
    std::vector<Value*>& same = known[key];
    Value* found = nullptr;
    for (Value* other : same)
      if (v && sameConstant(*toIValue(other), *v)) found = other;
    if (found) {
      n->output()->replaceAllUsesWith(found);
      n->destroy();
      continue;
    }
    same.push_back(n->output());
    if (last)
      n->moveAfter(last);
    else if (*g.nodes().begin() != n)
      n->moveBefore(*g.nodes().begin());
    last = n;
  }
}

// The members of a tuple that was made in this graph.
const Node* made_tuple(const Value* v) { return v->node()->kind() == prim::TupleConstruct ? v->node() : nullptr; }

void forward_tuples(Graph& g) {
  std::vector<Node*> taken_apart;
  g.block()->visit([&](Node* n) {
    if (n->kind() == prim::TupleUnpack || n->kind() == prim::TupleIndex) taken_apart.push_back(n);
  });
  for (Node* n : taken_apart) {
    const Node* tuple = made_tuple(n->input(0));
    if (!tuple) continue;
    if (n->kind() == prim::TupleUnpack) {
      if (n->outputs().size() != tuple->inputs().size()) continue;
      for (std::size_t i = 0; i < n->outputs().size(); ++i) n->output(i)->replaceAllUsesWith(tuple->input(i));
    } else {
      const auto at = constant_as<int64_t>(n->input(1));
      if (!at) continue;
      n->output()->replaceAllUsesWith(
          tuple->input(static_cast<std::size_t>(*at < 0 ? *at + static_cast<int64_t>(tuple->inputs().size()) : *at)));
    }
    n->destroy();
  }
}

}  // namespace

void tidy(const std::shared_ptr<Graph>& g) {
  forward_tuples(*g);
  eliminate_dead_code(g);
  pool_constants(*g);
}

}  // namespace cresset::jit
