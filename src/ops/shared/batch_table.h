// Which batching rule each operator of the table has: written by tools/opgen, read by src/batching.
#pragma once

#include <cstdint>

#include <cresset/base/array_ref.h>

namespace cresset::ops {

/// How an operator runs on a batch of examples; the words of the row key `batch` (docs/design/operator-table.md).
enum class BatchRule : uint8_t {
  Loop,        // one example after another
  Decompose,   // through its parts: composites, and kernels that are written with operators
  Pointwise,   // batch dimension in front, ranks aligned
  Dim,         // batch dimension in front, arguments that name dimensions count one more
  Full,        // a reduction over everything becomes one over a dimension
  Leading,     // batch dimension in front, nothing else changes
  Broadcast,   // the same, with the ranks of examples aligned
  Fold,        // batch dimension and N become one
  Random,      // depends on the level's randomness
  Functional,  // in place: the functional form, then a copy
  Code,        // a rule of its own, registered for the key FuncTorchBatched
  Dynamic,     // no rule is possible: the result's shape depends on values
  Out,         // out= forms, which no rule is for
};

struct BatchRow {
  const char* name;  // with namespace and overload
  BatchRule rule;
  int8_t inner;  // Fold: number of dimensions behind N; Leading, Broadcast: the fewest dimensions that an example needs
};

/// Every operator of the table that is not a composite, sorted by name.
CRESSET_API ArrayRef<BatchRow> batch_table();

}  // namespace cresset::ops
