// Walking several strided tensors of equal sizes at once: dimensions are ordered by the first tensor's strides and merged.
#pragma once

#include <string>
#include <vector>

#include "launch.h"

namespace cresset_opencl {

/// At most so many dimensions may remain after merging; others stay with the fallback.
inline constexpr int kMaxDims = 8;

struct Walk {
  int64_t n = 1;
  int ndim = 0;
  bool wide = false;  // offsets or counts need 64 bits
  int64_t sizes[kMaxDims];
  std::vector<std::array<int64_t, kMaxDims>> strides;  // one a tensor; 0 where it repeats
};

/// A walk over `sizes`; each tensor's sizes broadcast to them. False when too many dimensions remain.
bool make_walk(IntArrayRef sizes, const std::vector<const Tensor*>& tensors, Walk& walk);

/// The part of a kernel's key that its source depends on.
std::string walk_key(const Walk& walk);
/// The type Shape, and WALK: from `index i` the offsets o0, o1, … of all tensors. `index` is the integer type.
std::string walk_source(const Walk& walk);
/// The arguments `const Shape s, const ulong n`.
void add_walk(Launch& launch, const Walk& walk);

}  // namespace cresset_opencl
