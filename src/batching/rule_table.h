// From an operator to its batching rule.
#pragma once

#include <atomic>

#include <cresset/dispatch/dispatcher.h>

#include "ops/shared/batch_table.h"

namespace cresset::batching {

/// What the fallback of FuncTorchBatched knows about an operator.
struct Rule {
  ops::BatchRule kind = ops::BatchRule::Loop;
  int8_t inner = 0;
};

/// The rule of an operator: its row's, Decompose for other composites, otherwise Loop.
CRESSET_API Rule rule_of(const OperatorHandle& op);
/// The word of the row key `batch` for it, "functional" or "out".
CRESSET_API const char* word_of(ops::BatchRule rule);

/// Of this process: may operators without a rule go through the examples one by one, and do they say so?
struct LoopSettings {
  std::atomic<bool> enabled{true}, warns{true};
};
CRESSET_API LoopSettings& loop_settings();

/// Gives the random operators of the table their kernel for the key FuncTorchVmapMode, when that has not happened yet.
void register_random_rules();

}  // namespace cresset::batching
