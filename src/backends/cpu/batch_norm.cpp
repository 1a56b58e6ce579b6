// Batch normalisation. Sums run in several independent lanes so that they vectorise; statistics are float or double.
//
// An input is planes, one for each channel of an image, or rows of neighbouring channels (two dimensions, or channels last in memory). Both
// are cut by their sizes alone, so that the result does not depend on the number of threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_norm.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/norm_loops.h"
#include "cpu/cpu_decl_norm.h"
#include "ops/norm.h"
#include "ops/ops_decl_norm.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kGrain = 32768;  // elements a thread should have

constexpr int kLanes = 16;

// Sum of f(i) over [0, n) in kLanes partial sums.
template <class A, class F>
A lane_sum(int64_t n, const F& f) {
  std::array<A, kLanes> lane{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lane[k] += f(i + k);
  A sum = 0;
  for (; i < n; ++i) sum += f(i);
  for (A v : lane) sum += v;
  return sum;
}

Tensor dense(const std::optional<Tensor>& t, ScalarType type) { return t && t->defined() ? t->to(type).contiguous() : Tensor(); }
template <class A>
const A* pointer(const Tensor& t) {
  return t.defined() ? t.const_data_ptr<A>() : nullptr;
}

// The format in which channels are neighbours in memory, here and in a result; Contiguous where they are not.
MemoryFormat channels_last_of(const Tensor& t) {
  MemoryFormat format = t.suggest_memory_format();
  if (format == MemoryFormat::Contiguous && !t.is_contiguous()) {  // strides of dimensions of one element say nothing
    if (t.dim() == 4) format = MemoryFormat::ChannelsLast;
    if (t.dim() == 5) format = MemoryFormat::ChannelsLast3d;
  }
  return format != MemoryFormat::Contiguous && t.is_contiguous(format) ? format : MemoryFormat::Contiguous;
}
Tensor result_like(const Tensor& contiguous, const Tensor& like) {
  const MemoryFormat format = like.suggest_memory_format();
  return format == MemoryFormat::Contiguous ? contiguous : contiguous.contiguous(format);
}

// Planes of (images, channels, places). What is read again is still in a cache: a thread goes through one channel after the other.
template <class T>
class Planes {
 public:
  using A = opmath_type<T>;

  Planes(int64_t images, int64_t channels, int64_t places) : images_(images), channels_(channels), places_(places) {}

  // f(channel) for all of them.
  template <class F>
  void each_channel(const F& f) const {
    parallel_for(0, channels_, std::max<int64_t>(1, kGrain / std::max<int64_t>(images_ * places_, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) f(c);
    });
  }
  // What f(element) adds up to.
  template <class F>
  A sum(int64_t channel, const F& f) const {
    A total = 0;
    for (int64_t i = 0; i < images_; ++i) {
      const int64_t base = (i * channels_ + channel) * places_;
      total += lane_sum<A>(places_, [&](int64_t k) { return f(base + k); });
    }
    return total;
  }
  template <class F>
  void each(int64_t channel, const F& f) const {
    for (int64_t i = 0; i < images_; ++i) {
      const int64_t base = (i * channels_ + channel) * places_;
      for (int64_t k = 0; k < places_; ++k) f(base + k);
    }
  }

 private:
  int64_t images_, channels_, places_;
};

// Rows of n neighbouring channels.
template <class A>
class ChannelRows {
 public:
  ChannelRows(int64_t rows, int64_t n) : rows_(rows), n_(n) {}

  // For each of `count` quantities the sums over all rows, which add(from, rows, first channel, channels, sums of each quantity) adds up.
  template <class F>
  std::vector<std::vector<A>> sums(std::size_t count, const F& add) const {
    const int64_t blocks = (rows_ + kRows - 1) / kRows, strips = (n_ + kChannels - 1) / kChannels;
    std::vector<double> parts(count * static_cast<std::size_t>(blocks * n_));
    const auto part = [&](std::size_t k, int64_t block) { return parts.data() + (static_cast<int64_t>(k) * blocks + block) * n_; };
    const int64_t elements = kRows * std::min(n_, kChannels);
    parallel_for(0, blocks * strips, std::max<int64_t>(1, kGrain / std::max<int64_t>(elements, 1)), [&](int64_t begin, int64_t end) {
      std::vector<double*> to(count);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / strips, first = i % strips * kChannels;
        for (std::size_t k = 0; k < count; ++k) to[k] = part(k, block) + first;
        add(block * kRows, std::min(kRows, rows_ - block * kRows), first, std::min(kChannels, n_ - first), to.data());
      }
    });
    std::vector<std::vector<A>> out(count, std::vector<A>(static_cast<std::size_t>(n_)));
    for (std::size_t k = 0; k < count; ++k)
      for (int64_t c = 0; c < n_; ++c) {
        double total = 0;
        for (int64_t block = 0; block < blocks; ++block) total += part(k, block)[c];
        out[k][static_cast<std::size_t>(c)] = static_cast<A>(total);
      }
    return out;
  }
  // f(first row, rows) for all of them.
  template <class F>
  void each(const F& f) const {
    parallel_for(0, rows_, std::max<int64_t>(1, kGrain / std::max<int64_t>(n_, 1)),
                 [&](int64_t begin, int64_t end) { f(begin, end - begin); });
  }

 private:
  static constexpr int64_t kRows = 256, kChannels = 256;
  int64_t rows_, n_;
};

