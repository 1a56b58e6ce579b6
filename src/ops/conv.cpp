// Shape rules and compositions of convolutions.
#include "ops/conv.h"

#include <algorithm>
#include <limits>

#include <cresset/base/warn_always.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_conv.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>

#include "ops/ops_decl_conv.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

std::string by_x(const DimVector& sizes) {
  std::string out = "(";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i ? " x " : "") + std::to_string(sizes[i]);
  return out + ")";
}

void check_list(const char* name, IntArrayRef list, std::size_t n, int64_t least) {
  CRESSET_CHECK(list.size() == 1 || list.size() == n, "expected ", name, " to be a single integer value or a list of ", n,
                " values to match the convolution dimensions, but got ", name, "=", list);
  for (int64_t v : list) CRESSET_CHECK(v >= least, least > 0 ? "non-positive " : "negative ", name, " is not supported");
}

void check_kernel(IntArrayRef kernel) {
  if (std::ranges::all_of(kernel, [](int64_t n) { return n > 0; })) return;
  CRESSET_CHECK(kernel.size() != 3, "kernel size should be greater than zero, but got: ", kernel[0], " x ", kernel[1], " x ", kernel.back(),
                " (TxHxW)");
  CRESSET_CHECK(false, "kernel size should be greater than zero, but got kernel_height: ", kernel.size() == 2 ? kernel[0] : 1,
                " kernel_width: ", kernel.back());
}

// a * b + c, or the largest number where that is too large.
int64_t bounded(int64_t a, int64_t b, int64_t c) {
  int64_t out;
  return __builtin_mul_overflow(a, b, &out) || __builtin_add_overflow(out, c, &out) ? std::numeric_limits<int64_t>::max() : out;
}

void check_convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                       IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  const int64_t k = weight.dim();
  CRESSET_CHECK(k >= 3 && k <= 5, "weight should have at least three dimensions and at most five; ", weight, " was given.");
  CRESSET_CHECK(input.dim() == k, "Expected ", k, "-dimensional input for ", k, "-dimensional weight ", weight.sizes(), ", but got ",
                input.dim(), "-dimensional input of size ", input.sizes(), " instead");
  const auto n = static_cast<std::size_t>(k - 2);
  CRESSET_CHECK(groups > 0, "non-positive groups is not supported");
  check_list("stride", stride, n, 1);
  check_list("padding", padding, n, 0);
  for (std::size_t i = 0; i < padding.size(); ++i)
    CRESSET_CHECK(padding[i] <= std::numeric_limits<int64_t>::max() / 2, "Given padding=", padding[i], " at dimension ", i,
                  " , expected padding to be at most ", std::numeric_limits<int64_t>::max() / 2);
  check_list("dilation", dilation, n, 1);
  CRESSET_CHECK(input.scalar_type() == weight.scalar_type(), "Input type (", input.scalar_type(), ") and weight type (",
                weight.scalar_type(), ") should be the same");
  check_same_device("convolution", input, weight, "weight");
  check_list("output_padding", output_padding, n, 0);
  CRESSET_CHECK(weight.size(0) >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
                " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  if (!transposed) {
    CRESSET_CHECK(weight.size(0) % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
                  " at dimension 0, but got weight of size [", weight.sizes(), "] instead");
    CRESSET_CHECK(input.size(1) == weight.size(1) * groups, "Given groups=", groups, ", weight of size ", weight.sizes(),
                  ", expected input", input.sizes(), " to have ", weight.size(1) * groups, " channels, but got ", input.size(1),
                  " channels instead");
    DimVector padded, kernel;
    bool fits = true;
    for (std::size_t i = 0; i < n; ++i) {
      padded.push_back(bounded(2, conv_parameter(padding, i), input.size(i + 2)));
      kernel.push_back(bounded(conv_parameter(dilation, i), weight.size(i + 2) - 1, 1));
      fits = fits && padded[i] >= kernel[i];
    }
    CRESSET_CHECK(fits, "Calculated padded input size per channel: ", by_x(padded), ". Kernel size: ", by_x(kernel),
                  ". Kernel size can't be greater than actual input size");
  } else {
    CRESSET_CHECK(input.size(1) == weight.size(0), "Given transposed=1, weight of size ", weight.sizes(), ", expected input", input.sizes(),
                  " to have ", weight.size(0), " channels, but got ", input.size(1), " channels instead");
    CRESSET_CHECK(input.size(1) % groups == 0, "Given groups=", groups, ", expected input channels to be divisible by ", groups,
                  ", but got ", input.size(1));
    for (std::size_t i = 0; i < n; ++i)
      CRESSET_CHECK(conv_parameter(output_padding, i) < std::max(conv_parameter(stride, i), conv_parameter(dilation, i)),
                    "output padding must be smaller than either stride or dilation, but got output_padding ", output_padding, ", stride ",
                    stride, ", dilation ", dilation);
  }
  check_kernel(weight.sizes().slice(2));
  const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  if (bias) {
    CRESSET_CHECK(bias->dim() == 1 && bias->size(0) == channels, "Given ", transposed ? "transposed=1, " : "", "weight of size ",
                  weight.sizes(), ", expected bias to be 1-dimensional with ", channels, " elements, but got bias of size ", bias->sizes(),
                  " instead");
    CRESSET_CHECK(bias->scalar_type() == input.scalar_type(), "Input type (", cpp_type_name(input.scalar_type()), ") and bias type (",
                  cpp_type_name(bias->scalar_type()), ") should be the same");
  }
}

