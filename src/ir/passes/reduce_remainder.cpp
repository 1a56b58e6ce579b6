// remainder(a, b) of tensors becomes operations that backends have.
//
// By default fmod with the sign corrected, which is exact for all numbers: a - floor(a / b) * b loses digits for large quotients and gives
// NaN for an infinite b. The option stable_numerics=0 takes that documented form. A number in front (scalar, tensor) stays: it would be
// promoted in another way.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* reduce_remainder(const Site& site) {
  Node* n = site.node;
  const bool by_number = rewrite::calls(n, "aten::remainder.Scalar");
  if (!by_number && !rewrite::calls(n, "aten::remainder.Tensor")) return nullptr;
  const Emitter emit(n);
  Value *a = n->input(0), *b = n->input(1);
  if (!site.context.options.stable_numerics) {
    site.context.note(NoteLevel::info, n, "remainder by floor division: large quotients lose digits, infinite divisors give NaN");
    return emit("aten::sub", {a, emit("aten::mul", {emit("aten::floor_divide", {a, b}), b})});
  }
  // fmod has the sign of a; a remainder that is not zero must have the sign of b.
  Value* rest = emit("aten::fmod", {a, b});
  Value* negative = emit("aten::lt", {rest, emit.integer(0)});
  Value* b_negative = emit("aten::lt", {b, emit.integer(0)});
  Value* differs = emit("aten::ne", {negative, by_number ? emit("aten::Int", {b_negative}) : b_negative});
  Value* wrong = emit("aten::logical_and", {differs, emit("aten::ne", {rest, emit.integer(0)})});
  return emit("aten::where", {wrong, emit("aten::add", {rest, b}), rest});
}

const RegisterPass reduce_remainder_pass({
    .name = "reduce_remainder",
    .phase = "lower",
    .summary = "remainder to fmod",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::remainder"}, reduce_remainder); },
});

}  // namespace
}  // namespace cresset::jit
