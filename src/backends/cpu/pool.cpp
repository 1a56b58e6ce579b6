// Pooling kernels over (planes, D, H, W), planes in parallel. Results may have another memory format than contiguous:
// then they are computed contiguous and copied.
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
#include "cpu/cpu_decl_reduce.h"
#include "ops/pool.h"

namespace cresset::cpu {
namespace {

using ops::PoolWindows;

// Averages also exist for int64.
#define CRESSET_CASE_LONG(...) CRESSET_TYPE_CASE(int64_t, Long, , , __VA_ARGS__)
#define CRESSET_AVERAGE_TYPES(...) CRESSET_FLOATING_AND_HALF_TYPES(__VA_ARGS__) CRESSET_CASE_LONG(__VA_ARGS__)
#define CRESSET_SUM_TYPES(...) CRESSET_FLOATING_TYPES(__VA_ARGS__) CRESSET_CASE_LONG(__VA_ARGS__)

int64_t volume(const std::array<int64_t, 3>& v) { return v[0] * v[1] * v[2]; }

// f(plane, state) for every plane; make() gives each thread's state.
template <class Make, class F>
void for_planes_with(const PoolWindows& w, const Make& make, const F& f) {
  const int64_t cost = volume(w.out) * volume(w.kernel) + volume(w.in);
  parallel_for(0, w.planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, cost)), [&](int64_t begin, int64_t end) {
    auto state = make();
    for (int64_t p = begin; p < end; ++p) {
      check_interrupt();
      f(p, state);
    }
  });
}
template <class F>
void for_planes(const PoolWindows& w, const F& f) {
  for_planes_with(w, [] { return 0; }, [&](int64_t p, int) { f(p); });
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
struct FixedRange {
  Range operator()(const PoolWindows& w, int d, int64_t o) const { return fixed(w, d, o); }
};
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

// Max pooling of planes by rows of windows: first the largest element of each column of a row's windows, then of the columns of each
// window. Computed in V: float for half types. No window may be empty.
template <class T>
class RowPooling {
 public:
  using V = opmath_type<T>;
  using Place = PoolPlace<V>;

  explicit RowPooling(const PoolWindows& w)
      : w_(w),
        row_{w.stride[2], w.dilation[2], w.kernel[2], w.out[2]},
        has_one_row_each_(w.kernel[0] * w.kernel[1] == 1 && w.padding == std::array<int64_t, 3>{} &&
                          (w.out[0] - 1) * w.stride[0] < w.in[0] && (w.out[1] - 1) * w.stride[1] < w.in[1] &&
                          (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] < w.in[2]),
        columns_(static_cast<std::size_t>(row_.stride * row_.residues())) {
    for (auto* v : {&high_, &high_by_residue_}) v->assign(columns_, -std::numeric_limits<V>::infinity());
    for (auto* v : {&place_, &place_by_residue_}) v->assign(columns_, std::numeric_limits<Place>::max());  // behind any element
    value_.resize(static_cast<std::size_t>(row_.windows));
    for (auto* v : {&at_, &tap_}) v->resize(static_cast<std::size_t>(row_.windows));
    wide_.resize(std::is_same_v<T, V> ? 0 : static_cast<std::size_t>(w.in[2]));
  }

  void run(const T* plane, T* to, int64_t* to_index) {
    if constexpr (std::is_same_v<T, V>) {
      if (has_one_row_each_) return run_rows(plane, to, to_index);
    }
    for (int64_t d = 0; d < w_.out[0]; ++d)
      for (int64_t h = 0; h < w_.out[1]; ++h, to += row_.windows, to_index += row_.windows) {
        take_rows(plane, fixed(w_, 0, d), fixed(w_, 1, h));
        const bool apart = row_.stride > 1;
        if (apart) loops_.by_residue(high_.data(), place_.data(), row_, high_by_residue_.data(), place_by_residue_.data());
        loops_.windows((apart ? high_by_residue_ : high_).data(), (apart ? place_by_residue_ : place_).data(), row_, value_.data(),
                       at_.data(), tap_.data());
        loops_.elements(at_.data(), tap_.data(), row_, starts_.data(), -w_.padding[2], to_index);
        for (int64_t x = 0; x < row_.windows; ++x) to[x] = static_cast<T>(value_[x]);
      }
  }

 private:
  void run_rows(const V* plane, V* to, int64_t* to_index) {
    for (int64_t d = 0; d < w_.out[0]; ++d)
      for (int64_t h = 0; h < w_.out[1]; ++h, to += row_.windows, to_index += row_.windows) {
        const int64_t start = (d * w_.stride[0] * w_.in[1] + h * w_.stride[1]) * w_.in[2];
        loops_.one_row(plane + start, row_, start, to, to_index);
      }
  }

  void take_rows(const T* plane, const Range& depths, const Range& heights) {
    // Columns of the input that some window has.
    const int64_t padding = w_.padding[2], n = std::min(w_.in[2], static_cast<int64_t>(columns_) - padding);
    starts_.clear();
    for (int64_t d = depths.begin; d < depths.end; d += depths.step)
      for (int64_t h = heights.begin; h < heights.end; h += heights.step) {
        const int64_t start = (d * w_.in[1] + h) * w_.in[2];
        const V* row;
        if constexpr (std::is_same_v<T, V>) {
          row = plane + start;
        } else {
          for (int64_t i = 0; i < n; ++i) wide_[i] = static_cast<V>(plane[start + i]);
          row = wide_.data();
        }
        if (starts_.empty()) {
          std::copy_n(row, n, high_.data() + padding);
          std::fill_n(place_.data() + padding, n, Place(0));
        } else {
          loops_.take_row(row, n, static_cast<Place>(starts_.size()), high_.data() + padding, place_.data() + padding);
        }
        starts_.push_back(start);
      }
  }

  const PoolWindows& w_;
  const PoolLoops<V>& loops_ = find_pool_loops<V>();
  PoolRow row_;
  // Is a window part of one row, without padding before it or behind?
  bool has_one_row_each_;
  std::size_t columns_;
  std::vector<V> high_, high_by_residue_, value_, wide_;
  std::vector<Place> place_, place_by_residue_, at_, tap_;
  std::vector<int64_t> starts_;  // of the rows of a row of windows
};

// Do rows of windows go to RowPooling? Not where a window holds padding only, or where windows are so far apart that most columns are
// skipped.
bool goes_by_rows(const PoolWindows& w) {
  return !any_empty(w, fixed) && w.stride[2] <= 2 * w.kernel[2] && w.in[0] * w.in[1] <= std::numeric_limits<int32_t>::max();
}

// Are the channels of an element neighbours in memory?
bool has_channels_last(const Tensor& t) {
  return (t.dim() == 4 && t.is_contiguous(MemoryFormat::ChannelsLast)) || (t.dim() == 5 && t.is_contiguous(MemoryFormat::ChannelsLast3d));
}
// Not of one volume (C, D, H, W), whose strides may be those of images with channels last.
bool goes_by_channels(const PoolWindows& w, const Tensor& self, const Tensor& out) {
  return has_channels_last(self) && !self.is_contiguous() && has_channels_last(out) && w.planes == self.size(0) * self.size(1) &&
         (self.scalar_type() == kFloat || self.scalar_type() == kDouble);
}

// A window of an image, by its number and its places in each dimension.
struct WindowOfImage {
  int64_t image, number;
  std::array<int64_t, 3> at;
};
// f(window, elements of its plane, how many) for all windows of all images.
template <class R, class F>
void for_windows_of_images(const PoolWindows& w, int64_t images, int64_t channels, const R& range, const F& f) {
  const int64_t lines = images * w.out[0] * w.out[1], cost = w.out[2] * volume(w.kernel) * channels;
  parallel_for(0, lines, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, cost)), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> elements;
    for (int64_t line = begin; line < end; ++line) {
      check_interrupt();
      const int64_t image = line / (w.out[0] * w.out[1]), at = line % (w.out[0] * w.out[1]), d = at / w.out[1], h = at % w.out[1];
      const Range rd = range(w, 0, d), rh = range(w, 1, h);
      for (int64_t x = 0; x < w.out[2]; ++x) {
        elements.clear();
        each_position(w, rd, rh, range(w, 2, x), [&](int64_t i) { elements.push_back(i); });
        f(WindowOfImage{image, at * w.out[2] + x, {d, h, x}}, elements.data(), static_cast<int64_t>(elements.size()));
      }
    }
  });
}

