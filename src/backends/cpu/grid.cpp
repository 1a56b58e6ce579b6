// Grid sampling in two and three dimensions: a sample is a sum over the products of a few taps in each dimension.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_grid.h>

#include "cpu/cpu_decl_grid.h"
#include "ops/ops_decl_grid.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kLinear = 0, kNearest = 1, kCubic = 2;
constexpr int64_t kZeros = 0, kBorder = 1;

struct Modes {
  int64_t interpolation, padding;
  bool align_corners;
};

// A position along one dimension and its derivative by the grid's value.
template <class A>
struct Position {
  A at, slope;
};

template <class A>
Position<A> clip(Position<A> p, int64_t size) {
  const A last = static_cast<A>(size - 1);
  if (p.at <= 0) return {A(0), A(0)};
  return p.at >= last ? Position<A>{last, A(0)} : p;
}

// Folds the line at low and high (both given doubled).
template <class A>
Position<A> reflect(Position<A> p, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {A(0), A(0)};
  const A low = static_cast<A>(twice_low) / 2, span = static_cast<A>(twice_high - twice_low) / 2;
  const A distance = std::abs(p.at - low), sign = p.at < low ? A(-1) : A(1);
  const A extra = std::fmod(distance, span);
  const bool even = std::fmod(std::floor(distance / span), A(2)) == 0;
  return {even ? extra + low : span - extra + low, even ? sign * p.slope : -sign * p.slope};
}

template <class A>
Position<A> pad(Position<A> p, int64_t size, const Modes& modes) {
  if (modes.padding == kZeros) return p;
  if (modes.padding == kBorder) return clip(p, size);
  return clip(modes.align_corners ? reflect(p, 0, 2 * (size - 1)) : reflect(p, -1, 2 * size - 1), size);
}

// Up to four places along one dimension with weights and the weights' first and second derivatives; places outside are left out.
template <class A>
struct Taps {
  int count = 0;
  std::array<int64_t, 4> index;
  std::array<A, 4> weight, slope, curve;

  void add(A at, int64_t size, A w, A s, A c = A(0)) {
    if (!(at >= 0 && at < static_cast<A>(size))) return;  // not a number is outside too
    index[count] = static_cast<int64_t>(at);
    weight[count] = w;
    slope[count] = s;
    curve[count++] = c;
  }
};

