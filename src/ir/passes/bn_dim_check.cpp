// Removes the dimension checks of normalisation layers: an If without results whose first arm formats a message and raises it, and whose
// second arm is empty. All of it must hold; arms with other effects stay. Reported like any removed check. Nothing need run before it.
#include "ir/passes/raising_arms.h"

namespace cresset::jit {
namespace {

// aten::format, then a raise of its result; constants do not count.
const Node* formats_and_raises(const Block* arm) {
  const Node* format = nullptr;
  const Node* raise = nullptr;
  for (const Node* n : arm->nodes()) {
    if (n->kind() == prim::Constant) continue;
    if (n->kind() == aten::format && !format && !raise)
      format = n;
    else if (n->kind() == prim::RaiseException && format && !raise && n->input(0) == format->output())
      raise = n;
    else
      return nullptr;
  }
  return raise;
}

bool remove_bn_dim_check(PassContext& context) {
  if (!context.options.remove_checks) return false;
  bool changed = false;
  for (Node* n : innermost_first(*context.graph, [](const Node* m) { return m->kind() == prim::If; })) {
    if (!n->outputs().empty() || n->blocks().size() != 2 || is_marked(n) || !is_empty(n->blocks()[1])) continue;
    const Node* raise = formats_and_raises(n->blocks()[0]);
    if (!raise || constant_as<bool>(n->input())) continue;
    note_removed_check(context, NoteLevel::info, raise, n);
    n->destroy();
    changed = true;
  }
  if (changed) eliminate_dead_code(context.graph);
  return changed;
}

const RegisterPass bn_dim_check_pass({
    .name = "remove_bn_dim_check",
    .phase = "checks",
    .summary = "removes dimension checks of normalisation layers",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run_in = remove_bn_dim_check,
});

}  // namespace
}  // namespace cresset::jit
