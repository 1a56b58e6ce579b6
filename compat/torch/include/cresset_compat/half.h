// c10's number types: half types whose arithmetic gives a half again, and types that exist only as names and bytes.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/base/half.h>
#include <cresset/core/scalar_type.h>

// Found by argument-dependent lookup, so they belong to Cresset's namespace. Only extension sources see them.
namespace cresset {

#define CRESSET_COMPAT_HALF_OPERATOR(T, op)                                                        \
  inline T operator op(T a, T b) { return static_cast<float>(a) op static_cast<float>(b); }       \
  inline float operator op(T a, float b) { return static_cast<float>(a) op b; }                   \
  inline float operator op(float a, T b) { return a op static_cast<float>(b); }                   \
  inline double operator op(T a, double b) { return static_cast<double>(a) op b; }                \
  inline double operator op(double a, T b) { return a op static_cast<double>(b); }                \
  inline T operator op(T a, int b) { return a op static_cast<T>(static_cast<float>(b)); }         \
  inline T operator op(int a, T b) { return static_cast<T>(static_cast<float>(a)) op b; }         \
  inline T operator op(T a, int64_t b) { return a op static_cast<T>(static_cast<float>(b)); }     \
  inline T operator op(int64_t a, T b) { return static_cast<T>(static_cast<float>(a)) op b; }
#define CRESSET_COMPAT_HALF_TYPE(T)                         \
  CRESSET_COMPAT_HALF_OPERATOR(T, +)                        \
  CRESSET_COMPAT_HALF_OPERATOR(T, -)                        \
  CRESSET_COMPAT_HALF_OPERATOR(T, *)                        \
  CRESSET_COMPAT_HALF_OPERATOR(T, /)                        \
  inline T operator-(T a) { return -static_cast<float>(a); }
CRESSET_COMPAT_HALF_TYPE(Half)
CRESSET_COMPAT_HALF_TYPE(BFloat16)
#undef CRESSET_COMPAT_HALF_TYPE
#undef CRESSET_COMPAT_HALF_OPERATOR

}  // namespace cresset

