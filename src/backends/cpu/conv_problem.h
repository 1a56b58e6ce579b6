// One plain convolution as its three kernels see it: forward, gradient of the input, gradient of the weight.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::cpu {

/// Sizes are (N, C, D, H, W) with ones in front for fewer spatial dimensions; weight is (O, C/groups, KD, KH, KW).
struct ConvProblem {
  std::array<int64_t, 5> x, w, y;
  std::array<int64_t, 3> stride, padding, dilation;
  std::array<int64_t, 3> padding_behind;  // the same as `padding` but for a part
  int64_t groups;
  int spatial;               // dimensions the caller has
  ScalarType type = kFloat;  // of x, w and y; a gradient of the weight is float
};

ConvProblem conv_problem(IntArrayRef x, IntArrayRef w, IntArrayRef y, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                         int64_t groups);

/// oneDNN kernels for float32 and bfloat16 (src/backends/cpu/conv_onednn.cpp). Tensors are dense in any memory format.
/// Each returns false when oneDNN has no implementation for the problem; nothing is written then.
bool onednn_conv_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, const Tensor& y);
bool onednn_conv_backward_data(const ConvProblem& p, const Tensor& gy, const Tensor& w, const Tensor& gx);
bool onednn_conv_backward_weight(const ConvProblem& p, const Tensor& gy, const Tensor& x, const Tensor& gw);

}  // namespace cresset::cpu
