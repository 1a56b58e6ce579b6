// Derivatives of normalisations.
//
// With xhat = (x - mean) * s, s = 1/sqrt(var + eps), n elements in a set and E the mean over the set, for fixed gy and h = gy * w:
//   gx = s * (h - E[h] - xhat * E[h * xhat]),  gw = sum(gy * xhat),  gb = sum(gy).
// The derivatives below follow by differentiating these; d xhat = s * (dx - E[dx] - xhat * E[dx * xhat]).
#include "autograd/formulas_norm.h"

#include "autograd/generated_support.h"

#include <cresset/core/grad_mode.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_reduce.h>

namespace cresset::autograd::formulas {
namespace {

// The set over which statistics are taken, and where parameters broadcast.
struct Sets {
  DimVector over;        // dimensions of a set
  DimVector parameters;  // sizes of weight and bias as they broadcast over x
  DimVector reduce;      // dimensions summed for the gradient of a parameter
  DimVector plain;       // sizes of the parameter itself

  Tensor mean(const Tensor& t) const { return cresset::mean(t, over, true); }
  Tensor to_parameter(const Tensor& t) const { return reduce.empty() ? t.reshape(plain) : cresset::sum(t, reduce, false).reshape(plain); }
};

Sets channel_sets(const Tensor& x) {
  Sets s;
  for (int64_t d = 0; d < x.dim(); ++d) {
    s.parameters.push_back(d == 1 ? x.size(1) : 1);
    if (d != 1) s.over.push_back(d);
  }
  s.reduce = s.over;
  s.plain = DimVector{x.size(1)};
  return s;
}

Sets last_sets(const Tensor& x, IntArrayRef normalized_shape) {
  Sets s;
  const int64_t first = x.dim() - static_cast<int64_t>(normalized_shape.size());
  for (int64_t d = 0; d < x.dim(); ++d) {
    s.parameters.push_back(d >= first ? x.size(d) : 1);
    (d >= first ? s.over : s.reduce).push_back(d);
  }
  s.plain = DimVector(normalized_shape);
  return s;
}

// Mean and 1 / standard deviation of x, as functions of x where derivatives of the formula may be asked for: those that the operator gave
// carry no history and no tangent. They say what was added to the variance.
std::pair<Tensor, Tensor> statistics_of(const Sets& sets, const Tensor& x, const Tensor& mean, const Tensor& rstd) {
  if (!(GradMode::is_enabled() && x.requires_grad()) && !fw_grad(x).defined()) return {mean, rstd};
  const Tensor average = sets.mean(x), centred = x - average, variance = sets.mean(centred * centred);
  const Tensor added = (cresset::reciprocal(rstd * rstd) - variance).detach();
  return {average, cresset::rsqrt(variance + added)};
}

// Projection of v onto what normalisation lets through.
Tensor project(const Sets& sets, const Tensor& v, const Tensor& xhat) { return v - sets.mean(v) - xhat * sets.mean(v * xhat); }

void accumulate(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; }

Tensor jvp(const Sets& sets, const Tensor& xhat, const Tensor& s, const Tensor& x_t, const Tensor& weight_p, const Tensor& weight_t,
           const Tensor& bias_t, bool statistics_move) {
  Tensor dxhat = statistics_move ? project(sets, x_t, xhat) * s : x_t * s;
  Tensor out = weight_p.defined() ? dxhat * weight_p.reshape(sets.parameters) : dxhat;
  if (weight_t.defined()) out = out + xhat * weight_t.reshape(sets.parameters);
  if (bias_t.defined()) out = out + bias_t.reshape(sets.parameters);
  return out;
}

std::tuple<Tensor, Tensor, Tensor> backward_jvp(const Sets& sets, const Tensor& gy, const Tensor& gy_t, const Tensor& x_t,
                                                const Tensor& xhat, const Tensor& s, const Tensor& weight, const Tensor& weight_t,
                                                bool statistics_move, std::array<bool, 3> mask) {
  const Tensor dxhat = (statistics_move ? project(sets, x_t, xhat) : x_t) * s;
  Tensor gx, gw, gb;
  if (mask[0]) {
    Tensor h = gy, dh = gy_t;
    if (weight.defined()) {
      const Tensor w = weight.reshape(sets.parameters);
      h = gy * w;
      dh = gy_t * w + gy * weight_t.reshape(sets.parameters);
    }
    if (statistics_move) {
      const Tensor ds = -(s * s) * sets.mean(xhat * x_t);
      gx = ds * project(sets, h, xhat) + s * (project(sets, dh, xhat) - dxhat * sets.mean(h * xhat) - xhat * sets.mean(h * dxhat));
    } else {
      gx = s * dh;
    }
  }
  if (mask[1]) gw = sets.to_parameter(gy_t * xhat + gy * dxhat);
  if (mask[2]) gb = sets.to_parameter(gy_t);
  return {gx, gw, gb};
}

std::tuple<Tensor, Tensor, Tensor> double_backward(const Sets& sets, const Tensor& ggx, const Tensor& ggw, const Tensor& ggb,
                                                   const Tensor& gy, const Tensor& x, const Tensor& xhat, const Tensor& s,
                                                   const Tensor& weight, bool statistics_move, std::array<bool, 3> mask) {
  const Tensor w = weight.defined() ? weight.reshape(sets.parameters) : Tensor();
  const auto times_w = [&](const Tensor& t) { return w.defined() ? t * w : t; };
  const auto shaped = [&](const Tensor& t) { return t.reshape(sets.parameters); };
  Tensor ggy, gx, gw;
  if (ggx.defined()) {
    // L = <ggx, gx> = <P(ggx) * s, gy * w> with P the projection (symmetric).
    const Tensor v = statistics_move ? project(sets, ggx, xhat) : ggx;
    accumulate(ggy, times_w(v * s));
    if (weight.defined()) gw = sets.to_parameter(v * s * gy);
    if (statistics_move && mask[1]) {
      const Tensor h = times_w(gy);
      const Tensor mh = sets.mean(h * xhat), mv = sets.mean(ggx * xhat), hv = sets.mean(v * h);
      // dL/dxhat (through P) and dL/ds, then both through the statistics.
      const Tensor d_xhat = -(mh * ggx + mv * h) * s;
      const Tensor through = project(sets, d_xhat, xhat) * s;
      accumulate(gx, through);
      // s = (var + eps)^-1/2: ds = -s^2 * E[xhat * dx]; L depends on s as s * n * E[v * h].
      accumulate(gx, -(s * s) * xhat * hv);
    }
  }
  if (ggw.defined()) {
    accumulate(ggy, xhat * shaped(ggw));
    if (mask[1]) {
      const Tensor d_xhat = gy * shaped(ggw);
      accumulate(gx, (statistics_move ? project(sets, d_xhat, xhat) : d_xhat) * s);
    }
  }
  if (ggb.defined()) accumulate(ggy, shaped(ggb).expand(x.sizes()));
  return {ggy, gx, gw};
}

}  // namespace

Tensor batch_norm_jvp(bool moves, const Tensor& x, const Tensor& x_t, const Tensor& weight_p, const Tensor& weight_t, const Tensor& bias_t,
                      const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, const Tensor& mean,
                      const Tensor& invstd, bool training, double eps) {
  CRESSET_CHECK(training || !moves || !(detail::any_fw(running_mean) || detail::any_fw(running_var)),
                "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined");
  const Sets sets = channel_sets(x);
  Tensor m = (training ? mean : *running_mean).reshape(sets.parameters);
  Tensor s = training ? invstd.reshape(sets.parameters) : cresset::rsqrt(*running_var + eps).reshape(sets.parameters);
  if (training) std::tie(m, s) = statistics_of(sets, x, m, s);
  return jvp(sets, (x - m) * s, s, x_t, weight_p, weight_t, bias_t, training);
}

Tensor layer_norm_jvp(const Tensor& x, const Tensor& x_t, const Tensor& weight_p, const Tensor& weight_t, const Tensor& bias_t,
                      IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd) {
  const Sets sets = last_sets(x, normalized_shape);
  const auto [m, s] = statistics_of(sets, x, mean, rstd);
  return jvp(sets, (x - m) * s, s, x_t, weight_p, weight_t, bias_t, true);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_jvp(const Tensor& gy, const Tensor& gy_t, const Tensor& x, const Tensor& x_t,
                                                           const Tensor& weight, const Tensor& weight_t,
                                                           const std::optional<Tensor>& running_mean,
                                                           const std::optional<Tensor>& running_var, bool train, double eps,
                                                           std::array<bool, 3> mask) {
  const Sets sets = channel_sets(x);
  const Tensor centred = x - (train ? sets.mean(x) : running_mean->reshape(sets.parameters));
  const Tensor s = train ? cresset::rsqrt(sets.mean(centred * centred) + eps) : cresset::rsqrt(*running_var + eps).reshape(sets.parameters);
  return backward_jvp(sets, gy, gy_t, x_t, centred * s, s, weight, weight_t, train, mask);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_jvp(const Tensor& gy, const Tensor& gy_t, const Tensor& x, const Tensor& x_t,
                                                           IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd,
                                                           const Tensor& weight, const Tensor& weight_t, std::array<bool, 3> mask) {
  const Sets sets = last_sets(x, normalized_shape);
  const auto [m, s] = statistics_of(sets, x, mean, rstd);
  return backward_jvp(sets, gy, gy_t, x_t, (x - m) * s, s, weight, weight_t, true, mask);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_double_backward(const Tensor& ggx, const Tensor& ggw, const Tensor& ggb, const Tensor& gy,
                                                              const Tensor& x, const std::optional<Tensor>& weight,
                                                              const std::optional<Tensor>& running_mean,
                                                              const std::optional<Tensor>& running_var, const std::optional<Tensor>&,
                                                              const std::optional<Tensor>&, bool train, double eps,
                                                              std::array<bool, 3> mask) {
  const Sets sets = channel_sets(x);
  // Statistics are taken again from x, so that a third derivative sees how they depend on it.
  const Tensor m = train ? sets.mean(x) : running_mean->reshape(sets.parameters);
  const Tensor centred = x - m;
  const Tensor s = train ? cresset::rsqrt(sets.mean(centred * centred) + eps) : cresset::rsqrt(*running_var + eps).reshape(sets.parameters);
  return double_backward(sets, ggx, ggw, ggb, gy, x, centred * s, s, weight ? *weight : Tensor(), train, mask);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_double_backward(const Tensor& ggx, const Tensor& ggw, const Tensor& ggb, const Tensor& gy,
                                                              const Tensor& x, IntArrayRef normalized_shape, const Tensor& mean,
                                                              const Tensor& rstd, const std::optional<Tensor>& weight,
                                                              std::array<bool, 3> mask) {
  const Sets sets = last_sets(x, normalized_shape);
  const auto [m, s] = statistics_of(sets, x, mean, rstd);
  return double_backward(sets, ggx, ggw, ggb, gy, x, (x - m) * s, s, weight ? *weight : Tensor(), true, mask);
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward(const std::vector<Tensor>& grads, const Tensor& input, const Tensor& mean,
                                                       const Tensor& rstd, const std::optional<Tensor>& weight, int64_t n, int64_t c,
                                                       int64_t hxw, int64_t group, std::array<bool, 3> mask) {
  Tensor gx, gw, gb;
  if (grads[0].defined())
    std::tie(gx, gw, gb) = cresset::native_group_norm_backward(grads[0], input, mean, rstd, weight, n, c, hxw, group, mask);
  if (!mask[0] || input.numel() == 0 || !(grads[1].defined() || grads[2].defined())) return {gx, gw, gb};
  const int64_t row = c / group * hxw;
  const DimVector split{n, group, row}, one{n, group, 1};
  const auto wide = [&](const Tensor& t, const DimVector& sizes) { return t.to(toOpMathType(input.scalar_type())).reshape(sizes); };
  Tensor more;  // d mean / d x = 1 / row, d rstd / d x = -rstd^3 (x - mean) / row
  if (grads[1].defined()) more = (wide(grads[1], one) / row).expand(split);
  if (grads[2].defined()) {
    const Tensor s = wide(rstd, one);
    const Tensor of_rstd = (wide(input, split) - wide(mean, one)) * (wide(grads[2], one) * s * s * s / -row);
    more = more.defined() ? more + of_rstd : of_rstd;
  }
  more = more.to(input.scalar_type()).reshape(input.sizes());
  return {gx.defined() ? gx + more : more, gw, gb};
}

}  // namespace cresset::autograd::formulas
