// Bessel and Airy functions.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "backends/cpu/special_math.h"

namespace cresset::cpu::special_math {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// From here on the asymptotic series of the modified functions reach double precision: their smallest term is about exp(-2x).
constexpr double kAsymptotic = 25;

// The sum of sign^k a_k(nu) / x^k with a_k of DLMF 10.17.1, which 10.40.1 and 10.40.2 need.
double hankel_sum(double nu, double x, double sign) {
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2.0 * k - 1;
    const double next = term * sign * (4 * nu * nu - odd * odd) / (8 * k * x);
    if (std::abs(next) >= std::abs(term)) break;
    term = next;
    sum += term;
    if (std::abs(term) < kEpsilon * 0.25) break;
  }
  return sum;
}

// The power series 10.25.2 of I_nu(x) without its factor (x/2)^nu, nu = 0 or 1. All terms are positive.
double i_series(int nu, double x) {
  const double square = x * x / 4;
  double term = 1, sum = 1;
  for (int k = 1; term > sum * kEpsilon * 0.25; ++k) {
    term *= square / (static_cast<double>(k) * (k + nu));
    sum += term;
  }
  return sum;
}

// exp(-x) I_nu(x) for x >= kAsymptotic
double scaled_i_asymptotic(int nu, double x) { return hankel_sum(nu, x, -1) / std::sqrt(2 * std::numbers::pi * x); }

// Nodes of the trapezoidal rule for integrals over t of exp(-x (cosh t - 1)) times a smooth function of t. Such integrals
// converge double exponentially in the step (Trefethen and Weideman, The exponentially convergent trapezoidal rule, 2014):
// step 0.12 is exact to double precision for 2/3 <= x <= kAsymptotic.
constexpr double kStep = 0.12;
constexpr int kNodes = 42;
struct Nodes {
  std::array<double, kNodes> cosh, cosh_minus_1, cosh_third;
  Nodes() {
    for (int i = 0; i < kNodes; ++i) {
      const double t = i * kStep, s = std::sinh(t / 2);
      cosh[i] = std::cosh(t);
      cosh_minus_1[i] = 2 * s * s;
      cosh_third[i] = std::cosh(t / 3);
    }
  }
};
const Nodes& nodes() {
  static const Nodes table;
  return table;
}
// exp(x) K_nu(x) by DLMF 10.32.9, where factor[i] = cosh(nu t_i); all 1 when factor is null.
double scaled_k_integral(double x, const std::array<double, kNodes>* factor) {
  const Nodes& table = nodes();
  double sum = 0.5;
  for (int i = 1; i < kNodes; ++i) {
    const double weight = std::exp(-x * table.cosh_minus_1[i]);
    if (weight < 1e-20) break;
    sum += factor ? weight * (*factor)[i] : weight;
  }
  return sum * kStep;
}

// K0 and K1 for 0 < x <= 1: DLMF 10.31.2 and 10.31.1.
double k0_series(double x) {
  const double square = x * x / 4, log_part = -(std::log(x / 2) + std::numbers::egamma);
  double term = 1, harmonic = 0, sum = log_part;
  for (int k = 1; k < 20; ++k) {
    term *= square / (static_cast<double>(k) * k);
    harmonic += 1.0 / k;
    sum += term * (log_part + harmonic);
  }
  return sum;
}
double k1_series(double x) {
  // psi(1) + psi(2) and so on
  const double square = x * x / 4;
  double term = 1, psi = 1 - 2 * std::numbers::egamma, sum = psi;
  for (int k = 1; k < 20; ++k) {
    term *= square / (static_cast<double>(k) * (k + 1));
    psi += 1.0 / k + 1.0 / (k + 1);
    sum += term * psi;
  }
  return 1 / x + std::log(x / 2) * (x / 2) * i_series(1, x) - x / 4 * sum;
}

}  // namespace

double bessel_j0(double x) { return std::isinf(x) ? kNan : ::j0(x); }
double bessel_j1(double x) { return std::isinf(x) ? kNan : ::j1(x); }
double bessel_y0(double x) { return x == 0 ? -kInf : x < 0 || std::isinf(x) ? kNan : ::y0(x); }
double bessel_y1(double x) { return x == 0 ? -kInf : x < 0 || std::isinf(x) ? kNan : ::y1(x); }

double scaled_modified_bessel_i0(double x) {
  const double a = std::abs(x);
  if (std::isinf(x)) return 0;
  return a < kAsymptotic ? std::exp(-a) * i_series(0, a) : scaled_i_asymptotic(0, a);
}
double scaled_modified_bessel_i1(double x) {
  const double a = std::abs(x);
  if (std::isinf(x)) return std::copysign(0.0, x);
  return a < kAsymptotic ? std::exp(-a) * (x / 2) * i_series(1, a) : std::copysign(scaled_i_asymptotic(1, a), x);
}
double modified_bessel_i0(double x) {
  const double a = std::abs(x);
  if (std::isinf(x)) return kNan;
  // exp(x / 2) twice: I0 overflows later than exp.
  return a < kAsymptotic ? i_series(0, a) : std::exp(a / 2) * scaled_i_asymptotic(0, a) * std::exp(a / 2);
}
double modified_bessel_i1(double x) {
  const double a = std::abs(x);
  if (std::isinf(x)) return kNan;
  return a < kAsymptotic ? (x / 2) * i_series(1, a) : std::copysign(std::exp(a / 2) * scaled_i_asymptotic(1, a) * std::exp(a / 2), x);
}