// Does the device bring kernels for convolution_overrideable, PyTorch's name for convolutions of devices?
bool is_overridden(const Tensor& input) {
  if (input.is_cpu()) return false;
  static const OperatorHandle op = Dispatcher::singleton().findSchemaOrThrow("aten::convolution_overrideable", "");
  return op.hasKernelForDispatchKey(backendKey(input.device().type()));
}

Tensor convolve(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  const auto call = is_overridden(input) ? &cresset::convolution_overrideable : &cresset::convolution;
  return call(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

// Runs a convolution on an input that may lack its batch dimension.
template <class F>
Tensor with_batch(const char* name, const Tensor& input, const Tensor& weight, int64_t n, const F& f) {
  CRESSET_CHECK(input.dim() == n + 2 || input.dim() == n + 1, "Expected ", n + 1, "D (unbatched) or ", n + 2, "D (batched) input to ", name,
                n, "d, but got input of size: ", input.sizes());
  CRESSET_CHECK(weight.dim() == n + 2, name, n, "d: weight of ", n + 2, " dimensions was required; ", weight, " was given.");
  if (input.dim() == n + 2) return f(input);
  return f(input.unsqueeze(0)).squeeze(0);
}

// `n` spatial dimensions; unbatched inputs get a batch of one.
Tensor conv_nd(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
               IntArrayRef dilation, int64_t groups, int64_t n) {
  const DimVector none(static_cast<std::size_t>(n), 0);
  return with_batch("conv", input, weight, n,
                    [&](const Tensor& x) { return convolve(x, weight, bias, stride, padding, dilation, false, none, groups); });
}

// A trace records it whole.
Tensor conv_nd_named_padding(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                             std::string_view padding, IntArrayRef dilation, int64_t groups, int64_t n) {
  return with_batch("conv", input, weight, n,
                    [&](const Tensor& x) { return cresset::_convolution_mode(x, weight, bias, stride, padding, dilation, groups); });
}

Tensor conv_transpose_nd(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                         IntArrayRef padding, IntArrayRef output_padding, int64_t groups, IntArrayRef dilation, int64_t n) {
  return with_batch("conv_transpose", input, weight, n,
                    [&](const Tensor& x) { return convolve(x, weight, bias, stride, padding, dilation, true, output_padding, groups); });
}

}  // namespace

DimVector conv_output_sizes(IntArrayRef input, IntArrayRef weight, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) {
  DimVector out{input[0], weight[0]};
  for (std::size_t i = 0; i + 2 < input.size(); ++i)
    out.push_back((input[i + 2] + 2 * conv_parameter(padding, i) - conv_parameter(dilation, i) * (weight[i + 2] - 1) - 1) /
                      conv_parameter(stride, i) +
                  1);
  return out;
}

DimVector conv_transposed_output_sizes(IntArrayRef input, IntArrayRef weight, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                       IntArrayRef output_padding, int64_t groups) {
  DimVector out{input[0], weight[1] * groups};
  for (std::size_t i = 0; i + 2 < input.size(); ++i)
    out.push_back((input[i + 2] - 1) * conv_parameter(stride, i) - 2 * conv_parameter(padding, i) +
                  conv_parameter(dilation, i) * (weight[i + 2] - 1) + conv_parameter(output_padding, i) + 1);
  return out;
}

MemoryFormat conv_memory_format(const Tensor& input, const Tensor& weight) {
  return input.suggest_memory_format() != MemoryFormat::Contiguous ? input.suggest_memory_format() : weight.suggest_memory_format();
}

TensorSpec convolution_shape(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  check_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  const DimVector sizes =
      transposed ? conv_transposed_output_sizes(input.sizes(), weight.sizes(), stride, padding, dilation, output_padding, groups)
                 : conv_output_sizes(input.sizes(), weight.sizes(), stride, padding, dilation);
  const IntArrayRef places = IntArrayRef(sizes).slice(2);  // a kernel that fits leaves at least one along each axis
  CRESSET_CHECK(!transposed || std::all_of(places.begin(), places.end(), [](int64_t s) { return s > 0; }),
                "Given input size per channel: ", by_x(input.sizes().slice(2)), ". Calculated output size per channel: ", by_x(places),
                ". Output size is too small");
  return spec_like(input, sizes, std::nullopt, conv_memory_format(input, weight));
}

void check_convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, IntArrayRef stride,
                                IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  for (int64_t p : output_padding)
    CRESSET_CHECK(transposed || p == 0, "output_padding is not supported for non-transposed convolutions; got: ", p);
  const TensorSpec result = convolution_shape(input, weight, std::nullopt, stride, padding, dilation, transposed, output_padding, groups);
  CRESSET_CHECK(grad_output.sizes() == IntArrayRef(result.sizes), "convolution_backward: expected grad_output to have shape ", result.sizes,
                ", but got ", grad_output.sizes());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward_meta(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                                                             OptionalIntArrayRef bias_sizes, IntArrayRef stride, IntArrayRef padding,
                                                             IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                                             int64_t groups, std::array<bool, 3> mask) {
  check_convolution_backward(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups);
  check_same_device("convolution_backward", input, grad_output, "grad_output");
  check_same_device("convolution_backward", input, weight, "weight");
  const MemoryFormat format = conv_memory_format(input, weight);
  const auto like = [format](const Tensor& t) { return cresset::empty(t.sizes(), t.options().memory_format(format)); };
  return {mask[0] ? like(input) : Tensor(), mask[1] ? like(weight) : Tensor(),
          mask[2] ? cresset::empty(bias_sizes ? *bias_sizes : IntArrayRef{grad_output.size(1)}, grad_output.options()) : Tensor()};
}

// ---- compositions

Tensor convolution_switched(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                            IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups, bool,
                            bool, bool, bool) {
  return convolve(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}
[[noreturn]] void raise_not_overridden(const char* name) {
  CRESSET_THROW(NotImplementedError, name,
                " not implemented. You are likely triggering this with tensor backend other than CPU/CUDA/MKLDNN, "
                "if this is intended, please use TORCH_LIBRARY_IMPL to override this function ");
}
Tensor convolution_overrideable_impl(const Tensor&, const Tensor&, const std::optional<Tensor>&, IntArrayRef, IntArrayRef, IntArrayRef,
                                     bool, IntArrayRef, int64_t) {
  raise_not_overridden("convolution_overrideable");
}
std::tuple<Tensor, Tensor, Tensor> convolution_backward_overrideable_impl(const Tensor&, const Tensor&, const Tensor&, IntArrayRef,
                                                                          IntArrayRef, IntArrayRef, bool, IntArrayRef, int64_t,
                                                                          std::array<bool, 3>) {
  raise_not_overridden("convolution_backward_overrideable");
}

Tensor convolution_mode_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                             std::string_view padding, IntArrayRef dilation, int64_t groups) {
  CRESSET_CHECK(padding == "same" || padding == "valid", "Invalid padding string: '", padding, "'");
  const int64_t n = weight.dim() - 2;
  CRESSET_CHECK(n >= 1 && input.dim() == weight.dim(),
                "_convolution_mode: input and weight of the same dimensions, three or more, were required; ", input, " and ", weight,
                " were given.");
  DimVector symmetric(static_cast<std::size_t>(n), 0);
  if (padding == "valid") return conv_nd(input, weight, bias, stride, symmetric, dilation, groups, n);
  for (int64_t s : stride) CRESSET_CHECK(s == 1, "padding='same' is not supported for strided convolutions");
  // An odd total goes to the end, by padding the input first.
  DimVector extra;
  bool uneven = false;
  for (std::size_t i = static_cast<std::size_t>(n); i-- > 0;) {
    const int64_t total = conv_parameter(dilation, i) * (weight.size(static_cast<int64_t>(i) + 2) - 1);
    symmetric[i] = total / 2;
    extra.push_back(0);
    extra.push_back(total % 2);
    uneven = uneven || total % 2 != 0;
  }
  if (uneven)
    CRESSET_WARN_FIRST(
        "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be created");
  return conv_nd(uneven ? cresset::constant_pad_nd(input, extra) : input, weight, bias, stride, symmetric, dilation, groups, n);
}

Tensor conv1d_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                   IntArrayRef dilation, int64_t groups) {
  return conv_nd(input, weight, bias, stride, padding, dilation, groups, 1);
}
Tensor conv1d_named_padding(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                            std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return conv_nd_named_padding(input, weight, bias, stride, padding, dilation, groups, 1);
}
Tensor conv_transpose1d_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return conv_transpose_nd(input, weight, bias, stride, padding, output_padding, groups, dilation, 1);
}
Tensor conv2d_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                   IntArrayRef dilation, int64_t groups) {
  return conv_nd(input, weight, bias, stride, padding, dilation, groups, 2);
}
Tensor conv2d_named_padding(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                            std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return conv_nd_named_padding(input, weight, bias, stride, padding, dilation, groups, 2);
}
Tensor conv_transpose2d_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return conv_transpose_nd(input, weight, bias, stride, padding, output_padding, groups, dilation, 2);
}
Tensor conv3d_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                   IntArrayRef dilation, int64_t groups) {
  return conv_nd(input, weight, bias, stride, padding, dilation, groups, 3);
}
Tensor conv3d_named_padding(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                            std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return conv_nd_named_padding(input, weight, bias, stride, padding, dilation, groups, 3);
}
Tensor conv_transpose3d_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return conv_transpose_nd(input, weight, bias, stride, padding, output_padding, groups, dilation, 3);
}

