// Scalar: one number of kind bool, integer, floating or complex, as operators take it.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

#include <cresset/core/scalar_type.h>

namespace cresset {

/// A host number with its kind. Conversions check range: a value that does not fit raises.
class CRESSET_API Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Scalar(T v) : tag_(Tag::Int) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t))
      if (v > static_cast<T>(std::numeric_limits<int64_t>::max())) tag_ = Tag::Unsigned;
    v_.i = static_cast<int64_t>(v);
  }
  template <std::same_as<bool> T>  // a pointer is no number
  Scalar(T v) : tag_(Tag::Bool) {
    v_.i = v;
  }
  Scalar(float v) : Scalar(static_cast<double>(v)) {}
  Scalar(double v) : tag_(Tag::Double) {
    v_.d[0] = v;
    v_.d[1] = 0;
  }
  Scalar(Half v) : Scalar(static_cast<float>(v)) {}
  Scalar(BFloat16 v) : Scalar(static_cast<float>(v)) {}
  template <class T, std::enable_if_t<is_float8_v<T>, int> = 0>
  Scalar(T v) : Scalar(static_cast<float>(v)) {}
  template <class T>
  Scalar(std::complex<T> v) : tag_(Tag::Complex) {
    v_.d[0] = v.real();
    v_.d[1] = v.imag();
  }

  bool isIntegral(bool includeBool) const { return tag_ == Tag::Int || tag_ == Tag::Unsigned || (includeBool && tag_ == Tag::Bool); }
  /// An integer beyond the largest int64_t; only conversions to uint64_t and floating types hold it.
  bool isUnsigned() const { return tag_ == Tag::Unsigned; }
  bool isFloatingPoint() const { return tag_ == Tag::Double; }
  bool isComplex() const { return tag_ == Tag::Complex; }
  bool isBoolean() const { return tag_ == Tag::Bool; }
  /// Symbolic numbers do not exist here.
  bool isSymbolic() const { return false; }
  /// Bool, Long, UInt64 (for what Long cannot hold), Double or ComplexDouble.
  ScalarType type() const {
    constexpr ScalarType types[] = {kBool, kLong, kUInt64, kDouble, kComplexDouble};
    return types[static_cast<int>(tag_)];
  }
  /// The value as T; raises `value cannot be converted to type T without overflow` when it does not fit.
  template <class T>
  T to() const;
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  uint64_t toUInt64() const { return to<uint64_t>(); }
  int toInt() const { return to<int32_t>(); }
  bool toBool() const { return to<bool>(); }
  uint8_t toByte() const { return to<uint8_t>(); }
  int8_t toChar() const { return to<int8_t>(); }
  int16_t toShort() const { return to<int16_t>(); }
  Half toHalf() const { return to<Half>(); }
  BFloat16 toBFloat16() const { return to<BFloat16>(); }
  std::complex<float> toComplexFloat() const { return to<std::complex<float>>(); }
  std::complex<double> toComplexDouble() const { return to<std::complex<double>>(); }
  Scalar operator-() const;
  Scalar conj() const;
  bool equal(double v) const { return tag_ == Tag::Complex ? v_.d[0] == v && v_.d[1] == 0 : toDouble() == v; }
  friend bool operator==(const Scalar& a, const Scalar& b) {
    if (a.isComplex() || b.isComplex()) return a.toComplexDouble() == b.toComplexDouble();
    if (a.isFloatingPoint() || b.isFloatingPoint()) return a.toDouble() == b.toDouble();
    return a.v_.i == b.v_.i && a.isUnsigned() == b.isUnsigned();
  }

 private:
  enum class Tag : uint8_t { Bool, Int, Unsigned, Double, Complex };
  Tag tag_;
  union {
    int64_t i;  // of Unsigned the bits
    double d[2];
  } v_;
};

/// As Python prints it: "1", "2.5", "True", "(1+2j)".
CRESSET_API std::string to_string(const Scalar& s);

