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

/// The same over strides that are given; as many of each as sizes.
bool make_walk_of_strides(IntArrayRef sizes, const std::vector<std::vector<int64_t>>& strides, Walk& walk);

/// The part of a kernel's key that its source depends on.
std::string walk_key(const Walk& walk);
/// For a walk called s: the type Shape_s of the argument s, and WALK_s: from `index i` the offsets s0, s1, … of all tensors.
std::string walk_source(const Walk& walk, const std::string& name = "s");
/// The integer type `index` of all walks of a kernel; one that is wide makes all wide.
std::string index_source(bool wide);
/// The arguments `const Shape_s s, const ulong n`.
void add_walk(Launch& launch, const Walk& walk, bool wide);
inline void add_walk(Launch& launch, const Walk& walk) { add_walk(launch, walk, walk.wide); }

}  // namespace cresset_opencl
