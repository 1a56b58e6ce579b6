// Poisson and binomial numbers: inversion for few expected events, W. Hörmann's transformed rejection for many.
#include <cmath>
#include <limits>

#include "backends/cpu/random_stream.h"
#include "backends/cpu/random_words.h"

namespace cresset::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kManyEvents = 10;

double draw(CPUGeneratorImpl& generator) {
  double u;
  random_detail::unit_fill(&u, 1, generator);
  return u;
}

// PTRS: W. Hörmann, The transformed rejection method for generating Poisson random variables (1993).
double poisson_rejection(double rate, CPUGeneratorImpl& generator) {
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), vr = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = draw(generator) - 0.5, v = draw(generator), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= vr) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}

// Events until the product of uniform numbers falls below exp(-rate).
double poisson_product(double rate, CPUGeneratorImpl& generator) {
  const double limit = std::exp(-rate);
  double product = 1, count = 0;
  while (true) {
    product *= draw(generator);
    if (product <= limit) return count;
    count += 1;
  }
}

// log k! minus the leading terms of Stirling's series
double stirling_tail(double k) {
  static constexpr double kSmall[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kSmall[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// BTRS: W. Hörmann, The generation of binomial random variates, Journal of Statistical Computation and Simulation 46 (1993).
double binomial_rejection(double n, double p, CPUGeneratorImpl& generator) {
  const double deviation = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, vr = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((n + 1) * p);
  while (true) {
    const double u = draw(generator) - 0.5;
    double v = draw(generator);
    const double us = 0.5 - std::abs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= vr) return k;
    if (k < 0 || k > n) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (n - m + 1))) + (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(r * (n - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(n - m) - stirling_tail(k) -
                         stirling_tail(n - k);
    if (v <= bound) return k;
  }
}

// Successes counted by the geometric distances between them.
double binomial_distances(double n, double p, CPUGeneratorImpl& generator) {
  const double log_failure = std::log1p(-p);
  double place = 0, count = 0;
  while (true) {
    place += std::ceil(std::log(draw(generator)) / log_failure);
    if (!(place <= n)) return count;
    count += 1;
  }
}

double binomial_below_half(double n, double p, CPUGeneratorImpl& generator) {
  return n * p >= kManyEvents ? binomial_rejection(n, p, generator) : binomial_distances(n, p, generator);
}

}  // namespace

double sample_poisson(double rate, CPUGeneratorImpl& generator) {
  if (!std::isfinite(rate)) return kNan;
  if (rate == 0) return 0;
  return rate >= kManyEvents ? poisson_rejection(rate, generator) : poisson_product(rate, generator);
}

double sample_binomial(double count, double probability, CPUGeneratorImpl& generator) {
  if (!std::isfinite(count) || probability != probability) return kNan;
  if (count <= 0 || probability <= 0) return 0;
  if (probability >= 1) return count;
  return probability <= 0.5 ? binomial_below_half(count, probability, generator)
                            : count - binomial_below_half(count, 1 - probability, generator);
}

}  // namespace cresset::cpu
