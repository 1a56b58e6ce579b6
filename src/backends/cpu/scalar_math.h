// Scalar functions that pointwise expressions may call, for float, double, complex and integers.
// Included by pointwise_loops.h inside each instruction set's namespace: the functions must inline into vectorised
// loops, so they select values instead of branching around calls. Math functions are glibc's vector library where
// the compiler can call it (x86-64, GCC), the C library one element at a time elsewhere.
#pragma once

#ifndef CRESSET_ISA_NAMESPACE
#error "include backends/cpu/pointwise_loops.h, which sets up the instruction set"
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define CRESSET_SIMD_MATH __attribute__((simd("notinbranch"), const))
#endif
#endif
#ifndef CRESSET_SIMD_MATH
#define CRESSET_SIMD_MATH __attribute__((const))
#endif

#include "backends/cpu/float_math.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {
namespace scalar_math {

// Names of our own with the C library's symbols, so that its declarations are left alone.
#define CRESSET_MATH_1(name)                                                               \
  extern "C" float cresset_##name##f(float) noexcept __asm__(#name "f") CRESSET_SIMD_MATH; \
  extern "C" double cresset_##name(double) noexcept __asm__(#name) CRESSET_SIMD_MATH;      \
  inline float name(float x) { return cresset_##name##f(x); }                              \
  inline double name(double x) { return cresset_##name(x); }
#define CRESSET_MATH_2(name)                                                                      \
  extern "C" float cresset_##name##f(float, float) noexcept __asm__(#name "f") CRESSET_SIMD_MATH; \
  extern "C" double cresset_##name(double, double) noexcept __asm__(#name) CRESSET_SIMD_MATH;     \
  inline float name(float x, float y) { return cresset_##name##f(x, y); }                         \
  inline double name(double x, double y) { return cresset_##name(x, y); }
CRESSET_MATH_1(exp)
CRESSET_MATH_1(exp2)
CRESSET_MATH_1(expm1)
CRESSET_MATH_1(log)
CRESSET_MATH_1(log2)
CRESSET_MATH_1(log10)
CRESSET_MATH_1(log1p)
CRESSET_MATH_1(sin)
CRESSET_MATH_1(cos)
CRESSET_MATH_1(tan)
CRESSET_MATH_1(asin)
CRESSET_MATH_1(acos)
CRESSET_MATH_1(atan)
CRESSET_MATH_1(sinh)
CRESSET_MATH_1(cosh)
CRESSET_MATH_1(tanh)
CRESSET_MATH_1(asinh)
CRESSET_MATH_1(acosh)
CRESSET_MATH_1(atanh)
CRESSET_MATH_1(erfc)
CRESSET_MATH_2(atan2)
CRESSET_MATH_2(hypot)
extern "C" double cresset_erf(double) noexcept __asm__("erf") CRESSET_SIMD_MATH;
inline double erf(double x) { return cresset_erf(x); }  // of floats: float_math.h
extern "C" float cresset_powf(float, float) noexcept __asm__("powf") CRESSET_SIMD_MATH;
extern "C" double cresset_pow(double, double) noexcept __asm__("pow") CRESSET_SIMD_MATH;
inline float positive_pow(float x, float y) { return cresset_powf(x, y); }
inline double positive_pow(double x, double y) { return cresset_pow(x, y); }
#undef CRESSET_MATH_1
#undef CRESSET_MATH_2

// Single instructions on most machines.
#define CRESSET_BUILTIN_1(name, builtin)                           \
  inline float name(float x) { return __builtin_##builtin##f(x); } \
  inline double name(double x) { return __builtin_##builtin(x); }
CRESSET_BUILTIN_1(sqrt, sqrt)
CRESSET_BUILTIN_1(floor, floor)
CRESSET_BUILTIN_1(ceil, ceil)
CRESSET_BUILTIN_1(trunc, trunc)
CRESSET_BUILTIN_1(round, nearbyint)  // half to even
CRESSET_BUILTIN_1(abs, fabs)
#undef CRESSET_BUILTIN_1

#define CRESSET_COMPLEX_1(name)                                                   \
  inline std::complex<float> name(std::complex<float> x) { return std::name(x); } \
  inline std::complex<double> name(std::complex<double> x) { return std::name(x); }
CRESSET_COMPLEX_1(exp)
CRESSET_COMPLEX_1(log)
CRESSET_COMPLEX_1(log10)
CRESSET_COMPLEX_1(sqrt)
CRESSET_COMPLEX_1(sin)
CRESSET_COMPLEX_1(cos)
CRESSET_COMPLEX_1(tan)
CRESSET_COMPLEX_1(asin)
CRESSET_COMPLEX_1(acos)
CRESSET_COMPLEX_1(atan)
CRESSET_COMPLEX_1(sinh)
CRESSET_COMPLEX_1(cosh)
CRESSET_COMPLEX_1(tanh)
CRESSET_COMPLEX_1(asinh)
CRESSET_COMPLEX_1(acosh)
CRESSET_COMPLEX_1(atanh)
CRESSET_COMPLEX_1(conj)
#undef CRESSET_COMPLEX_1
inline float abs(std::complex<float> x) { return std::abs(x); }
inline double abs(std::complex<double> x) { return std::abs(x); }
inline int32_t abs(int32_t x) { return x < 0 ? -x : x; }
inline int64_t abs(int64_t x) { return x < 0 ? -x : x; }

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;
template <class T>
inline constexpr bool is_float_type = std::is_floating_point_v<T>;

template <class T>
inline constexpr T kPi = static_cast<T>(3.14159265358979323846);
template <class T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
inline T real(T x) {
  return x;
}
template <class T>
inline T conj(T x) {
  return x;
}
template <class T>
inline std::complex<T> exp2(std::complex<T> x) {
  return exp(x * T(0.69314718055994530942));
}
template <class T>
inline std::complex<T> log2(std::complex<T> x) {
  return log(x) * T(1.44269504088896340736);
}
template <class T>
inline std::complex<T> expm1(std::complex<T> z) {
  const T s = sin(z.imag() / 2), e = exp(z.real());
  return {expm1(z.real()) * cos(z.imag()) - 2 * s * s, e * sin(z.imag())};
}
template <class T>
inline std::complex<T> log1p(std::complex<T> z) {
  const T x = z.real(), y = z.imag();
  const std::complex<T> far = log(std::complex<T>(x + 1, y));  // y keeps the sign of a zero
  const bool near = abs(x) < T(0.5) && abs(y) < T(0.5), zero = x == T(0) && y == T(0);
  return near ? std::complex<T>(zero ? x : log1p(x * (2 + x) + y * y) / 2, atan2(y, x + 1)) : far;
}

template <class T>
inline T quotient(T a, T b) {
  return a / b;
}
// By zero the parts are divided one by one: infinite where they are not zero.
template <class T>
inline std::complex<T> quotient(std::complex<T> a, std::complex<T> b) {
  const std::complex<T> q = a / b;
  const bool zero = b.real() == T(0) && b.imag() == T(0);
  return {zero ? a.real() / T(0) : q.real(), zero ? a.imag() / T(0) : q.imag()};
}
template <class T>
inline T reciprocal(T x) {
  return quotient(T(1), x);
}
template <class T>
inline T rsqrt(T x) {
  return reciprocal(sqrt(x));
}
template <class T>
inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}
template <class T>
inline T square(T x) {
  return x * x;
}
template <class T>
inline T frac(T x) {
  return x - trunc(x);
}
template <class T>
inline T sign(T x) {
  return static_cast<T>((T(0) < x) - (x < T(0)));
}
template <class T>
inline T sgn(T x) {
  if constexpr (is_complex_type<T>) {
    const auto r = abs(x);
    return r == 0 ? T(0) : r - r == 0 ? x / r : T(r - r, r - r);  // NaN where it is infinite
  } else {
    return sign(x);
  }
}
// floor, ceil, trunc and round of integers are the identity.
inline int32_t floor(int32_t x) { return x; }
inline int64_t floor(int64_t x) { return x; }
inline int32_t ceil(int32_t x) { return x; }
inline int64_t ceil(int64_t x) { return x; }
inline int32_t trunc(int32_t x) { return x; }
inline int64_t trunc(int64_t x) { return x; }
inline int32_t round(int32_t x) { return x; }
inline int64_t round(int64_t x) { return x; }
// Half to even at a decimal digit; negative decimals round to tens.
template <class T>
inline T round_decimals(T x, int64_t decimals) {
  const T ten = static_cast<T>(std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals)));
  return decimals < 0 ? round(x / ten) * ten : round(x * ten) / ten;
}

// Comparisons and predicates. NaN goes through maximum, minimum and clamp, and is ignored by fmax and fmin.
template <class T>
inline bool isnan(T x) {
  if constexpr (is_complex_type<T>) {
    return x.real() != x.real() || x.imag() != x.imag();
  } else {
    return x != x;
  }
}
template <class T>
inline bool isinf(T x) {
  if constexpr (is_complex_type<T>) {
    return isinf(x.real()) || isinf(x.imag());
  } else if constexpr (is_float_type<T>) {
    return abs(x) == kInf<T>;
  } else {
    return false;
  }
}
template <class T>
inline bool isfinite(T x) {
  if constexpr (is_complex_type<T>) {
    return isfinite(x.real()) && isfinite(x.imag());
  } else if constexpr (is_float_type<T>) {
    return abs(x) < kInf<T>;
  } else {
    return true;
  }
}
template <class T>
inline bool signbit(T x) {
  if constexpr (is_float_type<T>) {
    return __builtin_signbit(x) != 0;
  } else {
    return x < T(0);
  }
}
template <class T>
inline bool isreal(T x) {
  if constexpr (is_complex_type<T>) {
    return x.imag() == 0;
  } else {
    return true;
  }
}
template <class T>
inline bool isclose(T a, T b, double rtol, double atol, bool equal_nan) {
  if constexpr (std::is_same_v<T, bool>) {
    return a == b;
  } else if constexpr (is_float_type<T>) {
    // Rounded as the tensors atol + |rtol * b| and |a - b| would be: 0.1 is close to 0 at atol 0.1 in every type.
    using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T scaled = static_cast<T>(std::abs(static_cast<F>(rtol) * static_cast<F>(b)));
    const T allowed = static_cast<T>(static_cast<F>(atol) + static_cast<F>(scaled));
    const T error = static_cast<T>(std::abs(static_cast<F>(a) - static_cast<F>(b)));
    return a == b || (equal_nan && isnan(a) && isnan(b)) || (error <= allowed && isfinite(a) && isfinite(b));
  } else {
    const bool same = a == b || (equal_nan && isnan(a) && isnan(b));
    using D = std::conditional_t<is_complex_type<T>, std::complex<double>, double>;
    const double allowed = atol + std::abs(rtol * std::abs(static_cast<D>(b))), error = std::abs(static_cast<D>(a) - static_cast<D>(b));
    return same || (error <= allowed && isfinite(a) && isfinite(b));
  }
}
template <class T>
inline bool truth(T x) {
  return x != T(0);
}
template <class T>
inline T maximum(T a, T b) {
  if constexpr (is_float_type<T>) {
    return (a > b || a != a) ? a : b;
  } else {
    return a > b ? a : b;
  }
}
template <class T>
inline T minimum(T a, T b) {
  if constexpr (is_float_type<T>) {
    return (a < b || a != a) ? a : b;
  } else {
    return a < b ? a : b;
  }
}
template <class T>
inline T fmax(T a, T b) {
  return (a > b || b != b) ? a : b;
}
template <class T>
inline T fmin(T a, T b) {
  return (a < b || b != b) ? a : b;
}
// x limited to [low, high]; high wins when low > high.
template <class T>
inline T clamp(T x, T low, T high) {
  const T y = x < low ? low : x;
  return y > high ? high : y;
}
template <class T>
inline T clamp_min(T x, T low) {
  return maximum(low, x);
}
template <class T>
inline T clamp_max(T x, T high) {
  return minimum(high, x);
}
template <class T>
inline T clamp_optional(T x, std::optional<T> low, std::optional<T> high) {
  T y = x;
  if (low) y = maximum(*low, y);
  if (high) y = minimum(*high, y);
  return y;
}
template <class T>
inline T where(bool condition, T a, T b) {
  return condition ? a : b;
}
// Division. Integer division by zero raises; floor and remainder follow the divisor's sign, trunc and fmod the dividend's.
[[noreturn]] CRESSET_COLD inline void raise_zero_division() { CRESSET_THROW(Error, "ZeroDivisionError"); }

template <class T>
inline T fmod(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) raise_zero_division();
    return b == -1 ? T(0) : a % b;
  } else {
    return std::fmod(a, b);
  }
}
template <class T>
inline T copysign(T x, T y) {
  if constexpr (std::is_same_v<T, float>) {
    return __builtin_copysignf(x, y);
  } else {
    return __builtin_copysign(x, y);
  }
}

template <class T>
inline T nextafter(T from, T to) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const T moved = std::bit_cast<T>(std::bit_cast<Bits>(from) + ((from < to) == (from > 0) ? Bits(1) : Bits(-1)));
  const T smallest = copysign(std::numeric_limits<T>::denorm_min(), to);
  const T next = from == to ? to : from == 0 ? smallest : moved;
  return from != from || to != to ? from + to : next;
}

// Can short_fmod tell what fmod does? The quotient is below 2^29, of doubles 2^52, or something is NaN.
template <class T>
inline bool has_short_quotient(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return !(abs(a) >= abs(b) * 0x1p29f);
  else
    return kFuses && !(abs(a) >= abs(b) * 0x1p52);
}
// fmod by one division. The quotient is too large by one at most, where it was rounded up; the rest is exact, since it has no more digits
// than a and b have. Of floats the product is exact in double.
inline double short_fmod(double a, double b) {
  const double rest = multiply_add(-trunc(a / b), b, a);
  const double below = select(copysign(rest, a) == rest, rest, rest + copysign(b, a));
  return select(abs(b) == kInf<double>, select(abs(a) < kInf<double>, a, kNan<double>), copysign(below, a));
}
inline float short_fmod(float a, float b) { return static_cast<float>(short_fmod(static_cast<double>(a), static_cast<double>(b))); }

// By the rest m that fmod gives.
template <class T>
inline T remainder_by(T m, T b) {
  return select((m != 0) & ((m < 0) != (b < 0)), m + b, m);
}
template <class T>
inline T floor_divide_by(T a, T b, T m) {
  const T down = select((m != 0) & ((b < 0) != (m < 0)), T(1), T(0));
  const T q = (a - m) / b - down, f = floor(q);
  return select(q == 0, copysign(T(0), a / b), select(q - f > T(0.5), f + T(1), f));
}
template <class T>
inline T remainder(T a, T b) {
  return remainder_by(fmod(a, b), b);
}
template <class T>
inline T short_remainder(T a, T b) {
  return remainder_by(short_fmod(a, b), b);
}
template <class T>
inline T trunc_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) raise_zero_division();
    return b == -1 ? -a : a / b;
  } else {
    return trunc(a / b);
  }
}
template <class T>
inline T floor_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T q = trunc_divide(a, b);
    return (q * b != a && (a < 0) != (b < 0)) ? q - 1 : q;
  } else {
    return b == 0 ? a / b : floor_divide_by(a, b, std::fmod(a, b));
  }
}
template <class T>
inline T short_floor_divide(T a, T b) {
  return floor_divide_by(a, b, short_fmod(a, b));
}

