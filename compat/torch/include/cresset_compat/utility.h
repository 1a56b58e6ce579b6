// Small parts of c10/util and ATen that need no tensor: constants, ranges, flags, scope guards, conversions of numbers.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include <cresset_compat/c10.h>

#include <cresset/dispatch/profiler.h>

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
/// Of complex numbers, a real one is the first part.
template <class To, class From>
To convert(From from) {
  if constexpr (cresset::is_complex_v<From> && !cresset::is_complex_v<To>)
    return static_cast<To>(from.real());
  else if constexpr (cresset::is_complex_v<To> && !cresset::is_complex_v<From>)
    return To(static_cast<typename To::value_type>(from));
  else
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

namespace detail {
template <class T>
constexpr T pi() {
  return c10::pi<T>;
}
/// For memory that somebody else frees.
inline void deleteNothing(void* /*data*/) {}
inline uint64_t getNonDeterministicRandom(bool /*is_cuda*/ = false) { return cresset::nondeterministic_seed(); }
}  // namespace detail

/// Sums and products of whole numbers.
template <class C>
int64_t sum_integers(const C& c) {
  return std::accumulate(std::begin(c), std::end(c), int64_t{0});
}
template <class I>
int64_t sum_integers(I begin, I end) {
  return std::accumulate(begin, end, int64_t{0});
}
template <class C>
int64_t multiply_integers(const C& c) {
  return std::accumulate(std::begin(c), std::end(c), int64_t{1}, std::multiplies<>());
}
template <class I>
int64_t multiply_integers(I begin, I end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}
/// The product of the sizes from dimension k on; and of those before it.
inline int64_t numelements_from_dim(int k, IntArrayRef dims) {
  return multiply_integers(dims.begin() + std::min<std::size_t>(static_cast<std::size_t>(k), dims.size()), dims.end());
}
inline int64_t numelements_to_dim(int k, IntArrayRef dims) { return multiply_integers(dims.begin(), dims.begin() + k); }

/// Does the number not fit into the other type? Unsigned ones may be given as negative numbers of the same bits.
template <class To, class From>
bool overflows(From v, bool strict_unsigned = false) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    if (!strict_unsigned && std::is_unsigned_v<To> && std::is_signed_v<From> && v < 0)
      return static_cast<uint64_t>(-static_cast<int64_t>(v)) > static_cast<uint64_t>(std::numeric_limits<To>::max());
    return !std::in_range<To>(v);
  } else {
    const auto wide = static_cast<double>(v);
    if (std::isinf(wide) && std::numeric_limits<To>::has_infinity) return false;
    if (!std::numeric_limits<To>::has_quiet_NaN && wide != wide) return true;
    return wide < static_cast<double>(std::numeric_limits<To>::lowest()) || wide > static_cast<double>(std::numeric_limits<To>::max());
  }
}

/// A value at an address that may hold other bytes than those of a bool.
template <class T>
T load(const T* p) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const unsigned char*>(p) != 0;
  else
    return *p;
}

/// One number for several values; equal values give equal numbers.
template <class... T>
std::size_t get_hash(const T&... values) {
  std::size_t seed = 0;
  const auto add = [&seed](std::size_t one) { seed ^= one + 0x9e3779b9 + (seed << 6) + (seed >> 2); };
  (add(std::hash<T>()(values)), ...);
  return seed;
}

/// A dimension that counts from the end, where it is negative, as one that counts from the beginning.
inline int64_t maybe_wrap_dim(int64_t d, int64_t ndim, bool wrap_scalar = true) { return cresset::maybe_wrap_dim(d, ndim, wrap_scalar); }

/// What a device's allocator tells a profiler that looks at memory: `bytes` more or, negative, fewer at the address. The totals are those
/// that the library counts itself.
inline void reportMemoryUsageToProfiler(void* data, int64_t bytes, std::size_t /*total_allocated*/, std::size_t /*total_reserved*/,
                                        Device device) {
  cresset::profiler::report_memory(data, bytes, device);
}
/// That a device's memory was not enough. Profilers here have no place for it; the error says it.
inline void reportOutOfMemoryToProfiler(int64_t /*bytes*/, std::size_t /*total_allocated*/, std::size_t /*total_reserved*/,
                                        Device /*device*/) {}
/// What an allocator keeps of the place that asked for a block.
struct GatheredContext {
  virtual ~GatheredContext() = default;
};

/// The name of the calling thread, of which systems show fifteen letters.
inline void setThreadName(std::string name) {
  name.resize(std::min<std::size_t>(name.size(), 15));
  pthread_setname_np(pthread_self(), name.c_str());
}
inline std::string getThreadName() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

/// A callable that somebody else keeps, for the length of a call.
template <class F>
class function_ref;
template <class R, class... A>
class function_ref<R(A...)> {
 public:
  function_ref() = default;
  function_ref(std::nullptr_t) {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, function_ref> && std::is_invocable_r_v<R, F&, A...>)
  function_ref(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, A... a) -> R { return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<A>(a)...); }) {}
  R operator()(A... a) const { return call_(object_, std::forward<A>(a)...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  void* object_ = nullptr;
  R (*call_)(void*, A...) = nullptr;
};

namespace llvm {
template <class T>
int countLeadingZeros(T v) {
  return std::countl_zero(static_cast<std::make_unsigned_t<T>>(v));
}
template <class T>
int countTrailingZeros(T v) {
  return std::countr_zero(static_cast<std::make_unsigned_t<T>>(v));
}
constexpr bool isPowerOf2_32(uint32_t v) { return std::has_single_bit(v); }
constexpr bool isPowerOf2_64(uint64_t v) { return std::has_single_bit(v); }
constexpr unsigned Log2_32(uint32_t v) { return 31 - static_cast<unsigned>(std::countl_zero(v)); }
constexpr unsigned Log2_64(uint64_t v) { return 63 - static_cast<unsigned>(std::countl_zero(v)); }
constexpr unsigned Log2_64_Ceil(uint64_t v) { return 64 - static_cast<unsigned>(std::countl_zero(v - 1)); }
constexpr uint64_t PowerOf2Floor(uint64_t v) { return std::bit_floor(v); }
constexpr uint64_t PowerOf2Ceil(uint64_t v) { return v ? std::bit_ceil(v) : 0; }
constexpr uint64_t NextPowerOf2(uint64_t v) { return std::bit_ceil(v + 1); }
}  // namespace llvm

}  // namespace c10

namespace at {

/// x / y of whole numbers, rounded up.
template <class T>
constexpr T ceil_div(T x, T y) {
  return (x + y - 1) / y;
}
template <class T>
constexpr T round_up(T x, T y) {
  return ceil_div(x, y) * y;
}

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
