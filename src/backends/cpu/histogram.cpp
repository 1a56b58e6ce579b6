// Histograms. An element is in the bin whose left edge is the last one not above it; the last bin includes its right edge.
#include <algorithm>
#include <cmath>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

#include "cpu/cpu_decl_histogram.h"
#include "ops/histogram.h"

namespace cresset::cpu {
namespace {

// Smallest and largest value; NaN when there is one.
template <class T>
std::array<T, 2> extent(const T* p, int64_t n, int64_t step) {
  std::array<T, 2> out{p[0], p[0]};
  for (int64_t i = 0; i < n; ++i) {
    const T v = p[i * step];
    if (v != v) return {v, v};
    out[0] = std::min(out[0], v);
    out[1] = std::max(out[1], v);
  }
  return out;
}

// points: contiguous (N, D) of float or double.
std::vector<Tensor> equal_edges(const Tensor& points, IntArrayRef bins, std::optional<ArrayRef<double>> range) {
  const int64_t n = points.size(0), coordinates = points.size(1);
  std::vector<Tensor> edges;
  for (int64_t d = 0; d < coordinates; ++d) {
    double low = 0, high = 1;
    if (range) {
      low = (*range)[2 * d];
      high = (*range)[2 * d + 1];
    } else if (n > 0) {
      CRESSET_DISPATCH(points.scalar_type(), "histogramdd", CRESSET_FLOATING_TYPES, [&] {
        const auto found = extent(points.const_data_ptr<scalar_t>() + d, n, coordinates);
        low = found[0];
        high = found[1];
      });
      CRESSET_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", d, "'s range [", low, ", ", high,
                    "] is not finite");
    }
    if (low == high) {
      low -= 0.5;
      high += 0.5;
    }
    edges.push_back(cresset::linspace(low, high, bins[d] + 1, points.options()));
  }
  return edges;
}

template <class T>
struct Axis {
  const T* edges;
  int64_t bins, stride;
  double scale;  // bins by unit for equal ones, else 0

  // The bin of v, or -1.
  int64_t find(T v) const {
    if (!(v >= edges[0] && v <= edges[bins])) return -1;
    if (scale == 0) {
      const int64_t at = std::upper_bound(edges, edges + bins + 1, v) - edges - 1;
      return std::clamp<int64_t>(at, 0, bins - 1);
    }
    // A place from the distance to the first edge, put right where rounding was unlucky.
    int64_t at = std::clamp<int64_t>(static_cast<int64_t>((static_cast<double>(v) - static_cast<double>(edges[0])) * scale), 0, bins - 1);
    while (at > 0 && v < edges[at]) --at;
    while (at + 1 < bins && v >= edges[at + 1]) ++at;
    return at;
  }
};

template <class T>
void count_range(const std::vector<Axis<T>>& axes, const T* points, const T* weights, int64_t begin, int64_t end, T* to) {
  const int64_t coordinates = static_cast<int64_t>(axes.size());
  for (int64_t i = begin; i < end; ++i) {
    int64_t place = 0;
    bool inside = true;
    for (int64_t d = 0; inside && d < coordinates; ++d) {
      const int64_t bin = axes[d].find(points[i * coordinates + d]);
      inside = bin >= 0;
      place += bin * axes[d].stride;
    }
    if (inside) to[place] += weights ? weights[i] : T(1);
  }
}

// Points that a part has at least, and parts at most. Parts do not depend on the number of threads, nor does a result.
constexpr int64_t kPartPoints = 1 << 15, kMaxParts = 16;

// Counts of points (N, D) into out (bins of each coordinate, contiguous).
void count(const Tensor& points, TensorList bin_edges, bool equal, const std::optional<Tensor>& weight, bool density, const Tensor& out) {
  const int64_t n = points.size(0), coordinates = points.size(1), boxes = out.numel();
  std::vector<Tensor> edges;
  for (const Tensor& e : bin_edges) edges.push_back(e.contiguous());
  const Tensor weights = weight && weight->defined() ? weight->contiguous() : Tensor();
  CRESSET_DISPATCH(points.scalar_type(), "histogramdd", CRESSET_FLOATING_TYPES, [&] {
    std::vector<Axis<scalar_t>> axes;
    for (int64_t d = 0; d < coordinates; ++d) {
      const scalar_t* const e = edges[d].const_data_ptr<scalar_t>();
      const int64_t bins = out.size(d);
      const double scale = static_cast<double>(bins) / (static_cast<double>(e[bins]) - static_cast<double>(e[0]));
      axes.push_back({e, bins, out.stride(d), equal && std::isfinite(scale) ? scale : 0});
    }
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    std::fill(to, to + boxes, scalar_t(0));
    if (n > 0 && coordinates > 0) {
      const scalar_t *const p = points.const_data_ptr<scalar_t>(), *const w =
                                                                       weights.defined() ? weights.const_data_ptr<scalar_t>() : nullptr;
      // A part costs a copy of the histogram.
      const int64_t parts = std::clamp<int64_t>(n / std::max(kPartPoints, boxes), 1, kMaxParts);
      std::vector<scalar_t> counts(static_cast<std::size_t>((parts - 1) * boxes), scalar_t(0));
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part)
          count_range(axes, p, w, n * part / parts, n * (part + 1) / parts, part == 0 ? to : counts.data() + (part - 1) * boxes);
      });
      for (int64_t part = 0; part + 1 < parts; ++part)
        for (int64_t i = 0; i < boxes; ++i) to[i] += counts[part * boxes + i];
    }
    if (!density) return;
    scalar_t total = 0;
    for (int64_t i = 0; i < boxes; ++i) total += to[i];
    for (int64_t i = 0; i < boxes; ++i) {
      to[i] /= total;
      for (const Axis<scalar_t>& axis : axes) {
        const int64_t bin = i / axis.stride % axis.bins;
        to[i] /= axis.edges[bin + 1] - axis.edges[bin];
      }
    }
  });
}

