// Normalisation kernels. Sums run in several independent lanes so that they vectorise; statistics are float or double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_reduce.h>

#include "backends/cpu/norm_loops.h"
#include "cpu/cpu_decl_norm.h"
#include "ops/norm.h"
#include "ops/ops_decl_norm.h"

namespace cresset::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kGrain = 32768;  // elements a thread should have

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
// The statistics themselves, or a buffer of the type that they are computed in.
Tensor wide(const Tensor& t, ScalarType type) { return t.scalar_type() == type ? t : detail::empty_cpu(t.sizes(), type); }
template <class A>
const A* pointer(const Tensor& t) {
  return t.defined() ? t.const_data_ptr<A>() : nullptr;
}

}  // namespace

void native_layer_norm(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  int64_t n = 1;
  for (int64_t s : normalized_shape) n *= s;
  const int64_t rows = mean.numel();
  if (rows == 0) return;
  if (n == 0) {
    Tensor(mean).fill_(0);
    Tensor(rstd).fill_(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  // Half types are computed as float and converted at the ends.
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor x = input.to(type).contiguous(), wt = dense(weight, type), bt = dense(bias, type);
  const Tensor y = wide(out, type), wide_mean = wide(mean, type), wide_rstd = wide(rstd, type);
  CRESSET_DISPATCH(type, "LayerNormKernelImpl", CRESSET_FLOATING_TYPES, [&] {
    const NormLoops<scalar_t>& loops = find_norm_loops<scalar_t>();
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const w = pointer<scalar_t>(wt), *const b = pointer<scalar_t>(bt);
    scalar_t *const py = y.mutable_data_ptr<scalar_t>(), *const pm = wide_mean.mutable_data_ptr<scalar_t>(),
                    *const pr = wide_rstd.mutable_data_ptr<scalar_t>();
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      loops.forward_rows(px + begin * n, py + begin * n, end - begin, n, w, b, eps, pm + begin, pr + begin);
    });
  });
  for (const auto& [from, to] : {std::pair(&y, &out), std::pair(&wide_mean, &mean), std::pair(&wide_rstd, &rstd)})
    if (!from->is_same(*to)) Tensor(*to).copy_(*from);
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape,
                                                              const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight,
                                                              const std::optional<Tensor>& bias, std::array<bool, 3> output_mask) {
  auto [gx, gw, gb] =
      ops::native_layer_norm_backward_meta(grad_out, input.contiguous(), normalized_shape, mean, rstd, weight, bias, output_mask);
  int64_t n = 1;
  for (int64_t s : normalized_shape) n *= s;
  const int64_t rows = mean.numel();
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor x = input.to(type).contiguous(), g = grad_out.to(type).contiguous(), wt = dense(weight, type);
  const Tensor mt = mean.to(type).contiguous(), rt = rstd.to(type).contiguous();
  CRESSET_DISPATCH(type, "LayerNormBackwardKernelImpl", CRESSET_FLOATING_TYPES, [&] {
    const NormLoops<scalar_t>& loops = find_norm_loops<scalar_t>();
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const pg = g.const_data_ptr<scalar_t>(), *const w = pointer<scalar_t>(wt),
                          *const pm = mt.const_data_ptr<scalar_t>(), *const pr = rt.const_data_ptr<scalar_t>();
    if (gx.defined() && n > 0) {
      const Tensor to = wide(gx, type);
      scalar_t* const p = to.mutable_data_ptr<scalar_t>();
      parallel_for(0, rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
        const int64_t at = begin * n;
        loops.backward_rows(pg + at, px + at, p + at, end - begin, n, w, pm + begin, pr + begin);
      });
      if (!to.is_same(gx)) gx.copy_(to);
    }
    if (gw.defined() || gb.defined()) {
      std::vector<scalar_t> sum_w(static_cast<std::size_t>(n)), sum_b(static_cast<std::size_t>(n));
      parallel_for(0, n, std::max<int64_t>(16, kGrain / std::max<int64_t>(rows, 1)), [&](int64_t begin, int64_t end) {
        loops.backward_columns(pg, px, rows, n, begin, end, pm, pr, sum_w.data(), sum_b.data());
      });
      const auto store = [&](const Tensor& to, const std::vector<scalar_t>& sums) {
        if (!to.defined() || n == 0) return;
        const Tensor kept = wide(to, type);
        std::copy(sums.begin(), sums.end(), kept.mutable_data_ptr<scalar_t>());
        if (!kept.is_same(to)) Tensor(to).copy_(kept);
      };
      store(gw, sum_w);
      store(gb, sum_b);
    }
  });
  return {gx, gw, gb};
}

