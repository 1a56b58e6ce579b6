// gelu becomes elementary functions: 0.5 x (1 + erf(x / sqrt 2)), or for approximate="tanh" 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715
// x^3))).
//
// The exact form is the default for approximate="none"; the option approximate_gelu takes the tanh formula there too, as a note says.
// An approximation that is not known at compile time leaves the node alone.
#include <cresset/core/scalar_type.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* reduce(const Site& site) {
  Node* n = site.node;
  // Graphs of old versions have no second operand.
  std::string approximate = "none";
  if (n->inputs().size() == 2) {
    const auto given = rewrite::string_of(n->input(1));
    if (!given || (*given != "none" && *given != "tanh")) return nullptr;
    approximate = *given;
  } else if (n->inputs().size() != 1) {
    return nullptr;
  }
  Value* x = n->input(0);
  if (const auto dtype = rewrite::rumoured_dtype(x); dtype && !isFloatingType(*dtype)) return nullptr;
  if (approximate == "none" && site.context.options.approximate_gelu) {
    site.context.note(NoteLevel::info, n, "gelu by the tanh formula: results differ by up to 5e-4");
    approximate = "tanh";
  }
  const Emitter emit(n);
  Value* inner;
  if (approximate == "none") {
    inner = emit("aten::erf", {emit("aten::mul", {x, emit.number(0.70710678118654752440)})});
  } else {
    Value* cube = emit("aten::mul", {emit("aten::mul", {x, x}), x});
    Value* sum = emit("aten::add", {x, emit("aten::mul", {cube, emit.number(0.044715)})});
    inner = emit("aten::tanh", {emit("aten::mul", {sum, emit.number(0.79788456080286535588)})});
  }
  Value* half = emit("aten::mul", {x, emit.number(0.5)});
  return emit("aten::mul", {half, emit("aten::add", {inner, emit.integer(1)})});
}

const RegisterPass reduce_gelu_pass({
    .name = "reduce_gelu",
    .phase = "lower",
    .summary = "gelu to erf or tanh",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::gelu"}, reduce); },
});

}  // namespace
}  // namespace cresset::jit
