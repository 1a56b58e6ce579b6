// Batch normalisation. Statistics are float or double.
#include <cmath>
#include <optional>
#include <vector>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_norm.h>

#include "backends/cpu/channels.h"
#include "backends/cpu/norm_loops.h"
#include "cpu/cpu_decl_norm.h"
#include "ops/norm.h"
#include "ops/ops_decl_norm.h"

namespace cresset::cpu {
namespace {

Tensor result_like(const Tensor& contiguous, const Tensor& like) {
  const MemoryFormat format = like.suggest_memory_format();
  return format == MemoryFormat::Contiguous ? contiguous : contiguous.contiguous(format);
}

// The sizes of an input: images, channels, places of a plane.
struct Sizes {
  explicit Sizes(const Tensor& x) : images(x.size(0)), channels(x.size(1)), places(1) {
    for (int64_t d = 2; d < x.dim(); ++d) places *= x.size(d);
  }
  int64_t count() const { return images * places; }
  ChannelPart plane() const { return {images, places, channels * places}; }  // of one channel
  int64_t images, channels, places;
};

// f(channel) for all channels of planes.
template <class F>
void each_channel(const Sizes& size, const F& f) {
  parallel_for(0, size.channels, std::max<int64_t>(1, kNormGrain / std::max<int64_t>(size.count(), 1)), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) f(c);
  });
}

// What a call takes and computes for each channel.
template <class A>
struct Forward {
  const A *weight, *bias, *running_mean, *running_var;
  A *save_mean, *save_invstd;
  int64_t count;  // elements of a channel
  A momentum, eps;
  std::vector<A> mean = {}, new_mean = {}, new_var = {}, scale = {}, shift = {};

  void allocate(int64_t channels) {
    for (std::vector<A>* v : {&mean, &new_mean, &new_var, &scale, &shift}) v->resize(static_cast<std::size_t>(channels));
  }
  void finish(std::size_t c, A m, A s) {
    scale[c] = s * (weight ? weight[c] : A(1));
    shift[c] = (bias ? bias[c] : A(0)) - m * scale[c];
  }
  void use_running(std::size_t c) { finish(c, running_mean[c], A(1) / std::sqrt(running_var[c] + eps)); }
  // From the sum of squared distances from the mean.
  void keep(std::size_t c, A m, A squares) {
    const auto n = static_cast<A>(count);
    const A s = A(1) / std::sqrt(squares / n + eps);
    save_mean[c] = m;
    save_invstd[c] = s;
    if (running_mean) new_mean[c] = momentum * m + (1 - momentum) * running_mean[c];
    if (running_var) new_var[c] = momentum * (squares / (n - 1)) + (1 - momentum) * running_var[c];
    finish(c, m, s);
  }
};

template <class T, class A>
void normalise_rows(Forward<A>& of, bool training, int64_t n, const T* px, T* py) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const ChannelRows<A> shape(of.count, n);
  if (training) {
    const auto totals = shape.sums(1, [&](int64_t from, int64_t many, int64_t first, int64_t channels, double* const* to) {
      read_parts<T>(
          columns_of(many, channels, n),
          [&](const ChannelPart& p, const A* x) { loops.sum_columns(x, p.rows, p.pitch, p.n, to[0] + p.column); }, px + from * n + first);
    });
    for (std::size_t c = 0; c < of.mean.size(); ++c) of.mean[c] = totals[0][c] / static_cast<A>(of.count);
    const auto squares = shape.sums(1, [&](int64_t from, int64_t many, int64_t first, int64_t channels, double* const* to) {
      read_parts<T>(
          columns_of(many, channels, n),
          [&](const ChannelPart& p, const A* x) {
            loops.sum_squares(x, p.rows, p.pitch, p.n, of.mean.data() + first + p.column, to[0] + p.column);
          },
          px + from * n + first);
    });
    for (std::size_t c = 0; c < of.mean.size(); ++c) of.keep(c, of.mean[c], squares[0][c]);
  }
  shape.each([&](int64_t from, int64_t many) {
    map_parts(
        columns_of(many, n, n), py + from * n,
        [&](const ChannelPart& p, A* y, const A* x) {
          loops.scale_rows(x, y, p.rows, p.pitch, p.n, of.scale.data() + p.column, of.shift.data() + p.column);
        },
        px + from * n);
  });
}

