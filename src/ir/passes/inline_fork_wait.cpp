// Forked graphs whose futures are only waited for take the place of their fork: for exporters and engines that know no threads.
#include <algorithm>

#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

bool inline_fork(Node* fork) {
  Graph& graph = *fork->owningGraph();
  const auto body = subgraph_of(fork);
  if (!body || body->outputs().size() != 1 || fork->outputs().size() != 1) return false;
  const auto uses = fork->output()->uses();
  if (std::ranges::any_of(uses, [](const Use& use) { return use.user->kind() != aten::wait || use.user->outputs().size() != 1; }))
    return false;
  const WithInsertPoint guard(fork);
  Value* result = graph.insertGraph(*body, fork->inputs())[0];
  for (const Use& use : uses) {
    rewrite::replace_value(use.user->output(), result);
    use.user->destroy();
  }
  fork->destroy();
  return true;
}

bool inline_forks(PassContext& context) {
  bool changed = false;
  // Forked graphs fork, too.
  for (bool found = true; found;) {
    found = false;
    for (Node* n : rewrite::nodes_of(*context.graph, {"prim::fork"})) found = inline_fork(n) || found;
    changed = changed || found;
  }
  return changed;
}

const RegisterPass inline_fork_wait_pass({
    .name = "inline_fork_wait",
    .phase = "simplify",
    .summary = "puts forked graphs where they are forked",
    .needs = {},
    .keeps = {"marks"},
    .run_in = inline_forks,
});

}  // namespace

void InlineForkWait(const std::shared_ptr<Graph>& graph) { find_pass("inline_fork_wait")->run(graph); }

}  // namespace cresset::jit