namespace {

// Input of batch norm as (batch, channels, inner) in memory; channels that are neighbours have inner 1. Groups of channels are handled one
// after the other, so that what is read again is still in a cache: one channel of planes, several neighbours.
class Channels {
 public:
  static constexpr int64_t kTogether = 128;
  template <class A, std::size_t N>
  using Sums = std::array<std::array<A, kTogether>, N>;

  Channels(const Tensor& x, bool channels_last) : channels(x.size(1)), batch_(x.size(0)) {
    for (int64_t d = 2; d < x.dim(); ++d) inner_ *= x.size(d);
    if (channels_last) batch_ *= std::exchange(inner_, 1);
  }
  int64_t count() const { return batch_ * inner_; }

  // f(first, n) for groups of n <= kTogether channels.
  template <class F>
  void parallel(const F& f) const {
    const int64_t together = inner_ == 1 ? kTogether : 1, groups = (channels + together - 1) / together;
    parallel_for(0, groups, std::max<int64_t>(1, kGrain / std::max<int64_t>(count() * together, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) f(g * together, std::min(together, channels - g * together));
    });
  }
  // What f(element, channel), an array of numbers, adds up to for each channel of a group.
  template <class A, std::size_t N, class F>
  Sums<A, N> sums(int64_t first, int64_t n, const F& f) const {
    if (inner_ == 1) return column_sums<A, N>(first, n, f);
    Sums<A, N> total{};
    for (std::size_t k = 0; k < N; ++k)
      for (int64_t b = 0; b < batch_; ++b)
        total[k][0] += lane_sum<A>(inner_, [&, base = (b * channels + first) * inner_](int64_t i) { return f(base + i, first)[k]; });
    return total;
  }
  // f(element, channel) for every element of a group.
  template <class F>
  void each(int64_t first, int64_t n, const F& f) const {
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t base = (b * channels + first) * inner_;
      if (inner_ == 1)
        for (int64_t c = 0; c < n; ++c) f(base + c, first + c);
      else
        for (int64_t i = 0; i < inner_; ++i) f(base + i, first);
    }
  }

  // The same for all elements, threads in parallel, as they lie in memory.
  template <class F>
  void each(const F& f) const {
    if (inner_ > 1) return parallel([&](int64_t first, int64_t n) { each(first, n, f); });
    parallel_for(0, batch_, std::max<int64_t>(1, kGrain / std::max<int64_t>(channels, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < channels; ++c) f(b * channels + c, c);
    });
  }

  int64_t channels;

 private:
  // Some rows are added in the type of the statistics, then in double.
  template <class A, std::size_t N, class F>
  Sums<A, N> column_sums(int64_t first, int64_t n, const F& f) const {
    constexpr int64_t kRows = 64;
    Sums<double, N> total{};
    for (int64_t b = 0; b < batch_;) {
      Sums<A, N> part{};
      for (const int64_t end = std::min(batch_, b + kRows); b < end; ++b)
        for (int64_t c = 0; c < n; ++c) {
          const std::array<A, N> values = f(b * channels + first + c, first + c);
          for (std::size_t k = 0; k < N; ++k) part[k][c] += values[k];
        }
      for (std::size_t k = 0; k < N; ++k)
        for (int64_t c = 0; c < n; ++c) total[k][c] += static_cast<double>(part[k][c]);
    }
    Sums<A, N> result{};
    for (std::size_t k = 0; k < N; ++k)
      for (int64_t c = 0; c < n; ++c) result[k][c] = static_cast<A>(total[k][c]);
    return result;
  }

