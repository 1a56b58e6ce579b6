// Integers, and the representation of floating-point numbers.
#include <cmath>
#include <cstdint>

#include "backends/cpu/special_math.h"

namespace cresset::cpu::special_math {

// In unsigned arithmetic, because the magnitude of the smallest integer is none of its type; it wraps to itself.
int64_t gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? uint64_t{0} - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t y = b < 0 ? uint64_t{0} - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<int64_t>(x);
}

int64_t lcm(int64_t a, int64_t b) {
  const uint64_t divisor = static_cast<uint64_t>(gcd(a, b));
  if (divisor == 0) return 0;
  const uint64_t x = a < 0 ? uint64_t{0} - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  const int64_t product = static_cast<int64_t>(x / divisor * static_cast<uint64_t>(b));
  return product < 0 ? static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(product)) : product;
}

double ldexp(double x, double exponent) {
  if (std::isinf(exponent)) return x * std::exp2(exponent);  // 0 * inf is nan
  // Beyond this any number is 0 or infinite.
  constexpr double kLimit = 5000;
  const double limited = exponent > kLimit ? kLimit : exponent < -kLimit ? -kLimit : exponent;
  return limited == std::trunc(limited) ? std::ldexp(x, static_cast<int>(limited)) : x * std::exp2(limited);
}
std::complex<double> ldexp(std::complex<double> x, std::complex<double> exponent) {
  constexpr double kLn2 = 0.69314718055994530942;
  if (exponent.imag() == 0) return {ldexp(x.real(), exponent.real()), ldexp(x.imag(), exponent.real())};
  return x * std::exp(exponent * kLn2);
}

int64_t nextafter_bits(int64_t from, int64_t to, int64_t infinity) {
  constexpr int64_t kMagnitude = 0x7FFF, kSign = 0x8000;
  const int64_t from_magnitude = from & kMagnitude, to_magnitude = to & kMagnitude;
  if (from_magnitude > infinity) return from;  // NaN
  if (to_magnitude > infinity) return to;
  if ((from & 0xFFFF) == (to & 0xFFFF) || (from_magnitude | to_magnitude) == 0) return to;
  if (from_magnitude == 0) return (to & kSign) | 1;
  const bool same_sign = ((from ^ to) & kSign) == 0;
  return same_sign && from_magnitude < to_magnitude ? from + 1 : from - 1;
}

}  // namespace cresset::cpu::special_math
