// Derivatives of convolutions: everything is again a convolution.
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_conv.h>

#include "autograd/formulas.h"

namespace cresset::autograd::formulas {

DimVector conv_bias_sizes(const Tensor& grad) { return DimVector{grad.size(1)}; }

Tensor convolution_jvp(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p, const Tensor& weight_t, const Tensor& bias_t,
                       IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                       int64_t groups) {
  const std::optional<Tensor> bias = bias_t.defined() ? std::optional<Tensor>(bias_t) : std::nullopt;
  return cresset::convolution(input_t, weight_p, bias, stride, padding, dilation, transposed, output_padding, groups) +
         cresset::convolution(input_p, weight_t, std::nullopt, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward_jvp(const Tensor& gy, const Tensor& gy_t, const Tensor& input,
                                                            const Tensor& input_t, const Tensor& weight, const Tensor& weight_t,
                                                            OptionalIntArrayRef bias_sizes, IntArrayRef stride, IntArrayRef padding,
                                                            IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                                            int64_t groups, std::array<bool, 3> mask) {
  // The input's gradient is bilinear in gy and weight, the weight's in gy and input, and the bias's linear in gy.
  const auto backward = [&](const Tensor& g, const Tensor& x, const Tensor& w, std::array<bool, 3> wanted) {
    return cresset::convolution_backward(g, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, wanted);
  };
  auto [input_tangent, weight_tangent, bias_tangent] = backward(gy_t, input, weight, mask);
  if (mask[0]) input_tangent = input_tangent + std::get<0>(backward(gy, input, weight_t, {true, false, false}));
  if (mask[1]) weight_tangent = weight_tangent + std::get<1>(backward(gy, input_t, weight, {false, true, false}));
  return {input_tangent, weight_tangent, bias_tangent};
}

std::tuple<Tensor, Tensor, Tensor> convolution_double_backward(const Tensor& ggx, const Tensor& ggw, const Tensor& ggb, const Tensor& gy,
                                                               const Tensor& input, const Tensor& weight, IntArrayRef stride,
                                                               IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                                               IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  // convolution is bilinear: with <·,·> the pairing, ggx, ggw and ggb pair with the gradients of <gy, conv(x, w) + b>.
  Tensor ggy, gx, gw;
  const auto add = [](Tensor& sum, Tensor term) { sum = sum.defined() ? sum + term : term; };
  if (mask[0]) {
    if (ggx.defined())
      add(ggy, cresset::convolution(ggx, weight, std::nullopt, stride, padding, dilation, transposed, output_padding, groups));
    if (ggw.defined())
      add(ggy, cresset::convolution(input, ggw, std::nullopt, stride, padding, dilation, transposed, output_padding, groups));
    if (ggb.defined()) {
      DimVector shape(static_cast<std::size_t>(gy.dim()), 1);
      shape[1] = ggb.size(0);
      add(ggy, ggb.reshape(shape).expand(gy.sizes()));
    }
  }
  if (mask[1] && ggw.defined())
    gx = std::get<0>(cresset::convolution_backward(gy, input, ggw, std::nullopt, stride, padding, dilation, transposed, output_padding,
                                                   groups, {true, false, false}));
  if (mask[2] && ggx.defined())
    gw = std::get<1>(cresset::convolution_backward(gy, ggx, weight, std::nullopt, stride, padding, dilation, transposed, output_padding,
                                                   groups, {false, true, false}));
  return {ggy, gx, gw};
}

}  // namespace cresset::autograd::formulas