double scaled_modified_bessel_k0(double x) {
  if (x == 0) return kInf;
  if (!(x > 0)) return kNan;
  if (x <= 1) return std::exp(x) * k0_series(x);
  if (x < kAsymptotic) return scaled_k_integral(x, nullptr);
  return std::sqrt(std::numbers::pi / 2 / x) * hankel_sum(0, x, 1);
}
double scaled_modified_bessel_k1(double x) {
  if (x == 0) return kInf;
  if (!(x > 0)) return kNan;
  if (x <= 1) return std::exp(x) * k1_series(x);
  if (x < kAsymptotic) return scaled_k_integral(x, &nodes().cosh);
  return std::sqrt(std::numbers::pi / 2 / x) * hankel_sum(1, x, 1);
}
double modified_bessel_k0(double x) { return x > 0 && x <= 1 ? k0_series(x) : scaled_modified_bessel_k0(x) * std::exp(-x); }
double modified_bessel_k1(double x) { return x > 0 && x <= 1 ? k1_series(x) : scaled_modified_bessel_k1(x) * std::exp(-x); }

double spherical_bessel_j0(double x) { return x == 0 ? 1 : std::isinf(x) ? 0 : std::sin(x) / x; }

namespace {

// Beyond this distance from 0 the asymptotic series of Ai reach double precision.
constexpr double kAiryAsymptotic = 9;

// Coefficients u_k of DLMF 9.7.2.
constexpr int kAiryTerms = 30;
std::array<double, kAiryTerms> airy_coefficients() {
  std::array<double, kAiryTerms> u{1};
  for (int k = 1; k < kAiryTerms; ++k) u[k] = u[k - 1] * (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / ((2.0 * k - 1) * 216 * k);
  return u;
}
const std::array<double, kAiryTerms>& airy_u() {
  static const auto u = airy_coefficients();
  return u;
}

// The Maclaurin series DLMF 9.4.1 near 0.
double airy_series(double x) {
  constexpr double kAt0 = 0.35502805388781723926, kSlopeAt0 = -0.25881940379280679841;
  const double cube = x * x * x;
  double f = 1, g = x, sum_f = 1, sum_g = x;
  for (int k = 1; k < 20; ++k) {
    f *= cube / ((3.0 * k - 1) * (3.0 * k));
    g *= cube / ((3.0 * k) * (3.0 * k + 1));
    sum_f += f;
    sum_g += g;
  }
  return kAt0 * sum_f + kSlopeAt0 * sum_g;
}

// Ai(x) for x >= kAiryAsymptotic: DLMF 9.7.5.
double airy_decaying(double x) {
  const double zeta = 2.0 / 3 * x * std::sqrt(x);
  double sum = 0, power = 1;
  for (int k = 0; k < kAiryTerms; ++k, power /= -zeta) {
    const double term = airy_u()[k] * power;
    sum += term;
    if (std::abs(term) < kEpsilon * 0.25) break;
  }
  return std::exp(-zeta) / (2 * std::sqrt(std::numbers::pi) * std::sqrt(std::sqrt(x))) * sum;
}

// Ai(-z) for z >= kAiryAsymptotic: DLMF 9.7.9.
double airy_oscillating(double z) {
  const double zeta = 2.0 / 3 * z * std::sqrt(z), phase = zeta - std::numbers::pi / 4;
  double even = 0, odd = 0, power = 1;
  for (int k = 0; k < kAiryTerms; ++k, power /= zeta) {
    const double term = airy_u()[k] * power;
    const double sign = k / 2 % 2 ? -1 : 1;
    (k % 2 ? odd : even) += sign * term;
    if (term < kEpsilon * 0.25) break;
  }
  return (std::cos(phase) * even + std::sin(phase) * odd) / (std::sqrt(std::numbers::pi) * std::sqrt(std::sqrt(z)));
}

}  // namespace

double airy_ai(double x) {
  if (!std::isfinite(x)) return kNan;
  if (x > kAiryAsymptotic) return airy_decaying(x);
  if (x > 1) {  // DLMF 9.6.2, with K_1/3 by its integral
    const double zeta = 2.0 / 3 * x * std::sqrt(x);
    return std::sqrt(x / 3) / std::numbers::pi * std::exp(-zeta) * scaled_k_integral(zeta, &nodes().cosh_third);
  }
  if (x >= -1) return airy_series(x);
  if (x > -kAiryAsymptotic) {  // DLMF 9.6.6, with J_-1/3 by J_1/3 and Y_1/3
    const double zeta = 2.0 / 3 * -x * std::sqrt(-x);
    return std::sqrt(-x) / 2 * (std::cyl_bessel_j(1.0 / 3, zeta) - std::cyl_neumann(1.0 / 3, zeta) * std::numbers::inv_sqrt3);
  }
  return airy_oscillating(-x);
}

}  // namespace cresset::cpu::special_math