template <class T, class A>
void normalise_planes(Forward<A>& of, bool training, const Sizes& size, const T* px, T* py) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  each_channel(size, [&](int64_t channel) {
    const auto c = static_cast<std::size_t>(channel);
    const int64_t at = channel * size.places;
    if (training) {
      double sum = 0, squares = 0;
      read_parts<T>(size.plane(), [&](const ChannelPart& p, const A* x) { sum += loops.sum_plane(x, p.rows, p.pitch, p.n); }, px + at);
      const A mean = static_cast<A>(sum / static_cast<double>(of.count));
      read_parts<T>(
          size.plane(), [&](const ChannelPart& p, const A* x) { squares += loops.squares_of_plane(x, p.rows, p.pitch, p.n, mean); },
          px + at);
      of.keep(c, mean, static_cast<A>(squares));
    }
    map_parts(
        size.plane(), py + at,
        [&](const ChannelPart& p, A* y, const A* x) { loops.scale_plane(x, y, p.rows, p.pitch, p.n, of.scale[c], of.shift[c]); }, px + at);
  });
}

// What a gradient takes and computes for each channel: to = grad * of_grad + (x - mean) * of_x + constant.
template <class A>
struct Backward {
  const A *weight, *mean, *deviation;  // the statistics of the batch, or running ones
  A *to_weight, *to_bias;
  int64_t count;
  bool train;
  A eps;
  struct Coefficients {
    A of_grad, of_x, constant;
  };

  // From the sums of grad, and of grad * (x - mean).
  Coefficients coefficients(std::size_t c, A sum, A dot) const {
    const auto n = static_cast<A>(count);
    const A s = train ? deviation[c] : A(1) / std::sqrt(deviation[c] + eps);
    to_weight[c] = dot * s;
    to_bias[c] = sum;
    const A factor = s * (weight ? weight[c] : A(1));
    return {factor, train ? -(dot * s * s / n) * factor : A(0), train ? -(sum / n) * factor : A(0)};
  }
};

template <class T, class A>
void gradient_of_rows(const Backward<A>& of, int64_t n, const T* px, const T* pg, T* to) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const ChannelRows<A> shape(of.count, n);
  const auto totals = shape.sums(2, [&](int64_t from, int64_t many, int64_t first, int64_t channels, double* const* sums) {
    const int64_t at = from * n + first;
    read_parts<T>(
        columns_of(many, channels, n),
        [&](const ChannelPart& p, const A* g, const A* x) {
          loops.sum_gradients(g, x, p.rows, p.pitch, p.n, of.mean + first + p.column, sums[0] + p.column, sums[1] + p.column);
        },
        pg + at, px + at);
  });
  std::vector<A> of_grad(static_cast<std::size_t>(n)), of_x(of_grad), constant(of_grad);
  for (std::size_t c = 0; c < of_grad.size(); ++c) {
    const auto k = of.coefficients(c, totals[0][c], totals[1][c]);
    of_grad[c] = k.of_grad;
    of_x[c] = k.of_x;
    constant[c] = k.constant;
  }
  if (!to) return;
  shape.each([&](int64_t from, int64_t many) {
    const int64_t at = from * n;
    if (of.train)
      map_parts(
          columns_of(many, n, n), to + at,
          [&](const ChannelPart& p, A* out, const A* g, const A* x) {
            const int64_t c = p.column;
            loops.gradient_rows(g, x, out, p.rows, p.pitch, p.n, of.mean + c, of_grad.data() + c, of_x.data() + c, constant.data() + c);
          },
          pg + at, px + at);
    else
      map_parts(
          columns_of(many, n, n), to + at,
          [&](const ChannelPart& p, A* out, const A* g) {
            loops.scale_rows(g, out, p.rows, p.pitch, p.n, of_grad.data() + p.column, constant.data() + p.column);
          },
          pg + at);
  });
}

template <class T, class A>
void gradient_of_planes(const Backward<A>& of, const Sizes& size, const T* px, const T* pg, T* to) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  each_channel(size, [&](int64_t c) {
    const int64_t at = c * size.places;
    const A mean = of.mean[c];
    double sum = 0, dot = 0;
    read_parts<T>(
        size.plane(),
        [&](const ChannelPart& p, const A* g, const A* x) {
          sum += loops.sum_plane(g, p.rows, p.pitch, p.n);
          dot += loops.dot_of_plane(g, x, p.rows, p.pitch, p.n, mean);
        },
        pg + at, px + at);
    const auto k = of.coefficients(static_cast<std::size_t>(c), static_cast<A>(sum), static_cast<A>(dot));
    if (!to) return;
    if (of.train)
      map_parts(
          size.plane(), to + at,
          [&](const ChannelPart& p, A* out, const A* g, const A* x) {
            loops.gradient_of_plane(g, x, out, p.rows, p.pitch, p.n, mean, k.of_grad, k.of_x, k.constant);
          },
          pg + at, px + at);
    else
      map_parts(
          size.plane(), to + at,
          [&](const ChannelPart& p, A* out, const A* g) { loops.scale_plane(g, out, p.rows, p.pitch, p.n, k.of_grad, A(0)); }, pg + at);
  });
}

