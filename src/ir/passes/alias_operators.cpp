// Operators with two names get the one that backends know (the table's keys `aliases` and `canonical`): true_divide becomes div, multiply
// becomes mul. scatter_ becomes scatter where nobody else sees its write.
#include "ir/frontend/call_matching.h"
#include "ir/passes/rewrite.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

bool rename(Node* n, Symbol known) {
  if (!n->maybeOperator()) return false;
  const Symbol alias = n->kind();
  n->changeKind(known);
  if (n->maybeOperator()) return true;
  n->changeKind(alias);  // the known name lacks this overload
  return false;
}

bool alias_operators(PassContext& context) {
  const Symbol in_place = Symbol::aten("scatter_"), scatter = Symbol::aten("scatter");
  rewrite::Aliases aliases(context.graph);
  bool changed = false;
  for (Node* n : nodes_where(*context.graph, [](const Node* n) { return n->kind().is_aten() && !is_marked(n); })) {
    if (n->kind() == in_place) {
      if (rewrite::write_is_private(n, *aliases)) changed = rename(n, scatter) || changed;
    } else if (const Symbol known = canonical_operator(n->kind()); known != n->kind()) {
      changed = rename(n, known) || changed;
    }
  }
  return changed;
}

const RegisterPass alias_operators_pass({
    .name = "alias_operators",
    .phase = "lower",
    .summary = "second names of operators to their first",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = alias_operators,
});

}  // namespace
}  // namespace cresset::jit
