// view(x, sizes) becomes reshape(x, sizes), which does not ask how x lies in memory.
//
// Where view works, reshape gives the same view; where view raises for the strides, reshape copies. Memory that is written stays with view,
// because a backend's reshape may always copy. view(x, dtype) is another operator and stays.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* reshape(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::view")) return nullptr;
  if (site.aliases->hasWriters(n->input(0)) || site.aliases->hasWriters(n->output())) return nullptr;
  return Emitter(n)("aten::reshape", {n->input(0), n->input(1)});
}

const RegisterPass view_to_reshape_pass({
    .name = "view_to_reshape",
    .phase = "lower",
    .summary = "view to reshape",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::view"}, reshape); },
});

}  // namespace
}  // namespace cresset::jit
