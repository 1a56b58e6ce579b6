// scaled_dot_product_attention becomes matmul, softmax and matmul: softmax((q * scale) k^T + mask) v.
//
// An explicit scale is honoured; without one it is 1 / sqrt(size of a head), taken at run time. Boolean masks become -inf where they
// forbid; rows in which everything is forbidden give zeros, as the operator does. Older graphs with fewer operands are taken too. Dropout,
// a causal mask, grouped queries, and flags that are not known leave the node alone, with a warning; so does a mask whose presence or dtype
// is not known.
#include <cresset/core/scalar_type.h>

#include <limits>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

bool known_false(const Value* v) {
  const auto flag = rewrite::flag_of(v);
  return flag && !*flag;
}

// Why the node stays; empty when it may be unpacked.
std::string obstacle(const Node* n, const LoweringOptions& options) {
  const auto& in = n->inputs();
  const Value* mask = in[3];
  if (!rewrite::is_number(in[4], 0)) return "dropout";
  if (!known_false(in[5])) return "a causal mask that is not known to be off";
  if (in.size() > 7 && !known_false(in[7])) return "grouped queries that are not known to be off";
  if (in.size() > 6 && !in[6]->mustBeNone() && in[6]->type()->kind != TypeKind::Float) return "a scale that may be missing";
  if (mask->mustBeNone()) return "";
  if (!rewrite::is_tensor(mask)) return "a mask that may be missing";
  const auto dtype = rewrite::dtype_of(mask, options);
  if (!dtype || (*dtype != ScalarType::Bool && !isFloatingType(*dtype))) return "a mask of unknown dtype";
  return "";
}

Value* masked(const Emitter& emit, Value* scores, Value* mask, const LoweringOptions& options) {
  if (rewrite::dtype_of(mask, options) != ScalarType::Bool) return emit("aten::add", {scores, mask});
  return emit("aten::masked_fill", {scores, emit("aten::logical_not", {mask}), emit.number(-std::numeric_limits<double>::infinity())});
}

Value* unpack_attention(const Site& site) {
  Node* n = site.node;
  const auto& in = n->inputs();
  if (in.size() < 6 || in.size() > 8 || n->outputs().size() != 1) return nullptr;
  if (const std::string why = obstacle(n, site.context.options); !why.empty()) {
    site.context.note(NoteLevel::warning, n, "scaled_dot_product_attention stays because of " + why);
    return nullptr;
  }
  const Emitter emit(n);
  Value *q = in[0], *k = in[1], *v = in[2], *mask = in[3];
  Value *last = emit.integer(-1), *before_last = emit.integer(-2);
  q = in.size() > 6 && !in[6]->mustBeNone() ? emit("aten::mul", {q, in[6]})
                                            : emit("aten::div", {q, emit("aten::sqrt", {emit("aten::size", {q, last})})});
  Value* scores = emit("aten::matmul", {q, emit("aten::transpose", {k, before_last, last})});
  if (mask->mustBeNone()) return emit("aten::matmul", {emit("aten::softmax", {scores, last, emit.none()}), v});
  scores = masked(emit, scores, mask, site.context.options);
  Value* forbidden = emit("aten::eq", {scores, emit.number(-std::numeric_limits<double>::infinity())});
  Value* nothing_left = emit("aten::all", {forbidden, last, emit.flag(true)});
  Value* weights = emit("aten::masked_fill", {emit("aten::softmax", {scores, last, emit.none()}), nothing_left, emit.integer(0)});
  return emit("aten::matmul", {weights, v});
}

const RegisterPass unpack_scaled_dot_product_attention_pass({
    .name = "unpack_scaled_dot_product_attention",
    .phase = "lower",
    .summary = "attention to matmul and softmax",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::scaled_dot_product_attention"}, unpack_attention); },
});

}  // namespace
}  // namespace cresset::jit