// Weights of the neighbours of a point at distance t behind the second (Keys 1981, a = -0.75), and their first and second derivatives.
template <class A>
void cubic_weights(A t, std::array<A, 4>& w, std::array<A, 4>& d, std::array<A, 4>& c) {
  constexpr A a = A(-0.75);
  const auto near = [](A x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](A x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near_slope = [](A x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  const auto far_slope = [](A x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  const auto near_curve = [](A x) { return 6 * (a + 2) * x - 2 * (a + 3); };
  const auto far_curve = [](A x) { return 6 * a * x - 10 * a; };
  w = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  d = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
  c = {far_curve(t + 1), near_curve(t), near_curve(1 - t), far_curve(2 - t)};
}

template <class A>
Taps<A> taps_at(A value, int64_t size, const Modes& modes) {
  const A extent = static_cast<A>(size);
  Position<A> p = modes.align_corners ? Position<A>{(value + 1) / 2 * (extent - 1), (extent - 1) / 2}
                                      : Position<A>{((value + 1) * extent - 1) / 2, extent / 2};
  Taps<A> taps;
  if (modes.interpolation == kCubic) {
    const A low = std::floor(p.at);
    std::array<A, 4> w, d, c;
    cubic_weights(p.at - low, w, d, c);
    for (int k = 0; k < 4; ++k) {
      const A at = pad(Position<A>{low + static_cast<A>(k - 1), A(0)}, size, modes).at;
      taps.add(at, size, w[k], d[k] * p.slope, c[k] * p.slope * p.slope);
    }
    return taps;
  }
  p = pad(p, size, modes);
  if (modes.interpolation == kNearest) {
    taps.add(std::nearbyint(p.at), size, A(1), A(0));
    return taps;
  }
  const A low = std::floor(p.at), t = p.at - low;
  taps.add(low, size, 1 - t, -p.slope);
  taps.add(low + 1, size, t, p.slope);
  return taps;
}

// The taps of one sample in all dimensions; missing dimensions have one tap of weight one.
template <class A>
struct Sample {
  std::array<Taps<A>, 3> axis;  // D, H, W
  int64_t height, width;

  template <class T>
  Sample(const T* grid, IntArrayRef spatial, const Modes& modes) {
    const int n = static_cast<int>(spatial.size());
    for (int d = 0; d < 3; ++d) {
      if (d < 3 - n)
        axis[d].add(A(0), 1, A(1), A(0));
      else
        axis[d] = taps_at(static_cast<A>(grid[2 - d]), spatial[static_cast<std::size_t>(d - 3 + n)], modes);
    }
    height = spatial[static_cast<std::size_t>(n - 2)];
    width = spatial[static_cast<std::size_t>(n - 1)];
  }

  // f(place in the plane, i, j, k): the numbers of the taps in D, H and W.
  template <class F>
  void each(const F& f) const {
    for (int i = 0; i < axis[0].count; ++i)
      for (int j = 0; j < axis[1].count; ++j)
        for (int k = 0; k < axis[2].count; ++k) f((axis[0].index[i] * height + axis[1].index[j]) * width + axis[2].index[k], i, j, k);
  }
  A weight(int i, int j, int k) const { return axis[0].weight[i] * axis[1].weight[j] * axis[2].weight[k]; }
  // Derivative of the weight by the grid's values: D, H, W.
  std::array<A, 3> slopes(int i, int j, int k) const {
    return {axis[0].slope[i] * axis[1].weight[j] * axis[2].weight[k], axis[0].weight[i] * axis[1].slope[j] * axis[2].weight[k],
            axis[0].weight[i] * axis[1].weight[j] * axis[2].slope[k]};
  }
  // Derivative of the slopes' product with a direction (D, H, W) by the grid's values: the weight's Hessian times the direction.
  std::array<A, 3> curves(int i, int j, int k, const std::array<A, 3>& direction) const {
    const std::array<A, 3> w{axis[0].weight[i], axis[1].weight[j], axis[2].weight[k]};
    const std::array<A, 3> s{axis[0].slope[i], axis[1].slope[j], axis[2].slope[k]};
    const std::array<A, 3> c{axis[0].curve[i], axis[1].curve[j], axis[2].curve[k]};
    const auto [d, h, x] = direction;
    return {c[0] * w[1] * w[2] * d + s[0] * s[1] * w[2] * h + s[0] * w[1] * s[2] * x,
            s[0] * s[1] * w[2] * d + w[0] * c[1] * w[2] * h + w[0] * s[1] * s[2] * x,
            s[0] * w[1] * s[2] * d + w[0] * s[1] * s[2] * h + w[0] * w[1] * c[2] * x};
  }
};

int64_t product(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// f(T, A, sizes of the problem) with pointers to contiguous data; samples of an image are numbered in order.
struct Problem {
  Modes modes;
  DimVector spatial;
  int64_t batch, channels, plane, samples, axes;

  Problem(const Tensor& input, const Tensor& grid, const Modes& modes)
      : modes(modes),
        spatial(input.sizes().slice(2)),
        batch(input.size(0)),
        channels(input.size(1)),
        plane(product(spatial)),
        samples(product(grid.sizes().slice(1, static_cast<std::size_t>(grid.dim() - 2)))),
        axes(grid.size(-1)) {}
  int64_t grain() const { return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, channels)); }
};

// The places of a sample in a plane and their weights: what all channels have in common.
template <class A>
struct Places {
  int count = 0;
  std::array<int64_t, 16> place;
  std::array<A, 16> weight;

  explicit Places(const Sample<A>& sample) {
    sample.each([&](int64_t at, int i, int j, int k) {
      place[count] = at;
      weight[count++] = sample.weight(i, j, k);
    });
  }
  template <class T>
  A sum(const T* image) const {
    A total = 0;
    for (int k = 0; k < count; ++k) total += static_cast<A>(image[place[k]]) * weight[k];
    return total;
  }
};

void grid_sampler(const Tensor& input, const Tensor& grid, const Modes& modes, const Tensor& out) {
  const Tensor x = input.contiguous(), g = grid.contiguous();
  const Problem p(input, grid, modes);
  CRESSET_DISPATCH(input.scalar_type(), "grid_sampler", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const scalar_t* const px = x.const_data_ptr<scalar_t>();
    const scalar_t* const pg = g.const_data_ptr<scalar_t>();
    scalar_t* const py = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, p.batch * p.samples, p.grain(), [&](int64_t begin, int64_t end) {
      std::vector<Places<A>> block;
      for (int64_t s = begin; s < end; s += static_cast<int64_t>(block.size())) {
        constexpr int64_t kBlock = 64;  // samples of one image, whose results are written together
        const int64_t n = s / p.samples, at = s % p.samples, count = std::min({kBlock, end - s, p.samples - at});
        block.clear();
        for (int64_t i = 0; i < count; ++i) block.emplace_back(Sample<A>(pg + (s + i) * p.axes, p.spatial, p.modes));
        for (int64_t c = 0; c < p.channels; ++c) {
          const scalar_t* const image = px + (n * p.channels + c) * p.plane;
          scalar_t* const to = py + (n * p.channels + c) * p.samples + at;
          for (int64_t i = 0; i < count; ++i) to[i] = static_cast<scalar_t>(block[static_cast<std::size_t>(i)].sum(image));
        }
      }
    });
  });
}

}  // namespace

void grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                     const Tensor& out) {
  grid_sampler(input, grid, {interpolation_mode, padding_mode, align_corners}, out);
}

void grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                     const Tensor& out) {
  grid_sampler(input, grid, {interpolation_mode, padding_mode, align_corners}, out);
}

std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                 int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                                 std::array<bool, 2> output_mask) {
  const auto [gx, gg] =
      ops::grid_sampler_backward_meta(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask);
  const Tensor x = input.contiguous(), g = grid.contiguous(), go = grad_output.contiguous();
  const Problem p(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor image_grad = gx, grid_grad = gg;
  CRESSET_DISPATCH(input.scalar_type(), "grid_sampler_backward", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const pg = g.const_data_ptr<scalar_t>(),
                          *const po = go.const_data_ptr<scalar_t>();
    scalar_t* const to_image = image_grad.defined() ? image_grad.mutable_data_ptr<scalar_t>() : nullptr;
    scalar_t* const to_grid = grid_grad.mutable_data_ptr<scalar_t>();
    if (to_image) std::fill_n(to_image, image_grad.numel(), scalar_t(0));
    // Samples of one image add into the same places, so a thread takes whole images.
    parallel_for(0, p.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        for (int64_t at = 0; at < p.samples; ++at) {
          const int64_t s = n * p.samples + at;
          const Sample<A> sample(pg + s * p.axes, p.spatial, p.modes);
          std::array<A, 3> slope{};
          for (int64_t c = 0; c < p.channels; ++c) {
            const int64_t plane = (n * p.channels + c) * p.plane;
            const A weight = static_cast<A>(po[(n * p.channels + c) * p.samples + at]);
            sample.each([&](int64_t place, int i, int j, int k) {
              const std::array<A, 3> d = sample.slopes(i, j, k);
              const A value = static_cast<A>(px[plane + place]) * weight;
              for (int a = 0; a < 3; ++a) slope[a] += d[a] * value;
              if (to_image) {
                scalar_t& t = to_image[plane + place];
                t = static_cast<scalar_t>(static_cast<A>(t) + weight * sample.weight(i, j, k));
              }
            });
          }
          for (int64_t a = 0; a < p.axes; ++a) to_grid[s * p.axes + a] = static_cast<scalar_t>(slope[2 - a]);
        }
      }
    });
  });
  return {gx, gg};
}

