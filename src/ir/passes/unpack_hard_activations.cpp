// hardswish(x) becomes x * hardtanh(x + 3, 0, 6) / 6, hardsigmoid(x) becomes clamp(x / 6 + 0.5, 0, 1).
//
// In-place forms only where nobody else sees their write. Tensors known to hold integers stay: the operators refuse them, the formulas
// would not.
#include <cresset/core/scalar_type.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

// The operator works on floats, and its write, when it has one, is nobody else's business.
bool legal(const Site& site) {
  const Node* n = site.node;
  const FunctionSchema* schema = n->maybeSchema();
  if (!schema || n->inputs().size() != 1) return false;
  if (const auto dtype = rewrite::rumoured_dtype(n->input(0)); dtype && !isFloatingType(*dtype)) return false;
  return !schema->is_mutable() || rewrite::write_is_private(n, *site.aliases);
}

Value* unpack_hardswish(const Site& site) {
  if (!legal(site)) return nullptr;
  const Emitter emit(site.node);
  Value* x = site.node->input(0);
  Value* shifted = emit("aten::add", {x, emit.integer(3)});
  Value* gate = emit("aten::hardtanh", {shifted, emit.integer(0), emit.integer(6)});
  return emit("aten::div", {emit("aten::mul", {x, gate}), emit.integer(6)});
}

Value* unpack_hardsigmoid(const Site& site) {
  if (!legal(site)) return nullptr;
  const Emitter emit(site.node);
  Value* line = emit("aten::add", {emit("aten::div", {site.node->input(0), emit.integer(6)}), emit.number(0.5)});
  return emit("aten::clamp", {line, emit.integer(0), emit.integer(1)});
}

const RegisterPass unpack_hard_activations_hardswish_pass({
    .name = "unpack_hard_swish",
    .phase = "lower",
    .summary = "hardswish to hardtanh and multiplications",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::hardswish", "aten::hardswish_"}, unpack_hardswish); },
});
const RegisterPass unpack_hard_activations_hardsigmoid_pass({
    .name = "unpack_hard_sigmoid",
    .phase = "lower",
    .summary = "hardsigmoid to clamp",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::hardsigmoid", "aten::hardsigmoid_"}, unpack_hardsigmoid); },
});

}  // namespace
}  // namespace cresset::jit
