// Gamma and Dirichlet numbers, and how they move with their parameters at a fixed quantile.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/random_stream.h"
#include "backends/cpu/random_words.h"
#include "backends/cpu/special_math.h"
#include "cpu/cpu_decl_random.h"
#include "ops/shared/shape_util.h"

namespace cresset::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double draw(CPUGeneratorImpl& generator) {
  double u;
  random_detail::unit_fill(&u, 1, generator);
  return u;
}

// G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM TOMS 26 (2000). A shape below 1 is raised by 1 and
// the number scaled by a power of a uniform one. T is the type of the shape; a third in single precision belongs to PyTorch's stream.
template <class T>
double sample_gamma(T shape, CPUGeneratorImpl& generator) {
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale = std::pow(1 - draw(generator), static_cast<double>(1 / shape));
    shape += 1;
  }
  const T d = shape - 1.0f / 3.0f;
  const double c = 1 / std::sqrt(9 * static_cast<double>(d));
  if (!std::isfinite(d) || !std::isfinite(c)) return shape;
  while (true) {
    double x, y;
    do {
      normal_serial_fill(&x, 1, 0.0, 1.0, generator);
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - draw(generator), square = x * x;
    if (u < 1 - 0.0331 * square * square || std::log(u) < 0.5 * square + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

// Gamma numbers are at least the smallest normal number of their type; so is what is not a number.
template <class T>
T positive(double value) {
  return std::max(std::numeric_limits<T>::min(), static_cast<T>(value));
}

// The integral of exp(exponent(w)) * factor(w) over w >= 0, where the exponent falls from a first value near 0 without bound: tanh-sinh
// quadrature (H. Takahasi and M. Mori, 1974) up to where nothing is left in double precision.
struct TanhSinh {
  static constexpr int kReach = 52;
  static constexpr double kStep = 1.0 / 16;
  double place[2 * kReach + 1], weight[2 * kReach + 1];  // for an end of 1

  TanhSinh() {
    for (int i = -kReach; i <= kReach; ++i) {
      const double u = std::numbers::pi / 2 * std::sinh(i * kStep);
      place[i + kReach] = 1 / (1 + std::exp(-2 * u));  // (1 + tanh u) / 2, exact near 0
      weight[i + kReach] = kStep * std::numbers::pi / 4 * std::cosh(i * kStep) / (std::cosh(u) * std::cosh(u));
    }
  }
};

template <class E, class F>
double decaying_integral(const E& exponent, const F& factor) {
  static const TanhSinh rule;
  double end = 1;
  while (exponent(end) > -60 && end < 1e300) end *= 2;
  while (exponent(end / 2) < -60 && end > 1e-300) end /= 2;
  double sum = 0;
  for (int i = 0; i <= 2 * TanhSinh::kReach; ++i) {
    const double w = end * rule.place[i], term = std::exp(exponent(w)) * factor(w) * rule.weight[i];
    if (std::isfinite(term)) sum += term;
  }
  return end * sum;
}

// The series of an incomplete gamma or beta function at x, Σ c_k / (a + k), and Σ (1 / (a (a + k)) - 1 / (a + k)²) c_k: its derivative
// for a without the first terms, which are large for a small a and cancel. c_k is c_(k-1) * ratio(k), c_0 = 1.
struct Series {
  double sum, slope;
};
template <class R>
Series power_series(double a, const R& ratio) {
  double c = 1, sum = 1 / a, slope = 0;
  for (int k = 1; k < 400; ++k) {
    c *= ratio(k);
    const double term = c / (a + k);
    sum += term;
    slope += term * k / (a + k);
    if (std::abs(c) < 1e-17 * std::abs(sum)) break;
  }
  return {sum, slope / a};
}

// dx/da of a gamma number x of shape a at a fixed quantile: with density p and distribution function P it is -(dP/da) / p. Below 1 from
// the power series of P. Elsewhere dP/da = ∫₀ˣ p(t) (ln t - ψ(a)) dt = -∫ₓ^∞ of the same; the side is taken where ln t - ψ(a) keeps its
// sign, with t = x exp(∓w).
double gamma_slope(double a, double x) {
  if (!(a > 0) || !(x >= 0) || !std::isfinite(a)) return kNan;
  if (x == 0) return 0;
  if (x < 1) {
    const Series s = power_series(a, [&](int k) { return -x / k; });
    return x * std::exp(x) * ((special_math::digamma(1 + a) - std::log(x)) * s.sum - s.slope);
  }
  const double distance = std::log(x) - special_math::digamma(a);
  if (distance < 0)
    return x * decaying_integral([&](double w) { return -a * w - x * std::expm1(-w); }, [&](double w) { return w - distance; });
  return x * decaying_integral([&](double w) { return a * w - x * std::expm1(w); }, [&](double w) { return w + distance; });
}

// (dx/da) / (1 - x) of a beta number x with parameters a and b = total - a at a fixed quantile, b fixed: as above, from the power series
// around the nearer end where it does not cancel, else from the integral of ln t - ψ(a) + ψ(a + b), on the side with t = x exp(-w) or
// 1 - t = (1 - x) exp(-w).
double dirichlet_slope(double x, double a, double total) {
  const double b = total - a;
  if (!(a > 0) || !(b >= 0) || !(x >= 0 && x <= 1)) return kNan;
  if (x == 0 || x == 1 || b == 0) return 0;
  const double rest = 1 - x, log_x = std::log(x);
  if (x < 0.5 && std::abs(b - 1) * x < 2) {
    const Series s = power_series(a, [&](int k) { return (k - b) * x / k; });
    const double distance = special_math::digamma(1 + a) - special_math::digamma(total) - log_x;
    return x * std::exp(-b * std::log1p(-x)) * (distance * s.sum - s.slope);
  }
  const double mean = special_math::digamma(a) - special_math::digamma(total);
  if (x >= 0.5 && std::abs(a - 1) * rest < 2) {
    // Of 1 - x, whose other parameter a is: c_k and its derivative for a.
    double c = 1, change = 0, sum = 1 / b, slope = 0;
    for (int k = 1; k < 400; ++k) {
      change = (change * (k - a) - c) * rest / k;
      c *= (k - a) * rest / k;
      sum += c / (b + k);
      slope += change / (b + k);
      if (std::abs(c) + std::abs(change) < 1e-17 * std::abs(sum)) break;
    }
    return std::exp((1 - a) * log_x) * (slope - mean * sum);
  }
  const double log_rest = std::log1p(-x);
  if (log_x < mean)
    return x / rest *
           decaying_integral([&](double w) { return -a * w + (b - 1) * (std::log1p(-x * std::exp(-w)) - log_rest); },
                             [&](double w) { return mean - log_x + w; });
  const auto log_t = [&](double w) { return std::log1p(-rest * std::exp(-w)); };
  return decaying_integral([&](double w) { return -b * w + (a - 1) * (log_t(w) - log_x); }, [&](double w) { return log_t(w) - mean; });
}

}  // namespace

Tensor standard_gamma(const Tensor& self, const std::optional<Generator>& generator) {
  const Tensor shapes = self.contiguous(), out = detail::empty_cpu(self.sizes(), self.scalar_type());
  CRESSET_DISPATCH(self.scalar_type(), "gamma_cpu", CRESSET_FLOATING_TYPES, [&] {
    const auto* from = shapes.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    CPUGeneratorImpl& g = chosen_generator(generator);
    std::lock_guard lock(g.mutex_);
    for (int64_t i = 0; i < out.numel(); ++i) to[i] = positive<scalar_t>(sample_gamma(from[i], g));
  });
  return out;
}

Tensor sample_dirichlet(const Tensor& self, const std::optional<Generator>& generator) {
  const Tensor shapes = self.contiguous(), out = detail::empty_cpu(self.sizes(), self.scalar_type());
  const int64_t width = self.dim() ? self.size(-1) : 1;
  CRESSET_DISPATCH(self.scalar_type(), "dirichlet", CRESSET_FLOATING_TYPES, [&] {
    const auto* from = shapes.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    CPUGeneratorImpl& g = chosen_generator(generator);
    std::lock_guard lock(g.mutex_);
    constexpr scalar_t kLeast = std::numeric_limits<scalar_t>::min(), kMost = 1 - std::numeric_limits<scalar_t>::epsilon() / 2;
    std::vector<double> row(static_cast<std::size_t>(width));
    for (int64_t start = 0; start < out.numel(); start += width) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) {
        row[i] = std::max(std::numeric_limits<double>::min(), sample_gamma(static_cast<double>(from[start + i]), g));
        sum += row[i];
      }
      for (int64_t i = 0; i < width; ++i) to[start + i] = std::min(kMost, std::max(kLeast, static_cast<scalar_t>(row[i] / sum)));
    }
  });
  return out;
}

void standard_gamma_grad(const Tensor& self, const Tensor& output, const Tensor& out) {
  const Tensor shapes = self.expand(out.sizes()).contiguous(), numbers = output.expand(out.sizes()).contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "_standard_gamma_grad_cpu", CRESSET_FLOATING_TYPES, [&] {
    const auto *a = shapes.const_data_ptr<scalar_t>(), *x = numbers.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, out.numel(), 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<scalar_t>(gamma_slope(a[i], x[i]));
    });
  });
}

void dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total, const Tensor& out) {
  const auto dense = [&](const Tensor& t) { return t.expand(out.sizes()).contiguous(); };
  const Tensor numbers = dense(x), shapes = dense(alpha), totals = dense(total);
  CRESSET_DISPATCH(x.scalar_type(), "_dirichlet_grad_cpu", CRESSET_FLOATING_TYPES, [&] {
    const auto *px = numbers.const_data_ptr<scalar_t>(), *pa = shapes.const_data_ptr<scalar_t>(), *pt = totals.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, out.numel(), 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<scalar_t>(dirichlet_slope(px[i], pa[i], pt[i]));
    });
  });
}

}  // namespace cresset::cpu
