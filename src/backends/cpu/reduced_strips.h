// Sixteen numbers of Half or BFloat16 as floats and back, by what the instruction set has for it; the compiler vectorises neither by
// itself. A strip that is an array of a function stays in registers. For sources that are compiled once for each instruction set; included
// after isa_begin.h, and after <cresset/base/half.h> and, on x86-64, <immintrin.h>.
#pragma once

#include <cstring>
#include <type_traits>

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

constexpr int kStrip = 16;
constexpr bool kPairsStrips = CRESSET_ISA_VECTOR_BYTES == 64;  // of BFloat16
template <class E>
[[maybe_unused]] constexpr bool has_strips = std::is_same_v<E, Half> || std::is_same_v<E, BFloat16>;

// The vectors are as wide as those that the compiler takes for loops over a strip: else a strip would go through memory.
#if CRESSET_ISA_VECTOR_BYTES == 64
inline __attribute__((always_inline)) void widen_strip(const Half* from, float* to) {
  _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}
inline __attribute__((always_inline)) void widen_strip(const BFloat16* from, float* to) {
  const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  _mm512_storeu_si512(to, _mm512_slli_epi32(words, 16));
}
inline __attribute__((always_inline)) void narrow_strip(const float* from, Half* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}
// In the upper half of each lane.
inline __attribute__((always_inline)) __m512i bfloat16_words(const float* from) {
  const __m512 v = _mm512_loadu_ps(from);
  const __m512i bits = _mm512_castps_si512(v), up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF));
  const __m512i rounded = _mm512_mask_add_epi32(up, _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000)), up, _mm512_set1_epi32(1));
  return _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_set1_epi32(0x7FC00000));
}
inline __attribute__((always_inline)) void narrow_strip(const float* from, BFloat16* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(_mm512_srli_epi32(bfloat16_words(from), 16)));
}
// Two strips at once, with half of the steps behind the rounding.
inline __attribute__((always_inline)) void narrow_strips(const float* first, const float* second, BFloat16* to) {
  alignas(64) constexpr uint16_t kUpper[] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                             33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(bfloat16_words(first), _mm512_load_si512(kUpper), bfloat16_words(second)));
}
#elif CRESSET_ISA_HAS_AVX2
inline __attribute__((always_inline)) void widen_strip(const Half* from, float* to) {
  for (int i = 0; i < kStrip; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
}
inline __attribute__((always_inline)) void widen_strip(const BFloat16* from, float* to) {
  for (int i = 0; i < kStrip; i += 8) {
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    _mm256_storeu_ps(to + i, _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)));
  }
}
inline __attribute__((always_inline)) void narrow_strip(const float* from, Half* to) {
  for (int i = 0; i < kStrip; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
}
inline __attribute__((always_inline)) __m256i bfloat16_words(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  return _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7FC0), _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}
inline __attribute__((always_inline)) void narrow_strip(const float* from, BFloat16* to) {
  const __m256i packed = _mm256_packus_epi32(bfloat16_words(_mm256_loadu_ps(from)), bfloat16_words(_mm256_loadu_ps(from + 8)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(packed, 0xD8));
}
#else
template <class E>
inline __attribute__((always_inline)) void widen_strip(const E* from, float* to) {
  for (int i = 0; i < kStrip; ++i) to[i] = static_cast<float>(from[i]);
}
template <class E>
inline __attribute__((always_inline)) void narrow_strip(const float* from, E* to) {
  for (int i = 0; i < kStrip; ++i) to[i] = E(from[i]);
}
#endif

// compute(operands, result) strip by strip: ptrs are the result and the operands, n elements of E each; a result may be an operand. What is
// left at the end is a strip with zeros behind it.
template <class E, int operands, class F>
inline __attribute__((always_inline)) void by_strips(void* const* ptrs, int64_t n, const F& compute) {
  float in[operands][kStrip], out[kStrip];
  int64_t i = 0;
  const auto compute_at = [&](int64_t at, float(&result)[kStrip]) __attribute__((always_inline)) {
    for (int k = 0; k < operands; ++k) widen_strip(static_cast<const E*>(ptrs[k + 1]) + at, in[k]);
    compute(in, result);
  };
  if constexpr (kPairsStrips && std::is_same_v<E, BFloat16>) {
    float second[kStrip];
    for (; i + 2 * kStrip <= n; i += 2 * kStrip) {
      compute_at(i, out);
      compute_at(i + kStrip, second);
      narrow_strips(out, second, static_cast<E*>(ptrs[0]) + i);
    }
  }
  for (; i + kStrip <= n; i += kStrip) {
    compute_at(i, out);
    narrow_strip(out, static_cast<E*>(ptrs[0]) + i);
  }
  if (i == n) return;
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(E);
  E last[kStrip] = {};
  for (int k = 0; k < operands; ++k) {
    std::memcpy(static_cast<void*>(last), static_cast<const E*>(ptrs[k + 1]) + i, bytes);
    widen_strip(last, in[k]);
  }
  compute(in, out);
  narrow_strip(out, last);
  std::memcpy(static_cast<void*>(static_cast<E*>(ptrs[0]) + i), last, bytes);
}

}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
