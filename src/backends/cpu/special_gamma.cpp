// Gamma, polygamma and zeta functions.
#include <cmath>
#include <limits>
#include <numbers>

#include "backends/cpu/special_math.h"

namespace cresset::cpu::special_math {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

}  // namespace

// Recurrence to x >= 10, then the asymptotic series DLMF 5.11.2.
double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  double result = 0;
  if (x < 0) {
    const double whole = std::trunc(x);
    if (whole == x) return kNan;
    result = -std::numbers::pi / std::tan(std::numbers::pi * (x - whole));
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double y = 1 / (x * x);
  const double series =
      y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
  return result + std::log(x) - 0.5 / x - series;
}

namespace {

// The sum of (q + k)^-s over k >= 0 for q > 0 and s > 1, by Euler and Maclaurin (DLMF 25.11.5).
double zeta_positive(double s, double q) {
  double sum = 0;
  for (int k = 0; k < 12 || q < 10; ++k, q += 1) sum += std::pow(q, -s);
  // B_2j / (2j)!
  constexpr double kTerms[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0};
  const double tail = std::pow(q, -s);
  sum += tail * q / (s - 1) + tail / 2;
  double factor = s * tail / q;
  for (int j = 0; j < 6; ++j) {
    sum += kTerms[j] * factor;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
  }
  return sum;
}

}  // namespace

// Hurwitz' zeta function.
double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (s < 1 || s != s || q != q) return kNan;
  if (s == kInf) return q == 1 ? 1 : q < 1 ? kInf : kNan;
  if (q > 0) return zeta_positive(s, q);
  if (q == std::floor(q)) return kInf;
  if (s != std::floor(s)) return kNan;
  // The negative q + k are those of -1 + f, -2 + f, ..., q with the fraction f of q: a difference of two sums over positive numbers.
  const double fraction = q - std::floor(q), negative = zeta_positive(s, 1 - fraction) - zeta_positive(s, 1 - q);
  return zeta_positive(s, fraction) + (std::fmod(s, 2) == 0 ? negative : -negative);
}

double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) {
    if (x == kInf) return 0;
    if (x < 0.5) {  // reflection (DLMF 5.15.6), so that the series runs over positive numbers
      const double s = std::sin(std::numbers::pi * x);
      return std::numbers::pi * std::numbers::pi / (s * s) - zeta(2, 1 - x);
    }
  }
  const double factorial = std::tgamma(static_cast<double>(n) + 1);
  return (n % 2 ? factorial : -factorial) * zeta(static_cast<double>(n) + 1, x);
}

// ---- incomplete gamma functions, DLMF chapter 8

namespace {

constexpr int kMaxTerms = 20000;
constexpr double kUniform = 1e5;  // from this a on the uniform expansion is exact to double precision

// log(1 + u) - u without cancellation
double log1p_minus(double u) {
  if (std::abs(u) > 0.25) return std::log1p(u) - u;
  double power = u * u, sum = 0;
  for (int k = 2; k < 40; ++k) {
    const double term = power / k;
    sum += k % 2 ? term : -term;
    if (std::abs(term) < kEpsilon * 0.25 * std::abs(sum)) break;
    power *= u;
  }
  return sum;
}

// log Gamma(1 + a) for 0 < a < 1 to full relative precision: DLMF 5.7.3 near 0.
double lgamma1p(double a) {
  if (a > 1e-3) return std::lgamma(1 + a);
  constexpr double kZeta2 = 1.6449340668482264365, kZeta3 = 1.2020569031595942854, kZeta4 = 1.0823232337111381915,
                   kZeta5 = 1.0369277551433699263;
  return a * (-std::numbers::egamma + a * (kZeta2 / 2 - a * (kZeta3 / 3 - a * (kZeta4 / 4 - a * kZeta5 / 5))));
}

// x^a exp(-x) / Gamma(a + 1). For larger a by the distance from the saddle point, which does not cancel (C. Loader,
// Fast and accurate computation of binomial probabilities, 2000), with Stirling's series DLMF 5.11.1.
double prefactor(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  const double y = 1 / (a * a);
  const double stirling =
      (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y * (1.0 / 1188 - y * (691.0 / 360360 - y / 156)))))) / a;
  return std::exp(a * log1p_minus((x - a) / a) - stirling) / std::sqrt(2 * std::numbers::pi * a);
}

