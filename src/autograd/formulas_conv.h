// Derivatives of convolutions.
#pragma once

#include <array>
#include <tuple>

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// Sizes of the bias whose gradient belongs to a gradient of the output.
DimVector conv_bias_sizes(const Tensor& grad);
Tensor convolution_jvp(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p, const Tensor& weight_t, const Tensor& bias_t,
                       IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                       int64_t groups);
/// Tangents of the three results of convolution_backward; undefined where the mask asks for none.
std::tuple<Tensor, Tensor, Tensor> convolution_backward_jvp(const Tensor& gy, const Tensor& gy_t, const Tensor& input,
                                                            const Tensor& input_t, const Tensor& weight, const Tensor& weight_t,
                                                            OptionalIntArrayRef bias_sizes, IntArrayRef stride, IntArrayRef padding,
                                                            IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                                            int64_t groups, std::array<bool, 3> mask);
/// Gradients of convolution_backward for grad_output, input and weight, given those of its three results (any may be undefined).
std::tuple<Tensor, Tensor, Tensor> convolution_double_backward(const Tensor& ggx, const Tensor& ggw, const Tensor& ggb, const Tensor& gy,
                                                               const Tensor& input, const Tensor& weight, IntArrayRef stride,
                                                               IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                                               IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask);

}  // namespace cresset::autograd::formulas
