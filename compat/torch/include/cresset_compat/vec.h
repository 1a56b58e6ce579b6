// at::vec: a vector of one register's size, as a plain array that the compiler turns into instructions.
#pragma once

#include <cmath>

#include <cresset_compat/aten.h>

#define VECTOR_WIDTH 32
#define CPU_CAPABILITY DEFAULT

namespace at::vec {
inline namespace CPU_CAPABILITY {

template <class T>
inline constexpr bool is_reduced_floating_point_v = c10::is_reduced_floating_point_v<T>;

template <class T>
struct alignas(VECTOR_WIDTH) Vectorized {
  using value_type = T;
  using size_type = int;
  static constexpr int kSize = VECTOR_WIDTH / static_cast<int>(sizeof(T));
  static constexpr int size() { return kSize; }

  Vectorized() : values{} {}
  Vectorized(T v) {
    for (T& x : values) x = v;
  }
  template <class... A, class = std::enable_if_t<sizeof...(A) == kSize && (kSize > 1)>>
  Vectorized(A... v) : values{static_cast<T>(v)...} {}
  static Vectorized loadu(const void* p) {
    Vectorized v;
    std::memcpy(v.values, p, sizeof v.values);
    return v;
  }
  /// The first n elements; the others are zero.
  static Vectorized loadu(const void* p, int64_t n) {
    Vectorized v;
    std::memcpy(v.values, p, static_cast<std::size_t>(n) * sizeof(T));
    return v;
  }
  void store(void* p, int n = size()) const { std::memcpy(p, values, static_cast<std::size_t>(n) * sizeof(T)); }
  const T& operator[](int i) const { return values[i]; }
  T& operator[](int i) { return values[i]; }
  operator const T*() const { return values; }
  template <class F>
  Vectorized map(const F& f) const {
    Vectorized out;
    for (int i = 0; i < kSize; ++i) out.values[i] = static_cast<T>(f(values[i]));
    return out;
  }
  template <class F>
  static Vectorized zip(const Vectorized& a, const Vectorized& b, const F& f) {
    Vectorized out;
    for (int i = 0; i < kSize; ++i) out.values[i] = static_cast<T>(f(a.values[i], b.values[i]));
    return out;
  }
  /// b where the mask's bits are set, else a.
  static Vectorized blendv(const Vectorized& a, const Vectorized& b, const Vectorized& mask) {
    Vectorized out;
    for (int i = 0; i < kSize; ++i) {
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &mask.values[i], sizeof(T));
      out.values[i] = (bytes[sizeof(T) - 1] & 0x80) ? b.values[i] : a.values[i];
    }
    return out;
  }
  template <int64_t mask>
  static Vectorized blend(const Vectorized& a, const Vectorized& b) {
    Vectorized out;
    for (int i = 0; i < kSize; ++i) out.values[i] = mask >> i & 1 ? b.values[i] : a.values[i];
    return out;
  }
  /// The first n elements of b, the others of a.
  static Vectorized set(const Vectorized& a, const Vectorized& b, int64_t n = size()) {
    Vectorized out = a;
    for (int i = 0; i < n; ++i) out.values[i] = b.values[i];
    return out;
  }
  template <class step_t>
  static Vectorized arange(T base = 0, step_t step = 1) {
    Vectorized out;
    for (int i = 0; i < kSize; ++i) out.values[i] = static_cast<T>(base + i * step);
    return out;
  }
  int zero_mask() const {
    int mask = 0;
    for (int i = 0; i < kSize; ++i)
      if (values[i] == T(0)) mask |= 1 << i;
    return mask;
  }

#define CRESSET_COMPAT_VECTOR_MAP(name, expression) \
  Vectorized name() const {                         \
    return map([](auto v) {                         \
      const cresset::opmath_type<T> x = v;          \
      return expression;                            \
    });                                             \
  }
  CRESSET_COMPAT_VECTOR_MAP(abs, x < 0 ? -x : x)
  CRESSET_COMPAT_VECTOR_MAP(neg, -x)
  CRESSET_COMPAT_VECTOR_MAP(sqrt, std::sqrt(x))
  CRESSET_COMPAT_VECTOR_MAP(rsqrt, 1 / std::sqrt(x))
  CRESSET_COMPAT_VECTOR_MAP(reciprocal, 1 / x)
  CRESSET_COMPAT_VECTOR_MAP(exp, std::exp(x))
  CRESSET_COMPAT_VECTOR_MAP(exp_u20, std::exp(x))
  CRESSET_COMPAT_VECTOR_MAP(fexp_u20, std::exp(x))
  CRESSET_COMPAT_VECTOR_MAP(exp2, std::exp2(x))
  CRESSET_COMPAT_VECTOR_MAP(expm1, std::expm1(x))
  CRESSET_COMPAT_VECTOR_MAP(log, std::log(x))
  CRESSET_COMPAT_VECTOR_MAP(log2, std::log2(x))
  CRESSET_COMPAT_VECTOR_MAP(log10, std::log10(x))
  CRESSET_COMPAT_VECTOR_MAP(log1p, std::log1p(x))
  CRESSET_COMPAT_VECTOR_MAP(sin, std::sin(x))
  CRESSET_COMPAT_VECTOR_MAP(cos, std::cos(x))
  CRESSET_COMPAT_VECTOR_MAP(tan, std::tan(x))
  CRESSET_COMPAT_VECTOR_MAP(asin, std::asin(x))
  CRESSET_COMPAT_VECTOR_MAP(acos, std::acos(x))
  CRESSET_COMPAT_VECTOR_MAP(atan, std::atan(x))
  CRESSET_COMPAT_VECTOR_MAP(sinh, std::sinh(x))
  CRESSET_COMPAT_VECTOR_MAP(cosh, std::cosh(x))
  CRESSET_COMPAT_VECTOR_MAP(tanh, std::tanh(x))
  CRESSET_COMPAT_VECTOR_MAP(erf, std::erf(x))
  CRESSET_COMPAT_VECTOR_MAP(erfc, std::erfc(x))
  CRESSET_COMPAT_VECTOR_MAP(ceil, std::ceil(x))
  CRESSET_COMPAT_VECTOR_MAP(floor, std::floor(x))
  CRESSET_COMPAT_VECTOR_MAP(round, std::nearbyint(x))
  CRESSET_COMPAT_VECTOR_MAP(trunc, std::trunc(x))
  CRESSET_COMPAT_VECTOR_MAP(lgamma, std::lgamma(x))
#undef CRESSET_COMPAT_VECTOR_MAP
  Vectorized frac() const { return *this - trunc(); }
  Vectorized pow(const Vectorized& e) const {
    return zip(*this, e, [](auto x, auto y) { return std::pow(cresset::opmath_type<T>(x), cresset::opmath_type<T>(y)); });
  }
  Vectorized atan2(const Vectorized& b) const {
    return zip(*this, b, [](auto x, auto y) { return std::atan2(cresset::opmath_type<T>(x), cresset::opmath_type<T>(y)); });
  }
  Vectorized fmod(const Vectorized& b) const {
    return zip(*this, b, [](auto x, auto y) { return std::fmod(cresset::opmath_type<T>(x), cresset::opmath_type<T>(y)); });
  }
  Vectorized isnan() const {
    return map_mask([](auto v) { return v != v; });
  }
#define CRESSET_COMPAT_VECTOR_COMPARE(op, name)                                                                                          \
  Vectorized operator op(const Vectorized& o) const {                                                                                    \
    Vectorized out;                                                                                                                      \
    for (int i = 0; i < kSize; ++i) out.values[i] = mask_value(values[i] op o.values[i]);                                                \
    return out;                                                                                                                          \
  }                                                                                                                                      \
  Vectorized name(const Vectorized& o) const { return zip(*this, o, [](auto x, auto y) { return T(x op y ? 1 : 0); }); }
  CRESSET_COMPAT_VECTOR_COMPARE(==, eq)
  CRESSET_COMPAT_VECTOR_COMPARE(!=, ne)
  CRESSET_COMPAT_VECTOR_COMPARE(<, lt)
  CRESSET_COMPAT_VECTOR_COMPARE(<=, le)
  CRESSET_COMPAT_VECTOR_COMPARE(>, gt)
  CRESSET_COMPAT_VECTOR_COMPARE(>=, ge)
#undef CRESSET_COMPAT_VECTOR_COMPARE

  T values[kSize];

 private:
  // All bits set for true, as comparison instructions give it.
  static T mask_value(bool b) {
    T v;
    std::memset(static_cast<void*>(&v), b ? 0xff : 0, sizeof v);
    return v;
  }
  template <class F>
  Vectorized map_mask(const F& f) const {
    Vectorized out;
    for (int i = 0; i < kSize; ++i) out.values[i] = mask_value(f(values[i]));
    return out;
  }
};

#define CRESSET_COMPAT_VECTOR_ARITHMETIC(op)                                                                   \
  template <class T>                                                                                           \
  Vectorized<T> operator op(const Vectorized<T>& a, const Vectorized<T>& b) {                                  \
    return Vectorized<T>::zip(a, b, [](T x, T y) { return cresset::opmath_type<T>(x) op cresset::opmath_type<T>(y); }); \
  }                                                                                                            \
  template <class T>                                                                                           \
  Vectorized<T>& operator op##=(Vectorized<T>& a, const Vectorized<T>& b) {                                    \
    return a = a op b;                                                                                         \
  }
