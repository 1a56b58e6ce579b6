// Resizing. Every mode is a sparse matrix for each dimension, applied one dimension after the other; gradients use the transpose.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_upsample.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/walk.h"
#include "cpu/cpu_decl_upsample.h"

namespace cresset::cpu {
namespace {

// Row o of the matrix has the taps begin[o] … begin[o + 1] - 1; positions lie inside [0, in).
template <class A>
struct Taps {
  int64_t in, out;
  std::vector<int64_t> begin{0}, index;
  std::vector<A> weight;

  Taps(int64_t in, int64_t out) : in(in), out(out) {}
  void add(int64_t i, A w) {
    index.push_back(std::clamp<int64_t>(i, 0, in - 1));
    weight.push_back(w);
  }
  void end_row() { begin.push_back(static_cast<int64_t>(index.size())); }
  // Every row is a copy of one element.
  bool copies() const {
    return static_cast<int64_t>(index.size()) == out && std::all_of(weight.begin(), weight.end(), [](A w) { return w == A(1); });
  }
  bool identity() const {
    if (in != out || static_cast<int64_t>(index.size()) != out) return false;
    for (int64_t i = 0; i < out; ++i)
      if (index[i] != i || weight[i] != A(1)) return false;
    return true;
  }
};

// Input positions per output position.
template <class A>
A ratio(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) return out > 1 ? static_cast<A>(in - 1) / static_cast<A>(out - 1) : A(0);
  return scale > 0 ? static_cast<A>(1.0 / scale) : static_cast<A>(in) / static_cast<A>(out);
}

// The cubic convolution kernel (Keys 1981).
template <class A>
A cubic(A x, A a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : A(0);
}

template <class A>
A sinc(A x) {
  return x == 0 ? A(1) : std::sin(std::numbers::pi_v<A> * x) / (std::numbers::pi_v<A> * x);
}

// Positions of the nearest modes are single precision for every type.
template <class A>
Taps<A> nearest_taps(int64_t in, int64_t out, double scale, float shift, bool image) {
  Taps<A> taps(in, out);
  const float step = ratio<float>(in, out, false, scale);
  // Without a shift, equal and doubled sizes of images do not look at the scale.
  const int64_t times = !image || shift != 0 ? 0 : out == in ? 1 : out == 2 * in ? 2 : 0;
  for (int64_t o = 0; o < out; ++o) {
    taps.add(times ? o / times : static_cast<int64_t>(std::floor((static_cast<float>(o) + shift) * step)), A(1));
    taps.end_row();
  }
  return taps;
}

template <class A>
Taps<A> linear_taps(int64_t in, int64_t out, bool align_corners, double scale) {
  Taps<A> taps(in, out);
  const A step = ratio<A>(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; ++o) {
    if (in == out) {
      taps.add(o, A(1));
    } else {
      const A at = align_corners ? step * static_cast<A>(o) : std::max(A(0), step * (static_cast<A>(o) + A(0.5)) - A(0.5));
      const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
      const A far = std::clamp(at - static_cast<A>(low), A(0), A(1));
      taps.add(low, A(1) - far);
      taps.add(low + 1, far);
    }
    taps.end_row();
  }
  return taps;
}

template <class A>
Taps<A> cubic_taps(int64_t in, int64_t out, bool align_corners, double scale) {
  Taps<A> taps(in, out);
  const A step = ratio<A>(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; ++o) {
    const A at = align_corners ? step * static_cast<A>(o) : step * (static_cast<A>(o) + A(0.5)) - A(0.5);
    const A low = std::floor(at);
    for (int k = -1; k <= 2; ++k) taps.add(static_cast<int64_t>(low) + k, cubic(at - low - static_cast<A>(k), A(-0.75)));
    taps.end_row();
  }
  return taps;
}

// A filter of the given radius, stretched to the width of an output pixel when shrinking; weights of a row sum to one.
template <class A, class F>
Taps<A> filtered_taps(int64_t in, int64_t out, bool align_corners, double scale, A radius, const F& filter) {
  Taps<A> taps(in, out);
  const A step = ratio<A>(in, out, align_corners, scale);
  const A stretch = std::max(step, A(1)), support = radius * stretch;
  for (int64_t o = 0; o < out; ++o) {
    if (in == out) {  // whatever the scale
      taps.add(o, A(1));
      taps.end_row();
      continue;
    }
    const A center = step * (static_cast<A>(o) + A(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + A(0.5)), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(center + support + A(0.5)), in);
    A total = 0;
    for (int64_t i = first; i < last; ++i) {
      const A w = filter((static_cast<A>(i) - center + A(0.5)) / stretch);
      taps.add(i, w);
      total += w;
    }
    if (total != 0)
      for (auto k = static_cast<std::size_t>(taps.begin.back()); k < taps.weight.size(); ++k) taps.weight[k] /= total;
    taps.end_row();
  }
  return taps;
}

template <class A>
Taps<A> taps_of(std::string_view mode, int64_t in, int64_t out, bool align_corners, double scale, bool image) {
  if (mode == "nearest") return nearest_taps<A>(in, out, scale, 0.0f, image);
  if (mode == "nearest-exact") return nearest_taps<A>(in, out, scale, 0.5f, image);
  if (mode == "linear") return linear_taps<A>(in, out, align_corners, scale);
  if (mode == "cubic") return cubic_taps<A>(in, out, align_corners, scale);
  if (mode == "linear-aa")
    return filtered_taps<A>(in, out, align_corners, scale, A(1), [](A x) { return std::max(A(0), A(1) - std::abs(x)); });
  if (mode == "cubic-aa") return filtered_taps<A>(in, out, align_corners, scale, A(2), [](A x) { return cubic(x, A(-0.5)); });
  CRESSET_CHECK_VALUE(mode == "lanczos-aa", "resample: unknown mode ", mode, ".");
  return filtered_taps<A>(in, out, align_corners, scale, A(3), [](A x) { return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : A(0); });
}

// Row o of the result, `inner` neighbours: the weighted sum of the rows that it has taps to.
template <class A>
void combine_rows(const Taps<A>& taps, int64_t o, const A* source, int64_t inner, A* target) {
  const int64_t *const index = &taps.index[taps.begin[o]], n = taps.begin[o + 1] - taps.begin[o];
  const A* const weight = &taps.weight[taps.begin[o]];
  if (n == 1 && *weight == A(1)) {
    copy_row(target, 1, source + *index * inner, 1, inner);
    return;
  }
  if (inner == 1) {
    A sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += weight[k] * source[index[k]];
    *target = sum;
    return;
  }
  const auto row = [&](int64_t k) { return source + index[k] * inner; };
  int64_t done = 0;
  if (n >= 2) {
    const A *const a = row(0), *const b = row(1), v = weight[0], w = weight[1];
    for (int64_t i = 0; i < inner; ++i) target[i] = A(0) + v * a[i] + w * b[i];
    done = 2;
  } else {
    std::fill_n(target, inner, A(0));
  }
  for (int64_t k = done; k < n; ++k) {
    const A *const a = row(k), w = weight[k];
    for (int64_t i = 0; i < inner; ++i) target[i] += w * a[i];
  }
}

// One dimension of a contiguous (outer, in, inner) tensor; the transpose goes from out to in. `into`: where the result shall lie, if it is
// contiguous and of that type.
template <class A>
Tensor apply(const Tensor& x, int64_t dim, const Taps<A>& taps, bool transposed, const Tensor& into = {}) {
  if (taps.identity()) return x;
  DimVector sizes(x.sizes());
  sizes[dim] = transposed ? taps.in : taps.out;
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= sizes[d];
  for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= sizes[d];
  const bool there = into.defined() && into.is_contiguous() && into.scalar_type() == x.scalar_type();
  const Tensor y = there ? into : detail::empty_cpu(sizes, x.scalar_type());
  const bool copies = !transposed && inner == 1 && taps.copies();
  const A* const from = x.const_data_ptr<A>();
  A* const to = y.mutable_data_ptr<A>();
  const int64_t cost = std::max<int64_t>(1, static_cast<int64_t>(taps.index.size()) * inner);
  parallel_for(0, outer, std::max<int64_t>(1, 32768 / cost), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const A* const source = from + p * (transposed ? taps.out : taps.in) * inner;
      A* const target = to + p * (transposed ? taps.in : taps.out) * inner;
      if (copies) {
        for (int64_t o = 0; o < taps.out; ++o) target[o] = source[taps.index[o]];
        continue;
      }
      if (!transposed) {
        for (int64_t o = 0; o < taps.out; ++o) combine_rows(taps, o, source, inner, target + o * inner);
        continue;
      }
      std::fill_n(target, taps.in * inner, A(0));
      for (int64_t o = 0; o < taps.out; ++o) {
        for (int64_t k = taps.begin[o]; k < taps.begin[o + 1]; ++k) {
          const A* const s = source + o * inner;
          A* const t = target + taps.index[k] * inner;
          const A w = taps.weight[k];
          for (int64_t i = 0; i < inner; ++i) t[i] += w * s[i];
        }
      }
    }
  });
  return y;
}

