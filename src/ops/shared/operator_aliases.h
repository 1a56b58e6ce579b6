// Operators with two names: written by tools/opgen from the row keys `aliases` and `canonical`, read by src/ir/frontend.
#pragma once

#include <string_view>

#include <cresset/base/array_ref.h>

namespace cresset::ops {

struct OperatorAlias {
  std::string_view name, canonical;  // without namespace
};

/// Sorted by name; a canonical name is not replaced itself.
CRESSET_API ArrayRef<OperatorAlias> operator_aliases();

}  // namespace cresset::ops
