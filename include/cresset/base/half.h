// Half (IEEE binary16) and BFloat16: storage types whose arithmetic is done in float.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include <cresset/base/float8.h>
#include <cresset/base/macros.h>

namespace cresset {

namespace detail {

#if defined(__aarch64__)
using NativeHalf = __fp16;  // C++ has _Float16 there from GCC 13 on only
#elif defined(__F16C__)
using NativeHalf = _Float16;
#endif

/// Exact widening of IEEE binary16 bits.
CRESSET_ALWAYS_INLINE float half_bits_to_float(uint16_t h) {
#if defined(__F16C__) || defined(__aarch64__)
  return static_cast<float>(std::bit_cast<NativeHalf>(h));
#else
  const uint32_t w = static_cast<uint32_t>(h) << 16;
  const uint32_t sign = w & 0x80000000u, two_w = w + w;
  const float normal = std::bit_cast<float>((two_w >> 4) + (0xE0u << 23)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((two_w >> 17) | (126u << 23)) - 0.5f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(two_w < (1u << 27) ? subnormal : normal));
#endif
}

/// Narrowing with round to nearest even.
CRESSET_ALWAYS_INLINE uint16_t float_to_half_bits(float f) {
#if defined(__F16C__) || defined(__aarch64__)
  return std::bit_cast<uint16_t>(static_cast<NativeHalf>(f));
#else
  const uint32_t w = std::bit_cast<uint32_t>(f), shl1 = w + w, sign = w & 0x80000000u;
  float base = (std::fabs(f) * 0x1.0p+112f) * 0x1.0p-110f;
  uint32_t bias = shl1 & 0xFF000000u;
  if (bias < 0x71000000u) bias = 0x71000000u;
  base = std::bit_cast<float>((bias >> 1) + 0x07800000u) + base;
  const uint32_t bits = std::bit_cast<uint32_t>(base);
  const uint32_t nonsign = ((bits >> 13) & 0x7C00u) + (bits & 0x0FFFu);
  return static_cast<uint16_t>((sign >> 16) | (shl1 > 0xFF000000u ? 0x7E00u : nonsign));
#endif
}

CRESSET_ALWAYS_INLINE float bfloat16_bits_to_float(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

/// Narrowing with round to nearest even; NaN stays NaN.
CRESSET_ALWAYS_INLINE uint16_t float_to_bfloat16_bits(float f) {
  const uint32_t w = std::bit_cast<uint32_t>(f);
  const uint16_t rounded = static_cast<uint16_t>((w + 0x7FFFu + ((w >> 16) & 1u)) >> 16);
  return f != f ? uint16_t{0x7FC0} : rounded;
}

}  // namespace detail

#define CRESSET_DEFINE_HALF_TYPE(Name, to_float_bits, from_float_bits)         \
  struct alignas(2) Name {                                                     \
    uint16_t x;                                                                \
    struct from_bits_t {};                                                     \
    static constexpr from_bits_t from_bits() { return {}; }                    \
    Name() = default;                                                          \
    constexpr Name(uint16_t bits, from_bits_t) : x(bits) {}                    \
    Name(float f) : x(detail::from_float_bits(f)) {}                           \
    operator float() const { return detail::to_float_bits(x); }                \
    Name& operator+=(Name o) { return *this = Name(float(*this) + float(o)); } \
    Name& operator-=(Name o) { return *this = Name(float(*this) - float(o)); } \
    Name& operator*=(Name o) { return *this = Name(float(*this) * float(o)); } \
    Name& operator/=(Name o) { return *this = Name(float(*this) / float(o)); } \
  }
CRESSET_DEFINE_HALF_TYPE(Half, half_bits_to_float, float_to_half_bits);
CRESSET_DEFINE_HALF_TYPE(BFloat16, bfloat16_bits_to_float, float_to_bfloat16_bits);
#undef CRESSET_DEFINE_HALF_TYPE

template <class T>
inline constexpr bool is_reduced_floating_point_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};
template <class T>
inline constexpr bool is_complex_v = is_complex<T>::value;
/// The type arithmetic is done in: float for the half and eight-bit types, T itself otherwise (at::opmath_type).
template <class T>
using opmath_type = std::conditional_t<is_reduced_floating_point_v<T> || is_float8_v<T>, float,
                                       std::conditional_t<std::is_same_v<T, std::complex<Half>>, std::complex<float>, T>>;
/// float of std::complex<float>, T itself for real T.
template <class T>
struct scalar_value_type {
  using type = T;
};
template <class T>
struct scalar_value_type<std::complex<T>> {
  using type = T;
};

}  // namespace cresset

template <>
class std::numeric_limits<cresset::Half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = 11, max_exponent = 16, min_exponent = -13;
  static constexpr cresset::Half make(uint16_t b) { return {b, cresset::Half::from_bits()}; }
  static constexpr cresset::Half min() { return make(0x0400); }
  static constexpr cresset::Half lowest() { return make(0xFBFF); }
  static constexpr cresset::Half max() { return make(0x7BFF); }
  static constexpr cresset::Half epsilon() { return make(0x1400); }
  static constexpr cresset::Half infinity() { return make(0x7C00); }
  static constexpr cresset::Half quiet_NaN() { return make(0x7E00); }
  static constexpr bool has_signaling_NaN = true;
  static constexpr cresset::Half signaling_NaN() { return make(0x7D00); }
};
template <>
class std::numeric_limits<cresset::BFloat16> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = 8, max_exponent = 128, min_exponent = -125;
  static constexpr cresset::BFloat16 make(uint16_t b) { return {b, cresset::BFloat16::from_bits()}; }
  static constexpr cresset::BFloat16 min() { return make(0x0080); }
  static constexpr cresset::BFloat16 lowest() { return make(0xFF7F); }
  static constexpr cresset::BFloat16 max() { return make(0x7F7F); }
  static constexpr cresset::BFloat16 epsilon() { return make(0x3C00); }
  static constexpr cresset::BFloat16 infinity() { return make(0x7F80); }
  static constexpr cresset::BFloat16 quiet_NaN() { return make(0x7FC0); }
  static constexpr bool has_signaling_NaN = true;
  static constexpr cresset::BFloat16 signaling_NaN() { return make(0x7FA0); }
};
