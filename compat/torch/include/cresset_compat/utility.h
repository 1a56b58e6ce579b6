// Small parts of c10/util and ATen that need no tensor: constants, ranges, flags, scope guards, conversions of numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numbers>
#include <string>
#include <type_traits>
#include <utility>

#include <cresset_compat/c10.h>

/// x / y of whole numbers, rounded towards minus infinity.
template <class T>
inline T div_rtn(T x, T y) {
  const T q = x / y, r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(q - 1) : q;
}

namespace c10 {

template <class T>
inline constexpr T pi = static_cast<T>(std::numbers::pi);
template <class T>
inline constexpr T e = static_cast<T>(std::numbers::e);
template <class T>
inline constexpr T euler = static_cast<T>(std::numbers::egamma);
template <class T>
inline constexpr T frac_1_pi = static_cast<T>(std::numbers::inv_pi);
template <class T>
inline constexpr T frac_1_sqrt_pi = static_cast<T>(std::numbers::inv_sqrtpi);
template <class T>
inline constexpr T frac_sqrt_2 = static_cast<T>(1 / std::numbers::sqrt2);
template <class T>
inline constexpr T frac_sqrt_3 = static_cast<T>(std::numbers::inv_sqrt3);
template <class T>
inline constexpr T golden_ratio = static_cast<T>(std::numbers::phi);
template <class T>
inline constexpr T ln_10 = static_cast<T>(std::numbers::ln10);
template <class T>
inline constexpr T ln_2 = static_cast<T>(std::numbers::ln2);
template <class T>
inline constexpr T log_10_e = static_cast<T>(std::numbers::log10e);
template <class T>
inline constexpr T log_2_e = static_cast<T>(std::numbers::log2e);
template <class T>
inline constexpr T sqrt_2 = static_cast<T>(std::numbers::sqrt2);
template <class T>
inline constexpr T sqrt_3 = static_cast<T>(std::numbers::sqrt3);

/// The size of a container as a signed number.
template <class C>
constexpr auto ssize(const C& c) {
  return std::ssize(c);
}
template <class V, class... T>
constexpr std::array<V, sizeof...(T)> array_of(T&&... t) {
  return {{std::forward<T>(t)...}};
}
template <class To, class From>
To convert(From from) {
  return static_cast<To>(from);
}

/// Calls f at the end of its scope, unless released.
template <class F>
class scope_exit {
 public:
  explicit scope_exit(F f) : f_(std::move(f)) {}
  scope_exit(scope_exit&& other) noexcept : f_(std::move(other.f_)), armed_(std::exchange(other.armed_, false)) {}
  scope_exit& operator=(scope_exit&&) = delete;
  ~scope_exit() {
    if (armed_) f_();
  }
  void release() noexcept { armed_ = false; }

 private:
  F f_;
  bool armed_ = true;
};
template <class F>
scope_exit<std::decay_t<F>> make_scope_exit(F&& f) {
  return scope_exit<std::decay_t<F>>(std::forward<F>(f));
}

}  // namespace c10

namespace at {

/// The numbers from begin up to end, without end.
struct Range {
  Range(int64_t first, int64_t last) : begin(first), end(last) {}
  int64_t size() const { return end - begin; }
  Range operator/(int64_t divisor) const { return {begin / divisor, end / divisor}; }

  int64_t begin, end;
};
template <class T>
bool _isnan(T v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return v != v;
}
template <class T>
bool _isinf(T v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isinf(static_cast<double>(v));
}

}  // namespace at

// Settings of a program, without a parser for its arguments.
#define C10_DECLARE_typed_var(type, name) extern C10_EXPORT type FLAGS_##name
#define C10_DEFINE_typed_var(type, name, value, ...) C10_EXPORT type FLAGS_##name = value
#define C10_DECLARE_int(name) C10_DECLARE_typed_var(int, name)
#define C10_DECLARE_int32(name) C10_DECLARE_typed_var(int32_t, name)
#define C10_DECLARE_int64(name) C10_DECLARE_typed_var(int64_t, name)
#define C10_DECLARE_double(name) C10_DECLARE_typed_var(double, name)
#define C10_DECLARE_bool(name) C10_DECLARE_typed_var(bool, name)
#define C10_DECLARE_string(name) C10_DECLARE_typed_var(std::string, name)
#define C10_DEFINE_int(name, value, ...) C10_DEFINE_typed_var(int, name, value)
#define C10_DEFINE_int32(name, value, ...) C10_DEFINE_typed_var(int32_t, name, value)
#define C10_DEFINE_int64(name, value, ...) C10_DEFINE_typed_var(int64_t, name, value)
#define C10_DEFINE_double(name, value, ...) C10_DEFINE_typed_var(double, name, value)
#define C10_DEFINE_bool(name, value, ...) C10_DEFINE_typed_var(bool, name, value)
#define C10_DEFINE_string(name, value, ...) C10_DEFINE_typed_var(std::string, name, value)
