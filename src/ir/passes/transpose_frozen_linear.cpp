// linear(x, w, b) with a constant w becomes matmul(x, t) + b with t, the transposed w, as a constant of its own memory.
#include <cresset/core/grad_mode.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

Value* product_with_transposed(const rewrite::Site& site) {
  Node* n = site.node;
  const auto weight = toIValue(n->input(1));
  if (n->inputs().size() != 3 || !weight || !weight->isTensor() || weight->toTensor().dim() != 2) return nullptr;
  // A bias that may be None could not be added.
  Value* bias = n->input(2);
  if (!bias->mustBeNone() && bias->type()->kind != TypeKind::Tensor) return nullptr;
  const rewrite::Emitter emit(n);
  const NoGradGuard no_grad;
  Value* product = emit("aten::matmul", {n->input(0), emit.constant(IValue(weight->toTensor().t().contiguous()))});
  return bias->mustBeNone() ? product : emit("aten::add", {product, bias, emit.integer(1)});
}

const RegisterPass transpose_frozen_linear_pass({
    .name = "transpose_frozen_linear",
    .phase = "lower",
    .summary = "linear with a constant weight to a product with the transposed weight",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::linear"}, product_with_transposed); },
});

}  // namespace
}  // namespace cresset::jit
