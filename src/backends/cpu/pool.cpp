// Pooling kernels over (planes, D, H, W), planes in parallel, and over (rows, W, C) for floats with channels last. Results may have another
// memory format than contiguous: then they are otherwise computed contiguous and copied.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_pool.h>
#include <cresset/ops/functions_reduce.h>

#include "backends/cpu/pool_loops.h"
#include "cpu/cpu_decl_pool.h"
#include "ops/pool.h"

namespace cresset::cpu {
namespace {

using ops::PoolWindows;

// Averages also exist for int64.
#define CRESSET_CASE_LONG(...) CRESSET_TYPE_CASE(int64_t, Long, , , __VA_ARGS__)
#define CRESSET_AVERAGE_TYPES(...) CRESSET_FLOATING_AND_HALF_TYPES(__VA_ARGS__) CRESSET_CASE_LONG(__VA_ARGS__)
#define CRESSET_SUM_TYPES(...) CRESSET_FLOATING_TYPES(__VA_ARGS__) CRESSET_CASE_LONG(__VA_ARGS__)

int64_t volume(const std::array<int64_t, 3>& v) { return v[0] * v[1] * v[2]; }

template <class F>
void for_planes(const PoolWindows& w, const F& f) {
  const int64_t cost = volume(w.out) * volume(w.kernel) + volume(w.in);
  parallel_for(0, w.planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, cost)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      check_interrupt();
      f(p);
    }
  });
}

Tensor contiguous_result(const Tensor& out) { return out.is_contiguous() ? out : detail::empty_cpu(out.sizes(), out.scalar_type()); }
void deliver(const Tensor& buffer, const Tensor& out) {
  if (!buffer.is_same(out)) Tensor(out).copy_(buffer);
}

// Range of a window in one dimension, inside the input.
struct Range {
  int64_t begin, end, step;
};
Range fixed(const PoolWindows& w, int d, int64_t o) {
  int64_t begin = o * w.stride[d] - w.padding[d];
  const int64_t end = std::min(begin + (w.kernel[d] - 1) * w.dilation[d] + 1, w.in[d]);
  while (begin < 0) begin += w.dilation[d];
  return {begin, end, w.dilation[d]};
}
Range adaptive(const PoolWindows& w, int d, int64_t o) {
  return {ops::adaptive_start(o, w.out[d], w.in[d]), ops::adaptive_end(o, w.out[d], w.in[d]), 1};
}

// Visits the windows of a plane in order: f(output index, ranges).
template <class R, class F>
void each_window(const PoolWindows& w, const R& range, const F& f) {
  int64_t at = 0;
  for (int64_t d = 0; d < w.out[0]; ++d) {
    const Range rd = range(w, 0, d);
    for (int64_t h = 0; h < w.out[1]; ++h) {
      const Range rh = range(w, 1, h);
      for (int64_t x = 0; x < w.out[2]; ++x, ++at) f(at, rd, rh, range(w, 2, x), d, h, x);
    }
  }
}

// Does a window hold padding only? Between the taps of a dilated one the whole input may lie.
bool is_empty(Range rd, Range rh, Range rw) { return rd.begin >= rd.end || rh.begin >= rh.end || rw.begin >= rw.end; }
template <class R>
bool any_empty(const PoolWindows& w, const R& range) {
  if (volume(w.out) == 0) return false;
  for (int d = 0; d < 3; ++d)
    for (int64_t o = 0; o < w.out[d]; ++o)
      if (const Range r = range(w, d, o); r.begin >= r.end) return true;
  return false;
}

template <class F>
void each_position(const PoolWindows& w, Range rd, Range rh, Range rw, const F& f) {
  for (int64_t d = rd.begin; d < rd.end; d += rd.step)
    for (int64_t h = rh.begin; h < rh.end; h += rh.step)
      for (int64_t x = rw.begin; x < rw.end; x += rw.step) f((d * w.in[1] + h) * w.in[2] + x);
}

