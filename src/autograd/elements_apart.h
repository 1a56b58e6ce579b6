// Have all elements of a tensor memory of their own? Tangents of tensors that repeat elements (expand, unfold) have another layout than
// these.
#pragma once

#include <cresset/core/tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace cresset::autograd {

/// False for a few layouts without shared memory, too: dimensions that are woven into each other.
inline bool elements_apart(const Tensor& t) {
  if (!t.has_storage() || t.is_non_overlapping_and_dense()) return true;
  std::vector<std::pair<int64_t, int64_t>> dims;  // (stride, size)
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1) dims.emplace_back(t.stride(d), t.size(d));
  std::sort(dims.begin(), dims.end());
  int64_t extent = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < extent) return false;
    extent += (size - 1) * stride;
  }
  return true;
}

}  // namespace cresset::autograd
