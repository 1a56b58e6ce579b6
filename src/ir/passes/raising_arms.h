// What the three passes that remove run-time checks have in common.
#pragma once

#include <cresset/dispatch/boxing.h>
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {

/// The raise of an arm, when the arm holds only it and nodes without effects (that build its message); null otherwise.
inline const Node* only_raises(const Block* arm) {
  const Node* raise = nullptr;
  for (const Node* n : arm->nodes()) {
    if (n->kind() == prim::RaiseException) {
      if (raise) return nullptr;
      raise = n;
    } else if (n->hasSideEffects() || n->isInplaceOrWrites() || !n->blocks().empty()) {
      return nullptr;
    }
  }
  return raise;
}
inline const Node* direct_raise(const Block* arm) {
  for (const Node* n : arm->nodes())
    if (n->kind() == prim::RaiseException) return n;
  return nullptr;
}
inline bool is_empty(const Block* b) { return b->nodes().begin() == b->nodes().end(); }

inline std::string message_of(const Node* raise) {
  const auto text = raise->inputs().empty() ? std::nullopt : constant_as<std::string>(raise->input(0));
  return text ? "'" + *text + "'" : "with a message made at run time";
}

/// Reports a removed check: what it said and where it stood.
inline void note_removed_check(const PassContext& context, NoteLevel level, const Node* raise, const Node* check) {
  context.note(level, raise->sourceRange().known() ? raise : check, "removed a check that raises " + message_of(raise));
}

}  // namespace cresset::jit
