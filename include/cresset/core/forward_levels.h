// Is forward mode at work? What it consists of: cresset/autograd/forward_ad.h.
#pragma once

#include <atomic>

#include <cresset/base/macros.h>

namespace cresset::detail {

/// Levels of forward mode that are open in the process: 0 or 1. Only while one is open can a tensor have a tangent.
extern CRESSET_API std::atomic<int> forward_levels;

}  // namespace cresset::detail
