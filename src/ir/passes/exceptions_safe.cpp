// Takes the other arm of Ifs of which one arm certainly raises, also when they have results; both raise: the second arm stays. The removed
// checks are reported as warnings, because effects of the arm go with them. The condition of this If alone becomes a constant, standing in
// front of it: others that use the same condition are not touched. Constants then propagate. Runs in front of
// eliminate_exception_or_pass_pattern, which then finds little.
#include "ir/passes/raising_arms.h"

namespace cresset::jit {
namespace {

bool choose_arm(const PassContext& context, Node* n) {
  if (is_marked(n) || n->blocks().size() != 2 || constant_as<bool>(n->input())) return false;
  for (std::size_t arm = 0; arm < 2; ++arm) {
    const Node* raise = direct_raise(n->blocks()[arm]);
    if (!raise || is_marked(raise)) continue;
    note_removed_check(context, NoteLevel::warning, raise, n);
    n->replaceInput(0, constant_before(n, arm != 0));
    return true;
  }
  return false;
}

bool run_exceptions_safe(PassContext& context) {
  if (!context.options.remove_checks) return false;
  bool changed = false;
  for (Node* n : nodes_where(*context.graph, [](const Node* m) { return m->kind() == prim::If; }))
    changed = choose_arm(context, n) || changed;
  if (changed) {
    propagate_constants(context.graph);
    pool_constants(context.graph);
  }
  return changed;
}

const RegisterPass exceptions_safe_pass({
    .name = "eliminate_exceptions_safe",
    .phase = "checks",
    .summary = "takes the arm that does not raise",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run_in = run_exceptions_safe,
});

}  // namespace
}  // namespace cresset::jit
