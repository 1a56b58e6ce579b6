// Gradient helpers of the view family.
#pragma once

#include <cresset/core/tensor.h>

#include <vector>

namespace cresset::autograd::formulas {

/// Dimensions put back where permute took them from.
Tensor permute_backward(const Tensor& grad, IntArrayRef dims);
/// slice_backward with the optional ends of slice.
Tensor slice_backward_optional(const Tensor& grad, IntArrayRef sizes, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                               int64_t step);
/// Gradient of as_strided of a tensor with the given geometry: windows that overlap add up.
Tensor as_strided_backward(const Tensor& grad, IntArrayRef input_sizes, IntArrayRef input_strides, int64_t input_offset, IntArrayRef size,
                           IntArrayRef stride, std::optional<int64_t> storage_offset);
/// Tangent of as_strided of `self`, as a view of self's tangent: that has the strides of self, and an offset of its own.
Tensor as_strided_jvp(const Tensor& self_t, const Tensor& self, IntArrayRef size, IntArrayRef stride,
                      std::optional<int64_t> storage_offset);
/// What as_strided_scatter gives for parts of its arguments (tangents) that are not laid out as they are: self had these strides and this
/// offset.
Tensor as_strided_scatter_linear(const Tensor& self_part, const Tensor& src_part, IntArrayRef self_strides, int64_t self_offset,
                                 IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset);
/// Gradients of as_strided_scatter where self had these strides and this offset: the gradient's own geometry says nothing about its
/// result's.
Tensor as_strided_scatter_backward_self(const Tensor& grad, IntArrayRef self_strides, int64_t self_offset, IntArrayRef size,
                                        IntArrayRef stride, std::optional<int64_t> storage_offset);
Tensor as_strided_scatter_backward_src(const Tensor& grad, IntArrayRef self_strides, int64_t self_offset, IntArrayRef size,
                                       IntArrayRef stride, std::optional<int64_t> storage_offset);
/// Pieces joined again; undefined ones count as zeros.
Tensor split_backward(const std::vector<Tensor>& grads, int64_t split_size, int64_t dim, IntArrayRef sizes, const TensorOptions& options);
Tensor split_with_sizes_backward(const std::vector<Tensor>& grads, IntArrayRef split_sizes, int64_t dim, IntArrayRef sizes,
                                 const TensorOptions& options);
/// grad with the dimensions of one element that a squeeze took from `sizes`: all, or those of `dims`.
Tensor unsqueeze_to(const Tensor& grad, IntArrayRef sizes);
Tensor unsqueeze_to(const Tensor& grad, IntArrayRef sizes, IntArrayRef dims);
inline Tensor unsqueeze_to(const Tensor& grad, IntArrayRef sizes, int64_t dim) { return unsqueeze_to(grad, sizes, IntArrayRef(&dim, 1)); }
Tensor unbind_backward(const std::vector<Tensor>& grads, int64_t dim, IntArrayRef sizes, const TensorOptions& options);

}  // namespace cresset::autograd::formulas
