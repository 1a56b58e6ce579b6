// Shape rules of pooling, and the one-dimensional forms as two-dimensional ones of height one.
#include "ops/pool.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include <cresset/ops/functions_pool.h>
#include <cresset/ops/functions_reduce.h>

#include "ops/ops_decl_pool.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

int64_t parameter(IntArrayRef list, int i) { return list.size() == 1 ? list[0] : list[static_cast<std::size_t>(i)]; }

// Windows: nothing but a batch may be empty.
void check_input(const char* op, const Tensor& self, int n) {
  const bool fits = self.dim() == n + 1 || self.dim() == n + 2, averages = std::string_view(op).starts_with("avg");
  CRESSET_CHECK(fits || n == 1 || (n == 2 && averages), "non-empty ", n + 1, "D or ", n + 2, "D (batch mode) tensor expected for input");
  bool filled = fits;
  for (int64_t d = self.dim() == n + 2 ? 1 : 0; filled && d < self.dim(); ++d) filled = self.size(d) > 0;
  CRESSET_CHECK(filled || n == 3, n == 1 ? str(op, ": ") : "", "Expected ", n + 1, "D or ", n + 2,
                "D (batch mode) tensor with optional 0 dim batch size for input, but got:", self.sizes());
  CRESSET_CHECK(filled, averages ? op : "max_pool3d_with_indices_out_cpu_template",
                "(): Expected input's non-batch dimensions to have positive length, but input has a shape of ", self.sizes(),
                " and non-batch dimension 0 has length zero!");
}

// Adaptive windows: the first dimension may be empty, whether it is a batch or channels.
void check_adaptive_input(const char* op, const Tensor& self, int n) {
  const bool averages = std::string_view(op).starts_with("adaptive_avg");
  CRESSET_CHECK(self.dim() == n + 1 || self.dim() == n + 2, op, "(): Expected ", n + 1, "D or ", n + 2, "D tensor, but got",
                averages ? " " : ": ", self.sizes());
  for (int64_t d = averages && n == 2 ? self.dim() - n : 1; d < self.dim(); ++d)
    CRESSET_CHECK(self.size(d) > 0, op, "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
                  self.sizes(), " with dimension ", d, " being empty");
}

void check_row(const char* op, const Tensor& self) {
  CRESSET_CHECK(self.dim() == 2 || self.dim() == 3, "Expected 2 to 3 dimensions, but got ", self.dim(),
                "-dimensional tensor for argument #1 'self' (while checking arguments for ", op, ")");
}

void check_list(const char* op, const char* name, IntArrayRef list, int n) {
  CRESSET_CHECK(list.size() == 1 || static_cast<int>(list.size()) == n, op, ": ", name, " must either be a single int, or a tuple of ", n,
                " ints; ", list, " was given.");
  for (int64_t v : list) CRESSET_CHECK(v <= std::numeric_limits<int32_t>::max(), "value cannot be converted to type int without overflow");
}

TensorSpec spec_of(const Tensor& self, int n, const PoolWindows& w, std::optional<ScalarType> dtype = std::nullopt) {
  DimVector sizes(self.sizes());
  for (int i = 0; i < n; ++i) sizes[sizes.size() - n + i] = w.out[3 - n + i];
  return spec_like(self, sizes, dtype, self.dim() == n + 2 && n > 1 ? self.suggest_memory_format() : MemoryFormat::Contiguous);
}

// "padW = 1, padH = 1, kW = 2, kH = 2"
std::string paddings(const PoolWindows& w, int n) {
  if (n == 2) return str("padW = ", w.padding[2], ", padH = ", w.padding[1], ", kW = ", w.kernel[2], ", kH = ", w.kernel[1]);
  return str("kT: ", w.kernel[0], " kW: ", w.kernel[2], " kH: ", w.kernel[1], " padT: ", w.padding[0], " padW: ", w.padding[2],
             " padH: ", w.padding[1]);
}
// "2x5x5": channels and the last n sizes.
std::string plane_text(int64_t channels, const std::array<int64_t, 3>& sizes, int n) {
  std::string text = std::to_string(channels);
  for (int i = 3 - n; i < 3; ++i) text += "x" + std::to_string(sizes[i]);
  return text;
}

