// Operators with two names: graphs have one of them, so that passes need to know only that.
#include <algorithm>

#include "ir/frontend/call_matching.h"
#include "ops/shared/operator_aliases.h"

namespace cresset::jit {

Symbol canonical_operator(Symbol kind) {
  if (!kind.is_aten()) return kind;
  std::string_view name = kind.toUnqualString();
  const bool in_place = name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
  if (in_place) name.remove_suffix(1);
  const auto aliases = ops::operator_aliases();
  const auto* found =
      std::lower_bound(aliases.begin(), aliases.end(), name, [](const ops::OperatorAlias& a, std::string_view n) { return a.name < n; });
  if (found == aliases.end() || found->name != name) return kind;
  const Symbol canonical = Symbol::aten(std::string(found->canonical) + (in_place ? "_" : ""));
  return operators_of(canonical).empty() ? kind : canonical;
}

}  // namespace cresset::jit