namespace c10 {

struct alignas(1) qint8 {
  using underlying = int8_t;
  int8_t val_;
  qint8() = default;
  explicit qint8(int8_t v) : val_(v) {}
};
struct alignas(1) quint8 {
  using underlying = uint8_t;
  uint8_t val_;
  quint8() = default;
  explicit quint8(uint8_t v) : val_(v) {}
};
struct alignas(4) qint32 {
  using underlying = int32_t;
  int32_t val_;
  qint32() = default;
  explicit qint32(int32_t v) : val_(v) {}
};
struct alignas(1) quint4x2 {
  using underlying = uint8_t;
  uint8_t val_;
};
struct alignas(1) quint2x4 {
  using underlying = uint8_t;
  uint8_t val_;
};
struct alignas(1) bits8 {
  using underlying = uint8_t;
  uint8_t val_;
};
struct alignas(2) bits16 {
  using underlying = uint16_t;
  uint16_t val_;
};

namespace detail {
/// An eight-bit float: a sign, kExponent bits, the rest fraction. kFinite: no infinity, all ones is NaN. kUnsignedZero: the bits
/// of negative zero are the only NaN.
template <int kExponent, int kBias, bool kFinite, bool kUnsignedZero>
struct Float8Bits {
  static constexpr int kFraction = 7 - kExponent;
  static float to_float(uint8_t bits) {
    const int exponent = (bits & 0x7f) >> kFraction, fraction = bits & ((1 << kFraction) - 1);
    const float sign = bits & 0x80 ? -1.f : 1.f;
    if (kUnsignedZero && bits == 0x80) return std::numeric_limits<float>::quiet_NaN();
    if (!kUnsignedZero && exponent == (1 << kExponent) - 1) {
      if (!kFinite) return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
      if (fraction == (1 << kFraction) - 1) return std::numeric_limits<float>::quiet_NaN();
    }
    const float scale = static_cast<float>(1 << kFraction);
    return exponent == 0 ? sign * std::ldexp(static_cast<float>(fraction) / scale, 1 - kBias)
                         : sign * std::ldexp(1.f + static_cast<float>(fraction) / scale, exponent - kBias);
  }
  /// The nearest value, ties to the even one: a search in the 128 magnitudes, which are in order.
  static uint8_t from_float(float f) {
    if (f != f) return kUnsignedZero ? 0x80 : 0x7f;
    const uint8_t sign = std::signbit(f) ? 0x80 : 0;
    const float magnitude = std::fabs(f);
    int low = 0, high = 127;
    while (!(to_float(static_cast<uint8_t>(high)) == to_float(static_cast<uint8_t>(high))) ||
           std::isinf(to_float(static_cast<uint8_t>(high))))
      --high;
    const float largest = to_float(static_cast<uint8_t>(high));
    const float step = largest - to_float(static_cast<uint8_t>(high - 1));
    if (magnitude >= largest + step / 2) {
      if (kUnsignedZero) return 0x80;
      return static_cast<uint8_t>(sign | (high + 1));  // infinity, or NaN where there is none
    }
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (to_float(static_cast<uint8_t>(middle)) <= magnitude)
        low = middle;
      else
        high = middle - 1;
    }
    const float below = to_float(static_cast<uint8_t>(low)), above = to_float(static_cast<uint8_t>(low + 1));
    const float middle = (below + above) / 2;
    if (above == above && !std::isinf(above) && (magnitude > middle || (magnitude == middle && (low & 1)))) ++low;
    if (kUnsignedZero && low == 0) return 0;
    return static_cast<uint8_t>(sign | low);
  }
};
template <class Bits>
struct alignas(1) Float8 {
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  uint8_t x;
  Float8() = default;
  constexpr Float8(uint8_t bits, from_bits_t) : x(bits) {}
  Float8(float f) : x(Bits::from_float(f)) {}
  operator float() const { return Bits::to_float(x); }
};
}  // namespace detail
struct Float8_e4m3fn : detail::Float8<detail::Float8Bits<4, 7, true, false>> {
  using Float8::Float8;
};
struct Float8_e5m2 : detail::Float8<detail::Float8Bits<5, 15, false, false>> {
  using Float8::Float8;
};
struct Float8_e4m3fnuz : detail::Float8<detail::Float8Bits<4, 8, true, true>> {
  using Float8::Float8;
};
struct Float8_e5m2fnuz : detail::Float8<detail::Float8Bits<5, 16, true, true>> {
  using Float8::Float8;
};

}  // namespace c10

namespace cresset {
#define CRESSET_COMPAT_MAP(T, Name)                       \
  template <>                                             \
  struct CppTypeToScalarType<T> {                         \
    static constexpr ScalarType value = ScalarType::Name; \
  };                                                      \
  template <>                                             \
  struct ScalarTypeToCPPType<ScalarType::Name> {          \
    using type = T;                                       \
  };
CRESSET_COMPAT_MAP(c10::qint8, QInt8)
CRESSET_COMPAT_MAP(c10::quint8, QUInt8)
CRESSET_COMPAT_MAP(c10::qint32, QInt32)
CRESSET_COMPAT_MAP(c10::Float8_e5m2, Float8_e5m2)
CRESSET_COMPAT_MAP(c10::Float8_e4m3fn, Float8_e4m3fn)
CRESSET_COMPAT_MAP(c10::Float8_e5m2fnuz, Float8_e5m2fnuz)
CRESSET_COMPAT_MAP(c10::Float8_e4m3fnuz, Float8_e4m3fnuz)
CRESSET_COMPAT_MAP(uint16_t, UInt16)
CRESSET_COMPAT_MAP(uint32_t, UInt32)
CRESSET_COMPAT_MAP(uint64_t, UInt64)
#undef CRESSET_COMPAT_MAP
}  // namespace cresset
namespace c10::impl {
template <ScalarType S>
using ScalarTypeToCPPTypeT = typename cresset::ScalarTypeToCPPType<S>::type;
template <ScalarType S>
using ScalarTypeToCPPType = cresset::ScalarTypeToCPPType<S>;
}  // namespace c10::impl