PoolWindows frame(const Tensor& self, int n) {
  PoolWindows w{};
  w.in = w.out = w.kernel = w.stride = w.dilation = {1, 1, 1};
  w.padding = {0, 0, 0};
  w.planes = 1;
  for (int64_t d = 0; d < self.dim() - n; ++d) w.planes *= self.size(d);
  for (int i = 0; i < n; ++i) w.in[3 - n + i] = self.size(self.dim() - n + i);
  return w;
}

std::array<TensorSpec, 2> max_specs(const char* op, const Tensor& self, int n, IntArrayRef kernel_size, IntArrayRef stride,
                                    IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const PoolWindows w = pool_windows(op, self, n, kernel_size, stride, padding, dilation, ceil_mode);
  std::array<TensorSpec, 2> specs{spec_of(self, n, w), spec_of(self, n, w, kLong)};
  const auto channels_last = [](IntArrayRef sizes) {
    DimVector batch{1};
    for (int64_t size : sizes) batch.push_back(size);
    const DimVector strides = strides_for(batch, MemoryFormat::ChannelsLast3d);
    return DimVector(IntArrayRef(strides).slice(1));
  };
  if (n == 3 && self.dim() == 4 && !self.is_contiguous() && self.strides() == IntArrayRef(channels_last(self.sizes())))
    for (TensorSpec& spec : specs) spec.strides = channels_last(spec.sizes);
  return specs;
}

void check_indices(const char* op, const Tensor& grad_output, const Tensor& indices) {
  CRESSET_CHECK(indices.scalar_type() == kLong, op, ": indices of type int64 were required; got ", indices.scalar_type(), ".");
  CRESSET_CHECK(indices.sizes() == grad_output.sizes(), op, ": Expected indices of size ", grad_output.sizes(), ", but got ",
                indices.sizes());
}

TensorSpec backward_spec(const char* op, const Tensor& grad_output, const Tensor& self, const TensorSpec& forward) {
  CRESSET_CHECK(grad_output.sizes() == IntArrayRef(forward.sizes), op, ": Expected a gradient of size ", forward.sizes, ", but got ",
                grad_output.sizes());
  return spec_like(self, self.sizes(), std::nullopt,
                   self.dim() == 4 || self.dim() == 5 ? self.suggest_memory_format() : MemoryFormat::Contiguous);
}

// The sizes of windows that a gradient of adaptive pooling over n dimensions was made by.
IntArrayRef adaptive_sizes(const char* op, const Tensor& grad_output, const Tensor& self, int n) {
  for (int64_t d = 1; d < grad_output.dim(); ++d)
    CRESSET_CHECK(grad_output.size(d) > 0, op,
                  "(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes ",
                  grad_output.sizes(), " with dimension ", d, " being empty");
  CRESSET_CHECK(grad_output.dim() == self.dim() && self.dim() >= n, op, ": a gradient of the input's ", self.dim(),
                " dimensions was required; ", grad_output.dim(), " were given.");
  return grad_output.sizes().slice(static_cast<std::size_t>(grad_output.dim() - n));
}

}  // namespace

namespace {
// "dT: 1 dH: 2 dW: 3": a number for each of the last n dimensions.
std::string by_dimension(const char* name, IntArrayRef list, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += str(i ? " " : "", name, "THW"[3 - n + i], ": ", parameter(list, i));
  return text;
}
bool all_positive(IntArrayRef list) {
  return std::ranges::all_of(list, [](int64_t v) { return v > 0; });
}
}  // namespace