void grid_sampler_tangent(const Tensor& input, const Tensor& grid, const Tensor& grid_tangent, int64_t interpolation_mode,
                          int64_t padding_mode, bool align_corners, const Tensor& out) {
  const Tensor x = input.contiguous(), g = grid.contiguous(), t = grid_tangent.to(grid.scalar_type()).contiguous();
  const Problem p(input, grid, {interpolation_mode, padding_mode, align_corners});
  CRESSET_DISPATCH(input.scalar_type(), "grid_sampler_tangent", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const pg = g.const_data_ptr<scalar_t>(),
                          *const pt = t.const_data_ptr<scalar_t>();
    scalar_t* const py = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, p.batch * p.samples, p.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t n = s / p.samples, at = s % p.samples;
        const Sample<A> sample(pg + s * p.axes, p.spatial, p.modes);
        for (int64_t c = 0; c < p.channels; ++c) {
          const scalar_t* const image = px + (n * p.channels + c) * p.plane;
          A sum = 0;
          sample.each([&](int64_t place, int i, int j, int k) {
            const std::array<A, 3> d = sample.slopes(i, j, k);
            A change = 0;
            for (int64_t a = 0; a < p.axes; ++a) change += d[2 - a] * static_cast<A>(pt[s * p.axes + a]);
            sum += static_cast<A>(image[place]) * change;
          });
          py[(n * p.channels + c) * p.samples + at] = static_cast<scalar_t>(sum);
        }
      }
    });
  });
}

std::tuple<Tensor, Tensor> grid_sampler_tangent_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                         const Tensor& grid_tangent, int64_t interpolation_mode, int64_t padding_mode,
                                                         bool align_corners) {
  const auto [gx, gg] =
      ops::grid_sampler_tangent_backward_meta(grad_output, input, grid, grid_tangent, interpolation_mode, padding_mode, align_corners);
  const Tensor x = input.contiguous(), g = grid.contiguous(), t = grid_tangent.contiguous(), go = grad_output.contiguous();
  const Problem p(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor image_grad = gx, grid_grad = gg;
  CRESSET_DISPATCH(input.scalar_type(), "grid_sampler_tangent_backward", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const pg = g.const_data_ptr<scalar_t>(),
                          *const pt = t.const_data_ptr<scalar_t>(), *const po = go.const_data_ptr<scalar_t>();
    scalar_t* const to_image = image_grad.mutable_data_ptr<scalar_t>();
    scalar_t* const to_grid = grid_grad.mutable_data_ptr<scalar_t>();
    std::fill_n(to_image, image_grad.numel(), scalar_t(0));
    // Samples of one image add into the same places, so a thread takes whole images.
    parallel_for(0, p.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        for (int64_t at = 0; at < p.samples; ++at) {
          const int64_t s = n * p.samples + at;
          const Sample<A> sample(pg + s * p.axes, p.spatial, p.modes);
          std::array<A, 3> direction{}, sum{};
          for (int64_t a = 0; a < p.axes; ++a) direction[2 - a] = static_cast<A>(pt[s * p.axes + a]);
          for (int64_t c = 0; c < p.channels; ++c) {
            const int64_t plane = (n * p.channels + c) * p.plane;
            const A weight = static_cast<A>(po[(n * p.channels + c) * p.samples + at]);
            sample.each([&](int64_t place, int i, int j, int k) {
              const std::array<A, 3> slope = sample.slopes(i, j, k), curve = sample.curves(i, j, k, direction);
              const A value = static_cast<A>(px[plane + place]) * weight;
              for (int a = 0; a < 3; ++a) sum[a] += curve[a] * value;
              scalar_t& target = to_image[plane + place];
              const A change = slope[0] * direction[0] + slope[1] * direction[1] + slope[2] * direction[2];
              target = static_cast<scalar_t>(static_cast<A>(target) + weight * change);
            });
          }
          for (int64_t a = 0; a < p.axes; ++a) to_grid[s * p.axes + a] = static_cast<scalar_t>(sum[2 - a]);
        }
      }
    });
  });
  return {gx, gg};
}

}  // namespace cresset::cpu
