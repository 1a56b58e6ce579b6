// log_softmax(x, dim, dtype) becomes elementary operations.
//
// By default z - log(sum(exp(z))) with z = x - max(x), as accurate as log_softmax for logits of any size. The option stable_numerics=0
// takes the documented log(softmax(x)), which is -inf where a logit lies far below the largest. A dtype is honoured first; one that is only
// known at run time leaves the node alone.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* unpack_log_softmax(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::log_softmax.int")) return nullptr;
  Value *x = n->input(0), *dim = n->input(1), *dtype = n->input(2);
  const bool casts = !dtype->mustBeNone();
  if (casts && !dtype->mustNotBeNone()) return nullptr;
  const Emitter emit(n);
  if (!site.context.options.stable_numerics) {
    site.context.note(NoteLevel::info, n, "log_softmax by log(softmax): -inf for logits far below the largest");
    return emit("aten::log", {emit("aten::softmax", {x, dim, dtype})});
  }
  if (casts) x = emit("aten::to", {x, dtype, emit.flag(false), emit.flag(false), emit.none()});
  Value* dims = emit.list(basic_type(TypeKind::Int), {dim});
  Value* keep = emit.flag(true);
  Value* z = emit("aten::sub", {x, emit("aten::amax", {x, dims, keep})});
  Value* sum = emit("aten::sum", {emit("aten::exp", {z}), dims, keep, emit.none()});
  return emit("aten::sub", {z, emit("aten::log", {sum})});
}

const RegisterPass unpack_log_softmax_pass({
    .name = "unpack_log_softmax",
    .phase = "lower",
    .summary = "log_softmax to exp, sum and log",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::log_softmax"}, unpack_log_softmax); },
});

}  // namespace
}  // namespace cresset::jit
