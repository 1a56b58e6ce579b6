// A graph that becomes one engine gives several tensors instead of one tuple or list of them. Only with the option building_engine: the
// result is no graph of a script function any more, as a note says.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

bool remove_collection_cast(PassContext& context) {
  Graph& graph = *context.graph;
  if (!context.options.building_engine || graph.outputs().size() != 1) return false;
  Node* construct = graph.outputs()[0]->node();
  if ((construct->kind() != prim::TupleConstruct && construct->kind() != prim::ListConstruct) || is_marked(construct)) return false;
  const std::vector<Value*> members = construct->inputs();
  for (const Value* v : members)
    if (!rewrite::is_tensor(v)) return false;
  if (construct->kind() == prim::ListConstruct && AliasDb(context.graph).hasWriters(construct->output())) return false;
  context.note(NoteLevel::info, construct, "the graph gives " + std::to_string(members.size()) + " tensors instead of a collection");
  graph.eraseOutput(0);
  for (Value* v : members) graph.registerOutput(v);
  if (!construct->hasUses()) construct->destroy();
  return true;
}

const RegisterPass remove_collection_cast_pass({
    .name = "remove_collection_cast",
    .phase = "lower",
    .summary = "several results instead of a collection",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = remove_collection_cast,
});

}  // namespace
}  // namespace cresset::jit
