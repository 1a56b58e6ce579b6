// Rules of convolutions: examples become images of one batch, or groups of channels when the weights differ between examples.
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_conv.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "batching/batch_call.h"
#include "ops/shared/pointwise.h"

namespace cresset::batching {
namespace {

/// (B, N, C, …) → (N, B * C, …)
Tensor into_channels(const Batch& b, const Tensor& t) { return merge_dims(cresset::movedim(b.full(t), 0, 1), 1); }
/// (N, B * C, …) → (B, N, C, …)
Tensor out_of_channels(const Batch& b, const Tensor& t) { return cresset::movedim(split_dim(t, 1, b.size()), 1, 0); }

Tensor with_bias(const Tensor& out, const std::optional<Tensor>& bias, int64_t spatial) {
  if (!bias) return out;
  CRESSET_CHECK(bias->scalar_type() == out.scalar_type(), "Input type (", ops::cpp_type_name(out.scalar_type()), ") and bias type (",
                ops::cpp_type_name(bias->scalar_type()), ") should be the same");
  DimVector sizes(static_cast<std::size_t>(spatial) + 1, 1);
  sizes[0] = bias->size(0);
  return cresset::add(out, cresset::view(*bias, sizes));
}

Tensor convolution_rule(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  const Batch b(input, weight, bias);
  const auto run = [&](const Tensor& x, const Tensor& w, const std::optional<Tensor>& c, int64_t g) {
    return cresset::convolution(x, w, c, stride, padding, dilation, transposed, output_padding, g);
  };
  if (!b.has(weight)) {
    if (!b.has(input))
      return with_bias(cresset::convolution(input, weight, std::nullopt, stride, padding, dilation, transposed, output_padding, groups),
                       bias, input.dim() - 2);
    const bool later = b.has(bias);
    const Tensor out = split_dim(run(merge_dims(b.front(input), 0), weight, later ? std::nullopt : bias, groups), 0, b.size());
    return later ? with_bias(b.wrap(out), bias, input.dim() - 2) : b.wrap(out);
  }
  if (!b.has(input) && groups == 1 && !transposed) {
    const Tensor out = out_of_channels(b, run(input, merge_dims(b.front(weight), 0), std::nullopt, 1));
    return with_bias(b.wrap(out), bias, input.dim() - 2);
  }
  const Tensor out = out_of_channels(b, run(into_channels(b, input), merge_dims(b.full(weight), 0), std::nullopt, groups * b.size()));
  return with_bias(b.wrap(out), bias, input.dim() - 2);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward_rule(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                                                             OptionalIntArrayRef, IntArrayRef stride, IntArrayRef padding,
                                                             IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                                             int64_t groups, std::array<bool, 3> mask) {
  const Batch b(grad_output, input, weight);
  Tensor grad_input, grad_weight, grad_bias;
  if (mask[0] && !b.has(weight)) {
    const auto g = cresset::convolution_backward(merge_dims(b.full(grad_output), 0), merge_dims(b.full(input), 0), weight, std::nullopt,
                                                 stride, padding, dilation, transposed, output_padding, groups, {true, false, false});
    grad_input = b.wrap(split_dim(std::get<0>(g), 0, b.size()));
  }
  const bool input_by_groups = mask[0] && b.has(weight);
  if (input_by_groups || mask[1]) {
    const auto g = cresset::convolution_backward(into_channels(b, grad_output), into_channels(b, input), merge_dims(b.full(weight), 0),
                                                 std::nullopt, stride, padding, dilation, transposed, output_padding, groups * b.size(),
                                                 {input_by_groups, mask[1], false});
    if (input_by_groups) grad_input = b.wrap(out_of_channels(b, std::get<0>(g)));
    if (mask[1]) grad_weight = b.wrap(split_dim(std::get<1>(g), 0, b.size()));
  }
  if (mask[2]) {
    DimVector dims;
    for (int64_t d = 0; d < grad_output.dim(); ++d)
      if (d != 1) dims.push_back(d);
    grad_bias = cresset::sum(grad_output, IntArrayRef(dims));
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  m.impl("convolution", CRESSET_FN(convolution_rule));
  m.impl("convolution_backward", CRESSET_FN(convolution_backward_rule));
}

}  // namespace cresset::batching