Tensor conv_tbc_impl(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  CRESSET_CHECK(self.dim() == 3, "Input must have 3 dims: time, batch, in_channel");
  CRESSET_CHECK(weight.dim() == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
  CRESSET_CHECK(bias.dim() == 1, "Bias must be 1-D");
  return cresset::conv1d(self.permute({1, 2, 0}), weight.permute({2, 1, 0}), bias, 1, pad).permute({2, 0, 1});
}

namespace {
void check_kernel_size(const char* name, const Tensor& weight, IntArrayRef kernel_size) {
  for (std::size_t i = 0; i < kernel_size.size(); ++i) {
    const int64_t given = weight.size(weight.dim() - static_cast<int64_t>(kernel_size.size() - i));
    CRESSET_CHECK(given == kernel_size[i], name, ": a weight with the last sizes ", kernel_size, " was required; ", weight.sizes(),
                  " was given.");
  }
}
}  // namespace

Tensor slow_conv_dilated(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size, const std::optional<Tensor>& bias,
                         IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) {
  check_kernel_size("slow_conv_dilated", weight, kernel_size);
  return conv_nd(self, weight, bias, stride, padding, dilation, 1, static_cast<int>(kernel_size.size()));
}
Tensor slow_conv_transpose(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size, const std::optional<Tensor>& bias,
                           IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding, IntArrayRef dilation) {
  check_kernel_size("slow_conv_transpose", weight, kernel_size);
  return conv_transpose_nd(self, weight, bias, stride, padding, output_padding, 1, dilation, static_cast<int>(kernel_size.size()));
}
Tensor slow_conv3d_impl(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size, const std::optional<Tensor>& bias,
                        IntArrayRef stride, IntArrayRef padding) {
  check_kernel_size("slow_conv3d", weight, kernel_size);
  return conv_nd(self, weight, bias, stride, padding, 1, 1, 3);
}
Tensor conv_depthwise(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size, const std::optional<Tensor>& bias,
                      IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) {
  check_kernel_size("conv_depthwise", weight, kernel_size);
  const auto n = static_cast<int>(kernel_size.size());
  return conv_nd(self, weight, bias, stride, padding, dilation, self.size(self.dim() - 1 - n), n);
}

}  // namespace cresset::ops
