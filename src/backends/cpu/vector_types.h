// Sixteen floats or eight doubles at a time, in whatever registers the instruction set has, with the same result to the bit in each. For
// sources that are compiled once for each instruction set; included after isa_begin.h.
//
// A vector that is wider than a register is two halves, down to what fits: the compiler's own wide vectors would go through memory, and
// their choices element by element.
#pragma once

#include <type_traits>
#include <utility>

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

#define CRESSET_VECTOR_INLINE inline __attribute__((always_inline))
#define CRESSET_INLINE_LAMBDA __attribute__((always_inline))

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

template <class H>
struct Halves {
  H low, high;
};
template <class V>
constexpr bool is_halves = false;
template <class H>
constexpr bool is_halves<Halves<H>> = true;

template <class T, int count, bool fits = sizeof(T) * count <= CRESSET_ISA_VECTOR_BYTES>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * count)));
};
template <class T, int count>
struct VectorOf<T, count, false> {
  using type = Halves<typename VectorOf<T, count / 2>::type>;
};
using Floats = VectorOf<float, 16>::type;
using Doubles = VectorOf<double, 8>::type;

#define CRESSET_ELEMENTWISE(op)                                                    \
  template <class H>                                                               \
  CRESSET_VECTOR_INLINE auto operator op(const Halves<H>& a, const Halves<H>& b) { \
    return Halves<decltype(a.low op b.low)>{a.low op b.low, a.high op b.high};     \
  }                                                                                \
  template <class H, class S>                                                      \
    requires std::is_arithmetic_v<S>                                               \
  CRESSET_VECTOR_INLINE auto operator op(const Halves<H>& a, S b) {                \
    return Halves<decltype(a.low op b)>{a.low op b, a.high op b};                  \
  }
CRESSET_ELEMENTWISE(+)
CRESSET_ELEMENTWISE(-)
CRESSET_ELEMENTWISE(*)
CRESSET_ELEMENTWISE(/)
CRESSET_ELEMENTWISE(<)
CRESSET_ELEMENTWISE(>)
CRESSET_ELEMENTWISE(==)
CRESSET_ELEMENTWISE(!=)
CRESSET_ELEMENTWISE(|)
#undef CRESSET_ELEMENTWISE

template <class H>
CRESSET_VECTOR_INLINE Halves<H> operator-(const Halves<H>& v) {
  return {-v.low, -v.high};
}
template <class H>
CRESSET_VECTOR_INLINE Halves<H>& operator+=(Halves<H>& a, const Halves<H>& b) {
  return a = a + b;
}

// a where the condition holds, else b.
template <class M, class V>
CRESSET_VECTOR_INLINE V choose(const M& condition, const V& a, const V& b) {
  if constexpr (is_halves<V>)
    return {choose(condition.low, a.low, b.low), choose(condition.high, a.high, b.high)};
  else
    return condition ? a : b;
}

template <class V, class T>
CRESSET_VECTOR_INLINE V all(T value) {
  if constexpr (is_halves<V>)
    return {all<decltype(V::low)>(value), all<decltype(V::low)>(value)};
  else
    return value - V{};
}

