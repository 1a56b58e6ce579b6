// Group normalisation (Wu and He 2018). A group of an image is planes that lie behind each other, or columns of its rows when channels are
// last in memory. Statistics are float or double.
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>

#include "backends/cpu/channels.h"
#include "backends/cpu/norm_loops.h"
#include "ops/norm.h"

namespace cresset::cpu {
namespace {

struct GroupSizes {
  int64_t images, channels, places, groups;
  int64_t per_group() const { return channels / groups; }
  double count() const { return static_cast<double>(per_group() * places); }  // elements of a group
  ChannelPart planes() const { return {per_group(), places, places}; }        // of a group, a row for each channel
  int64_t image() const { return channels * places; }
};

// f(i) for i < many, each of so many elements.
template <class F>
void each(int64_t many, int64_t elements, const F& f) {
  parallel_for(0, many, std::max<int64_t>(1, kNormGrain / std::max<int64_t>(elements, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

template <class A>
struct GroupForward {
  const A *weight, *bias;
  A *mean, *rstd;  // of images and groups
  double eps;

  // What channel c of a group is multiplied with, and what is added then.
  std::pair<A, A> line(int64_t group, int64_t c) const {
    const A scale = rstd[group] * (weight ? weight[c] : A(1));
    return {scale, (bias ? bias[c] : A(0)) - mean[group] * scale};
  }
  void keep(int64_t group, double squares, double count) const {
    rstd[group] = A(1) / std::sqrt(static_cast<A>(squares / count) + static_cast<A>(eps));
  }
};

template <class T, class A>
void normalise_planes(const GroupForward<A>& of, const GroupSizes& size, const T* x, T* y) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const int64_t elements = size.per_group() * size.places;
  each(size.images * size.groups, elements, [&](int64_t group) {
    const T* const from = x + group * elements;
    double sum = 0, squares = 0;
    read_parts<T>(
        {1, elements, elements}, [&](const ChannelPart& p, const A* v) { sum += loops.sum_plane(v, p.rows, p.pitch, p.n); }, from);
    const A mean = of.mean[group] = static_cast<A>(sum / size.count());
    read_parts<T>(
        {1, elements, elements},
        [&](const ChannelPart& p, const A* v) { squares += loops.squares_of_plane(v, p.rows, p.pitch, p.n, mean); }, from);
    of.keep(group, squares, size.count());
    const int64_t first = group % size.groups * size.per_group();
    map_parts(
        size.planes(), y + group * elements,
        [&](const ChannelPart& p, A* to, const A* v) {
          for (int64_t r = 0; r < p.rows; ++r) {
            const auto [scale, shift] = of.line(group, first + p.row + r);
            loops.scale_plane(v + r * p.pitch, to + r * p.pitch, 1, p.n, p.n, scale, shift);
          }
        },
        from);
  });
}

template <class T, class A>
void normalise_rows(const GroupForward<A>& of, const GroupSizes& size, const T* x, T* y) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const int64_t channels = size.channels, per_group = size.per_group();
  each(size.images, size.image(), [&](int64_t image) {
    const T* const from = x + image * size.image();
    T* const to = y + image * size.image();
    const ChannelRows<A> rows(size.places, channels);
    std::vector<A> mean(static_cast<std::size_t>(channels)), scale(mean), shift(mean);
    // f(group, first channel) for the groups of this image, from a sum of each channel.
    const auto of_groups = [&](const std::vector<A>& sums, const auto& f) {
      for (int64_t g = 0; g < size.groups; ++g) {
        double total = 0;
        for (int64_t c = g * per_group; c < (g + 1) * per_group; ++c) total += static_cast<double>(sums[static_cast<std::size_t>(c)]);
        f(image * size.groups + g, g * per_group, total);
      }
    };
    const auto totals = rows.sums(1, [&](int64_t row, int64_t many, int64_t first, int64_t n, double* const* sums) {
      read_parts<T>(
          columns_of(many, n, channels),
          [&](const ChannelPart& p, const A* v) { loops.sum_columns(v, p.rows, p.pitch, p.n, sums[0] + p.column); },
          from + row * channels + first);
    });
    of_groups(totals[0], [&](int64_t group, int64_t c, double total) {
      of.mean[group] = static_cast<A>(total / size.count());
      std::fill_n(mean.begin() + c, per_group, of.mean[group]);
    });
    const auto squares = rows.sums(1, [&](int64_t row, int64_t many, int64_t first, int64_t n, double* const* sums) {
      read_parts<T>(
          columns_of(many, n, channels),
          [&](const ChannelPart& p, const A* v) {
            loops.sum_squares(v, p.rows, p.pitch, p.n, mean.data() + first + p.column, sums[0] + p.column);
          },
          from + row * channels + first);
    });
    of_groups(squares[0], [&](int64_t group, int64_t first, double total) {
      of.keep(group, total, size.count());
      for (int64_t c = first; c < first + per_group; ++c)
        std::tie(scale[static_cast<std::size_t>(c)], shift[static_cast<std::size_t>(c)]) = of.line(group, c);
    });
    rows.each([&](int64_t row, int64_t many) {
      map_parts(
          columns_of(many, channels, channels), to + row * channels,
          [&](const ChannelPart& p, A* out, const A* v) {
            loops.scale_rows(v, out, p.rows, p.pitch, p.n, scale.data() + p.column, shift.data() + p.column);
          },
          from + row * channels);
    });
  });
}

// With h = grad * weight and E over a group: to = rstd * (h - E[h] - (x - mean) * rstd^2 * E[h * (x - mean)]).
template <class A>
struct GroupBackward {
  const A *weight, *mean, *rstd;
  double *sums, *dots;  // of grad and grad * (x - mean), by image and channel

  struct Coefficients {  // to = grad * of_grad + (x - mean) * of_x + constant
    A of_grad, of_x, constant;
  };
  A weight_of(int64_t c) const { return weight ? weight[c] : A(1); }
  // f(coefficients of channel c, c) for the channels of a group.
  template <class F>
  void coefficients(const GroupSizes& size, int64_t group, const F& f) const {
    const int64_t first = group % size.groups * size.per_group(), at = group / size.groups * size.channels;
    double sum = 0, dot = 0;
    for (int64_t c = first; c < first + size.per_group(); ++c) {
      sum += static_cast<double>(weight_of(c)) * sums[at + c];
      dot += static_cast<double>(weight_of(c)) * dots[at + c];
    }
    const A s = rstd[group], of_x = -static_cast<A>(dot / size.count()) * s * s * s, constant = -static_cast<A>(sum / size.count()) * s;
    for (int64_t c = first; c < first + size.per_group(); ++c) f(Coefficients{s * weight_of(c), of_x, constant}, c);
  }
};

template <class T, class A>
void gradient_of_planes(const GroupBackward<A>& of, const GroupSizes& size, const T* grad, const T* x, T* to) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const int64_t elements = size.per_group() * size.places;
  each(size.images * size.groups, elements, [&](int64_t group) {
    const int64_t at = group * elements, first = group % size.groups * size.per_group(), sums = group / size.groups * size.channels + first;
    const A mean = of.mean[group];
    read_parts<T>(
        size.planes(),
        [&](const ChannelPart& p, const A* g, const A* v) {
          for (int64_t r = 0; r < p.rows; ++r) {
            of.sums[sums + p.row + r] += loops.sum_plane(g + r * p.pitch, 1, p.n, p.n);
            of.dots[sums + p.row + r] += loops.dot_of_plane(g + r * p.pitch, v + r * p.pitch, 1, p.n, p.n, mean);
          }
        },
        grad + at, x + at);
    if (!to) return;
    std::vector<typename GroupBackward<A>::Coefficients> by_channel(static_cast<std::size_t>(size.per_group()));
    of.coefficients(size, group, [&](const auto& k, int64_t c) { by_channel[static_cast<std::size_t>(c - first)] = k; });
    map_parts(
        size.planes(), to + at,
        [&](const ChannelPart& p, A* out, const A* g, const A* v) {
          for (int64_t r = 0; r < p.rows; ++r) {
            const auto& k = by_channel[static_cast<std::size_t>(p.row + r)];
            const int64_t row = r * p.pitch;
            loops.gradient_of_plane(g + row, v + row, out + row, 1, p.n, p.n, mean, k.of_grad, k.of_x, k.constant);
          }
        },
        grad + at, x + at);
  });
}

template <class T, class A>
void gradient_of_rows(const GroupBackward<A>& of, const GroupSizes& size, const T* grad, const T* x, T* to) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const int64_t channels = size.channels, per_group = size.per_group();
  each(size.images, size.image(), [&](int64_t image) {
    const int64_t base = image * size.image(), first_group = image * size.groups;
    const ChannelRows<A> rows(size.places, channels);
    std::vector<A> mean(static_cast<std::size_t>(channels)), of_grad(mean), of_x(mean), constant(mean);
    for (int64_t g = 0; g < size.groups; ++g) std::fill_n(mean.begin() + g * per_group, per_group, of.mean[first_group + g]);
    const auto totals = rows.sums(2, [&](int64_t row, int64_t many, int64_t first, int64_t n, double* const* sums) {
      const int64_t at = base + row * channels + first;
      read_parts<T>(
          columns_of(many, n, channels),
          [&](const ChannelPart& p, const A* g, const A* v) {
            loops.sum_gradients(g, v, p.rows, p.pitch, p.n, mean.data() + first + p.column, sums[0] + p.column, sums[1] + p.column);
          },
          grad + at, x + at);
    });
    std::copy(totals[0].begin(), totals[0].end(), of.sums + image * channels);
    std::copy(totals[1].begin(), totals[1].end(), of.dots + image * channels);
    if (!to) return;
    for (int64_t g = 0; g < size.groups; ++g)
      of.coefficients(size, first_group + g, [&](const auto& k, int64_t channel) {
        const auto c = static_cast<std::size_t>(channel);
        of_grad[c] = k.of_grad;
        of_x[c] = k.of_x;
        constant[c] = k.constant;
      });
    rows.each([&](int64_t row, int64_t many) {
      const int64_t at = base + row * channels;
      map_parts(
          columns_of(many, channels, channels), to + at,
          [&](const ChannelPart& p, A* out, const A* g, const A* v) {
            const int64_t c = p.column;
            loops.gradient_rows(g, v, out, p.rows, p.pitch, p.n, mean.data() + c, of_grad.data() + c, of_x.data() + c, constant.data() + c);
          },
          grad + at, x + at);
    });
  });
}

// The format of rows of channels; of a call whose sizes are not those of its input, planes.
MemoryFormat format_of(const Tensor& input, int64_t n, int64_t c) {
  return input.size(0) == n && input.size(1) == c ? channels_last_of(input) : MemoryFormat::Contiguous;
}

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                                           int64_t n, int64_t c, int64_t hxw, int64_t group, double eps) {
  const ScalarType kept = ops::check_group_norm(input, weight, bias, n, c, hxw, group), type = toOpMathType(input.scalar_type());
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(input.scalar_type()), "\"GroupNormKernelImpl\" not implemented for '", input.scalar_type(),
                                "'");
  const MemoryFormat format = format_of(input, n, c);
  const Tensor mean = detail::empty_cpu({n, group}, type), rstd = detail::empty_cpu({n, group}, type);
  if (input.numel() == 0) {
    Tensor(mean).fill_(0);
    Tensor(rstd).fill_(std::numeric_limits<double>::quiet_NaN());
    return {cresset::empty_like(input), mean.to(kept), rstd.to(kept)};
  }
  const Tensor x = input.contiguous(format), y = cresset::empty(x.sizes(), x.options().memory_format(format)), wt = dense(weight, type),
               bt = dense(bias, type);
  const GroupSizes size{n, c, hxw, group};
  CRESSET_DISPATCH(input.scalar_type(), "GroupNormKernelImpl", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const GroupForward<A> of{.weight = pointer<A>(wt),
                             .bias = pointer<A>(bt),
                             .mean = mean.mutable_data_ptr<A>(),
                             .rstd = rstd.mutable_data_ptr<A>(),
                             .eps = eps};
    const auto run = format == MemoryFormat::Contiguous ? normalise_planes<scalar_t, A> : normalise_rows<scalar_t, A>;
    run(of, size, x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>());
  });
  return {y.contiguous(input.suggest_memory_format()), mean.to(kept), rstd.to(kept)};
}