PoolWindows pool_windows(const char* op, const Tensor& self, int n, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                         IntArrayRef dilation, bool ceil_mode) {
  check_list(op, "kernel_size", kernel_size, n);
  if (!stride.empty()) check_list(op, "stride", stride, n);
  check_list(op, "padding", padding, n);
  check_list(op, "dilation", dilation, n);
  CRESSET_CHECK(std::ranges::find(stride, 0) == stride.end(), "stride should not be zero");
  CRESSET_CHECK(all_positive(kernel_size), "kernel size should be greater than zero, but got ", by_dimension("k", kernel_size, n));
  CRESSET_CHECK(all_positive(stride), "stride should be greater than zero, but got ", by_dimension("d", stride, n));
  CRESSET_CHECK(all_positive(dilation), "dilation should be greater than zero, but got ", by_dimension("dilation", dilation, n));
  for (int64_t v : padding) CRESSET_CHECK(v >= 0, "pad must be non-negative, but got pad: ", v);
  check_input(op, self, n);
  PoolWindows w = frame(self, n);
  for (int i = 0; i < n; ++i) {
    const int d = 3 - n + i;
    w.kernel[d] = parameter(kernel_size, i);
    w.stride[d] = stride.empty() ? w.kernel[d] : parameter(stride, i);
    w.padding[d] = parameter(padding, i);
    w.dilation[d] = parameter(dilation, i);
    CRESSET_CHECK(w.padding[d] <= ((w.kernel[d] - 1) * w.dilation[d] + 1) / 2,
                  "pad should be at most half of effective kernel size, but got pad=", w.padding[d], ", kernel_size=", w.kernel[d],
                  " and dilation=", w.dilation[d]);
    const int64_t reach = w.in[d] + 2 * w.padding[d] - w.dilation[d] * (w.kernel[d] - 1) - 1;
    const int64_t steps = reach + (ceil_mode ? w.stride[d] - 1 : 0);
    int64_t out = steps < 0 ? 0 : steps / w.stride[d] + 1;  // windows that are longer than all there is fit nowhere
    // With ceil_mode the last window must still begin inside the input or the left padding.
    if (ceil_mode && (out - 1) * w.stride[d] >= w.in[d] + w.padding[d]) --out;
    w.out[d] = out;
  }
  for (int i = 3 - n; i < 3; ++i)
    CRESSET_CHECK(w.padding[i] <= w.kernel[i] / 2, "pad should be smaller than or equal to half of kernel size, but got ", paddings(w, n));
  for (int i = 3 - n; i < 3; ++i)
    CRESSET_CHECK(w.out[i] >= 1, "Given input size: (", plane_text(self.size(-n - 1), w.in, n), "). Calculated output size: (",
                  plane_text(self.size(-n - 1), w.out, n), "). Output size is too small");
  return w;
}

PoolWindows adaptive_windows(const char* op, const Tensor& self, int n, IntArrayRef output_size) {
  const bool needs_all = std::string_view(op) == "adaptive_max_pool3d";
  CRESSET_CHECK((output_size.size() == 1 && !needs_all) || static_cast<int>(output_size.size()) == n, op,
                needs_all ? "(): internal error: output_size.size() must be " : ": output_size must be ", n);
  check_adaptive_input(op, self, n);
  PoolWindows w = frame(self, n);
  for (int i = 0; i < n; ++i) {
    w.out[3 - n + i] = parameter(output_size, i);
    CRESSET_CHECK(w.out[3 - n + i] >= 0, op, ": elements of output_size must be greater than or equal to 0 but received ", output_size);
  }
  CRESSET_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.is_meta(), '"', op, n == 3 ? "_cpu" : "", "\" not implemented for '",
                                self.scalar_type(), "'");
  return w;
}

// ---- two dimensions