// One dimension of bytes, held as int32. Weights are fixed-point numbers with as many binary places as keep the largest below 2^15 (but
// no more than 22), and the result is rounded to a byte: PyTorch's arithmetic for images, which follows Pillow's.
Tensor apply_to_bytes(const Tensor& x, int64_t dim, const Taps<double>& taps) {
  if (taps.identity()) return x;
  Taps<double> merged(taps.in, taps.out);  // places beyond the border are the border: one tap for all of them
  for (int64_t o = 0; o < taps.out; ++o) {
    for (int64_t k = taps.begin[o]; k < taps.begin[o + 1]; ++k) {
      if (k > taps.begin[o] && taps.index[k] == taps.index[k - 1])
        merged.weight.back() += taps.weight[k];
      else
        merged.add(taps.index[k], taps.weight[k]);
    }
    merged.end_row();
  }
  const double largest = *std::max_element(merged.weight.begin(), merged.weight.end());
  int places = 0;
  while (places < 22 && std::floor(std::ldexp(largest, places + 1) + 0.5) < 32768) ++places;
  Taps<int32_t> fixed(taps.in, taps.out);
  fixed.begin = merged.begin;
  fixed.index = merged.index;
  for (double w : merged.weight) fixed.weight.push_back(static_cast<int32_t>(std::round(std::ldexp(w, places))));
  const Tensor y = apply(x, dim, fixed, false);
  int32_t* const values = y.mutable_data_ptr<int32_t>();
  const int32_t half = places ? 1 << (places - 1) : 0;
  for (int64_t i = 0; i < y.numel(); ++i) values[i] = std::clamp((values[i] + half) >> places, 0, 255);
  return y;
}

