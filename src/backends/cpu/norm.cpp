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

// Input of batch norm as (batch, channels, inner), contiguous.
struct Channels {
  int64_t batch, channels, inner;
  explicit Channels(const Tensor& x) : batch(x.size(0)), channels(x.size(1)), inner(1) {
    for (int64_t d = 2; d < x.dim(); ++d) inner *= x.size(d);
  }
  int64_t count() const { return batch * inner; }
  template <class A, class F>
  A sum(int64_t c, const F& f) const {
    A total = 0;
    if (inner == 1) return lane_sum<A>(batch, [&](int64_t b) { return f(b * channels + c); });
    for (int64_t b = 0; b < batch; ++b)
      total += lane_sum<A>(inner, [&, base = (b * channels + c) * inner](int64_t i) { return f(base + i); });
    return total;
  }
  template <class F>
  void each(int64_t c, const F& f) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0, at = (b * channels + c) * inner; i < inner; ++i, ++at) f(at);
  }
  template <class F>
  void parallel(const F& f) const {
    parallel_for(0, channels, std::max<int64_t>(1, kGrain / std::max<int64_t>(count(), 1)), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) f(c);
    });
  }
};

Tensor result_like(const Tensor& contiguous, const Tensor& like) {
  const MemoryFormat format = like.suggest_memory_format();
  return format == MemoryFormat::Contiguous ? contiguous : contiguous.contiguous(format);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                                                     const std::optional<Tensor>& running_var, bool training, double momentum, double eps) {
  const ScalarType kept_type = ops::check_batch_norm(input, weight, bias, running_mean, running_var, training);
  const Tensor x = input.contiguous();
  const Channels shape(x);
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor y = detail::empty_cpu(x.sizes(), x.scalar_type());
  const int64_t kept = training ? shape.channels : 0;
  const Tensor save_mean = detail::empty_cpu({kept}, type), save_invstd = detail::empty_cpu({kept}, type);
  CRESSET_DISPATCH(input.scalar_type(), "batch_norm", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const Tensor wt = dense(weight, type), bt = dense(bias, type), rm = dense(running_mean, type), rv = dense(running_var, type);
    const A *w = pointer<A>(wt), *b = pointer<A>(bt), *pm = pointer<A>(rm), *pv = pointer<A>(rv);
    std::vector<A> new_mean(static_cast<std::size_t>(shape.channels)), new_var(static_cast<std::size_t>(shape.channels));
    const auto* px = x.const_data_ptr<scalar_t>();
    auto* py = y.mutable_data_ptr<scalar_t>();
    shape.parallel([&](int64_t c) {
      A m, s;
      if (training) {
        const auto n = static_cast<A>(shape.count());
        m = shape.sum<A>(c, [&](int64_t i) { return A(px[i]); }) / n;
        const A square = shape.sum<A>(c, [&](int64_t i) {
          const A d = A(px[i]) - m;
          return d * d;
        });
        s = A(1) / std::sqrt(square / n + static_cast<A>(eps));
        save_mean.mutable_data_ptr<A>()[c] = m;
        save_invstd.mutable_data_ptr<A>()[c] = s;
        const auto k = static_cast<A>(momentum);
        if (pm) new_mean[c] = k * m + (1 - k) * pm[c];
        if (pv) new_var[c] = k * (square / (n - 1)) + (1 - k) * pv[c];
      } else {
        m = pm[c];
        s = A(1) / std::sqrt(pv[c] + static_cast<A>(eps));
      }
      const A scale = s * (w ? w[c] : A(1)), shift = (b ? b[c] : A(0)) - m * scale;
      shape.each(c, [&](int64_t i) { py[i] = scalar_t(A(px[i]) * scale + shift); });
    });
    if (training && shape.count() > 0) {
      const auto store = [&](const std::optional<Tensor>& to, std::vector<A>& values) {
        if (!to || !to->defined()) return;
        const Tensor buffer = detail::empty_cpu({shape.channels}, type);
        std::copy(values.begin(), values.end(), buffer.mutable_data_ptr<A>());
        Tensor(*to).copy_(buffer.view(to->sizes()));
      };
      store(running_mean, new_mean);
      store(running_var, new_var);
    }
  });
  return {result_like(y, input), save_mean.to(kept_type), save_invstd.to(kept_type)};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var, const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double eps, std::array<bool, 3> output_mask) {
  ops::check_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train);
  const Tensor x = input.contiguous(), g = grad_out.to(input.scalar_type()).contiguous();
  const Channels shape(x);
  Tensor gx, gw, gb;
  if (output_mask[0]) gx = detail::empty_cpu(x.sizes(), x.scalar_type());
  const ScalarType type = toOpMathType(input.scalar_type()),
                   affine = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  CRESSET_DISPATCH(input.scalar_type(), "batch_norm_backward", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const Tensor wt = dense(weight, type);
    const Tensor mt = dense(train ? save_mean : running_mean, type), st = dense(train ? save_invstd : running_var, type);
    const A *w = pointer<A>(wt), *pm = pointer<A>(mt), *ps = pointer<A>(st);
    const Tensor sum_w = detail::empty_cpu({shape.channels}, type), sum_b = detail::empty_cpu({shape.channels}, type);
    const auto *px = x.const_data_ptr<scalar_t>(), *pg = g.const_data_ptr<scalar_t>();
    auto* to = gx.defined() ? gx.mutable_data_ptr<scalar_t>() : nullptr;
    shape.parallel([&](int64_t c) {
      const A m = pm[c], s = train ? ps[c] : A(1) / std::sqrt(ps[c] + static_cast<A>(eps));
      const A total = shape.sum<A>(c, [&](int64_t i) { return A(pg[i]); });
      const A dot = shape.sum<A>(c, [&](int64_t i) { return A(pg[i]) * (A(px[i]) - m); });
      sum_w.mutable_data_ptr<A>()[c] = dot * s;
      sum_b.mutable_data_ptr<A>()[c] = total;
      if (!to) return;
      const A k = s * (w ? w[c] : A(1));
      if (train) {
        const auto n = static_cast<A>(shape.count());
        const A mean_g = total / n, slope = dot * s * s / n;
        shape.each(c, [&](int64_t i) { to[i] = scalar_t((A(pg[i]) - mean_g - (A(px[i]) - m) * slope) * k); });
      } else {
        shape.each(c, [&](int64_t i) { to[i] = scalar_t(A(pg[i]) * k); });
      }
    });
    if (output_mask[1]) gw = sum_w.to(affine);
    if (output_mask[2]) gb = sum_b.to(affine);
  });
  if (gx.defined()) gx = result_like(gx, input);
  return {gx, gw, gb};
}

}  // namespace cresset::cpu
