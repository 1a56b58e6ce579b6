// type_as(x, y) becomes to(x, y): the same cast under the name that later passes and backends know.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* reduce_to_operation(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::type_as")) return nullptr;
  const Emitter emit(n);
  return emit("aten::to", {n->input(0), n->input(1), emit.flag(false), emit.flag(false), emit.none()});
}

const RegisterPass reduce_to_operation_pass({
    .name = "reduce_to_operation",
    .phase = "lower",
    .summary = "type_as to to",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::type_as"}, reduce_to_operation); },
});

}  // namespace
}  // namespace cresset::jit
