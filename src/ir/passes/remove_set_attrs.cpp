// Removes the writes of an attribute that only remembers that a warning was given ("_has_warned"). Other attributes are state and stay.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

bool remove_set_attrs(PassContext& context) {
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*context.graph, {"prim::SetAttr"})) {
    if (n->s(attr::name) != "_has_warned") continue;
    context.note(NoteLevel::debug, n, "removed the write of attribute '_has_warned'");
    n->destroy();
    changed = true;
  }
  return changed;
}

const RegisterPass remove_set_attrs_pass({
    .name = "remove_set_attrs",
    .phase = "cleanup",
    .summary = "removes writes of '_has_warned'",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = remove_set_attrs,
});

}  // namespace
}  // namespace cresset::jit
