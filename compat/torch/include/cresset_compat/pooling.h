// ATen/native/Pool.h: sizes of pools, and what their kernels require.
#pragma once

#include <utility>

#include <cresset_compat/native.h>
#include <cresset_compat/utility.h>

namespace at::native {

/// A number of another type, or an error where that cannot hold it.
template <class To, class From>
To safe_downcast(From v) {
  TORCH_CHECK(std::in_range<To>(v), "integer out of range");
  return static_cast<To>(v);
}

template <class T>
T pooling_output_shape_pad_lr(T input, T kernel, T before, T after, T stride, T dilation, bool ceil_mode) {
  T out = div_rtn<T>(input + before + after - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : T(0)), stride) + 1;
  // The last window starts inside of the input or of what is before it.
  if (ceil_mode && (out - 1) * stride >= input + before) --out;
  return out;
}
template <class T>
T pooling_output_shape(T input, T kernel, T pad, T stride, T dilation, bool ceil_mode) {
  TORCH_CHECK(stride != 0, "stride should not be zero");
  TORCH_CHECK(pad >= 0, "pad must be non-negative, but got pad: ", pad);
  TORCH_CHECK(pad <= ((kernel - 1) * dilation + 1) / 2, "pad should be at most half of effective kernel size, but got pad=", pad,
              ", kernel_size=", kernel, " and dilation=", dilation);
  return pooling_output_shape_pad_lr(input, kernel, pad, pad, stride, dilation, ceil_mode);
}

namespace detail {
/// Windows over the last dimensions: `given` and `made` have the sizes of planes and, for 3-d pools, their depth.
inline void check_pool(const Tensor& input, c10::ArrayRef<int64_t> kernel, c10::ArrayRef<int64_t> stride, c10::ArrayRef<int64_t> pad,
                       c10::ArrayRef<int64_t> dilation, int64_t planes, c10::ArrayRef<int64_t> given, c10::ArrayRef<int64_t> made) {
  const auto n = static_cast<int64_t>(kernel.size());
  for (int64_t i = 0; i < n; ++i) {
    TORCH_CHECK(kernel[i] > 0, "kernel size should be greater than zero, but got ", kernel);
    TORCH_CHECK(stride[i] > 0, "stride should be greater than zero, but got ", stride);
    TORCH_CHECK(dilation[i] > 0, "dilation should be greater than zero, but got ", dilation);
    TORCH_CHECK(kernel[i] / 2 >= pad[i], "pad should be smaller than or equal to half of kernel size, but got padding ", pad,
                " for kernel ", kernel);
  }
  TORCH_CHECK(input.dim() == n + 1 || input.dim() == n + 2, "Expected ", n + 1, "D or ", n + 2,
              "D (batch mode) tensor with optional 0 dim batch size for input, but got:", input.sizes());
  for (int64_t d = input.dim() == n + 2 ? 1 : 0; d < input.dim(); ++d)
    TORCH_CHECK(input.size(d) != 0, "Expected ", n + 1, "D or ", n + 2,
                "D (batch mode) tensor with optional 0 dim batch size for input, but got:", input.sizes());
  for (int64_t out : made)
    TORCH_CHECK(out >= 1, "Given input size: (", planes, ", ", given, "). Calculated output size: (", planes, ", ", made,
                "). Output size is too small");
}
inline void check_pool_gradient(const Tensor& grad, int64_t planes, c10::ArrayRef<int64_t> made) {
  const auto n = static_cast<int64_t>(made.size());
  check_dim_size(grad, grad.dim(), grad.dim() - n - 1, planes);
  for (int64_t i = 0; i < n; ++i) check_dim_size(grad, grad.dim(), grad.dim() - n + i, made[static_cast<std::size_t>(i)]);
}
}  // namespace detail

