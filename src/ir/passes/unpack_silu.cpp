// silu(x) becomes x * sigmoid(x). The in-place form only where nobody else sees its write.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* unpack_silu(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::silu") && !(rewrite::calls(n, "aten::silu_") && rewrite::write_is_private(n, *site.aliases)))
    return nullptr;
  const Emitter emit(n);
  Value* x = n->input(0);
  return emit("aten::mul", {x, emit("aten::sigmoid", {x})});
}

const RegisterPass unpack_silu_pass({
    .name = "unpack_silu",
    .phase = "lower",
    .summary = "silu to multiplication with a sigmoid",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::silu", "aten::silu_"}, unpack_silu); },
});

}  // namespace
}  // namespace cresset::jit
