// From an operator to its batching rule.
#pragma once

#include <cresset/dispatch/dispatcher.h>

#include "ops/batch_table.h"

namespace cresset::batching {

/// What the fallback of FuncTorchBatched knows about an operator.
struct Rule {
  ops::BatchRule kind = ops::BatchRule::Loop;
  int8_t inner = 0;
};

/// The rule of an operator: its row's, Decompose for other composites, otherwise Loop.
Rule rule_of(const OperatorHandle& op);

/// Gives the random operators of the table their kernel for the key FuncTorchVmapMode, when that has not happened yet.
void register_random_rules();

}  // namespace cresset::batching