template <class T, class R>
void max_pool_channels(const PoolWindows& w, const R& range, const Tensor& self, const Tensor& out, const Tensor& indices) {
  const int64_t images = self.size(0), channels = self.size(1), from = volume(w.in) * channels, to = volume(w.out);
  const PoolLoops<T>& loops = find_pool_loops<T>();
  const T* const px = self.const_data_ptr<T>();
  T* const py = out.mutable_data_ptr<T>();
  int64_t* const pi = indices.mutable_data_ptr<int64_t>();
  for_windows_of_images(w, images, channels, range, [&](const WindowOfImage& window, const int64_t* elements, int64_t count) {
    const int64_t o = (window.image * to + window.number) * channels;
    loops.largest(px + window.image * from, elements, count, channels, py + o, pi + o);
  });
}

template <class R>
void max_pool(const char* name, const PoolWindows& w, const R& range, const Tensor& self, const Tensor& out, const Tensor& indices) {
  if (out.numel() == 0) return;
  constexpr int64_t kPlaces = std::numeric_limits<PoolPlace<float>>::max();
  if (goes_by_channels(w, self, out) && has_channels_last(indices) && !any_empty(w, range) && volume(w.in) <= kPlaces) {
    if (self.scalar_type() == kFloat) return max_pool_channels<float>(w, range, self, out, indices);
    return max_pool_channels<double>(w, range, self, out, indices);
  }
  const Tensor x = self.contiguous(), y = contiguous_result(out), at = contiguous_result(indices);
  CRESSET_DISPATCH(self.scalar_type(), name, CRESSET_REAL_TYPES, [&] {
    const auto* px = x.const_data_ptr<scalar_t>();
    auto* py = y.mutable_data_ptr<scalar_t>();
    auto* pi = at.mutable_data_ptr<int64_t>();
    if constexpr (isFloatingType(CppTypeToScalarType<scalar_t>::value) && std::is_same_v<R, FixedRange>) {
      if (goes_by_rows(w)) {
        for_planes_with(
            w, [&] { return RowPooling<scalar_t>(w); },
            [&](int64_t p, RowPooling<scalar_t>& rows) {
              rows.run(px + p * volume(w.in), py + p * volume(w.out), pi + p * volume(w.out));
            });
        return;
      }
    }
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

template <class T>
void avg_pool_channels(const PoolWindows& w, const Averages& averages, const Tensor& self, const Tensor& out) {
  const int64_t images = self.size(0), channels = self.size(1);
  const PoolLoops<T>& loops = find_pool_loops<T>();
  const T* const px = self.const_data_ptr<T>();
  T* const py = out.mutable_data_ptr<T>();
  const auto place = [&](std::size_t d, int64_t o) -> const Averages::Window& { return averages.windows[d][static_cast<std::size_t>(o)]; };
  const auto range = [&](const PoolWindows&, int d, int64_t o) {
    const Averages::Window& window = place(static_cast<std::size_t>(d), o);
    return Range{window.begin, window.end, 1};
  };
  const int64_t from = volume(w.in) * channels, to = volume(w.out);
  for_windows_of_images(w, images, channels, range, [&](const WindowOfImage& window, const int64_t* elements, int64_t count) {
    const auto& [d, h, x] = window.at;
    const auto divisor = static_cast<T>(averages.divisor(place(0, d), place(1, h), place(2, x)));
    loops.mean(px + window.image * from, elements, count, channels, divisor, py + (window.image * to + window.number) * channels);
  });
}

void avg_pool(const PoolWindows& w, const Averages& averages, const Tensor& self, const Tensor& out) {
  if (out.numel() > 0 && goes_by_channels(w, self, out)) {
    if (self.scalar_type() == kFloat) return avg_pool_channels<float>(w, averages, self, out);
    return avg_pool_channels<double>(w, averages, self, out);
  }
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

constexpr FixedRange fixed_range;
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
  if (volume(w.out) == 1 && isFloatingType(self.scalar_type())) return mean(self, IntArrayRef({-2, -1}), true, std::nullopt, out);
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
  if (volume(w.out) == 1 && isFloatingType(self.scalar_type())) return mean(self, IntArrayRef({-3, -2, -1}), true, std::nullopt, out);
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