// Floats of two spatial dimensions whose channels are neighbours, in the result, too.
bool has_channels_last(const PoolWindows& w, const Tensor& self, const Tensor& out) {
  const auto last = [](const Tensor& t) { return t.dim() == 4 && t.is_contiguous(MemoryFormat::ChannelsLast) && !t.is_contiguous(); };
  return self.scalar_type() == kFloat && last(self) && out.is_contiguous(MemoryFormat::ChannelsLast) && volume(w.in) <= INT32_MAX;
}

// Calls f(number of the place of the result, its image, the ranges of the window) for all places of all images, rows in parallel.
template <class R, class F>
void for_places(const PoolWindows& w, const R& range, int64_t images, int64_t channels, const F& f) {
  const int64_t rows = w.out[1], cost = w.out[2] * w.kernel[1] * w.kernel[2] * channels;
  parallel_for(0, images * rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, cost)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      check_interrupt();
      const Range rh = range(w, 1, row % rows);
      for (int64_t x = 0; x < w.out[2]; ++x) f(row * w.out[2] + x, row / rows, rh, range(w, 2, x));
    }
  });
}

template <class R>
void max_pool_channels_last(const PoolWindows& w, const R& range, const Tensor& self, const Tensor& out, const Tensor& indices) {
  const PoolLoops& loops = find_pool_loops();
  const int64_t channels = self.size(1), places = volume(w.in);
  const auto* px = self.const_data_ptr<float>();
  auto* py = out.mutable_data_ptr<float>();
  auto* pi = indices.mutable_data_ptr<int64_t>();
  for_places(w, range, self.size(0), channels, [&](int64_t at, int64_t image, Range rh, Range rw) {
    static thread_local std::vector<int32_t> best;
    float* const y = py + at * channels;
    const float* const x = px + image * places * channels;
    best.assign(static_cast<std::size_t>(channels), static_cast<int32_t>(rh.begin * w.in[2] + rw.begin));
    std::fill_n(y, channels, -std::numeric_limits<float>::infinity());
    each_position(w, {0, 1, 1}, rh, rw,
                  [&](int64_t place) { loops.max(x + place * channels, static_cast<int32_t>(place), y, best.data(), channels); });
    std::copy(best.begin(), best.end(), pi + at * channels);
  });
}

template <class R>
void max_pool(const char* name, const PoolWindows& w, const R& range, const Tensor& self, const Tensor& out, const Tensor& indices) {
  if (out.numel() == 0) return;
  if (has_channels_last(w, self, out) && indices.is_contiguous(MemoryFormat::ChannelsLast))
    return max_pool_channels_last(w, range, self, out, indices);
  const Tensor x = self.contiguous(), y = contiguous_result(out), at = contiguous_result(indices);
  CRESSET_DISPATCH(self.scalar_type(), name, CRESSET_REAL_TYPES, [&] {
    const auto* px = x.const_data_ptr<scalar_t>();
    auto* py = y.mutable_data_ptr<scalar_t>();
    auto* pi = at.mutable_data_ptr<int64_t>();
    for_planes(w, [&](int64_t p) {
      const scalar_t* plane = px + p * volume(w.in);
      each_window(w, range, [&](int64_t o, Range rd, Range rh, Range rw, int64_t, int64_t, int64_t) {
        int64_t best = (rd.begin * w.in[1] + rh.begin) * w.in[2] + rw.begin;
        using limits = std::numeric_limits<scalar_t>;
        scalar_t value = !is_empty(rd, rh, rw)  ? plane[best]
                         : limits::has_infinity ? static_cast<scalar_t>(-limits::infinity())
                                                : limits::lowest();
        each_position(w, rd, rh, rw, [&](int64_t i) {
          // NaN wins over everything and the last one stays.
          if (plane[i] > value || plane[i] != plane[i]) {
            value = plane[i];
            best = i;
          }
        });
        py[p * volume(w.out) + o] = value;
        pi[p * volume(w.out) + o] = best;
      });
    });
  });
  deliver(y, out);
  deliver(at, indices);
}