CRESSET_COMPAT_VECTOR_ARITHMETIC(+)
CRESSET_COMPAT_VECTOR_ARITHMETIC(-)
CRESSET_COMPAT_VECTOR_ARITHMETIC(*)
CRESSET_COMPAT_VECTOR_ARITHMETIC(/)
#undef CRESSET_COMPAT_VECTOR_ARITHMETIC
template <class T>
Vectorized<T> operator-(const Vectorized<T>& a) {
  return a.neg();
}
#define CRESSET_COMPAT_VECTOR_BITS(op)                                                \
  template <class T>                                                                  \
  Vectorized<T> operator op(const Vectorized<T>& a, const Vectorized<T>& b) {         \
    unsigned char x[sizeof a.values], y[sizeof b.values];                             \
    std::memcpy(x, a.values, sizeof x);                                               \
    std::memcpy(y, b.values, sizeof y);                                               \
    for (std::size_t i = 0; i < sizeof x; ++i) x[i] = static_cast<unsigned char>(x[i] op y[i]); \
    return Vectorized<T>::loadu(x);                                                   \
  }
CRESSET_COMPAT_VECTOR_BITS(&)
CRESSET_COMPAT_VECTOR_BITS(|)
CRESSET_COMPAT_VECTOR_BITS(^)
#undef CRESSET_COMPAT_VECTOR_BITS
/// With NaN where one of them is NaN.
template <class T>
Vectorized<T> maximum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return Vectorized<T>::zip(a, b, [](T x, T y) { return x != x ? x : y != y ? y : x < y ? y : x; });
}
template <class T>
Vectorized<T> minimum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return Vectorized<T>::zip(a, b, [](T x, T y) { return x != x ? x : y != y ? y : y < x ? y : x; });
}
template <class T>
Vectorized<T> clamp(const Vectorized<T>& a, const Vectorized<T>& low, const Vectorized<T>& high) {
  return minimum(high, maximum(low, a));
}
template <class T>
Vectorized<T> clamp_min(const Vectorized<T>& a, const Vectorized<T>& low) {
  return maximum(low, a);
}
template <class T>
Vectorized<T> clamp_max(const Vectorized<T>& a, const Vectorized<T>& high) {
  return minimum(high, a);
}
template <class T>
Vectorized<T> fmadd(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b + c;
}
template <class T>
Vectorized<T> fmsub(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b - c;
}
/// Halves of a register of half types as two registers of float, and back.
template <class T, class = std::enable_if_t<is_reduced_floating_point_v<T>>>
std::tuple<Vectorized<float>, Vectorized<float>> convert_to_float(const Vectorized<T>& v) {
  Vectorized<float> low, high;
  for (int i = 0; i < Vectorized<float>::size(); ++i) {
    low[i] = static_cast<float>(v[i]);
    high[i] = static_cast<float>(v[i + Vectorized<float>::size()]);
  }
  return {low, high};
}
template <class T, class = std::enable_if_t<is_reduced_floating_point_v<T>>>
Vectorized<T> convert_from_float(const Vectorized<float>& low, const Vectorized<float>& high) {
  Vectorized<T> out;
  for (int i = 0; i < Vectorized<float>::size(); ++i) {
    out[i] = T(low[i]);
    out[i + Vectorized<float>::size()] = T(high[i]);
  }
  return out;
}
inline auto convert_bfloat16_float(const Vectorized<c10::BFloat16>& v) { return convert_to_float(v); }
inline auto convert_half_float(const Vectorized<c10::Half>& v) { return convert_to_float(v); }
inline auto convert_float_bfloat16(const Vectorized<float>& a, const Vectorized<float>& b) { return convert_from_float<c10::BFloat16>(a, b); }
inline auto convert_float_half(const Vectorized<float>& a, const Vectorized<float>& b) { return convert_from_float<c10::Half>(a, b); }
template <class From, class To>
void convert(const From* from, To* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// Loops over arrays.
template <class T, class F>
void map(const F& f, T* out, const T* in, int64_t n) {
  using V = Vectorized<T>;
  int64_t i = 0;
  for (; i + V::size() <= n; i += V::size()) f(V::loadu(in + i)).store(out + i);
  if (i < n) f(V::loadu(in + i, n - i)).store(out + i, static_cast<int>(n - i));
}
template <class T, class F>
void map2(const F& f, T* out, const T* a, const T* b, int64_t n) {
  using V = Vectorized<T>;
  int64_t i = 0;
  for (; i + V::size() <= n; i += V::size()) f(V::loadu(a + i), V::loadu(b + i)).store(out + i);
  if (i < n) f(V::loadu(a + i, n - i), V::loadu(b + i, n - i)).store(out + i, static_cast<int>(n - i));
}
template <class T, class F>
T vec_reduce_all(const F& f, const Vectorized<T>& v, int64_t n) {
  Vectorized<T> a(v[0]);
  for (int64_t i = 1; i < n; ++i) a = f(a, Vectorized<T>(v[static_cast<int>(i)]));
  return a[0];
}
template <class T, class F>
T reduce_all(const F& f, const T* data, int64_t n) {
  Vectorized<T> a(data[0]);
  for (int64_t i = 1; i < n; ++i) a = f(a, Vectorized<T>(data[i]));
  return a[0];
}
template <class T, class M, class R>
T map_reduce_all(const M& m, const R& r, const T* data, int64_t n) {
  Vectorized<T> a = m(Vectorized<T>(data[0]));
  for (int64_t i = 1; i < n; ++i) a = r(a, m(Vectorized<T>(data[i])));
  return a[0];
}

}  // namespace CPU_CAPABILITY
}  // namespace at::vec
namespace at {
namespace vec256 = vec;
}
#undef CPU_CAPABILITY
#define CPU_CAPABILITY DEFAULT
