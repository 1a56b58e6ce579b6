// Sizes of convolutions, shared by shape rules, kernels and formulas.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// Parameter i of a list that may hold one value for all dimensions.
inline int64_t conv_parameter(IntArrayRef list, std::size_t i) { return list.size() == 1 ? list[0] : list[i]; }

/// Sizes of the result of a plain convolution.
DimVector conv_output_sizes(IntArrayRef input, IntArrayRef weight, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation);
/// Sizes of the result of a transposed convolution.
DimVector conv_transposed_output_sizes(IntArrayRef input, IntArrayRef weight, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                       IntArrayRef output_padding, int64_t groups);

/// The memory format of the result and of the gradients: the input's where it is not plain, else the weight's.
CRESSET_API MemoryFormat conv_memory_format(const Tensor& input, const Tensor& weight);

/// Raises when a gradient is none of the convolution's result.
CRESSET_API void check_convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, IntArrayRef stride,
                                            IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                            int64_t groups);

}  // namespace cresset::ops
