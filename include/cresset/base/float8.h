// Eight-bit floating types: storage types whose values are computed with as float.
//
// Layouts of OCP "OFP8" (E4M3, E5M2: "OCP 8-bit Floating Point Specification", 2023), of the variants without infinities and negative
// zero ("8-bit Numerical Formats for Deep Neural Networks", arXiv:2206.02915), and of the scales of "OCP Microscaling Formats", 2023.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cresset {

/// What the codes beyond the largest finite number mean, and what a number too large becomes.
enum class Float8Special {
  Ieee,     // the largest exponent holds infinities and NaNs: infinity
  NanOnly,  // all ones is NaN, there is no infinity: the largest finite number, as PyTorch since 2.13
  NoMinus,  // the code of negative zero is the only NaN: NaN
};

namespace detail {

/// Widens `bits`, of E exponent and M mantissa bits. Exact.
template <int E, int M, int kBias, Float8Special kSpecial>
constexpr float float8_bits_to_float(uint8_t bits) {
  constexpr uint32_t kMaxExponent = (1u << E) - 1, kMantissa = (1u << M) - 1;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, exponent = (bits >> M) & kMaxExponent, mantissa = bits & kMantissa;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if constexpr (kSpecial == Float8Special::NoMinus) {
    if (bits == 0x80u) return kNan;
  } else if constexpr (kSpecial == Float8Special::NanOnly) {
    if (exponent == kMaxExponent && mantissa == kMantissa) return kNan;
  } else if (exponent == kMaxExponent) {
    return mantissa ? kNan : std::bit_cast<float>(sign | 0x7F800000u);
  }
  if (exponent) return std::bit_cast<float>(sign | ((exponent + 127 - kBias) << 23) | (mantissa << (23 - M)));
  // Subnormal: mantissa * 2^(1 - bias - M).
  const float magnitude = static_cast<float>(mantissa) * std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias - M) << 23);
  return sign ? -magnitude : magnitude;
}

/// Narrows with rounding to nearest even.
template <int E, int M, int kBias, Float8Special kSpecial>
constexpr uint8_t float_to_float8_bits(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value), magnitude = word & 0x7FFFFFFFu;
  const uint8_t sign = static_cast<uint8_t>((word >> 24) & 0x80u);
  constexpr uint32_t kInfinity = ((1u << E) - 1) << M;
  // What numbers too large become, without sign.
  constexpr uint32_t kTooLarge = kSpecial == Float8Special::Ieee ? kInfinity : kSpecial == Float8Special::NanOnly ? 0x7Eu : 0x80u;
  if (magnitude > 0x7F800000u) return kSpecial == Float8Special::NoMinus ? 0x80u : static_cast<uint8_t>(sign | 0x7Fu);
  uint32_t code = kTooLarge;
  if (magnitude < 0x7F800000u) {
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
    // Below the smallest normal number the mantissa gives up one bit for each power of two.
    const int dropped = 23 - M + (exponent < 1 ? 1 - exponent : 0);
    if (dropped > 24 || magnitude < 0x00800000u) {
      code = 0;
    } else {
      const uint32_t full = (magnitude & 0x7FFFFFu) | 0x800000u, kept = full >> dropped, rest = full & ((1u << dropped) - 1);
      const uint32_t half = 1u << (dropped - 1);
      // The leading bit of a normal number adds one to the exponent, and so does a carry out of the mantissa.
      code = (exponent < 1 ? 0 : static_cast<uint32_t>(exponent - 1) << M) + kept + (rest > half || (rest == half && (kept & 1u)) ? 1 : 0);
      if (code > kTooLarge) code = kTooLarge;
    }
  }
  if constexpr (kSpecial == Float8Special::NoMinus) return static_cast<uint8_t>(code == 0 ? 0 : code == kTooLarge ? 0x80u : sign | code);
  return static_cast<uint8_t>(sign | code);
}

/// A power of two from 2^-127 to 2^127; 0xFF is NaN.
constexpr float float8_e8m0fnu_bits_to_float(uint8_t bits) {
  if (bits == 0xFFu) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
}

/// The nearest power of two in ratio of mantissas (ties to the larger one), without sign.
constexpr uint8_t float_to_float8_e8m0fnu_bits(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value), exponent = (word >> 23) & 0xFFu, mantissa = word & 0x7FFFFFu;
  if (exponent == 0xFFu) return 0xFFu;
  const bool tie = mantissa == 0x400000u;
  return static_cast<uint8_t>(exponent + (mantissa > 0x400000u || (tie && exponent > 0) ? 1 : 0));
}

}  // namespace detail

