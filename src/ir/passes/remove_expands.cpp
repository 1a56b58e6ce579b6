// Expansions that a compiler or tracer put in (their flag `implicit` is true) go: operators broadcast by themselves.
#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

bool remove_expands(PassContext& context) {
  const auto expands = [](const Node* n) { return rewrite::calls(n, "aten::expand") && rewrite::flag_of(n->input(2)) == true; };
  rewrite::Aliases aliases(context.graph);
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*context.graph, {"aten::expand"})) {
    if (!expands(n) || aliases->hasWriters(n)) continue;
    n->output()->replaceAllUsesWith(n->input(0));
    aliases.bury(n);
    changed = true;
  }
  return changed;
}

const RegisterPass remove_expands_pass({
    .name = "remove_expands",
    .phase = "simplify",
    .summary = "removes expansions that were not asked for",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = remove_expands,
});

}  // namespace

void RemoveExpands(const std::shared_ptr<Graph>& graph) { find_pass("remove_expands")->run(graph); }

}  // namespace cresset::jit
