// Inputs known to be int64 are cast to int32 at the start of the graph, for engines that take no int64. The casts carry the fallback mark:
// they run outside the engine. Runs after lowering, once the dtypes of the inputs are in their types; not in the order of lowering. Values
// beyond int32 do not survive, as one warning says.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter;

bool is_cast_already(const Value* input) {
  return input->use_count() == 1 && input->uses()[0].user->kind() == Symbol::fromQualString("aten::to") && is_marked(input->uses()[0].user);
}

bool autocast_long_inputs(PassContext& context) {
  Graph& graph = *context.graph;
  std::vector<Value*> longs;
  for (std::size_t i = 0; i < context.real_inputs(); ++i) {
    Value* input = graph.inputs()[i];
    if (rewrite::dtype_of(input, context.options) == ScalarType::Long && input->hasUses() && !is_cast_already(input))
      longs.push_back(input);
  }
  if (longs.empty()) return false;
  context.note(NoteLevel::warning, nullptr,
               "int64 inputs are cast to int32 in front of the engine. Give int32 inputs, or keep these nodes in the fallback executor, "
               "where values "
               "are larger.");
  const Emitter emit(graph.block()->param_node()->next());
  Value *dtype = emit.integer(static_cast<int64_t>(ScalarType::Int)), *no = emit.flag(false), *none = emit.none();
  std::optional<Device> target;
  if (context.options.target_device) target = Device(*context.options.target_device);
  Value* shared_device = target ? emit.constant(IValue(*target)) : nullptr;
  for (Value* input : longs) {
    const std::vector<Use> uses = input->uses();
    Value* cast =
        shared_device ? emit("aten::to", {input, shared_device, dtype, no, no, none}) : emit("aten::to", {input, dtype, no, no, none});
    cast->node()->i_(attr::to_compile, 0);
    auto type = std::dynamic_pointer_cast<const TensorType>(input->type())->copy();
    type->dtype = ScalarType::Int;
    if (target) type->device = target;
    cast->setType(type);
    for (const Use& u : uses) u.user->replaceInput(u.offset, cast);
  }
  return true;
}

const RegisterPass autocast_long_inputs_pass({
    .name = "autocast_long_inputs",
    .phase = "convert",
    .summary = "int64 inputs to int32",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = autocast_long_inputs,
});

}  // namespace
}  // namespace cresset::jit
