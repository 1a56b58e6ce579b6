// Vectors of floats and doubles, as the compiler's own types: they become whatever registers the instruction set has. For sources
// that are compiled once for each instruction set; included after isa_begin.h.
#pragma once

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

#define CRESSET_VECTOR_INLINE inline __attribute__((always_inline))
#define CRESSET_INLINE_LAMBDA __attribute__((always_inline))

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

typedef double Doubles __attribute__((vector_size(64)));
typedef double LooseDoubles __attribute__((vector_size(64), aligned(8), may_alias));
typedef float Floats __attribute__((vector_size(64)));
typedef float LooseFloats __attribute__((vector_size(64), aligned(4), may_alias));
typedef float LooseHalfFloats __attribute__((vector_size(32), aligned(4), may_alias));

CRESSET_VECTOR_INLINE Doubles load8(const float* p) {
  return __builtin_convertvector(*reinterpret_cast<const LooseHalfFloats*>(p), Doubles);
}
CRESSET_VECTOR_INLINE Doubles load8(const double* p) { return *reinterpret_cast<const LooseDoubles*>(p); }
CRESSET_VECTOR_INLINE Floats load16(const float* p) { return *reinterpret_cast<const LooseFloats*>(p); }

// Sum of the upper and the lower half, in double.
CRESSET_VECTOR_INLINE Doubles widen(const Floats& v) {
  alignas(64) float lanes[16];
  *reinterpret_cast<Floats*>(lanes) = v;
  return load8(lanes) + load8(lanes + 8);
}
CRESSET_VECTOR_INLINE double total(const Doubles& v) { return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])); }

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
CRESSET_VECTOR_INLINE Floats load(const float* p) { return load16(p); }
CRESSET_VECTOR_INLINE Doubles load(const double* p) { return load8(p); }

}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