std::array<TensorSpec, 2> max_pool2d_shape(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                                           IntArrayRef dilation, bool ceil_mode) {
  return max_specs("max_pool2d", self, 2, kernel_size, stride, padding, dilation, ceil_mode);
}
TensorSpec max_pool2d_backward_shape(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  check_indices("max_pool2d_backward", grad_output, indices);
  return backward_spec("max_pool2d_backward", grad_output, self,
                       max_specs("max_pool2d", self, 2, kernel_size, stride, padding, dilation, ceil_mode)[0]);
}
TensorSpec avg_pool2d_shape(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool,
                            std::optional<int64_t> divisor_override) {
  CRESSET_CHECK(!divisor_override || *divisor_override != 0, "divisor must be not zero");
  return spec_of(self, 2, pool_windows("avg_pool2d", self, 2, kernel_size, stride, padding, {1}, ceil_mode));
}
TensorSpec avg_pool2d_backward_shape(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                     IntArrayRef padding, bool ceil_mode, bool include, std::optional<int64_t> divisor) {
  return backward_spec("avg_pool2d_backward", grad_output, self,
                       avg_pool2d_shape(self, kernel_size, stride, padding, ceil_mode, include, divisor));
}
TensorSpec adaptive_avg_pool2d_shape(const Tensor& self, IntArrayRef output_size) {
  return spec_of(self, 2, adaptive_windows("adaptive_avg_pool2d", self, 2, output_size));
}
TensorSpec adaptive_avg_pool2d_backward_shape(const Tensor& grad_output, const Tensor& self) {
  return backward_spec("adaptive_avg_pool2d_backward", grad_output, self,
                       adaptive_avg_pool2d_shape(self, adaptive_sizes("adaptive_avg_pool2d_backward", grad_output, self, 2)));
}
std::array<TensorSpec, 2> adaptive_max_pool2d_shape(const Tensor& self, IntArrayRef output_size) {
  const PoolWindows w = adaptive_windows("adaptive_max_pool2d", self, 2, output_size);
  return {spec_of(self, 2, w), spec_of(self, 2, w, kLong)};
}
TensorSpec adaptive_max_pool2d_backward_shape(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  constexpr const char* kName = "adaptive_max_pool2d_backward";
  check_indices(kName, grad_output, indices);
  return backward_spec(kName, grad_output, self, adaptive_max_pool2d_shape(self, adaptive_sizes(kName, grad_output, self, 2))[0]);
}

// ---- three dimensions

std::array<TensorSpec, 2> max_pool3d_shape(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                                           IntArrayRef dilation, bool ceil_mode) {
  return max_specs("max_pool3d", self, 3, kernel_size, stride, padding, dilation, ceil_mode);
}
TensorSpec max_pool3d_backward_shape(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  check_indices("max_pool3d_backward", grad_output, indices);
  return backward_spec("max_pool3d_backward", grad_output, self,
                       max_specs("max_pool3d", self, 3, kernel_size, stride, padding, dilation, ceil_mode)[0]);
}
TensorSpec avg_pool3d_shape(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool,
                            std::optional<int64_t> divisor_override) {
  CRESSET_CHECK(!divisor_override || *divisor_override != 0, "divisor must be not zero");
  check_input("avg_pool3d", self, 3);
  const auto at_least_kernel = [&] {
    for (int64_t i = 0; i < 3; ++i)
      if (self.size(i - 3) < kernel_size[kernel_size.size() == 1 ? 0 : static_cast<std::size_t>(i)]) return false;
    return true;
  };
  CRESSET_CHECK((self.dim() != 4 && self.dim() != 5) || (kernel_size.size() != 1 && kernel_size.size() != 3) || at_least_kernel(),
                "input image (T: ", self.size(-3), " H: ", self.size(-2), " W: ", self.size(-1),
                ") smaller than kernel size (kT: ", kernel_size[0], " kH: ", kernel_size[kernel_size.size() / 2],
                " kW: ", kernel_size[kernel_size.size() - 1], ")");
  return spec_of(self, 3, pool_windows("avg_pool3d", self, 3, kernel_size, stride, padding, {1}, ceil_mode));
}
TensorSpec avg_pool3d_backward_shape(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                     IntArrayRef padding, bool ceil_mode, bool include, std::optional<int64_t> divisor) {
  return backward_spec("avg_pool3d_backward", grad_output, self,
                       avg_pool3d_shape(self, kernel_size, stride, padding, ceil_mode, include, divisor));
}
TensorSpec adaptive_avg_pool3d_shape(const Tensor& self, IntArrayRef output_size) {
  return spec_of(self, 3, adaptive_windows("adaptive_avg_pool3d", self, 3, output_size));
}
TensorSpec adaptive_avg_pool3d_backward_shape(const Tensor& grad_output, const Tensor& self) {
  return backward_spec("adaptive_avg_pool3d_backward", grad_output, self,
                       adaptive_avg_pool3d_shape(self, adaptive_sizes("adaptive_avg_pool3d_backward", grad_output, self, 3)));
}
std::array<TensorSpec, 2> adaptive_max_pool3d_shape(const Tensor& self, IntArrayRef output_size) {
  const PoolWindows w = adaptive_windows("adaptive_max_pool3d", self, 3, output_size);
  return {spec_of(self, 3, w), spec_of(self, 3, w, kLong)};
}
TensorSpec adaptive_max_pool3d_backward_shape(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  constexpr const char* kName = "adaptive_max_pool3d_backward";
  check_indices(kName, grad_output, indices);
  return backward_spec(kName, grad_output, self, adaptive_max_pool3d_shape(self, adaptive_sizes(kName, grad_output, self, 3))[0]);
}

