// The Box-Muller transform of float blocks, with polynomial log, sin and cos (the single-precision ones of
// Cephes), so that results are the same on every machine: only fused multiply-add, multiplication, addition
// and square root.
//
// A block holds 16 uniform numbers u in [0, 1): from u[j] and u[j + 8], j < 8, come the normals of places j
// and j + 8.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <cresset/base/macros.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cresset::cpu {

inline constexpr int64_t kNormalBlock = 16;

namespace box_muller {

inline constexpr float kLog[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f, 1.4249322787e-1f,
                                 -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
inline constexpr float kLn2Low = -2.12194440e-4f, kLn2High = 0.693359375f, kSqrtHalf = 0.707106781186547524f;
inline constexpr float kSin[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
inline constexpr float kCos[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
inline constexpr float kFourOverPi = 1.27323954473516f;
// pi / 4 in three parts, for the argument reduction
inline constexpr float kPiFour[] = {0.78515625f, 2.4187564849853515625e-4f, 3.77489497744594108e-8f};
inline constexpr float kTwoPi = 6.283185307179586f;

}  // namespace box_muller

/// log(x) for a positive normal number.
CRESSET_ALWAYS_INLINE float block_log(float x) {
  using namespace box_muller;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  x = std::bit_cast<float>((bits & 0x007FFFFFu) | 0x3F000000u);
  const bool small = x < kSqrtHalf;
  exponent -= small ? 1.0f : 0.0f;
  x = (x - 1.0f) + (small ? x : 0.0f);
  const float square = x * x;
  float y = kLog[0];
  for (int i = 1; i < 9; ++i) y = std::fma(y, x, kLog[i]);
  y = y * x;
  y = std::fma(y, square, exponent * kLn2Low);
  y = std::fma(square, -0.5f, y);
  return std::fma(exponent, kLn2High, x + y);
}

/// sin(x) and cos(x) for 0 <= x < 2 pi.
CRESSET_ALWAYS_INLINE void block_sincos(float x, float& sine, float& cosine) {
  using namespace box_muller;
  const int32_t octant = (static_cast<int32_t>(x * kFourOverPi) + 1) & ~1;
  const float turns = static_cast<float>(octant);
  for (float part : kPiFour) x = std::fma(turns, -part, x);
  const float square = x * x;
  float c = std::fma(std::fma(kCos[0], square, kCos[1]), square, kCos[2]);
  c = c * square;
  c = std::fma(c, square, square * -0.5f) + 1.0f;
  float s = std::fma(std::fma(kSin[0], square, kSin[1]), square, kSin[2]);
  s = std::fma(s * square, x, x);
  const bool swapped = octant & 2;
  const float first = swapped ? c : s, second = swapped ? s : c;
  sine = octant & 4 ? -first : first;
  cosine = (octant - 2) & 4 ? second : -second;
}

/// Transforms `blocks` blocks in place and scales: mean + std * normal.
inline void box_muller_scalar(float* data, int64_t blocks, float mean, float std) {
  for (float* end = data + blocks * kNormalBlock; data != end; data += kNormalBlock)
    for (int j = 0; j < 8; ++j) {
      const float radius = std::sqrt(-2.0f * block_log(1.0f - data[j]));
      float sine, cosine;
      block_sincos(box_muller::kTwoPi * data[j + 8], sine, cosine);
      data[j] = std::fma(radius * cosine, std, mean);
      data[j + 8] = std::fma(radius * sine, std, mean);
    }
}

#if defined(__x86_64__)
#define CRESSET_FMA_TARGET __attribute__((target("avx2,fma")))

CRESSET_FMA_TARGET inline __m256 block_log(__m256 x) {
  using namespace box_muller;
  const __m256i bits = _mm256_castps_si256(x);
  __m256 exponent = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(126)));
  x = _mm256_castsi256_ps(_mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x007FFFFF)), _mm256_set1_epi32(0x3F000000)));
  const __m256 small = _mm256_cmp_ps(x, _mm256_set1_ps(kSqrtHalf), _CMP_LT_OQ), one = _mm256_set1_ps(1.0f);
  exponent = _mm256_sub_ps(exponent, _mm256_and_ps(small, one));
  x = _mm256_add_ps(_mm256_sub_ps(x, one), _mm256_and_ps(small, x));
  const __m256 square = _mm256_mul_ps(x, x);
  __m256 y = _mm256_set1_ps(kLog[0]);
  for (int i = 1; i < 9; ++i) y = _mm256_fmadd_ps(y, x, _mm256_set1_ps(kLog[i]));
  y = _mm256_mul_ps(y, x);
  y = _mm256_fmadd_ps(y, square, _mm256_mul_ps(exponent, _mm256_set1_ps(kLn2Low)));
  y = _mm256_fmadd_ps(square, _mm256_set1_ps(-0.5f), y);
  return _mm256_fmadd_ps(exponent, _mm256_set1_ps(kLn2High), _mm256_add_ps(x, y));
}

