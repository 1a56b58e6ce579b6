// What makes tensors on the default device makes them where the graph runs (option target_device; without it nothing happens):
//
//   unpack-and-cast-masked-fill    masked_fill_(x, mask, value) -> masked_fill of x and mask moved there, where nobody else sees the write
//   unpack-and-cast-num-to-tensor  NumToTensor(s)               -> moved there
//   unpack-and-cast-full           full(...)                    -> made there, unless the graph names another device
//
// And replace-scalar-implicit: ScalarImplicit(x) -> item(x), the name that backends know.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

std::optional<Device> target_of(const PassContext& context) {
  return context.options.target_device ? std::optional(Device(*context.options.target_device)) : std::nullopt;
}

Value* moved(const Emitter& emit, Value* v, const Device& target) {
  Value *none = emit.none(), *no = emit.flag(false);
  return emit("aten::to", {v, none, none, emit.constant(IValue(target)), none, no, no, none});
}

Value* cast_masked_fill(const Site& site, const Device& target) {
  Node* n = site.node;
  if (!n->maybeSchema() || n->inputs().size() != 3 || !rewrite::write_is_private(n, *site.aliases)) return nullptr;
  const Emitter emit(n);
  Value *x = moved(emit, n->input(0), target), *mask = moved(emit, n->input(1), target);
  return emit("aten::masked_fill", {x, mask, n->input(2)});
}

// The device operand of `to`; null when the overload has none.
const Value* device_operand(const Node* n) {
  const FunctionSchema* schema = n->maybeSchema();
  const auto i = schema ? schema->argument_index("device") : std::nullopt;
  return i ? n->input(*i) : nullptr;
}

bool is_device(const Value* v, const Device& target) {
  const auto constant = v ? toIValue(v) : std::nullopt;
  return constant && constant->isDevice() && constant->toDevice() == target;
}

bool cast_num_to_tensor(const Site& site, const Device& target) {
  Node* n = site.node;
  const bool done = std::all_of(n->output()->uses().begin(), n->output()->uses().end(), [&](const Use& u) {
    return u.user->kind().toQualString() == std::string_view("aten::to") && u.offset == 0 && is_device(device_operand(u.user), target);
  });
  if (done) return false;
  const std::vector<Use> uses = n->output()->uses();
  const Emitter emit(n->next());
  Value* there = moved(emit, n->output(), target);
  for (Node* added = n->next(); added != there->node()->next(); added = added->next()) {
    added->setSourceRange(n->sourceRange())->setScope(n->scope());
    added->setCallStack(n->callstack());
  }
  for (const Use& u : uses) u.user->replaceInput(u.offset, there);
  return true;
}

bool cast_full(const Site& site, const Device& target) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::full")) return false;
  const std::size_t place = *n->schema().argument_index("device");
  Value* given = n->input(place);
  if (is_device(given, target)) return false;
  if (!given->mustBeNone()) {
    site.context.note(NoteLevel::info, n, "full stays on the device that the graph names");
    return false;
  }
  n->replaceInput(place, Emitter(n).constant(IValue(target)));
  return true;
}

// Runs a rule that changes nodes in place.
template <class Rule>
bool for_each(PassContext& context, const char* kind, Rule rule) {
  const auto target = target_of(context);
  if (!target) return false;
  rewrite::Aliases aliases(context.graph);
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*context.graph, {kind})) changed = rule(Site{n, context, aliases}, *target) || changed;
  return changed;
}

bool masked_fill(PassContext& context) {
  const auto target = target_of(context);
  if (!target) return false;
  return rewrite::rewrite_nodes(context, {"aten::masked_fill_"}, [&](const Site& site) { return cast_masked_fill(site, *target); });
}

Value* scalar_implicit(const Site& site) {
  if (!rewrite::calls(site.node, "aten::ScalarImplicit")) return nullptr;
  return Emitter(site.node)("aten::item", {site.node->input()});
}

const RegisterPass device_casts_masked_pass({
    .name = "unpack_and_cast_masked_fill",
    .phase = "lower",
    .summary = "masked_fill_ on the target device",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = masked_fill,
});
const RegisterPass device_casts_num_to_tensor_pass({
    .name = "unpack_and_cast_num_to_tensor",
    .phase = "lower",
    .summary = "tensors of numbers on the target device",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return for_each(c, "prim::NumToTensor", cast_num_to_tensor); },
});
const RegisterPass device_casts_full_pass({
    .name = "unpack_and_cast_full",
    .phase = "lower",
    .summary = "full on the target device",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return for_each(c, "aten::full", cast_full); },
});
const RegisterPass device_casts_implicit_pass({
    .name = "replace_scalar_implicit",
    .phase = "lower",
    .summary = "ScalarImplicit to item",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::ScalarImplicit"}, scalar_implicit); },
});

}  // namespace
}  // namespace cresset::jit