// Replaces running statistics.
template <class A>
void store(const std::optional<Tensor>& to, const std::vector<A>& values) {
  if (!to || !to->defined()) return;
  const Tensor buffer = detail::empty_cpu({static_cast<int64_t>(values.size())}, CppTypeToScalarType<A>::value);
  std::copy(values.begin(), values.end(), buffer.mutable_data_ptr<A>());
  const impl::ExcludeDispatchKeyGuard of_a_transform(DispatchKey::FuncTorchDynamicLayerFrontMode);  // may be captured by its function
  Tensor(*to).copy_(buffer.view(to->sizes()));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                                                     const std::optional<Tensor>& running_var, bool training, double momentum, double eps) {
  const ScalarType kept_type = ops::check_batch_norm(input, weight, bias, running_mean, running_var, training);
  const Sizes size(input);
  const MemoryFormat format = channels_last_of(input);
  const bool channels_last = format != MemoryFormat::Contiguous, rows = channels_last || size.places == 1;
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor x = channels_last ? input : input.contiguous();
  const Tensor y =
      channels_last ? cresset::empty(x.sizes(), x.options().memory_format(format)) : detail::empty_cpu(x.sizes(), x.scalar_type());
  const int64_t kept = training ? size.channels : 0;
  const Tensor save_mean = detail::empty_cpu({kept}, type), save_invstd = detail::empty_cpu({kept}, type);
  CRESSET_DISPATCH(input.scalar_type(), "batch_norm", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const Tensor wt = dense(weight, type), bt = dense(bias, type), rm = dense(running_mean, type), rv = dense(running_var, type);
    Forward<A> of{.weight = pointer<A>(wt),
                  .bias = pointer<A>(bt),
                  .running_mean = pointer<A>(rm),
                  .running_var = pointer<A>(rv),
                  .save_mean = save_mean.mutable_data_ptr<A>(),
                  .save_invstd = save_invstd.mutable_data_ptr<A>(),
                  .count = size.count(),
                  .momentum = static_cast<A>(momentum),
                  .eps = static_cast<A>(eps)};
    of.allocate(size.channels);
    for (std::size_t c = 0; !training && c < of.mean.size(); ++c) of.use_running(c);
    if (rows)
      normalise_rows(of, training, size.channels, x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>());
    else
      normalise_planes(of, training, size, x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>());
    if (training && size.count() > 0) {
      store(running_mean, of.new_mean);
      store(running_var, of.new_var);
    }
  });
  return {channels_last ? y : result_like(y, input), save_mean.to(kept_type), save_invstd.to(kept_type)};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var, const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double eps, std::array<bool, 3> output_mask) {
  ops::check_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train);
  const Sizes size(input);
  const MemoryFormat format = channels_last_of(input);
  const bool channels_last = format != MemoryFormat::Contiguous, rows = channels_last || size.places == 1;
  const ScalarType type = toOpMathType(input.scalar_type()),
                   affine = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  const Tensor x = input.contiguous(format), g = grad_out.to(input.scalar_type()).contiguous(format);
  Tensor gx, gw, gb;
  if (output_mask[0]) gx = channels_last ? cresset::empty_like(x) : detail::empty_cpu(x.sizes(), x.scalar_type());
  CRESSET_DISPATCH(input.scalar_type(), "batch_norm_backward", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const Tensor wt = dense(weight, type);
    const Tensor mt = dense(train ? save_mean : running_mean, type), st = dense(train ? save_invstd : running_var, type);
    const Tensor sum_w = detail::empty_cpu({size.channels}, type), sum_b = detail::empty_cpu({size.channels}, type);
    const Backward<A> of{.weight = pointer<A>(wt),
                         .mean = pointer<A>(mt),
                         .deviation = pointer<A>(st),
                         .to_weight = sum_w.mutable_data_ptr<A>(),
                         .to_bias = sum_b.mutable_data_ptr<A>(),
                         .count = size.count(),
                         .train = train,
                         .eps = static_cast<A>(eps)};
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const pg = g.const_data_ptr<scalar_t>();
    scalar_t* const to = gx.defined() ? gx.mutable_data_ptr<scalar_t>() : nullptr;
    if (rows)
      gradient_of_rows(of, size.channels, px, pg, to);
    else
      gradient_of_planes(of, size, px, pg, to);
    if (output_mask[1]) gw = sum_w.to(affine);
    if (output_mask[2]) gb = sum_b.to(affine);
  });
  if (gx.defined() && !channels_last) gx = result_like(gx, input);
  return {gx, gw, gb};
}

}  // namespace cresset::cpu
