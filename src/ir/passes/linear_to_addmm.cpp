// linear(x, w, bias) becomes bias + matmul(x, t(w)), and without bias matmul(x, t(w)).
//
// Whether there is a bias must be known: an optional one leaves the node alone. Works for any rank of x and for weights of one dimension,
// as linear does. With the option linear_flattens only where x has one or two dimensions: matmul does not flatten.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* unpack(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::linear")) return nullptr;
  Value *x = n->input(0), *w = n->input(1), *bias = n->input(2);
  if (!bias->mustBeNone() && !rewrite::is_tensor(bias)) return nullptr;
  if (site.context.options.linear_flattens && rewrite::rank_of(x, site.context.options).value_or(3) > 2) return nullptr;
  const Emitter emit(n);
  Value* product = emit("aten::matmul", {x, emit("aten::t", {w})});
  return bias->mustBeNone() ? product : emit("aten::add", {bias, product, emit.integer(1)});
}

const RegisterPass linear_to_addmm_pass({
    .name = "linear_to_addmm",
    .phase = "lower",
    .summary = "linear to matmul and add",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::linear"}, unpack); },
});

}  // namespace
}  // namespace cresset::jit