// P(a, x) by the power series DLMF 8.7.1.
double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < kMaxTerms && term > sum * kEpsilon * 0.25; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return prefactor(a, x) * sum;
}

// Q(a, x) by the continued fraction DLMF 8.9.2 with the recurrence of Lentz.
double upper_fraction(double a, double x) {
  double b = x + 1 - a, c = kInf, d = 1 / b, value = d;
  for (int k = 1; k < kMaxTerms; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    const double factor = c * d;
    value *= factor;
    if (std::abs(factor - 1) < kEpsilon) break;
  }
  return prefactor(a, x) * a * value;
}

// Q(a, x) for a < 1 and x < 1, where 1 - P would cancel: DLMF 8.7.3 with the difference 1 - x^a / Gamma(a + 1) by expm1.
double upper_small(double a, double x) {
  double power = 1, sum = 0;
  for (int k = 1; k < 40; ++k) {
    power *= -x / k;
    const double term = power / (a + k);
    sum += term;
    if (std::abs(term) < kEpsilon * 0.25 * std::abs(sum)) break;
  }
  const double exponent = a * std::log(x) - lgamma1p(a);
  return -std::expm1(exponent) - std::exp(exponent) * a * sum;
}

// The uniform expansion DLMF 8.12.3 and 8.12.4 for large a. `sign` is 1 for Q and -1 for P.
double uniform_expansion(double a, double x, double sign) {
  const double u = (x - a) / a, half_square = -log1p_minus(u);
  const double eta = std::copysign(std::sqrt(2 * half_square), u);
  // Power series of c_0 and c_1 (8.12.10) in eta; larger |eta| underflow.
  constexpr double kC0[] = {
      -1.0 / 3, 1.0 / 12, -2.0 / 135, 1.0 / 864, 1.0 / 2835, -1.787551440329218107e-4, 3.9192631785224377817e-5, -2.1854485106799921615e-6};
  constexpr double kC1[] = {-1.0 / 540, -1.0 / 288, 1.0 / 378, -9.9022633744855967078e-4, 1.0 / 4860};
  double c0 = 0, c1 = 0;
  for (int i = 7; i >= 0; --i) c0 = c0 * eta + kC0[i];
  for (int i = 4; i >= 0; --i) c1 = c1 * eta + kC1[i];
  const double rest = std::exp(-a * half_square) / std::sqrt(2 * std::numbers::pi * a) * (c0 + c1 / a);
  if (!(std::abs(eta) < 1)) return sign * eta > 0 ? 0 : 1;
  return 0.5 * std::erfc(sign * eta * std::sqrt(a / 2)) + sign * rest;
}

// Sets P(a, x) on the border of the domain and outside of it (NaN) and returns true; false inside.
bool border(double a, double x, double& lower) {
  if (x < 0 || a < 0 || a != a || x != x || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x))) {
    lower = kNan;
  } else if (a == 0 || std::isinf(x)) {
    lower = 1;
  } else if (x == 0 || std::isinf(a)) {
    lower = 0;
  } else {
    return false;
  }
  return true;
}

}  // namespace

double gammainc(double a, double x) {
  double lower;
  if (border(a, x, lower)) return lower;
  if (a >= kUniform) return uniform_expansion(a, x, -1);
  return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double gammaincc(double a, double x) {
  double lower;
  if (border(a, x, lower)) return 1 - lower;
  if (a >= kUniform) return uniform_expansion(a, x, 1);
  if (a < 1) return x < 1 ? upper_small(a, x) : upper_fraction(a, x);
  return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

}  // namespace cresset::cpu::special_math