template <class R>
void max_pool_backward(const PoolWindows& w, const R& range, const Tensor& grad_output, const Tensor& indices, const Tensor& out) {
  const Tensor g = grad_output.contiguous(), at = indices.contiguous(), gx = contiguous_result(out);
  CRESSET_DISPATCH(out.scalar_type(), "max_pool_backward", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    const auto* pg = g.const_data_ptr<scalar_t>();
    const auto* pi = at.const_data_ptr<int64_t>();
    auto* to = gx.mutable_data_ptr<scalar_t>();
    // The index of a window that holds padding only is no place of an element.
    std::vector<bool> skipped;
    if (any_empty(w, range)) {
      skipped.resize(static_cast<std::size_t>(volume(w.out)));
      each_window(w, range, [&](int64_t o, Range rd, Range rh, Range rw, int64_t, int64_t, int64_t) { skipped[o] = is_empty(rd, rh, rw); });
    }
    for_planes(w, [&](int64_t p) {
      scalar_t* plane = to + p * volume(w.in);
      std::fill_n(plane, volume(w.in), scalar_t(0));
      for (int64_t o = 0; o < volume(w.out); ++o) {
        if (!skipped.empty() && skipped[o]) continue;
        const int64_t i = pi[p * volume(w.out) + o];
        CRESSET_CHECK_INDEX(i >= 0 && i < volume(w.in), "max_pool_backward: index ", i, " is out of bounds for ", volume(w.in),
                            " elements.");
        plane[i] = scalar_t(opmath_type<scalar_t>(plane[i]) + opmath_type<scalar_t>(pg[p * volume(w.out) + o]));
      }
    });
  });
  deliver(gx, out);
}

// The windows of averages: of each dimension what of them lies inside the input, and the length that they count for in what an average
// divides by, unless that is given.
struct Averages {
  struct Window {
    int64_t begin, end, length;
  };
  std::array<std::vector<Window>, 3> windows;
  std::optional<int64_t> given;

  double divisor(const Window& d, const Window& h, const Window& x) const {
    return static_cast<double>(given ? *given : d.length * h.length * x.length);
  }
};
template <class R, class L>
Averages averages(const PoolWindows& w, const R& range, const L& length) {
  Averages result;
  if (volume(w.out) == 0) return result;
  for (int k = 0; k < 3; ++k)
    for (int64_t o = 0; o < w.out[k]; ++o) {
      const Range r = range(w, k, o);
      result.windows[k].push_back({r.begin, r.end, length(r, k, o)});
    }
  return result;
}
// include: a window counts with its padding, cut at the padded input's end.
Averages fixed_averages(const PoolWindows& w, bool include, std::optional<int64_t> given) {
  Averages result = averages(w, fixed, [&](const Range& r, int k, int64_t o) {
    if (!include) return r.end - r.begin;
    const int64_t begin = o * w.stride[k] - w.padding[k];
    return std::min(begin + w.kernel[k], w.in[k] + w.padding[k]) - begin;
  });
  result.given = given;
  return result;
}
Averages adaptive_averages(const PoolWindows& w) {
  return averages(w, adaptive, [](const Range& r, int, int64_t) { return r.end - r.begin; });
}

void avg_pool_channels_last(const PoolWindows& w, const Averages& averages, const Tensor& self, const Tensor& out) {
  const PoolLoops& loops = find_pool_loops();
  const int64_t channels = self.size(1), places = volume(w.in);
  const auto* px = self.const_data_ptr<float>();
  auto* py = out.mutable_data_ptr<float>();
  const auto range = [&](const PoolWindows&, int d, int64_t o) {
    const Averages::Window& window = averages.windows[d][static_cast<std::size_t>(o)];
    return Range{window.begin, window.end, 1};
  };
  for_places(w, range, self.size(0), channels, [&](int64_t at, int64_t image, Range rh, Range rw) {
    float* const y = py + at * channels;
    std::fill_n(y, channels, 0.F);
    each_position(w, {0, 1, 1}, rh, rw, [&](int64_t place) { loops.add(px + (image * places + place) * channels, y, channels); });
    const int64_t column = at % w.out[2], row = at / w.out[2] % w.out[1];
    loops.divide(y,
                 static_cast<float>(averages.divisor(averages.windows[0][0], averages.windows[1][static_cast<std::size_t>(row)],
                                                     averages.windows[2][static_cast<std::size_t>(column)])),
                 y, channels);
  });
}