  int64_t batch_, inner_ = 1;
};

// Are the channels of an element neighbours, here and in a result?
bool has_channels_last(const Tensor& t) {
  const MemoryFormat format = t.suggest_memory_format();
  return format != MemoryFormat::Contiguous && t.is_contiguous(format);
}

Tensor result_like(const Tensor& contiguous, const Tensor& like) {
  const MemoryFormat format = like.suggest_memory_format();
  return format == MemoryFormat::Contiguous ? contiguous : contiguous.contiguous(format);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                                                     const std::optional<Tensor>& running_var, bool training, double momentum, double eps) {
  const ScalarType kept_type = ops::check_batch_norm(input, weight, bias, running_mean, running_var, training);
  const bool channels_last = has_channels_last(input);
  const Tensor x = channels_last ? input : input.contiguous();
  const Channels shape(x, channels_last);
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor y = channels_last ? cresset::empty_like(input) : detail::empty_cpu(x.sizes(), x.scalar_type());
  const int64_t kept = training ? shape.channels : 0;
  const Tensor save_mean = detail::empty_cpu({kept}, type), save_invstd = detail::empty_cpu({kept}, type);
  CRESSET_DISPATCH(input.scalar_type(), "batch_norm", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const Tensor wt = dense(weight, type), bt = dense(bias, type), rm = dense(running_mean, type), rv = dense(running_var, type);
    const A *w = pointer<A>(wt), *b = pointer<A>(bt), *pm = pointer<A>(rm), *pv = pointer<A>(rv);
    const auto* px = x.const_data_ptr<scalar_t>();
    auto* py = y.mutable_data_ptr<scalar_t>();
    const auto channels = static_cast<std::size_t>(shape.channels);
    std::vector<A> new_mean(channels), new_var(channels), means(channels), scales(channels), shifts(channels);
    A *const means_of = means.data(), *const scale = scales.data(), *const shift = shifts.data();
    const auto finish = [&](int64_t c, A m, A s) {
      scale[c] = s * (w ? w[c] : A(1));
      shift[c] = (b ? b[c] : A(0)) - m * scale[c];
    };
    const auto apply = [&](int64_t i, int64_t c) { py[i] = scalar_t(A(px[i]) * scale[c] + shift[c]); };
    if (training) {
      shape.parallel([&](int64_t first, int64_t together) {
        const auto n = static_cast<A>(shape.count()), k = static_cast<A>(momentum);
        const auto total = shape.sums<A, 1>(first, together, [&](int64_t i, int64_t) { return std::array<A, 1>{A(px[i])}; });
        for (int64_t c = 0; c < together; ++c) means_of[first + c] = total[0][c] / n;
        const auto squares = shape.sums<A, 1>(first, together, [&](int64_t i, int64_t c) {
          const A d = A(px[i]) - means_of[c];
          return std::array<A, 1>{d * d};
        });
        for (int64_t c = first; c < first + together; ++c) {
          const A square = squares[0][c - first], m = means_of[c], s = A(1) / std::sqrt(square / n + static_cast<A>(eps));
          save_mean.mutable_data_ptr<A>()[c] = m;
          save_invstd.mutable_data_ptr<A>()[c] = s;
          if (pm) new_mean[c] = k * m + (1 - k) * pm[c];
          if (pv) new_var[c] = k * (square / (n - 1)) + (1 - k) * pv[c];
          finish(c, m, s);
        }
        shape.each(first, together, apply);
      });
    } else {
      for (int64_t c = 0; c < shape.channels; ++c) finish(c, pm[c], A(1) / std::sqrt(pv[c] + static_cast<A>(eps)));
      shape.each(apply);
    }
    if (training && shape.count() > 0) {
      const auto store = [&](const std::optional<Tensor>& to, std::vector<A>& values) {
        if (!to || !to->defined()) return;
        const Tensor buffer = detail::empty_cpu({shape.channels}, type);
        std::copy(values.begin(), values.end(), buffer.mutable_data_ptr<A>());
        const impl::ExcludeDispatchKeyGuard of_a_transform(DispatchKey::FuncTorchDynamicLayerFrontMode);  // may be captured by its function
        Tensor(*to).copy_(buffer.view(to->sizes()));
      };
      store(running_mean, new_mean);
      store(running_var, new_var);
    }
  });
  return {channels_last ? y : result_like(y, input), save_mean.to(kept_type), save_invstd.to(kept_type)};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var, const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double eps, std::array<bool, 3> output_mask) {
  ops::check_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train);
  const bool channels_last = has_channels_last(input);
  const Tensor x = channels_last ? input : input.contiguous();
  const Tensor g = grad_out.to(input.scalar_type()).contiguous(channels_last ? input.suggest_memory_format() : MemoryFormat::Contiguous);
  const Channels shape(x, channels_last);
  Tensor gx, gw, gb;
  if (output_mask[0]) gx = channels_last ? cresset::empty_like(input) : detail::empty_cpu(x.sizes(), x.scalar_type());
  const ScalarType type = toOpMathType(input.scalar_type()),
                   affine = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  CRESSET_DISPATCH(input.scalar_type(), "batch_norm_backward", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const Tensor wt = dense(weight, type);
    const Tensor mt = dense(train ? save_mean : running_mean, type), st = dense(train ? save_invstd : running_var, type);
    const A *w = pointer<A>(wt), *pm = pointer<A>(mt), *ps = pointer<A>(st);
    const Tensor sum_w = detail::empty_cpu({shape.channels}, type), sum_b = detail::empty_cpu({shape.channels}, type);
    const auto *px = x.const_data_ptr<scalar_t>(), *pg = g.const_data_ptr<scalar_t>();
    auto* const to = gx.defined() ? gx.mutable_data_ptr<scalar_t>() : nullptr;
    A *const to_w = sum_w.mutable_data_ptr<A>(), *const to_b = sum_b.mutable_data_ptr<A>();
    shape.parallel([&](int64_t first, int64_t together) {
      const auto n = static_cast<A>(shape.count());
      const auto total = shape.sums<A, 2>(first, together,
                                          [&](int64_t i, int64_t c) { return std::array<A, 2>{A(pg[i]), A(pg[i]) * (A(px[i]) - pm[c])}; });
      std::array<A, Channels::kTogether> factor, mean_g, slope;
      for (int64_t k = 0; k < together; ++k) {
        const int64_t c = first + k;
        const A s = train ? ps[c] : A(1) / std::sqrt(ps[c] + static_cast<A>(eps)), sum = total[0][k], dot = total[1][k];
        to_w[c] = dot * s;
        to_b[c] = sum;
        factor[k] = s * (w ? w[c] : A(1));
        mean_g[k] = sum / n;
        slope[k] = dot * s * s / n;
      }
      if (!to) return;
      if (train)
        shape.each(first, together, [&](int64_t i, int64_t c) {
          to[i] = scalar_t((A(pg[i]) - mean_g[c - first] - (A(px[i]) - pm[c]) * slope[c - first]) * factor[c - first]);
        });
      else
        shape.each(first, together, [&](int64_t i, int64_t c) { to[i] = scalar_t(A(pg[i]) * factor[c - first]); });
    });
    if (output_mask[1]) gw = sum_w.to(affine);
    if (output_mask[2]) gb = sum_b.to(affine);
  });
  if (gx.defined() && !channels_last) gx = result_like(gx, input);
  return {gx, gw, gb};
}

}  // namespace cresset::cpu
