// Freezing for the lowering phase, whose passes still look at what a trace saw: some refuse because of it.
#pragma once

#include <cresset/ir/lowering.h>

namespace cresset::jit {

/// freeze_module with hints left in the types.
Module freeze_with_hints(const Module& module, const std::vector<std::string>& preserved, const AfterInlining& after_inlining,
                         const LoweringOptions& options);

}  // namespace cresset::jit