#define CRESSET_DEFINE_FLOAT8_TYPE(Name, to_float_bits, from_float_bits)  \
  struct Name {                                                           \
    uint8_t x;                                                            \
    struct from_bits_t {};                                                \
    static constexpr from_bits_t from_bits() { return {}; }               \
    Name() = default;                                                     \
    constexpr Name(uint8_t bits, from_bits_t) : x(bits) {}                \
    constexpr Name(float f) : x(from_float_bits(f)) {}                    \
    constexpr operator float() const { return to_float_bits(x); }         \
    constexpr bool isnan() const { return float(*this) != float(*this); } \
  }
#define CRESSET_DEFINE_FLOAT8_LAYOUT(Name, E, M, bias, special)                                        \
  CRESSET_DEFINE_FLOAT8_TYPE(Name, (detail::float8_bits_to_float<E, M, bias, Float8Special::special>), \
                             (detail::float_to_float8_bits<E, M, bias, Float8Special::special>))
CRESSET_DEFINE_FLOAT8_LAYOUT(Float8_e4m3fn, 4, 3, 7, NanOnly);
CRESSET_DEFINE_FLOAT8_LAYOUT(Float8_e5m2, 5, 2, 15, Ieee);
CRESSET_DEFINE_FLOAT8_LAYOUT(Float8_e4m3fnuz, 4, 3, 8, NoMinus);
CRESSET_DEFINE_FLOAT8_LAYOUT(Float8_e5m2fnuz, 5, 2, 16, NoMinus);
CRESSET_DEFINE_FLOAT8_TYPE(Float8_e8m0fnu, detail::float8_e8m0fnu_bits_to_float, detail::float_to_float8_e8m0fnu_bits);
#undef CRESSET_DEFINE_FLOAT8_LAYOUT
#undef CRESSET_DEFINE_FLOAT8_TYPE

template <class T>
inline constexpr bool is_float8_v =
    std::is_same_v<T, Float8_e4m3fn> || std::is_same_v<T, Float8_e5m2> || std::is_same_v<T, Float8_e4m3fnuz> ||
    std::is_same_v<T, Float8_e5m2fnuz> || std::is_same_v<T, Float8_e8m0fnu>;

}  // namespace cresset

#define CRESSET_FLOAT8_LIMITS(Name, signed_, digits_, min_, lowest_, max_, epsilon_, nan_, infinity_, has_infinity_) \
  template <>                                                                                                        \
  class std::numeric_limits<cresset::Name> {                                                                         \
   public:                                                                                                           \
    static constexpr bool is_specialized = true, is_signed = signed_, is_integer = false, has_quiet_NaN = true;      \
    static constexpr bool has_infinity = has_infinity_;                                                              \
    static constexpr int digits = digits_;                                                                           \
    static constexpr cresset::Name make(uint8_t b) { return {b, cresset::Name::from_bits()}; }                       \
    static constexpr cresset::Name min() { return make(min_); }                                                      \
    static constexpr cresset::Name lowest() { return make(lowest_); }                                                \
    static constexpr cresset::Name max() { return make(max_); }                                                      \
    static constexpr cresset::Name epsilon() { return make(epsilon_); }                                              \
    static constexpr cresset::Name quiet_NaN() { return make(nan_); }                                                \
    static constexpr cresset::Name infinity() { return make(infinity_); }                                            \
  };
// Where there is no infinity, infinity() is NaN.
CRESSET_FLOAT8_LIMITS(Float8_e4m3fn, true, 4, 0x08, 0xFE, 0x7E, 0x20, 0x7F, 0x7F, false)
CRESSET_FLOAT8_LIMITS(Float8_e5m2, true, 3, 0x04, 0xFB, 0x7B, 0x34, 0x7F, 0x7C, true)
CRESSET_FLOAT8_LIMITS(Float8_e4m3fnuz, true, 4, 0x08, 0xFF, 0x7F, 0x28, 0x80, 0x80, false)
CRESSET_FLOAT8_LIMITS(Float8_e5m2fnuz, true, 3, 0x04, 0xFF, 0x7F, 0x34, 0x80, 0x80, false)
CRESSET_FLOAT8_LIMITS(Float8_e8m0fnu, false, 1, 0x00, 0x00, 0xFE, 0x7F, 0xFF, 0xFF, false)
#undef CRESSET_FLOAT8_LIMITS
