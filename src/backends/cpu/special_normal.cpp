// Functions of the normal distribution and the scaled error function.
#include <cmath>
#include <limits>
#include <numbers>

#include "backends/cpu/special_math.h"

namespace cresset::cpu::special_math {
namespace {

constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;

// Coefficients by rising power.
template <int n>
double polynomial(const double (&c)[n], double x) {
  double y = c[n - 1];
  for (int i = n - 2; i >= 0; --i) y = y * x + c[i];
  return y;
}

}  // namespace

// exp(x^2) erfc(x). The square is taken with its rounding error, which the exponential would multiply by x^2.
double erfcx(double x) {
  if (x < 25) {
    const double square = x * x, rest = std::fma(x, x, -square);
    const double scale = std::exp(square);
    return std::isinf(scale) ? scale : scale * std::erfc(x) * (1 + rest);
  }
  // DLMF 7.12.1
  const double y = 1 / (2 * x * x);
  return std::numbers::inv_sqrtpi / x * (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y * (1 - 9 * y * (1 - 11 * y))))));
}

double ndtr(double x) {
  if (x > -5 || x < -40 || x != x) return 0.5 * std::erfc(-x * kSqrtHalf);
  const double square = x * x, rest = std::fma(x, x, -square);
  return std::exp(-square / 2) * (1 - rest / 2) * (erfcx(-x * kSqrtHalf) / 2);
}

double log_ndtr(double x) {
  const double t = x * kSqrtHalf;
  return x < -1 ? std::log(erfcx(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}

// The inverse of ndtr: M. J. Wichura, Algorithm AS 241: the percentage points of the normal distribution (PPND16),
// Applied Statistics 37 (1988).
double ndtri(double p) {
  static constexpr double kCentre[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                       1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                       3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double kCentreBelow[] = {1,
                                            4.2313330701600911252e+1,
                                            6.8718700749205790830e+2,
                                            5.3941960214247511077e+3,
                                            2.1213794301586595867e+4,
                                            3.9307895800092710610e+4,
                                            2.8729085735721942674e+4,
                                            5.2264952788528545610e+3};
  static constexpr double kSide[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                     3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kSideBelow[] = {1,
                                          2.05319162663775882187e0,
                                          1.67638483018380384940e0,
                                          6.89767334985100004550e-1,
                                          1.48103976427480074590e-1,
                                          1.51986665636164571966e-2,
                                          5.47593808499534494600e-4,
                                          1.05075007164441684324e-9};
  static constexpr double kTail[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kTailBelow[] = {1,
                                          5.99832206555887937690e-1,
                                          1.36929880922735805310e-1,
                                          1.48753612908506148525e-2,
                                          7.86869131145613259100e-4,
                                          1.84631831751005468180e-5,
                                          1.42151175831644588870e-7,
                                          2.04426310338993978564e-15};
  if (p == 0) return -std::numeric_limits<double>::infinity();
  if (p == 1) return std::numeric_limits<double>::infinity();
  if (!(p > 0 && p < 1)) return std::numeric_limits<double>::quiet_NaN();
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentre, r) / polynomial(kCentreBelow, r);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double x =
      r <= 5 ? polynomial(kSide, r - 1.6) / polynomial(kSideBelow, r - 1.6) : polynomial(kTail, r - 5) / polynomial(kTailBelow, r - 5);
  return q < 0 ? -x : x;
}

}  // namespace cresset::cpu::special_math