namespace detail {
[[noreturn]] CRESSET_API void raise_scalar_overflow(ScalarType type);
/// Does v survive the conversion to To? Integers wrap-free; floating targets accept inf and nan.
template <class To, class From>
bool fits(From v) {
  if constexpr (std::is_same_v<To, bool> || is_float8_v<To>) {
    return true;
  } else if constexpr (std::is_same_v<To, uint64_t>) {
    if constexpr (std::is_floating_point_v<From>)
      return v > -1 && v < 0x1p64;
    else
      return true;  // negative numbers wrap
  } else if constexpr (std::is_integral_v<To>) {
    if constexpr (std::is_floating_point_v<From>) {
      return v >= -0x1p63 && v < 0x1p63 &&
             static_cast<double>(static_cast<int64_t>(v)) >= static_cast<double>(std::numeric_limits<To>::lowest()) &&
             static_cast<double>(static_cast<int64_t>(v)) <= static_cast<double>(std::numeric_limits<To>::max());
    } else if constexpr (std::is_unsigned_v<To>) {
      // PyTorch accepts negative numbers that wrap into an unsigned type.
      return v <= static_cast<int64_t>(std::numeric_limits<To>::max()) && v >= -static_cast<int64_t>(std::numeric_limits<To>::max());
    } else {
      return v >= static_cast<int64_t>(std::numeric_limits<To>::lowest()) && v <= static_cast<int64_t>(std::numeric_limits<To>::max());
    }
  } else if constexpr (std::is_floating_point_v<From>) {
    if (!(v - v == 0)) return true;
    return static_cast<double>(v) <= static_cast<double>(std::numeric_limits<To>::max()) &&
           static_cast<double>(v) >= static_cast<double>(std::numeric_limits<To>::lowest());
  } else {
    return static_cast<double>(v) <= static_cast<double>(std::numeric_limits<To>::max());
  }
}
}  // namespace detail

template <class T>
T Scalar::to() const {
  if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    if (tag_ == Tag::Complex || tag_ == Tag::Double) {
      if constexpr (std::is_same_v<R, Half>)
        if (!detail::fits<R>(v_.d[0]) || !detail::fits<R>(v_.d[1])) detail::raise_scalar_overflow(kComplexHalf);
      return T(static_cast<R>(v_.d[0]), static_cast<R>(v_.d[1]));
    }
    if (tag_ == Tag::Unsigned) return T(static_cast<R>(static_cast<double>(static_cast<uint64_t>(v_.i))));
    return T(static_cast<R>(v_.i));
  } else {
    constexpr ScalarType name = CppTypeToScalarType<T>::value;
    if (tag_ == Tag::Unsigned) {
      const auto value = static_cast<uint64_t>(v_.i);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, uint64_t>)
        detail::raise_scalar_overflow(name);
      else if constexpr (!std::is_integral_v<T>)
        if (!detail::fits<T>(static_cast<double>(value))) detail::raise_scalar_overflow(name);
      return static_cast<T>(static_cast<opmath_type<T>>(value));
    }
    if (tag_ == Tag::Complex) {
      if constexpr (std::is_same_v<T, bool>) return v_.d[0] != 0 || v_.d[1] != 0;
      if (v_.d[1] != 0 || !detail::fits<T>(v_.d[0])) detail::raise_scalar_overflow(name);
      return static_cast<T>(static_cast<opmath_type<T>>(v_.d[0]));
    }
    if (tag_ == Tag::Double) {
      if constexpr (std::is_same_v<T, bool>) return v_.d[0] != 0;
      if (!detail::fits<T>(v_.d[0])) detail::raise_scalar_overflow(name);
      return static_cast<T>(static_cast<opmath_type<T>>(v_.d[0]));
    }
    if constexpr (std::is_same_v<T, bool>) return v_.i != 0;
    if (!detail::fits<T>(v_.i)) detail::raise_scalar_overflow(name);
    return static_cast<T>(static_cast<opmath_type<T>>(v_.i));
  }
}

}  // namespace cresset