void avg_pool(const PoolWindows& w, const Averages& averages, const Tensor& self, const Tensor& out) {
  if (out.numel() > 0 && has_channels_last(w, self, out)) return avg_pool_channels_last(w, averages, self, out);
  const Tensor x = self.contiguous(), y = contiguous_result(out);
  const auto &depths = averages.windows[0], &heights = averages.windows[1], &widths = averages.windows[2];
  CRESSET_DISPATCH(self.scalar_type(), "avg_pool", CRESSET_AVERAGE_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const auto* px = x.const_data_ptr<scalar_t>();
    auto* py = y.mutable_data_ptr<scalar_t>();
    for_planes(w, [&](int64_t p) {
      const scalar_t* const plane = px + p * volume(w.in);
      scalar_t* to = py + p * volume(w.out);
      std::vector<A> sums(widths.size());  // of a row of windows, to which each row of the input adds its part
      for (const Averages::Window& d : depths)
        for (const Averages::Window& h : heights) {
          std::fill(sums.begin(), sums.end(), A(0));
          for (int64_t i = d.begin; i < d.end; ++i)
            for (int64_t j = h.begin; j < h.end; ++j) {
              const scalar_t* const row = plane + (i * w.in[1] + j) * w.in[2];
              for (std::size_t c = 0; c < widths.size(); ++c) {
                A sum = sums[c];
                for (int64_t k = widths[c].begin; k < widths[c].end; ++k) sum += A(row[k]);
                sums[c] = sum;
              }
            }
          for (std::size_t c = 0; c < widths.size(); ++c) *to++ = scalar_t(sums[c] / static_cast<A>(averages.divisor(d, h, widths[c])));
        }
    });
  });
  deliver(y, out);
}

void avg_pool_backward(const PoolWindows& w, const Averages& averages, const Tensor& grad_output, const Tensor& out) {
  if (isReducedFloatingType(out.scalar_type())) {  // so that an element of the result is rounded once, not for each of its windows
    const Tensor wide = cresset::empty(out.sizes(), out.options().dtype(kFloat));
    avg_pool_backward(w, averages, grad_output.to(kFloat), wide);
    Tensor(out).copy_(wide);
    return;
  }
  const Tensor g = grad_output.contiguous(), gx = contiguous_result(out);
  const auto &depths = averages.windows[0], &heights = averages.windows[1], &widths = averages.windows[2];
  CRESSET_DISPATCH(out.scalar_type(), "avg_pool_backward", CRESSET_SUM_TYPES, [&] {
    const auto* pg = g.const_data_ptr<scalar_t>();
    auto* to = gx.mutable_data_ptr<scalar_t>();
    for_planes(w, [&](int64_t p) {
      scalar_t* const plane = to + p * volume(w.in);
      const scalar_t* from = pg + p * volume(w.out);
      std::fill_n(plane, volume(w.in), scalar_t(0));
      for (const Averages::Window& d : depths)
        for (const Averages::Window& h : heights)
          for (const Averages::Window& c : widths) {
            const scalar_t share = *from++ / static_cast<scalar_t>(averages.divisor(d, h, c));
            for (int64_t i = d.begin; i < d.end; ++i)
              for (int64_t j = h.begin; j < h.end; ++j) {
                scalar_t* const row = plane + (i * w.in[1] + j) * w.in[2];
                for (int64_t k = c.begin; k < c.end; ++k) row[k] += share;
              }
          }
    });
  });
  deliver(gx, out);
}

constexpr auto fixed_range = [](const PoolWindows& w, int d, int64_t o) { return fixed(w, d, o); };
constexpr auto adaptive_range = [](const PoolWindows& w, int d, int64_t o) { return adaptive(w, d, o); };

}  // namespace

// ---- two dimensions