// The sizes of an input: images, channels, places of a plane.
struct Sizes {
  explicit Sizes(const Tensor& x) : images(x.size(0)), channels(x.size(1)), places(1) {
    for (int64_t d = 2; d < x.dim(); ++d) places *= x.size(d);
  }
  int64_t count() const { return images * places; }
  int64_t images, channels, places;
};

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

template <class A>
void normalise_rows(Forward<A>& of, bool training, int64_t n, const A* px, A* py) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const ChannelRows<A> shape(of.count, n);
  if (training) {
    const auto totals = shape.sums(1, [&](int64_t from, int64_t many, int64_t first, int64_t channels, double* const* to) {
      loops.sum_columns(px + from * n + first, many, n, channels, to[0]);
    });
    for (std::size_t c = 0; c < of.mean.size(); ++c) of.mean[c] = totals[0][c] / static_cast<A>(of.count);
    const auto squares = shape.sums(1, [&](int64_t from, int64_t many, int64_t first, int64_t channels, double* const* to) {
      loops.sum_squares(px + from * n + first, many, n, channels, of.mean.data() + first, to[0]);
    });
    for (std::size_t c = 0; c < of.mean.size(); ++c) of.keep(c, of.mean[c], squares[0][c]);
  }
  shape.each(
      [&](int64_t from, int64_t many) { loops.scale_rows(px + from * n, py + from * n, many, n, of.scale.data(), of.shift.data()); });
}

// Channels of half types as floats: the planes of one channel side by side.
template <class T>
struct WidePlanes {
  static constexpr int64_t kMost = 1 << 16;  // elements of a channel, which the second cache holds
  static bool takes(const Sizes& size) { return is_reduced_floating_point_v<T> && size.count() <= kMost; }

  explicit WidePlanes(const Sizes& size) : size(size), buffer(static_cast<std::size_t>(size.count())) {}
  float* read(const T* from, int64_t channel) {
    if (size.places > 0) load_function(kType, ComputeType::Float)(buffer.data(), rows(from, channel), size.places, size.images);
    return buffer.data();
  }
  void write(T* to, int64_t channel) const {
    if (size.places > 0) store_function(ComputeType::Float, kType)(rows(to, channel), buffer.data(), size.places, size.images);
  }

 private:
  static constexpr ScalarType kType = CppTypeToScalarType<T>::value;
  static constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  Rows rows(const T* at, int64_t channel) const {
    return {reinterpret_cast<char*>(const_cast<T*>(at + channel * size.places)), kBytes, size.channels * size.places * kBytes};
  }

  Sizes size;
  std::vector<float> buffer;
};

// `in_shape`: the number of the channel in the shape, which may have that one alone.
template <class T, class A>
void normalise_channel(Forward<A>& of, bool training, std::size_t c, const Planes<T>& shape, int64_t in_shape, const T* px, T* py) {
  if (training) {
    const A m = shape.sum(in_shape, [&](int64_t i) { return A(px[i]); }) / static_cast<A>(of.count);
    of.keep(c, m, shape.sum(in_shape, [&](int64_t i) {
      const A d = A(px[i]) - m;
      return d * d;
    }));
  }
  const A scale = of.scale[c], shift = of.shift[c];
  shape.each(in_shape, [&](int64_t i) { py[i] = T(A(px[i]) * scale + shift); });
}

template <class T, class A>
void normalise_planes(Forward<A>& of, bool training, const Sizes& size, const T* px, T* py) {
  const Planes<T> shape(size.images, size.channels, size.places);
  shape.each_channel([&](int64_t channel) {
    const auto c = static_cast<std::size_t>(channel);
    if constexpr (is_reduced_floating_point_v<T>)
      if (WidePlanes<T>::takes(size)) {
        WidePlanes<T> wide(size);
        float* const values = wide.read(px, channel);
        normalise_channel(of, training, c, Planes<float>(size.images, 1, size.places), 0, values, values);
        return wide.write(py, channel);
      }
    normalise_channel(of, training, c, shape, channel, px, py);
  });
}

// What a gradient takes and computes for each channel: to = (grad - mean_grad - (x - mean) * slope) * factor.
template <class A>
struct Backward {
  const A *weight, *mean, *deviation;  // the statistics of the batch, or running ones
  A *to_weight, *to_bias;
  int64_t count;
  bool train;
  A eps;
  struct Coefficients {
    A mean_grad, slope, factor;
  };

