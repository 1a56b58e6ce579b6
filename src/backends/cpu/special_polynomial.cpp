// Orthogonal polynomials by their three-term recurrences (DLMF 18.9) and, inside of (-1, 1), Chebyshev's by their definition
// with trigonometric functions (DLMF 18.5).
#include <cmath>

#include <cresset/base/error.h>

#include "backends/cpu/special_math.h"

namespace cresset::cpu::special_math {
namespace {

// Degrees from here on are evaluated by cosines where |x| < 1.
constexpr int64_t kTrigonometricDegree = 9;

// The degree as an integer; anything that is none (NaN, too large) counts as negative.
int64_t degree(double n) { return n > -1 && n < 0x1p62 ? static_cast<int64_t>(n) : -1; }

// The work grows with the degree: one that would take minutes for each element is refused.
int64_t workable_degree(const char* name, double n) {
  constexpr int64_t kLargest = 1 << 24;
  const int64_t k = degree(n);
  CRESSET_CHECK(k <= kLargest, name, ": degrees up to ", kLargest, " were required; got ", k, ".");
  return k;
}

// p_n from p_0 = 1, p_1 = first and p_k+1 = step(k, p_k, p_k-1). Stops at NaN, which stays.
template <class Step>
double recurrence(int64_t n, double first, Step step) {
  if (n < 0) return 0;
  if (n == 0) return 1;
  double before = 1, value = first;
  for (int64_t k = 1; k < n && value == value; ++k) {
    const double next = step(static_cast<double>(k), value, before);
    before = value;
    value = next;
  }
  return value;
}
double chebyshev(double x, int64_t n, double first) {
  return recurrence(n, first, [x](double, double p, double before) { return 2 * x * p - before; });
}
bool trigonometric(double x, int64_t n) { return n >= kTrigonometricDegree && std::abs(x) < 1; }
double sign_of_degree(int64_t n) { return n % 2 ? -1 : 1; }

}  // namespace

double chebyshev_polynomial_t(double x, double n) {
  const int64_t k = degree(n);
  if (k < 0) return 0;
  if (std::abs(x) == 1) return x > 0 ? 1 : sign_of_degree(k);
  return trigonometric(x, k) ? std::cos(static_cast<double>(k) * std::acos(x)) : chebyshev(x, k, x);
}
double chebyshev_polynomial_u(double x, double n) {
  const int64_t k = degree(n);
  if (k < 0) return 0;
  const double more = static_cast<double>(k) + 1;
  if (std::abs(x) == 1) return x > 0 ? more : sign_of_degree(k) * more;
  if (!trigonometric(x, k)) return chebyshev(x, k, 2 * x);
  const double angle = std::acos(x);
  return std::sin(more * angle) / std::sin(angle);
}
double chebyshev_polynomial_v(double x, double n) {
  const int64_t k = degree(n);
  if (k < 0) return 0;
  const double twice = 2 * static_cast<double>(k) + 1;
  if (std::abs(x) == 1) return x > 0 ? 1 : sign_of_degree(k) * twice;
  if (!trigonometric(x, k)) return chebyshev(x, k, 2 * x - 1);
  const double half = std::acos(x) / 2;
  return std::cos(twice * half) / std::cos(half);
}
double chebyshev_polynomial_w(double x, double n) {
  const int64_t k = degree(n);
  if (k < 0) return 0;
  const double twice = 2 * static_cast<double>(k) + 1;
  if (std::abs(x) == 1) return x > 0 ? twice : sign_of_degree(k);
  if (!trigonometric(x, k)) return chebyshev(x, k, 2 * x + 1);
  const double half = std::acos(x) / 2;
  return std::sin(twice * half) / std::sin(half);
}

double laguerre_polynomial_l(double x, double n) {
  return recurrence(workable_degree("laguerre_polynomial_l", n), 1 - x,
                    [x](double k, double p, double before) { return ((2 * k + 1 - x) * p - k * before) / (k + 1); });
}
double legendre_polynomial_p(double x, double n) {
  const int64_t k = degree(n);
  if (k >= 0 && std::abs(x) == 1) return x > 0 ? 1 : sign_of_degree(k);
  return recurrence(workable_degree("legendre_polynomial_p", n), x,
                    [x](double j, double p, double before) { return ((2 * j + 1) * x * p - j * before) / (j + 1); });
}
double hermite_polynomial_h(double x, double n) {
  return recurrence(degree(n), 2 * x, [x](double k, double p, double before) { return 2 * (x * p - k * before); });
}
double hermite_polynomial_he(double x, double n) {
  return recurrence(degree(n), x, [x](double k, double p, double before) { return x * p - k * before; });
}

}  // namespace cresset::cpu::special_math
