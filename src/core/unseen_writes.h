// Writes that a tensor's own counter may not have seen.
#pragma once

#include <cstdint>

#include <cresset/base/macros.h>

namespace cresset::detail {

/// How many writes of this process went through tensors that count for themselves (`.data`, parameters made of other tensors) to memory
/// that others have, too. Where it has not changed, the counters of a tensor and of its storage have seen everything.
CRESSET_API uint64_t unseen_writes();

}  // namespace cresset::detail
