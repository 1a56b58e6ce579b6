// addmm(bias, x, w, beta, alpha) becomes matmul and add: add(bias * beta, matmul(x, w), alpha).
//
// beta must be known: with beta 0 addmm ignores the bias, NaN included, and so does the result here. The product with beta = 1 is left out.
// The option documented_forms gives matmul and add_ with trt::const around the bias where both factors are 1.
// addmm with an out dtype and addmm_ stay. Integers with fractional factors stay: addmm refuses them.
#include <cresset/core/scalar_type.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* unpack_addmm(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::addmm") || n->inputs().size() != 5) return nullptr;
  Value *bias = n->input(0), *x = n->input(1), *w = n->input(2), *beta = n->input(3), *alpha = n->input(4);
  const bool ignores_bias = rewrite::is_number(beta, 0), takes_bias = rewrite::is_number(beta, 1);
  if (!toIValue(beta)) return nullptr;
  const bool plain_sum = rewrite::is_number(alpha, 1);
  if (const auto dtype = rewrite::rumoured_dtype(x); dtype && isIntegralType(*dtype, true) && !((ignores_bias || takes_bias) && plain_sum))
    return nullptr;
  const Emitter emit(n);
  Value* product = emit("aten::matmul", {x, w});
  if (site.context.options.documented_forms && takes_bias && plain_sum)
    return emit("aten::add_", {product, emit("trt::const", {bias}), emit.integer(1)});
  if (ignores_bias) return plain_sum ? product : emit("aten::mul", {product, alpha});
  Value* scaled = takes_bias ? bias : emit("aten::mul", {bias, beta});
  return emit("aten::add", {scaled, product, plain_sum ? emit.integer(1) : alpha});
}

const RegisterPass unpack_addmm_pass({
    .name = "unpack_addmm",
    .phase = "lower",
    .summary = "addmm to matmul and add",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::addmm"}, unpack_addmm); },
});

}  // namespace
}  // namespace cresset::jit