// The first elements at p, which is aligned for T only.
template <class V, class T>
CRESSET_VECTOR_INLINE V load_as(const T* p) {
  if constexpr (is_halves<V>) {
    return {load_as<decltype(V::low)>(p), load_as<decltype(V::low)>(p + sizeof(V) / 2 / sizeof(T))};
  } else {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
}
template <class V>
CRESSET_VECTOR_INLINE V load_as_doubles(const float* p) {
  constexpr int count = sizeof(V) / sizeof(double);
  if constexpr (is_halves<V>)
    return {load_as_doubles<decltype(V::low)>(p), load_as_doubles<decltype(V::low)>(p + count / 2)};
  else
    return __builtin_convertvector(load_as<typename VectorOf<float, count>::type>(p), V);
}
CRESSET_VECTOR_INLINE Doubles load8(const float* p) { return load_as_doubles<Doubles>(p); }
CRESSET_VECTOR_INLINE Doubles load8(const double* p) { return load_as<Doubles>(p); }
CRESSET_VECTOR_INLINE Floats load16(const float* p) { return load_as<Floats>(p); }
CRESSET_VECTOR_INLINE Floats load(const float* p) { return load16(p); }
CRESSET_VECTOR_INLINE Doubles load(const double* p) { return load8(p); }

// `join` over the elements as a tree: the first half with the second.
template <int first, int count, class V, class F>
CRESSET_VECTOR_INLINE auto join_lanes(const V& v, const F& join) {
  if constexpr (count == 1)
    return v[first];
  else
    return join(join_lanes<first, count / 2>(v, join), join_lanes<first + count / 2, count / 2>(v, join));
}
template <class V, class F>
CRESSET_VECTOR_INLINE auto join_all(const V& v, const F& join) {
  if constexpr (is_halves<V>)
    return join(join_all(v.low, join), join_all(v.high, join));
  else
    return join_lanes<0, sizeof(V) / sizeof(v[0])>(v, join);
}
CRESSET_VECTOR_INLINE double total(const Doubles& v) {
  return join_all(v, [](double a, double b) CRESSET_INLINE_LAMBDA { return a + b; });
}

template <int first, class V, std::size_t... k>
CRESSET_VECTOR_INLINE auto half_as_doubles(const V& v, std::index_sequence<k...>) {
  return __builtin_convertvector(__builtin_shufflevector(v, v, (first + static_cast<int>(k))...),
                                 typename VectorOf<double, sizeof...(k)>::type);
}
template <class V>
CRESSET_VECTOR_INLINE auto as_doubles(const V& v) {
  if constexpr (is_halves<V>) {
    return Halves<decltype(as_doubles(v.low))>{as_doubles(v.low), as_doubles(v.high)};
  } else {
    constexpr int half = sizeof(V) / sizeof(float) / 2;
    using Lanes = std::make_index_sequence<half>;
    return Halves<decltype(half_as_doubles<0>(v, Lanes{}))>{half_as_doubles<0>(v, Lanes{}), half_as_doubles<half>(v, Lanes{})};
  }
}
// Sum of the upper and the lower half, in double.
CRESSET_VECTOR_INLINE Doubles widen(const Floats& v) {
  const auto d = as_doubles(v);
  return d.low + d.high;
}

// Sum of vector(i), Floats of sixteen, for i = 0, 16, … while they fit into n; `done` becomes how far it got. Up to eight floats are
// added in float, which is as exact as a tree of additions; then in double, and the conversions are not what a sum waits for.
template <class F>
CRESSET_VECTOR_INLINE Doubles sum_floats(int64_t n, int64_t& done, const F& vector) {
  Doubles sum{};
  int64_t i = 0;
  while (i + 64 <= n) {
    const int64_t end = n - 63 < i + 512 ? n - 63 : i + 512;
    Floats a{}, b{}, c{}, d{};
    for (; i < end; i += 64) {
      a += vector(i);
      b += vector(i + 16);
      c += vector(i + 32);
      d += vector(i + 48);
    }
    sum += widen((a + b) + (c + d));
  }
  if (i + 16 <= n) {
    Floats a{};
    for (; i + 16 <= n; i += 16) a += vector(i);
    sum += widen(a);
  }
  done = i;
  return sum;
}

// Sum over i < n of scalar(i); vector(i) gives the same for as many elements as Doubles (T = double) or Floats (float) have.
template <class T, class V, class S>
CRESSET_VECTOR_INLINE double sum_of(int64_t n, const V& vector, const S& scalar) {
  Doubles a{};
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    a = sum_floats(n, i, vector);
  } else {
    for (; i + 8 <= n; i += 8) a += vector(i);
  }
  double s = total(a);
  for (; i < n; ++i) s += static_cast<double>(scalar(i));
  return s;
}

}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