Tensor as_points(const Tensor& values) { return values.reshape({values.numel(), 1}).contiguous(); }
Tensor flat_points(const Tensor& points) {
  int64_t n = 1;
  for (int64_t d = 0; d + 1 < points.dim(); ++d) n *= points.size(d);
  return points.reshape({n, points.size(-1)}).contiguous();
}

}  // namespace

void histogram(const Tensor& self, const Tensor& bins, const std::optional<Tensor>& weight, bool density, const Tensor& hist,
               const Tensor& bin_edges) {
  count(as_points(self), bins, false, weight, density, hist);
  Tensor(bin_edges).copy_(bins);
}

void histogram_count(const Tensor& self, int64_t bins, std::optional<ArrayRef<double>> range, const std::optional<Tensor>& weight,
                     bool density, const Tensor& hist, const Tensor& bin_edges) {
  const Tensor points = as_points(self);
  const std::vector<Tensor> edges = equal_edges(points, bins, range);
  count(points, edges, true, weight, density, hist);
  Tensor(bin_edges).copy_(edges[0]);
}

std::vector<Tensor> histogramdd_bin_edges(const Tensor& self, IntArrayRef bins, std::optional<ArrayRef<double>> range,
                                          const std::optional<Tensor>& weight, bool) {
  ops::check_histogram_counts(self, bins, range, weight);
  return equal_edges(flat_points(self), bins, range);
}

void histogramdd_counts(const Tensor& self, IntArrayRef bins, std::optional<ArrayRef<double>> range, const std::optional<Tensor>& weight,
                        bool density, const Tensor& out) {
  const Tensor points = flat_points(self);
  count(points, equal_edges(points, bins, range), true, weight, density, out);
}

void histogramdd_edges(const Tensor& self, TensorList bins, const std::optional<Tensor>& weight, bool density, const Tensor& out) {
  count(flat_points(self), bins, false, weight, density, out);
}

void histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max, const Tensor& out) {
  const Tensor in = self.to(kDouble).contiguous();
  const int64_t n = in.numel();
  const double* const p = n ? in.const_data_ptr<double>() : nullptr;
  double low = min.toDouble(), high = max.toDouble();
  if (low == high && n > 0) {
    low = high = p[0];
    for (int64_t i = 0; i < n; ++i) {
      if (p[i] != p[i]) low = high = p[i];
      low = p[i] < low ? p[i] : low;
      high = p[i] > high ? p[i] : high;
    }
  }
  CRESSET_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high, "] is not finite");
  if (low == high) {
    low -= 1;
    high += 1;
  }
  std::vector<int64_t> counts(static_cast<std::size_t>(bins), 0);
  for (int64_t i = 0; i < n; ++i) {
    if (!(p[i] >= low && p[i] <= high)) continue;
    const int64_t bin = static_cast<int64_t>((p[i] - low) * static_cast<double>(bins) / (high - low));
    ++counts[std::min(bin, bins - 1)];
  }
  CRESSET_DISPATCH(out.scalar_type(), "histogram_cpu", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < bins; ++i) to[i] = static_cast<scalar_t>(static_cast<float>(counts[i]));
  });
}

}  // namespace cresset::cpu
