// Arithmetic on sizes and strides that shape rules of several families share.
#pragma once

#include <cresset/core/tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace cresset::ops {

/// A result like `like` (device, and dtype unless given) with these sizes; contiguous unless another format is asked for.
TensorSpec spec_like(const Tensor& like, IntArrayRef sizes, std::optional<ScalarType> dtype = std::nullopt,
                     MemoryFormat format = MemoryFormat::Contiguous);

/// Replaces one -1 by what numel leaves. Raises `shape '[4]' is invalid for input of size 6` and its relatives.
DimVector infer_size(IntArrayRef shape, int64_t numel);

/// Strides that show a tensor of (sizes, strides) under other sizes of equal count, or nothing when it needs a copy.
std::optional<DimVector> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef new_sizes);

/// Sizes both broadcast to. Raises `The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1`.
CRESSET_API DimVector infer_broadcast(IntArrayRef a, IntArrayRef b);

/// One bit for each listed dimension (negative ones wrap). Raises for repeated ones: `dim 0 appears multiple times in the list of dims`.
CRESSET_API uint64_t dim_mask(IntArrayRef dims, int64_t ndim);
/// The dimensions a reduction goes over: all of them when none are listed.
CRESSET_API uint64_t reduce_mask(OptionalIntArrayRef dims, int64_t ndim);

/// Sizes after the masked dimensions are reduced.
CRESSET_API DimVector reduced_sizes(IntArrayRef sizes, uint64_t mask, bool keepdim);

/// start and end of a slice, wrapped and clamped to [0, size], with end >= start.
struct SliceRange {
  int64_t start, end;
};
SliceRange clamp_slice(std::optional<int64_t> start, std::optional<int64_t> end, int64_t size);

/// Raises what expand(size) of a tensor of these sizes would: `The expanded size of the tensor (3) must match the existing size (2) at
/// ...`.
CRESSET_API void check_expands(const Tensor& self, IntArrayRef size);

/// "torch.FloatTensor" or "CPUComplexFloatType": what some errors call a tensor.
CRESSET_API std::string type_name(const Tensor& t);

/// An alias of self's storage, below autograd; with another element type when given (the caller has scaled the rest).
CRESSET_API Tensor make_view(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                             std::optional<ScalarType> dtype = std::nullopt);

/// Promoted type of tensors that all take part as tensors of at least one dimension.
ScalarType promoted_type(TensorList tensors);

/// Both on one device. Raises with the operator's and the argument's name.
CRESSET_API void check_same_device(const char* op, const Tensor& self, const Tensor& other, const char* name);

}  // namespace cresset::ops