namespace {
DimVector beside_one(IntArrayRef v, int64_t one) {
  CRESSET_CHECK(v.size() <= 1, "pool1d: a single number was required; ", v, " was given.");
  return v.empty() ? DimVector{} : DimVector{one, v[0]};
}
}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices_impl(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                                        IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  check_input("max_pool1d", self, 1);
  const auto check_positive = [](const char* name, IntArrayRef list) {
    for (int64_t v : list) CRESSET_CHECK(v > 0, "max_pool1d() ", name, " must be greater than zero, but got ", v);
  };
  check_positive("kernel_size", kernel_size);
  check_positive("stride", stride);
  check_positive("dilation", dilation);
  for (int64_t v : padding) {
    CRESSET_CHECK(v >= 0, "max_pool1d() padding must be non-negative, but got ", v);
    for (int64_t k : kernel_size)
      CRESSET_CHECK(v <= k / 2, "max_pool1d() padding should be at most half of kernel size, but got padding=", v, " and kernel_size=", k);
  }
  const auto [y, i] = cresset::max_pool2d_with_indices(self.unsqueeze(-2), beside_one(kernel_size, 1), beside_one(stride, 1),
                                                       beside_one(padding, 0), beside_one(dilation, 1), ceil_mode);
  return {y.squeeze(-2), i.squeeze(-2)};
}

Tensor avg_pool1d_impl(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                       bool count_include_pad) {
  check_row("avg_pool1d", self);
  return cresset::avg_pool2d(self.unsqueeze(-2), beside_one(kernel_size, 1), beside_one(stride, 1), beside_one(padding, 0), ceil_mode,
                             count_include_pad, std::nullopt)
      .squeeze(-2);
}

namespace {
// One window is the mean, where strides need not say that channels come last.
bool is_mean(const Tensor& self, IntArrayRef output_size, std::size_t n) {
  const int64_t channels = self.dim() - static_cast<int64_t>(n);  // and the batch, or not
  return output_size.size() == n && (self.is_floating_point() || self.is_complex()) && (channels == 1 || channels == 2) &&
         self.numel() > 0 && self.suggest_memory_format() == MemoryFormat::Contiguous &&
         std::ranges::all_of(output_size, [](int64_t n) { return n == 1; });
}
}  // namespace

Tensor adaptive_avg_pool2d_impl(const Tensor& self, IntArrayRef output_size) {
  const int64_t last[] = {-2, -1};
  return is_mean(self, output_size, 2) ? cresset::mean(self, last, true) : cresset::_adaptive_avg_pool2d(self, output_size);
}
Tensor adaptive_avg_pool3d_impl(const Tensor& self, IntArrayRef output_size) {
  const int64_t last[] = {-3, -2, -1};
  return is_mean(self, output_size, 3) ? cresset::mean(self, last, true) : cresset::_adaptive_avg_pool3d(self, output_size);
}
Tensor adaptive_avg_pool1d_impl(const Tensor& self, IntArrayRef output_size) {
  check_row("adaptive_avg_pool1d", self);
  return cresset::adaptive_avg_pool2d(self.unsqueeze(-2), beside_one(output_size, 1)).squeeze(-2);
}

std::tuple<Tensor, Tensor> adaptive_max_pool1d_impl(const Tensor& self, IntArrayRef output_size) {
  check_row("adaptive_max_pool1d", self);
  check_adaptive_input("adaptive_max_pool1d", self, 1);
  const auto [y, i] = cresset::adaptive_max_pool2d(self.unsqueeze(-2), beside_one(output_size, 1));
  return {y.squeeze(-2), i.squeeze(-2)};
}

Tensor max_pool2d_gradient(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                           IntArrayRef dilation, bool ceil_mode) {
  const Tensor indices = std::get<1>(cresset::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
  return cresset::max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices);
}

}  // namespace cresset::ops
