// addmm(x, a, b) with the factors 1 becomes mm(a, b) and x + the product, which fusers of pointwise operators can take.
#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

Value* product_and_sum(const rewrite::Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::addmm") || !rewrite::is_number(n->input(3), 1) || !rewrite::is_number(n->input(4), 1)) return nullptr;
  const rewrite::Emitter emit(n);
  return emit("aten::add", {n->input(0), emit("aten::mm", {n->input(1), n->input(2)}), emit.integer(1)});
}

const RegisterPass decompose_ops_pass({
    .name = "decompose_ops",
    .phase = "simplify",
    .summary = "addmm with the factors 1 to mm and add",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::addmm"}, product_and_sum); },
});

}  // namespace

void DecomposeOps(std::shared_ptr<Graph>& graph) {
  if (find_pass("decompose_ops")->run(graph)) PropagateInputShapes(graph);
}

}  // namespace cresset::jit
