// The loops of packed_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include "backends/cpu/packed_loops.h"

#include <type_traits>
#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // what GCC 12's own header does in _mm512_undefined_epi32
#include <immintrin.h>
#endif

#include "backends/cpu/isa_begin.h"
#include "backends/cpu/multiply_add.h"
#include "backends/cpu/reduced_strips.h"
#include "backends/cpu/vector_types.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

constexpr int kLanes = 16;
static_assert(kLanes == kStrip);

// As many bytes as V has floats, as 32-bit integers. The compiler widens vectors of bytes element by element, so the instructions are
// named.
template <class V, class T>
CRESSET_VECTOR_INLINE auto widened_ints(const T* p) {
  constexpr int count = sizeof(V) / sizeof(float);
  using Ints = typename VectorOf<int32_t, count>::type;
#if CRESSET_ISA_VECTOR_BYTES == 64
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return reinterpret_cast<Ints>(std::is_signed_v<T> ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
#elif CRESSET_ISA_HAS_AVX2
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return reinterpret_cast<Ints>(std::is_signed_v<T> ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#else
  typedef T Small __attribute__((vector_size(count)));
  return __builtin_convertvector(load_as<Small>(p), Ints);
#endif
}

// Sixteen numbers of eight bits as floats.
template <class V, class T>
CRESSET_VECTOR_INLINE V widened(const T* p) {
  if constexpr (is_halves<V>)
    return {widened<decltype(V::low)>(p), widened<decltype(V::low)>(p + sizeof(V) / sizeof(float) / 2)};
  else
    return __builtin_convertvector(widened_ints<V>(p), V);
}

// The lower and the upper halves of sixteen bytes as floats.
template <class V>
CRESSET_VECTOR_INLINE void split_bytes(const uint8_t* p, V& low, V& high) {
  if constexpr (is_halves<V>) {
    split_bytes(p, low.low, high.low);
    split_bytes(p + sizeof(V) / sizeof(float) / 2, low.high, high.high);
  } else {
    const auto both = widened_ints<V>(p);
    low = __builtin_convertvector(both & 15, V);
    high = __builtin_convertvector(both >> 4, V);
  }
}

template <class H>
CRESSET_VECTOR_INLINE Halves<H> multiply_add(const Halves<H>& a, const Halves<H>& b, const Halves<H>& sum) {
  return {multiply_add(a.low, b.low, sum.low), multiply_add(a.high, b.high, sum.high)};
}

CRESSET_VECTOR_INLINE float sum_lanes(const Floats& v) {
  return join_all(v, [](float a, float b) CRESSET_INLINE_LAMBDA { return a + b; });
}

template <class E>
CRESSET_VECTOR_INLINE Floats strip_at(const E* p) {
  float strip[kStrip];
  widen_strip(p, strip);
  return load16(strip);
}

template <class E>
void dot_reduced(const float* x, const E* rows, int64_t n, int64_t k, int64_t stride, float* out) {
  for (int64_t r = 0; r < n; ++r) {
    const E* const w = rows + r * stride;
    Floats sum[4]{};
    int64_t j = 0;
    for (; j + 4 * kLanes <= k; j += 4 * kLanes)
      for (int i = 0; i < 4; ++i) sum[i] = multiply_add(strip_at(w + j + i * kLanes), load16(x + j + i * kLanes), sum[i]);
    for (; j + kLanes <= k; j += kLanes) sum[0] = multiply_add(strip_at(w + j), load16(x + j), sum[0]);
    float total = sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; j < k; ++j) total += x[j] * static_cast<float>(w[j]);
    out[r] = total;
  }
}

void dot8(const float* x, const int8_t* rows, int64_t n, int64_t k, float* out) {
  for (int64_t r = 0; r < n; ++r) {
    const int8_t* const w = rows + r * k;
    Floats even{}, odd{};
    int64_t j = 0;
    for (; j + 2 * kLanes <= k; j += 2 * kLanes) {
      even = multiply_add(widened<Floats>(w + j), load16(x + j), even);
      odd = multiply_add(widened<Floats>(w + j + kLanes), load16(x + j + kLanes), odd);
    }
    float sum = sum_lanes(even + odd);
    for (; j < k; ++j) sum += x[j] * static_cast<float>(w[j]);
    out[r] = sum;
  }
}

void dot4(const float* x, const float* sums, const uint8_t* rows, int64_t n, int64_t k, const GroupFacts& facts, float* out) {
  const int64_t half = k / 2, groups = k / facts.group, bytes = facts.group / 2;
  // What the offsets add is the same for a whole group, so its sum is enough.
  float added[kPackedRows]{};
  for (int64_t g = 0; g < groups; ++g)
    for (int r = 0; r < kPackedRows; ++r) added[r] += facts.offset[g * kPackedRows + r] * sums[g];
  for (int64_t r = 0; r < n; ++r) {
    const uint8_t* const w = rows + r * half;
    Floats total{};
    for (int64_t g = 0; g < groups; ++g) {
      Floats sum{};
      for (int64_t j = g * bytes; j < (g + 1) * bytes; j += kLanes) {
        Floats low, high;
        split_bytes(w + j, low, high);
        sum = multiply_add(high, load16(x + half + j), multiply_add(low, load16(x + j), sum));
      }
      total = multiply_add(sum, all<Floats>(facts.scale[g * kPackedRows + r]), total);
    }
    out[r] = added[r] + sum_lanes(total);
  }
}

void widen8(const int8_t* rows, const float* scales, int64_t n, int64_t k, float* out) {
  for (int64_t r = 0; r < n; ++r) {
    const float scale = scales[r];
    for (int64_t j = 0; j < k; ++j) out[r * k + j] = static_cast<float>(rows[r * k + j]) * scale;
  }
}

void widen4(const uint8_t* rows, int64_t n, int64_t k, const GroupFacts& facts, float* out) {
  const int64_t bytes = facts.group / 2;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t g = 0; g < k / facts.group; ++g) {
      const float scale = facts.scale[g * kPackedRows + r], offset = facts.offset[g * kPackedRows + r];
      const uint8_t* const from = rows + r * k / 2 + g * bytes;
      float* const to = out + r * k + g * facts.group;
      for (int64_t j = 0; j < bytes; ++j) {
        to[2 * j] = static_cast<float>(from[j] & 15) * scale + offset;
        to[2 * j + 1] = static_cast<float>(from[j] >> 4) * scale + offset;
      }
    }
}

