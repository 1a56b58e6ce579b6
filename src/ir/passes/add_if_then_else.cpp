// An If that only chooses between two values becomes prim::IfThenElse.
#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {

bool AddIfThenElseOp(const std::shared_ptr<Graph>& graph) {
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*graph, {"prim::If"})) {
    const Block *then = n->blocks()[0], *otherwise = n->blocks()[1];
    if (n->outputs().size() != 1 || then->nodes().begin() != then->nodes().end() || otherwise->nodes().begin() != otherwise->nodes().end())
      continue;
    Node* fresh = graph->create(prim::IfThenElse, {n->input(0), then->outputs()[0], otherwise->outputs()[0]});
    fresh->insertBefore(n)->copyMetadata(n);
    fresh->output()->setType(n->output()->type());
    rewrite::replace_value(n->output(), fresh->output());
    n->destroy();
    changed = true;
  }
  return changed;
}

}  // namespace cresset::jit