void max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                const Tensor& out, const Tensor& indices) {
  max_pool("max_pool2d", ops::pool_windows("max_pool2d", self, 2, kernel_size, stride, padding, dilation, ceil_mode), fixed_range, self,
           out, indices);
}
void max_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                         IntArrayRef dilation, bool ceil_mode, const Tensor& indices, const Tensor& out) {
  max_pool_backward(ops::pool_windows("max_pool2d", self, 2, kernel_size, stride, padding, dilation, ceil_mode), fixed_range, grad_output,
                    indices, out);
}
void avg_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool include,
                std::optional<int64_t> given, const Tensor& out) {
  const PoolWindows w = ops::pool_windows("avg_pool2d", self, 2, kernel_size, stride, padding, {1}, ceil_mode);
  avg_pool(w, fixed_averages(w, include, given), self, out);
}
void avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                         bool ceil_mode, bool include, std::optional<int64_t> given, const Tensor& out) {
  const PoolWindows w = ops::pool_windows("avg_pool2d", self, 2, kernel_size, stride, padding, {1}, ceil_mode);
  avg_pool_backward(w, fixed_averages(w, include, given), grad_output, out);
}
void adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size, const Tensor& out) {
  const PoolWindows w = ops::adaptive_windows("adaptive_avg_pool2d", self, 2, output_size);
  avg_pool(w, adaptive_averages(w), self, out);
}
void adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& out) {
  const IntArrayRef output_size = grad_output.sizes().slice(grad_output.sizes().size() - 2);
  const PoolWindows w = ops::adaptive_windows("adaptive_avg_pool2d", self, 2, output_size);
  avg_pool_backward(w, adaptive_averages(w), grad_output, out);
}
void adaptive_max_pool2d(const Tensor& self, IntArrayRef output_size, const Tensor& out, const Tensor& indices) {
  max_pool("adaptive_max_pool2d", ops::adaptive_windows("adaptive_max_pool2d", self, 2, output_size), adaptive_range, self, out, indices);
}
void adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices, const Tensor& out) {
  const IntArrayRef output_size = grad_output.sizes().slice(grad_output.sizes().size() - 2);
  max_pool_backward(ops::adaptive_windows("adaptive_max_pool2d", self, 2, output_size), adaptive_range, grad_output, indices, out);
}

// ---- three dimensions

void max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                const Tensor& out, const Tensor& indices) {
  max_pool("max_pool3d", ops::pool_windows("max_pool3d", self, 3, kernel_size, stride, padding, dilation, ceil_mode), fixed_range, self,
           out, indices);
}
void max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                         IntArrayRef dilation, bool ceil_mode, const Tensor& indices, const Tensor& out) {
  max_pool_backward(ops::pool_windows("max_pool3d", self, 3, kernel_size, stride, padding, dilation, ceil_mode), fixed_range, grad_output,
                    indices, out);
}
void avg_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool include,
                std::optional<int64_t> given, const Tensor& out) {
  const PoolWindows w = ops::pool_windows("avg_pool3d", self, 3, kernel_size, stride, padding, {1}, ceil_mode);
  avg_pool(w, fixed_averages(w, include, given), self, out);
}
void avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                         bool ceil_mode, bool include, std::optional<int64_t> given, const Tensor& out) {
  const PoolWindows w = ops::pool_windows("avg_pool3d", self, 3, kernel_size, stride, padding, {1}, ceil_mode);
  avg_pool_backward(w, fixed_averages(w, include, given), grad_output, out);
}
void adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size, const Tensor& out) {
  const PoolWindows w = ops::adaptive_windows("adaptive_avg_pool3d", self, 3, output_size);
  avg_pool(w, adaptive_averages(w), self, out);
}
void adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& out) {
  const IntArrayRef output_size = grad_output.sizes().slice(grad_output.sizes().size() - 3);
  const PoolWindows w = ops::adaptive_windows("adaptive_avg_pool3d", self, 3, output_size);
  avg_pool_backward(w, adaptive_averages(w), grad_output, out);
}
void adaptive_max_pool3d(const Tensor& self, IntArrayRef output_size, const Tensor& out, const Tensor& indices) {
  max_pool("adaptive_max_pool3d", ops::adaptive_windows("adaptive_max_pool3d", self, 3, output_size), adaptive_range, self, out, indices);
}
void adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices, const Tensor& out) {
  const IntArrayRef output_size = grad_output.sizes().slice(grad_output.sizes().size() - 3);
  max_pool_backward(ops::adaptive_windows("adaptive_max_pool3d", self, 3, output_size), adaptive_range, grad_output, indices, out);
}

}  // namespace cresset::cpu