// Powers. Integer bases wrap; a negative integer exponent gives 0 except for bases 1 and -1.
template <class T>
inline T integer_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? T(1) : base == -1 ? ((exponent & 1) ? T(-1) : T(1)) : T(0);
  T result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}
inline int32_t pow(int32_t a, int32_t b) { return integer_pow(a, b); }
inline int64_t pow(int64_t a, int64_t b) { return integer_pow(a, b); }
// The sign apart from the power: the vector library leaves a vector with one negative base to the C library, element by element.
template <class T>
inline T signed_pow(T x, T y) {
  const T size = positive_pow(abs(x), y), half = y * T(0.5);
  const bool whole = y == trunc(y), odd = whole && half != trunc(half);
  const T signed_size = select(odd, copysign(size, x), size);
  return select(x < T(0) && !whole && x != -kInf<T>, kNan<T>, signed_size);
}
inline float pow(float a, float b) { return signed_pow(a, b); }
inline double pow(double a, double b) { return signed_pow(a, b); }
inline std::complex<float> pow(std::complex<float> a, std::complex<float> b) { return b == 0.0f ? 1 : std::pow(a, b); }
inline std::complex<double> pow(std::complex<double> a, std::complex<double> b) { return b == 0.0 ? 1 : std::pow(a, b); }
// The exponent is the same for all elements: the common ones become cheap loops.
[[noreturn]] CRESSET_COLD inline void raise_negative_power() {
  CRESSET_THROW(Error, "Integers to negative integer powers are not allowed.");
}
template <class T>
inline T pow_scalar(T x, T exponent) {
  if constexpr (std::is_integral_v<T>) {
    if (exponent < 0) raise_negative_power();
    return exponent == 2 ? static_cast<T>(x * x) : integer_pow(x, exponent);
  } else if constexpr (is_complex_type<T>) {
    using real_t = typename T::value_type;
    if (exponent.imag() != 0) return pow(x, exponent);
    const real_t e = exponent.real();
    if (e == real_t(1)) return x;
    if (e == real_t(2)) return x * x;
    if (e == real_t(3)) return x * x * x;
    if (e == real_t(0.5)) return sqrt(x);
    if (e == real_t(-0.5)) return rsqrt(x);
    if (e == real_t(-1)) return reciprocal(x);
    if (e == real_t(-2)) return reciprocal(x * x);
    return pow(x, exponent);
  } else {
    if (exponent == T(2)) return x * x;
    if (exponent == T(3)) return x * x * x;
    if (exponent == T(0.5)) return sqrt(x + T(0));
    if (exponent == T(-0.5)) return T(1) / sqrt(x);
    return pow(x, exponent);
  }
}