std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                            const std::optional<Tensor>& weight, int64_t n, int64_t c, int64_t hxw, int64_t group,
                                            std::array<bool, 3> output_mask) {
  ops::check_group_norm_backward(grad_out, input, mean, rstd, weight, n, c, hxw, group);
  const ScalarType type = toOpMathType(input.scalar_type()),
                   affine = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  const MemoryFormat format = format_of(input, n, c);
  const Tensor x = input.contiguous(format), g = grad_out.to(input.scalar_type()).contiguous(format), wt = dense(weight, type);
  const Tensor mt = mean.to(type).contiguous(), rt = rstd.to(type).contiguous();
  Tensor gx, gw, gb;
  if (output_mask[0]) gx = cresset::empty(x.sizes(), x.options().memory_format(format));
  const GroupSizes size{n, c, hxw, group};
  std::vector<double> sums(static_cast<std::size_t>(n * c)), dots(sums);
  CRESSET_DISPATCH(input.scalar_type(), "GroupNormBackwardKernelImpl", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const GroupBackward<A> of{
        .weight = pointer<A>(wt), .mean = mt.const_data_ptr<A>(), .rstd = rt.const_data_ptr<A>(), .sums = sums.data(), .dots = dots.data()};
    const auto run = format == MemoryFormat::Contiguous ? gradient_of_planes<scalar_t, A> : gradient_of_rows<scalar_t, A>;
    if (input.numel() > 0)
      run(of, size, g.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), gx.defined() ? gx.mutable_data_ptr<scalar_t>() : nullptr);
    // Over the images: what one of them gives to channel k.
    const auto over_images = [&](const auto& value) {
      const Tensor out = detail::empty_cpu({c}, type);
      A* const to = out.mutable_data_ptr<A>();
      for (int64_t k = 0; k < c; ++k) {
        double total = 0;
        for (int64_t i = 0; i < n; ++i) total += value(i, k);
        to[k] = static_cast<A>(total);
      }
      return out.to(affine);
    };
    const auto at = [&](int64_t i, int64_t k) { return static_cast<std::size_t>(i * c + k); };
    if (output_mask[1])
      gw = over_images([&](int64_t i, int64_t k) {
        return input.numel() == 0 ? 0.0 : dots[at(i, k)] * static_cast<double>(of.rstd[i * group + k / size.per_group()]);
      });
    if (output_mask[2]) gb = over_images([&](int64_t i, int64_t k) { return sums[at(i, k)]; });
  });
  if (gx.defined()) gx = gx.contiguous(input.suggest_memory_format());
  return {gx, gw, gb};
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("native_group_norm", CRESSET_FN(forward));
  m.impl("native_group_norm_backward", CRESSET_FN(backward));
}

}  // namespace cresset::cpu