inline void pool2d_shape_check(const Tensor& input, int64_t kH, int64_t kW, int64_t dH, int64_t dW, int64_t padH, int64_t padW,
                               int64_t dilationH, int64_t dilationW, int64_t nInputPlane, int64_t inputHeight, int64_t inputWidth,
                               int64_t outputHeight, int64_t outputWidth, c10::MemoryFormat format = c10::MemoryFormat::Contiguous) {
  TORCH_CHECK(
      format != c10::MemoryFormat::ChannelsLast || input.dim() == 4,
      "Expected 4D (batch mode) tensor expected for input with channels_last layout with optional 0 dim batch size for input, but got:",
      input.sizes());
  detail::check_pool(input, {kH, kW}, {dH, dW}, {padH, padW}, {dilationH, dilationW}, nInputPlane, {inputHeight, inputWidth},
                     {outputHeight, outputWidth});
}
inline void max_pool2d_backward_shape_check(const Tensor& input, const Tensor& gradOutput, const Tensor& indices, int kH, int kW, int dH,
                                            int dW, int padH, int padW, int dilationH, int dilationW, int64_t nInputPlane,
                                            int64_t inputHeight, int64_t inputWidth, int64_t outputHeight, int64_t outputWidth,
                                            c10::MemoryFormat format = c10::MemoryFormat::Contiguous) {
  pool2d_shape_check(input, kH, kW, dH, dW, padH, padW, dilationH, dilationW, nInputPlane, inputHeight, inputWidth, outputHeight,
                     outputWidth, format);
  detail::check_pool_gradient(gradOutput, nInputPlane, {outputHeight, outputWidth});
  detail::check_pool_gradient(indices, nInputPlane, {outputHeight, outputWidth});
}
inline void avg_pool2d_backward_shape_check(const Tensor& input, const Tensor& gradOutput, int64_t /*nbatch*/, int kH, int kW, int dH,
                                            int dW, int padH, int padW, int64_t nInputPlane, int64_t inputHeight, int64_t inputWidth,
                                            int64_t outputHeight, int64_t outputWidth,
                                            c10::MemoryFormat format = c10::MemoryFormat::Contiguous) {
  pool2d_shape_check(input, kH, kW, dH, dW, padH, padW, 1, 1, nInputPlane, inputHeight, inputWidth, outputHeight, outputWidth, format);
  detail::check_pool_gradient(gradOutput, nInputPlane, {outputHeight, outputWidth});
}
inline void pool3d_shape_check(const Tensor& input, int64_t nslices, int kT, int kH, int kW, int dT, int dH, int dW, int pT, int pH, int pW,
                               int dilationT, int dilationH, int dilationW, int64_t itime, int64_t iheight, int64_t iwidth, int64_t otime,
                               int64_t oheight, int64_t owidth, const char* /*fn_name*/, bool check_input_size = false) {
  detail::check_pool(input, {kT, kH, kW}, {dT, dH, dW}, {pT, pH, pW}, {dilationT, dilationH, dilationW}, nslices, {itime, iheight, iwidth},
                     {otime, oheight, owidth});
  TORCH_CHECK(!check_input_size || (itime >= kT && iheight >= kH && iwidth >= kW), "input image (T: ", itime, " H: ", iheight,
              " W: ", iwidth, ") smaller than kernel size (kT: ", kT, " kH: ", kH, " kW: ", kW, ")");
}
inline void avg_pool3d_backward_shape_check(const Tensor& input, const Tensor& gradOutput, int64_t nslices, int kT, int kH, int kW, int dT,
                                            int dH, int dW, int pT, int pH, int pW, int64_t itime, int64_t iheight, int64_t iwidth,
                                            int64_t otime, int64_t oheight, int64_t owidth, const char* fn_name) {
  pool3d_shape_check(input, nslices, kT, kH, kW, dT, dH, dW, pT, pH, pW, 1, 1, 1, itime, iheight, iwidth, otime, oheight, owidth, fn_name,
                     true);
  detail::check_pool_gradient(gradOutput, nslices, {otime, oheight, owidth});
}

}  // namespace at::native
