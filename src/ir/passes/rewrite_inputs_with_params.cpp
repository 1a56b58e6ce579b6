// Inputs that stand for parameters (made by lower-graph, the last ones of the graph) and are no tensors, tuples or lists become constants.
//
// Parameters are paired with inputs by position, counted from the first parameter, so an input that the caller gives never takes a value.
// A value that cannot be a constant stays an input, as a note says.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

bool stays_input(const Value* v) {
  switch (v->type()->kind) {
    case TypeKind::Tensor:
    case TypeKind::Tuple:
    case TypeKind::List: return true;
    default: return false;
  }
}

bool rewrite_inputs_with_params(PassContext& context) {
  Graph& graph = *context.graph;
  const std::size_t first = context.real_inputs();
  CRESSET_CHECK(context.parameters.size() <= graph.inputs().size(), "rewrite-inputs-with-params: ", context.parameters.size(),
                " parameters were given for a graph of ", graph.inputs().size(), " inputs.");
  bool changed = false;
  // From the back, so that positions in front keep their numbers.
  for (std::size_t i = graph.inputs().size(); i-- > first;) {
    Value* input = graph.inputs()[i];
    if (stays_input(input)) continue;
    const WithInsertPoint at_start(graph.block()->param_node()->next());
    const auto constant = tryInsertConstant(graph, context.parameters[i - first], input->type());
    if (!constant) {
      context.note(NoteLevel::warning, nullptr, "parameter %" + input->debugName() + " cannot be a constant and stays an input");
      continue;
    }
    const std::string name = input->hasDebugName() ? input->debugName() : std::string();
    input->replaceAllUsesWith(*constant);
    graph.eraseInput(i);
    if (!name.empty()) (*constant)->setDebugName(name);
    context.parameters.erase(context.parameters.begin() + static_cast<std::ptrdiff_t>(i - first));
    changed = true;
  }
  return changed;
}

const RegisterPass rewrite_inputs_with_params_pass({
    .name = "rewrite_inputs_with_params",
    .phase = "lower",
    .summary = "parameters that are no tensors to constants",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = rewrite_inputs_with_params,
});

}  // namespace
}  // namespace cresset::jit
