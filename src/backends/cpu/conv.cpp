// Convolution kernels: oneDNN for float32 and, where the processor has products of it, bfloat16, otherwise columns of patches (im2col) and
// gemm, which 1x1 kernels need no columns for. A transposed convolution is the input gradient of a plain one, so three kernels serve both.
#include <algorithm>
#include <cstring>
#include <vector>

#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_conv.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>

#include "backends/cpu/conv_problem.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/packed_types.h"
#include "cpu/cpu_decl_conv.h"
#include "ops/conv.h"

#define CRESSET_CONV_TYPES(...) CRESSET_CASES_FLOATING(__VA_ARGS__) CRESSET_CASES_COMPLEX(__VA_ARGS__)

namespace cresset::cpu {

ConvProblem conv_problem(IntArrayRef x, IntArrayRef w, IntArrayRef y, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                         int64_t groups) {
  ConvProblem p;
  const int n = static_cast<int>(x.size()) - 2;
  p.spatial = n;
  p.groups = groups;
  p.x = {x[0], x[1], 1, 1, 1};
  p.w = {w[0], w[1], 1, 1, 1};
  p.y = {y[0], y[1], 1, 1, 1};
  p.stride = p.dilation = {1, 1, 1};
  p.padding = p.padding_behind = {0, 0, 0};
  for (int i = 0; i < n; ++i) {
    const int d = 3 - n + i;
    p.x[2 + d] = x[2 + i];
    p.w[2 + d] = w[2 + i];
    p.y[2 + d] = y[2 + i];
    p.stride[d] = ops::conv_parameter(stride, static_cast<std::size_t>(i));
    p.padding[d] = p.padding_behind[d] = ops::conv_parameter(padding, static_cast<std::size_t>(i));
    p.dilation[d] = ops::conv_parameter(dilation, static_cast<std::size_t>(i));
  }
  return p;
}

namespace {

int64_t patch(const ConvProblem& p) { return p.w[1] * p.w[2] * p.w[3] * p.w[4]; }  // rows of the column matrix, one group
int64_t places(const ConvProblem& p) { return p.y[2] * p.y[3] * p.y[4]; }          // its columns

// Is the column matrix the image itself?
bool is_product(const ConvProblem& p) {
  const auto all = [](const std::array<int64_t, 3>& values, int64_t v) { return values == std::array<int64_t, 3>{v, v, v}; };
  return p.w[2] * p.w[3] * p.w[4] == 1 && all(p.stride, 1) && all(p.padding, 0);
}
// gemm takes the planes of contiguous tensors as they are, where oneDNN first reorders them; small ones oneDNN packs into larger products.
bool better_as_product(const ConvProblem& p, const Tensor& x, const Tensor& y) {
  const auto planes = [](const Tensor& t) { return t.is_contiguous() || !t.is_non_overlapping_and_dense(); };  // the latter are copied
  return is_product(p) && places(p) >= 128 && planes(x) && planes(y);
}

// Is it one product of (places of all images, channels)? Images with neighbouring channels, of which gemm takes all as they are.
bool is_product_of_places(const ConvProblem& p, const Tensor& x, const Tensor& y) {
  const auto neighbours = [](const Tensor& t) {
    const MemoryFormat format = t.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
    return (t.dim() == 4 || t.dim() == 5) && !t.is_contiguous() && t.is_contiguous(format);
  };
  return is_product(p) && p.groups == 1 && neighbours(x) && neighbours(y);
}
DimVector channels_behind(const Tensor& t) {
  DimVector order{0};
  for (int64_t d = 2; d < t.dim(); ++d) order.push_back(d);
  order.push_back(1);
  return order;
}
MatrixRef by_rows(const Tensor& t, int64_t columns) { return {t.const_data_ptr(), columns, 1}; }
MatrixRef by_columns(const Tensor& t, int64_t columns) { return {t.const_data_ptr(), 1, columns}; }

// Visits every element of the column matrix of one image and group: f(column index, input offset or -1 in the padding).
template <class F>
void visit_columns(const ConvProblem& p, const F& f) {
  int64_t row = 0;
  for (int64_t c = 0; c < p.w[1]; ++c)
    for (int64_t kd = 0; kd < p.w[2]; ++kd)
      for (int64_t kh = 0; kh < p.w[3]; ++kh)
        for (int64_t kw = 0; kw < p.w[4]; ++kw, ++row) {
          int64_t at = row * places(p);
          for (int64_t od = 0; od < p.y[2]; ++od) {
            const int64_t d = od * p.stride[0] - p.padding[0] + kd * p.dilation[0];
            for (int64_t oh = 0; oh < p.y[3]; ++oh) {
              const int64_t h = oh * p.stride[1] - p.padding[1] + kh * p.dilation[1];
              const bool inside = d >= 0 && d < p.x[2] && h >= 0 && h < p.x[3];
              const int64_t base = ((c * p.x[2] + d) * p.x[3] + h) * p.x[4];
              for (int64_t ow = 0; ow < p.y[4]; ++ow, ++at) {
                const int64_t w = ow * p.stride[2] - p.padding[2] + kw * p.dilation[2];
                f(at, inside && w >= 0 && w < p.x[4] ? base + w : int64_t{-1});
              }
            }
          }
        }
}

// Memory for the column matrix, if one is needed.
template <class T>
std::vector<T> column_buffer(const ConvProblem& p) {
  return std::vector<T>(is_product(p) ? 0 : static_cast<std::size_t>(patch(p) * places(p)));
}

// Images in parallel; f(image, column buffer). All tensors are contiguous.
template <class T, class F>
void for_images(const ConvProblem& p, const F& f) {
  parallel_for(0, p.x[0], 1, [&](int64_t begin, int64_t end) {
    auto columns = column_buffer<T>(p);
    for (int64_t i = begin; i < end; ++i) {
      check_interrupt();
      f(i, columns.data());
    }
  });
}

void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, const Tensor& y) {
  if (y.numel() == 0) return;
  if (is_product_of_places(p, x, y)) {
    const int64_t n = p.x[0] * places(p);
    if (bias) Tensor(y).permute(channels_behind(y)).copy_(*bias);
    gemm("convolution", y.scalar_type(), n, p.w[0], p.x[1], 1, by_rows(x, p.x[1]), by_columns(w.contiguous(), p.x[1]), bias ? 1 : 0,
         y.mutable_data_ptr(), p.w[0]);
    return;
  }
  if (y.scalar_type() == kFloat && !better_as_product(p, x, y) && onednn_conv_forward(p, x, w, bias, y)) return;
  const Tensor xc = x.contiguous(), wc = w.contiguous(), yc = y.is_contiguous() ? y : cresset::empty(y.sizes(), y.options());
  const int64_t outputs = p.w[0] / p.groups, image_x = p.x[1] * p.x[2] * p.x[3] * p.x[4];
  const bool product = is_product(p);
  const Tensor bc = bias ? bias->contiguous() : Tensor();
  CRESSET_DISPATCH(y.scalar_type(), "convolution", CRESSET_CONV_TYPES, [&] {
    const auto* px = xc.const_data_ptr<scalar_t>();
    const auto* pw = wc.const_data_ptr<scalar_t>();
    const auto* pb = bc.defined() ? bc.const_data_ptr<scalar_t>() : nullptr;
    auto* py = yc.mutable_data_ptr<scalar_t>();
    for_images<scalar_t>(p, [&](int64_t i, scalar_t* columns) {
      for (int64_t g = 0; g < p.groups; ++g) {
        const scalar_t* image = px + i * image_x + g * (image_x / p.groups);
        if (!product) visit_columns(p, [&](int64_t at, int64_t from) { columns[at] = from < 0 ? scalar_t(0) : image[from]; });
        scalar_t* out = py + (i * p.w[0] + g * outputs) * places(p);
        for (int64_t o = 0; pb && o < outputs; ++o) std::fill_n(out + o * places(p), places(p), pb[g * outputs + o]);
        gemm("convolution", y.scalar_type(), outputs, places(p), patch(p), 1, {pw + g * outputs * patch(p), patch(p), 1},
             {product ? image : columns, places(p), 1}, pb ? 1 : 0, out, places(p));
      }
    });
  });
  if (!yc.is_same(y)) Tensor(y).copy_(yc);
}

void backward_data(const ConvProblem& p, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  if (gx.numel() == 0) return;
  if (gy.numel() == 0) {
    Tensor(gx).zero_();
    return;
  }
  if (is_product_of_places(p, gx, gy)) {
    gemm("convolution_backward", gx.scalar_type(), p.x[0] * places(p), p.x[1], p.w[0], 1, by_rows(gy, p.w[0]),
         by_rows(w.contiguous(), p.x[1]), 0, gx.mutable_data_ptr(), p.x[1]);
    return;
  }
  if (gx.scalar_type() == kFloat && !better_as_product(p, gx, gy) && onednn_conv_backward_data(p, gy, w, gx)) return;
  const Tensor gc = gy.contiguous(), wc = w.contiguous(), xc = gx.is_contiguous() ? gx : cresset::empty(gx.sizes(), gx.options());
  const int64_t outputs = p.w[0] / p.groups, image_x = p.x[1] * p.x[2] * p.x[3] * p.x[4];
  const bool product = is_product(p);
  CRESSET_DISPATCH(gx.scalar_type(), "convolution_backward", CRESSET_CONV_TYPES, [&] {
    const auto* pg = gc.const_data_ptr<scalar_t>();
    const auto* pw = wc.const_data_ptr<scalar_t>();
    auto* px = xc.mutable_data_ptr<scalar_t>();
    for_images<scalar_t>(p, [&](int64_t i, scalar_t* columns) {
      for (int64_t g = 0; g < p.groups; ++g) {
        const scalar_t* from = pg + (i * p.w[0] + g * outputs) * places(p);
        scalar_t* image = px + i * image_x + g * (image_x / p.groups);
        gemm("convolution_backward", gx.scalar_type(), patch(p), places(p), outputs, 1, {pw + g * outputs * patch(p), 1, patch(p)},
             {from, places(p), 1}, 0, product ? image : columns, places(p));
        if (product) continue;
        std::fill_n(image, image_x / p.groups, scalar_t(0));
        visit_columns(p, [&](int64_t at, int64_t to) {
          if (to >= 0) image[to] += columns[at];
        });
      }
    });
  });
  if (!xc.is_same(gx)) Tensor(gx).copy_(xc);
}

void backward_weight(const ConvProblem& p, const Tensor& gy, const Tensor& x, const Tensor& gw) {
  if (gw.numel() == 0) return;
  if (gy.numel() == 0) {
    Tensor(gw).zero_();
    return;
  }
  if (is_product_of_places(p, x, gy) && gw.is_contiguous()) {
    gemm("convolution_backward", gw.scalar_type(), p.w[0], p.x[1], p.x[0] * places(p), 1, by_columns(gy, p.w[0]), by_rows(x, p.x[1]), 0,
         gw.mutable_data_ptr(), p.x[1]);
    return;
  }
  if (gw.scalar_type() == kFloat && !better_as_product(p, x, gy) && onednn_conv_backward_weight(p, gy, x, gw)) return;
  const Tensor gc = gy.contiguous(), xc = x.contiguous(), wc = gw.is_contiguous() ? gw : cresset::empty(gw.sizes(), gw.options());
  const int64_t outputs = p.w[0] / p.groups, image_x = p.x[1] * p.x[2] * p.x[3] * p.x[4];
  const bool product = is_product(p);
  CRESSET_DISPATCH(gw.scalar_type(), "convolution_backward", CRESSET_CONV_TYPES, [&] {
    const auto* pg = gc.const_data_ptr<scalar_t>();
    const auto* px = xc.const_data_ptr<scalar_t>();
    auto* pw = wc.mutable_data_ptr<scalar_t>();
    auto columns = column_buffer<scalar_t>(p);
    for (int64_t i = 0; i < p.x[0]; ++i)
      for (int64_t g = 0; g < p.groups; ++g) {
        const scalar_t* image = px + i * image_x + g * (image_x / p.groups);
        if (!product) visit_columns(p, [&](int64_t at, int64_t from) { columns[at] = from < 0 ? scalar_t(0) : image[from]; });
        const scalar_t* from = pg + (i * p.w[0] + g * outputs) * places(p);
        gemm("convolution_backward", gw.scalar_type(), outputs, patch(p), places(p), 1, {from, places(p), 1},
             {product ? image : columns.data(), 1, places(p)}, i == 0 ? 0 : 1, pw + g * outputs * patch(p), patch(p));
      }
  });
  if (!wc.is_same(gw)) Tensor(gw).copy_(wc);
}

// (N, C, ...) to (C): the gradient of a bias.
Tensor sum_of_channels(const Tensor& t) {
  DimVector over{0};
  for (int64_t d = 2; d < t.dim(); ++d) over.push_back(d);
  return t.sum(over);
}

bool has_own_products(ScalarType t) { return t == kBFloat16 && has_products_of(t); }

// The type whose kernels compute convolutions of a type, so that a result is rounded once. Integers are exact while sums are below 2^53.
ScalarType computed_in(ScalarType t) { return isIntegralType(t, true) ? kDouble : toOpMathType(t); }

}  // namespace

void convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                 IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups, const Tensor& out) {
  if (has_own_products(out.scalar_type()) && !transposed && out.numel() > 0) {
    ConvProblem p = conv_problem(input.sizes(), weight.sizes(), out.sizes(), stride, padding, dilation, groups);
    p.type = out.scalar_type();
    if (onednn_conv_forward(p, input, weight, bias, out)) return;
  }
  if (const ScalarType wider = computed_in(out.scalar_type()); wider != out.scalar_type()) {
    const Tensor wide = cresset::empty(out.sizes(), out.options().dtype(wider));
    convolution(input.to(wider), weight.to(wider), bias ? std::optional<Tensor>(bias->to(wider)) : std::nullopt, stride, padding, dilation,
                transposed, output_padding, groups, wide);
    Tensor(out).copy_(wide);
    return;
  }
  if (!transposed) {
    forward(conv_problem(input.sizes(), weight.sizes(), out.sizes(), stride, padding, dilation, groups), input, weight, bias, out);
    return;
  }
  backward_data(conv_problem(out.sizes(), weight.sizes(), input.sizes(), stride, padding, dilation, groups), input, weight, out);
  if (bias) {
    DimVector shape(static_cast<std::size_t>(out.dim()), 1);
    shape[1] = bias->size(0);
    Tensor(out).add_(bias->view(shape));
  }
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_given, const Tensor& input_given, const Tensor& weight_given,
                                                        OptionalIntArrayRef bias_sizes, IntArrayRef stride, IntArrayRef padding,
                                                        IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> output_mask) {
  ops::check_convolution_backward(grad_given, input_given, weight_given, stride, padding, dilation, transposed, output_padding, groups);
  const ScalarType type = input_given.scalar_type(), wider = toOpMathType(type);
  const Tensor grad_output = grad_given.to(type);
  if (has_own_products(type) && !transposed && grad_output.numel() > 0 && input_given.numel() > 0) {
    Tensor gx, gw, gb;
    ConvProblem p = conv_problem(input_given.sizes(), weight_given.sizes(), grad_output.sizes(), stride, padding, dilation, groups);
    p.type = type;
    const TensorOptions options = input_given.options().memory_format(ops::conv_memory_format(input_given, weight_given));
    if (output_mask[0]) gx = cresset::empty(input_given.sizes(), options);
    if (output_mask[1]) gw = cresset::empty(weight_given.sizes(), options.dtype(kFloat));
    if ((!gx.defined() || onednn_conv_backward_data(p, grad_output, weight_given, gx)) &&
        (!gw.defined() || onednn_conv_backward_weight(p, grad_output, input_given, gw))) {
      if (output_mask[2]) gb = sum_of_channels(grad_output);
      return {gx, gw.defined() ? gw.to(type) : gw, gb};
    }
  }
  if (wider != type) {
    const auto rounded = [type](const Tensor& t) { return t.defined() ? t.to(type) : t; };
    const auto [gx, gw, gb] = cpu::convolution_backward(grad_output.to(wider), input_given.to(wider), weight_given.to(wider), bias_sizes,
                                                        stride, padding, dilation, transposed, output_padding, groups, output_mask);
    return {rounded(gx), rounded(gw), rounded(gb)};
  }
  const Tensor input = input_given.is_complex() ? cresset::resolve_conj(cresset::conj(input_given)) : input_given;
  const Tensor weight = weight_given.is_complex() ? cresset::resolve_conj(cresset::conj(weight_given)) : weight_given;
  Tensor gx, gw, gb;
  const MemoryFormat format = ops::conv_memory_format(input, weight);
  if (output_mask[0]) gx = cresset::empty(input.sizes(), input.options().memory_format(format));
  if (output_mask[1]) gw = cresset::empty(weight.sizes(), weight.options().memory_format(format));
  if (!transposed) {
    const ConvProblem p = conv_problem(input.sizes(), weight.sizes(), grad_output.sizes(), stride, padding, dilation, groups);
    if (gx.defined()) backward_data(p, grad_output, weight, gx);
    if (gw.defined()) backward_weight(p, grad_output, input, gw);
  } else {
    const ConvProblem p = conv_problem(grad_output.sizes(), weight.sizes(), input.sizes(), stride, padding, dilation, groups);
    if (gx.defined()) forward(p, grad_output, weight, std::nullopt, gx);
    if (gw.defined()) backward_weight(p, input, grad_output, gw);
  }
  if (output_mask[2]) gb = sum_of_channels(grad_output);
  return {gx, gw, gb};
}

}  // namespace cresset::cpu