// The dimensions in the order of memory of images with neighbouring channels, (N, H, W, C); of others as they are.
DimVector channels_order(const Tensor& t) {
  const MemoryFormat format = t.suggest_memory_format();
  DimVector order{0};
  const bool last = format != MemoryFormat::Contiguous && t.is_contiguous(format);
  for (int64_t d = last ? 2 : 1; d < t.dim(); ++d) order.push_back(d);
  if (last) order.push_back(1);
  return order;
}

// Last dimension first, in double or single precision.
void resample_into(const Tensor& from, IntArrayRef in, IntArrayRef out, std::string_view mode, bool align_corners, ArrayRef<double> scales,
                   bool transposed, const Tensor& to) {
  if (to.numel() == 0) return;
  const bool bytes = to.scalar_type() == kByte;
  const bool nearest = mode == "nearest" || mode == "nearest-exact";
  if (bytes ? (transposed || (!nearest && scales.size() != 2)) : !isFloatingType(to.scalar_type()))
    detail::raise_dtype_not_implemented("upsample", to.scalar_type());
  if (bytes && !nearest) {
    Tensor x = from.to(kInt).contiguous();
    for (int64_t i = 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      x = apply_to_bytes(x, i + 2, taps_of<double>(mode, in[k], out[k], align_corners, scales[k], true));
    }
    Tensor(to).copy_(x);
    return;
  }
  const ScalarType type = to.scalar_type() == kDouble ? kDouble : kFloat;
  // Channels that are neighbours stay so, and their dimension is the last one.
  const DimVector order = channels_order(from);
  const bool channels_last = order[1] != 1;
  Tensor x = from.to(type).permute(order).contiguous();
  const Tensor result = to.permute(order);
  CRESSET_DISPATCH(type, "upsample", CRESSET_FLOATING_TYPES, [&] {
    for (int64_t i = static_cast<int64_t>(scales.size()) - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      x = apply(x, channels_last ? i + 1 : i + 2, taps_of<scalar_t>(mode, in[k], out[k], align_corners, scales[k], scales.size() == 2),
                transposed, i == 0 ? result : Tensor());
    }
  });
  if (x.const_data_ptr() != result.const_data_ptr()) Tensor(result).copy_(x);
}

}  // namespace

void resample(const Tensor& self, IntArrayRef output_size, std::string_view mode, bool align_corners, ArrayRef<double> scales,
              const Tensor& out) {
  resample_into(self, self.sizes().slice(2), output_size, mode, align_corners, scales, false, out);
}

void resample_backward(const Tensor& grad_output, IntArrayRef output_size, IntArrayRef input_size, std::string_view mode,
                       bool align_corners, ArrayRef<double> scales, const Tensor& out) {
  resample_into(grad_output, input_size.slice(2), output_size, mode, align_corners, scales, true, out);
}

}  // namespace cresset::cpu
