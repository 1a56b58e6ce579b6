// Operators of lists that are only made for them take the members themselves: cat([a, b], d) becomes prim::VarConcat(a, b, d), stack
// prim::VarStack. The list stays where something else uses it.
#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

// Does the list hold at the node what it was made of?
bool is_as_made(Node* list, Node* n, AliasDb& aliases) {
  if (!aliases.hasWriters(list->output())) return true;
  return list->owningBlock() == n->owningBlock() && !rewrite::written_between(list, n, {list->output()}, aliases);
}

bool make_variadic(Node* n, Symbol variadic, rewrite::Aliases& aliases) {
  if (n->inputs().empty() || n->outputs().size() != 1) return false;
  Node* list = n->input(0)->node();
  if (list->kind() != prim::ListConstruct || !is_as_made(list, n, *aliases)) return false;
  std::vector<Value*> inputs(list->inputs().begin(), list->inputs().end());
  inputs.insert(inputs.end(), n->inputs().begin() + 1, n->inputs().end());
  Node* fresh = n->owningGraph()->create(variadic, inputs)->insertBefore(n)->copyMetadata(n);
  fresh->output()->setType(n->output()->type());
  aliases.moved(n->output(), fresh->output());
  rewrite::replace_value(n->output(), fresh->output());
  rewrite::destroy_with_operands(n, aliases);
  return true;
}

}  // namespace

bool UseVariadicOp(const std::shared_ptr<Graph>& graph, Symbol op, Symbol variadic) {
  rewrite::Aliases aliases(graph);
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*graph, {op.toQualString()})) changed = make_variadic(n, variadic, aliases) || changed;
  return changed;
}
bool RemoveListMutationAndUseVariadicOp(const std::shared_ptr<Graph>& graph, Symbol op, Symbol variadic) {
  bool changed = false;
  for (bool more = true; more; changed = changed || more) {
    more = RemoveListMutation(graph);
    more = UseVariadicOp(graph, op, variadic) || more;
  }
  return changed;
}
bool UseVariadicCat(const std::shared_ptr<Graph>& graph) { return UseVariadicOp(graph, aten::cat, prim::VarConcat); }
bool UseVariadicStack(const std::shared_ptr<Graph>& graph) { return UseVariadicOp(graph, aten::stack, prim::VarStack); }
bool RemoveListMutationAndUseVariadicCat(const std::shared_ptr<Graph>& graph) {
  return RemoveListMutationAndUseVariadicOp(graph, aten::cat, prim::VarConcat);
}
bool RemoveListMutationAndUseVariadicStack(const std::shared_ptr<Graph>& graph) {
  return RemoveListMutationAndUseVariadicOp(graph, aten::stack, prim::VarStack);
}

}  // namespace cresset::jit
