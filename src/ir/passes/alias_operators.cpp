// Operators with two names get the one that backends know: true_divide becomes div, multiply becomes mul. scatter_ becomes scatter where
// nobody else sees its write.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Site;

struct AliasName {
  const char *alias, *known;
  bool drops_write;
};
constexpr AliasName kAliases[] = {
    {"aten::true_divide", "aten::div", false}, {"aten::true_divide_", "aten::div_", false}, {"aten::multiply", "aten::mul", false},
    {"aten::multiply_", "aten::mul_", false},  {"aten::scatter_", "aten::scatter", true},
};

bool rename(const Site& site, const AliasName& name) {
  Node* n = site.node;
  if (!n->maybeOperator()) return false;
  if (name.drops_write && !rewrite::write_is_private(n, *site.aliases)) return false;
  const Symbol alias = n->kind();
  n->changeKind(Symbol::fromQualString(name.known));
  if (n->maybeOperator()) return true;
  n->changeKind(alias);  // the known name lacks this overload
  return false;
}

bool alias_operators(PassContext& context) {
  rewrite::Aliases aliases(context.graph);
  bool changed = false;
  std::vector<std::string> kinds;
  for (const AliasName& name : kAliases) kinds.emplace_back(name.alias);
  for (Node* n : rewrite::nodes_of(*context.graph, kinds))
    for (const AliasName& name : kAliases)
      if (n->kind().toQualString() == name.alias) {
        changed = rename({n, context, aliases}, name) || changed;
        break;
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
