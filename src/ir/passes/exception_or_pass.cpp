// Removes checks: an If without results of which one arm only raises and the other is empty. Nodes that build the message go with it, and
// Ifs that this leaves empty. A check that certainly raises is an error of the graph. Run-time checks are gone afterwards: each one is
// reported. Nothing need run before it.
#include "ir/passes/raising_arms.h"

namespace cresset::jit {
namespace {

// Destroys an If that does nothing but check; true when it did.
bool remove_check(const PassContext& context, Node* n) {
  if (!n->outputs().empty() || n->blocks().size() != 2 || is_marked(n)) return false;
  Block *yes = n->blocks()[0], *no = n->blocks()[1];
  if (is_empty(yes) && is_empty(no)) {
    n->destroy();
    return true;
  }
  const Node* raise = is_empty(no) ? only_raises(yes) : is_empty(yes) ? only_raises(no) : nullptr;
  if (!raise || is_marked(raise)) return false;
  if (const auto condition = constant_as<bool>(n->input()); condition && *condition == is_empty(no)) {
    CRESSET_CHECK(n->owningBlock()->owningNode(), "the graph always raises ", message_of(raise), "\n", raise->sourceRange().highlight());
    context.note(NoteLevel::warning, raise, "kept a check that always raises " + message_of(raise));
    return false;
  }
  note_removed_check(context, NoteLevel::info, raise, n);
  n->destroy();
  return true;
}

bool run_exception_or_pass(PassContext& context) {
  if (!context.options.remove_checks) return false;
  bool changed = false;
  for (Node* n : innermost_first(*context.graph, [](const Node* m) { return m->kind() == prim::If; }))
    changed = remove_check(context, n) || changed;
  if (changed) eliminate_dead_code(context.graph);
  return changed;
}

const RegisterPass exception_or_pass_pass({
    .name = "eliminate_exception_or_pass_pattern",
    .phase = "checks",
    .summary = "removes Ifs that raise or do nothing",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run_in = run_exception_or_pass,
});

}  // namespace
}  // namespace cresset::jit