// Pairs of products of 16 bits are what processors add up in one instruction.
template <int m, int n>
CRESSET_VECTOR_INLINE void dot16_tile(const int16_t* a, const int16_t* b, int64_t k, int32_t* out, int64_t ldo) {
  int32_t sum[m][n]{};
  for (int64_t j = 0; j < k; ++j)
    for (int i = 0; i < m; ++i)
      for (int r = 0; r < n; ++r) sum[i][r] += int32_t{a[i * k + j]} * int32_t{b[r * k + j]};
  for (int i = 0; i < m; ++i)
    for (int r = 0; r < n; ++r) out[i * ldo + r] = sum[i][r];
}

void dot16(const int16_t* a, int64_t m, const int16_t* b, int64_t n, int64_t k, int32_t* out, int64_t ldo) {
  for (int64_t r = 0; r < n; r += 4)
    for (int64_t i = 0; i < m; i += 2) {
      if (i + 2 <= m && r + 4 <= n) {
        dot16_tile<2, 4>(a + i * k, b + r * k, k, out + i * ldo + r, ldo);
      } else {
        for (int64_t row = i; row < i + 2 && row < m; ++row)
          for (int64_t column = r; column < r + 4 && column < n; ++column)
            dot16_tile<1, 1>(a + row * k, b + column * k, k, out + row * ldo + column, ldo);
      }
    }
}

}  // namespace

extern const PackedLoops packed_loops{dot_reduced<Half>, dot_reduced<BFloat16>, dot8, dot4, widen8, widen4, dot16};

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