  // From the sums of grad, and of grad * (x - mean).
  Coefficients coefficients(std::size_t c, A sum, A dot) const {
    const auto n = static_cast<A>(count);
    const A s = train ? deviation[c] : A(1) / std::sqrt(deviation[c] + eps);
    to_weight[c] = dot * s;
    to_bias[c] = sum;
    return {train ? sum / n : A(0), train ? dot * s * s / n : A(0), s * (weight ? weight[c] : A(1))};
  }
};

template <class A>
void gradient_of_rows(const Backward<A>& of, int64_t n, const A* px, const A* pg, A* to) {
  const NormLoops<A>& loops = find_norm_loops<A>();
  const ChannelRows<A> shape(of.count, n);
  const auto totals = shape.sums(2, [&](int64_t from, int64_t many, int64_t first, int64_t channels, double* const* sums) {
    loops.sum_gradients(pg + from * n + first, px + from * n + first, many, n, channels, of.mean + first, sums[0], sums[1]);
  });
  std::vector<A> mean_grad(static_cast<std::size_t>(n)), slope(mean_grad), factor(mean_grad);
  for (std::size_t c = 0; c < factor.size(); ++c) {
    const auto k = of.coefficients(c, totals[0][c], totals[1][c]);
    mean_grad[c] = k.mean_grad;
    slope[c] = k.slope;
    factor[c] = k.factor;
  }
  if (!to) return;
  shape.each([&](int64_t from, int64_t many) {
    const int64_t at = from * n;
    if (of.train)
      loops.gradient_rows(pg + at, px + at, to + at, many, n, of.mean, mean_grad.data(), slope.data(), factor.data());
    else
      loops.scale_rows(pg + at, to + at, many, n, factor.data(), mean_grad.data());
  });
}

template <class T, class A>
void gradient_of_channel(const Backward<A>& of, int64_t c, const Planes<T>& shape, int64_t in_shape, const T* px, const T* pg, T* to) {
  const A m = of.mean[c], sum = shape.sum(in_shape, [&](int64_t i) { return A(pg[i]); });
  const A dot = shape.sum(in_shape, [&](int64_t i) { return A(pg[i]) * (A(px[i]) - m); });
  const auto k = of.coefficients(static_cast<std::size_t>(c), sum, dot);
  if (!to) return;
  if (of.train)
    shape.each(in_shape, [&](int64_t i) { to[i] = T((A(pg[i]) - k.mean_grad - (A(px[i]) - m) * k.slope) * k.factor); });
  else
    shape.each(in_shape, [&](int64_t i) { to[i] = T(A(pg[i]) * k.factor); });
}

template <class T, class A>
void gradient_of_planes(const Backward<A>& of, const Sizes& size, const T* px, const T* pg, T* to) {
  const Planes<T> shape(size.images, size.channels, size.places);
  shape.each_channel([&](int64_t c) {
    if constexpr (is_reduced_floating_point_v<T>)
      if (WidePlanes<T>::takes(size)) {
        WidePlanes<T> x(size), g(size);
        float* const grad = g.read(pg, c);
        gradient_of_channel(of, c, Planes<float>(size.images, 1, size.places), 0, x.read(px, c), grad, to ? grad : nullptr);
        if (to) g.write(to, c);
        return;
      }
    gradient_of_channel(of, c, shape, c, px, pg, to);
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
  // Rows are computed in the type of the statistics.
  const Tensor x = channels_last ? input.to(type) : rows ? input.to(type).contiguous() : input.contiguous();
  Tensor y = channels_last ? cresset::empty(x.sizes(), x.options().memory_format(format)) : detail::empty_cpu(x.sizes(), x.scalar_type());
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
      normalise_rows(of, training, size.channels, x.const_data_ptr<A>(), y.mutable_data_ptr<A>());
    else
      normalise_planes(of, training, size, x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>());
    if (training && size.count() > 0) {
      store(running_mean, of.new_mean);
      store(running_var, of.new_var);
    }
  });
  y = y.to(input.scalar_type());
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
  const ScalarType type = toOpMathType(input.scalar_type()), in = rows ? type : input.scalar_type(),
                   affine = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  const Tensor x = input.to(in).contiguous(format), g = grad_out.to(input.scalar_type()).to(in).contiguous(format);
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
    if (rows)
      gradient_of_rows(of, size.channels, x.const_data_ptr<A>(), g.const_data_ptr<A>(), gx.defined() ? gx.mutable_data_ptr<A>() : nullptr);
    else
      gradient_of_planes(of, size, x.const_data_ptr<scalar_t>(), g.const_data_ptr<scalar_t>(),
                         gx.defined() ? gx.mutable_data_ptr<scalar_t>() : nullptr);
    if (output_mask[1]) gw = sum_w.to(affine);
    if (output_mask[2]) gb = sum_b.to(affine);
  });
  if (gx.defined()) gx = gx.to(input.scalar_type());
  if (gx.defined() && !channels_last) gx = result_like(gx, input);
  return {gx, gw, gb};
}

}  // namespace cresset::cpu