CRESSET_FMA_TARGET inline void block_sincos(__m256 x, __m256& sine, __m256& cosine) {
  using namespace box_muller;
  const __m256i one = _mm256_set1_epi32(1), two = _mm256_set1_epi32(2), four = _mm256_set1_epi32(4);
  __m256i octant = _mm256_cvttps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(kFourOverPi)));
  octant = _mm256_andnot_si256(one, _mm256_add_epi32(octant, one));
  const __m256 turns = _mm256_cvtepi32_ps(octant);
  for (float part : kPiFour) x = _mm256_fnmadd_ps(turns, _mm256_set1_ps(part), x);
  const __m256 square = _mm256_mul_ps(x, x);
  __m256 c = _mm256_fmadd_ps(_mm256_set1_ps(kCos[0]), square, _mm256_set1_ps(kCos[1]));
  c = _mm256_mul_ps(_mm256_fmadd_ps(c, square, _mm256_set1_ps(kCos[2])), square);
  c = _mm256_fmadd_ps(c, square, _mm256_mul_ps(square, _mm256_set1_ps(-0.5f)));
  c = _mm256_add_ps(c, _mm256_set1_ps(1.0f));
  __m256 s = _mm256_fmadd_ps(_mm256_set1_ps(kSin[0]), square, _mm256_set1_ps(kSin[1]));
  s = _mm256_fmadd_ps(s, square, _mm256_set1_ps(kSin[2]));
  s = _mm256_fmadd_ps(_mm256_mul_ps(s, square), x, x);
  const __m256 swapped = _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(octant, two), two));
  const __m256i sine_sign = _mm256_slli_epi32(_mm256_and_si256(octant, four), 29);
  const __m256i cosine_sign = _mm256_slli_epi32(_mm256_andnot_si256(_mm256_sub_epi32(octant, two), four), 29);
  sine = _mm256_xor_ps(_mm256_blendv_ps(s, c, swapped), _mm256_castsi256_ps(sine_sign));
  cosine = _mm256_xor_ps(_mm256_blendv_ps(c, s, swapped), _mm256_castsi256_ps(cosine_sign));
}

/// box_muller_scalar, eight pairs at a time, with the same results.
CRESSET_FMA_TARGET inline void box_muller_avx2(float* data, int64_t blocks, float mean, float std) {
  const __m256 one = _mm256_set1_ps(1.0f), scale = _mm256_set1_ps(std), shift = _mm256_set1_ps(mean);
  for (float* end = data + blocks * kNormalBlock; data != end; data += kNormalBlock) {
    const __m256 log = block_log(_mm256_sub_ps(one, _mm256_loadu_ps(data)));
    const __m256 radius = _mm256_sqrt_ps(_mm256_mul_ps(log, _mm256_set1_ps(-2.0f)));
    __m256 sine, cosine;
    block_sincos(_mm256_mul_ps(_mm256_loadu_ps(data + 8), _mm256_set1_ps(box_muller::kTwoPi)), sine, cosine);
    _mm256_storeu_ps(data, _mm256_fmadd_ps(_mm256_mul_ps(radius, cosine), scale, shift));
    _mm256_storeu_ps(data + 8, _mm256_fmadd_ps(_mm256_mul_ps(radius, sine), scale, shift));
  }
}
#endif

}  // namespace cresset::cpu