// Shifts by the width or more, or by a negative count, move every bit out.
template <class T>
inline T shift_left(T a, T b) {
  constexpr T width = sizeof(T) * 8;
  return (b < 0 || b >= width) ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
}
template <class T>
inline T shift_right(T a, T b) {
  constexpr T width = sizeof(T) * 8;
  return a >> ((b < 0 || b >= width) ? width - 1 : b);
}
template <class T>
inline T bitwise_not(T a) {
  if constexpr (std::is_same_v<T, bool>) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}

// Sums of logarithms and similar.
template <class T>
inline T logaddexp(T a, T b) {
  if constexpr (is_complex_type<T>) {
    const bool first = a.real() >= b.real();
    const T m = first ? a : b, d = first ? b - a : a - b;
    return m + log1p(exp(d));
  } else {
    const T m = maximum(a, b), d = log1p(exp(-abs(a - b)));
    return (a == b && abs(a) == kInf<T>) ? a : m + d;
  }
}
template <class T>
inline T logaddexp2(T a, T b) {
  const T m = maximum(a, b), d = log1p(exp2(-abs(a - b))) * T(1.44269504088896340736);
  return (a == b && abs(a) == kInf<T>) ? a : m + d;
}
template <class T>
inline T xlogy(T x, T y) {
  return select(y != y, y, select(x == T(0), T(0), x * log(y)));
}
template <class T>
inline T xlog1py(T x, T y) {
  return select(y != y, y, select(x == T(0), T(0), x * log1p(y)));
}
template <class T>
inline T entr(T x) {
  return select(x != x, x, select(x > 0, -x * log(x), x == 0 ? T(0) : -kInf<T>));
}
template <class T>
inline T logit(T x, std::optional<double> eps) {
  const T low = eps ? static_cast<T>(*eps) : -kInf<T>, high = eps ? static_cast<T>(1 - *eps) : kInf<T>;
  const T z = x < low ? low : x > high ? high : x;
  return log(z / (T(1) - z));
}
template <class T>
inline T logit_backward(T grad, T x, std::optional<double> eps) {
  if (!eps || *eps < 0)  // abs: of the numbers below 0 only -0 has a slope, which is that of 0
    return (x < T(0) || x > T(1)) ? kNan<T> : grad / (abs(x) * (T(1) - x));
  return (x < static_cast<T>(*eps) || x > static_cast<T>(1 - *eps)) ? T(0) : grad / ((x + T(0)) * (T(1) - x));  // -0 counts as 0
}
template <class T>
inline T sinc(T x) {
  const T y = x * kPi<T>;
  return select(x == T(0), T(1), sin(y) / y);
}
template <class T>
inline std::complex<T> sinc(std::complex<T> x) {
  const std::complex<T> y = x * kPi<T>;
  return x == T(0) ? std::complex<T>(1) : sin(y) / y;
}
template <class T>
inline T heaviside(T x, T at_zero) {
  return x == T(0) ? at_zero : static_cast<T>(x > T(0));
}
template <class T>
inline T lerp(T start, T end, T weight) {
  if constexpr (is_complex_type<T>) {
    return std::abs(weight) < 0.5 ? start + weight * (end - start) : end - (end - start) * (T(1) - weight);
  } else {
    return abs(weight) < T(0.5) ? start + weight * (end - start) : end - (end - start) * (T(1) - weight);
  }
}
template <class T>
inline T nan_to_num(T x, double nan, double posinf, double neginf) {
  if constexpr (is_complex_type<T>) {
    return T(nan_to_num(x.real(), nan, posinf, neginf), nan_to_num(x.imag(), nan, posinf, neginf));
  } else if constexpr (is_float_type<T>) {
    return x != x ? static_cast<T>(nan) : x == kInf<T> ? static_cast<T>(posinf) : x == -kInf<T> ? static_cast<T>(neginf) : x;
  } else {
    return x;
  }
}
template <class T>
inline T angle(T x) {
  return x != x ? x : x < T(0) ? kPi<T> : T(0);
}
template <class T>
inline T angle(std::complex<T> x) {
  return atan2(x.imag(), x.real());
}

}  // namespace scalar_math
}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
