// How advanced indexing is laid out: which dimensions are indexed, how index tensors broadcast, where their
// dimensions appear in the result. Shared by the Meta kernel, the CPU kernel and index_put.
#pragma once

#include <cresset/core/tensor.h>

#include <optional>
#include <vector>

namespace cresset::ops {

/// bool and uint8 indices are masks.
inline bool is_mask(const Tensor& t) { return t.scalar_type() == kBool || t.scalar_type() == kByte; }

/// The plan of one call. `self` is a view in which all indexed dimensions are neighbours, starting at `first`.
struct IndexPlan {
  Tensor self;
  int64_t first = 0;            // number of dimensions in front of the indexed ones
  int64_t count = 0;            // number of indexed dimensions
  std::vector<Tensor> indices;  // one int32 or int64 tensor for each, expanded to index_sizes
  DimVector index_sizes;
  DimVector result_sizes;  // self[:first] + index_sizes + self[first + count:]
};

/// Strides of the result, or nothing when they are row-major: its dimensions in the order of self's strides.
CRESSET_API std::optional<DimVector> index_strides(const IndexPlan& plan);

/// Masks become index tensors (which reads them), index tensors are broadcast. Raises IndexError for wrong types,
/// too many indices, masks of another shape and index tensors that do not broadcast.
CRESSET_API IndexPlan plan_index(const Tensor& self, OptionalTensorList indices);

}  // namespace cresset::ops
