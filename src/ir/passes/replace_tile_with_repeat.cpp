// tile(x, reps) becomes repeat(x, reps).
//
// repeat wants at least one number for each dimension, tile puts ones in front of a short list: so does this pass, when the length of the
// list and the rank of x are known. Otherwise tile stays, unless the option documented_forms takes the list to be long enough.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* replace_tile(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::tile")) return nullptr;
  Value *x = n->input(0), *reps = n->input(1);
  const auto rank = rewrite::rank_of(x, site.context.options);
  const auto length = rewrite::length_of(reps, site.aliases);
  const Emitter emit(n);
  if (!rank || !length) return site.context.options.documented_forms ? emit("aten::repeat", {x, reps}) : nullptr;
  if (*length < *rank) {
    const std::size_t missing = *rank - *length;
    if (const auto known = rewrite::integers_of(reps, site.aliases)) {
      std::vector<int64_t> padded(missing, 1);
      padded.insert(padded.end(), known->begin(), known->end());
      reps = emit.integers(padded);
    } else {
      std::vector<Value*> padded(missing, emit.integer(1));
      padded.insert(padded.end(), reps->node()->inputs().begin(), reps->node()->inputs().end());
      reps = emit.list(basic_type(TypeKind::Int), padded);
    }
  }
  return emit("aten::repeat", {x, reps});
}

const RegisterPass replace_tile_with_repeat_pass({
    .name = "replace_tile_with_repeat",
    .phase = "lower",
    .summary = "tile to repeat",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::tile"}, replace_tile); },
});

}  // namespace
}  // namespace cresset::jit
