// Transposed copies of small tiles, in registers. For sources that are compiled once for each instruction set; included after
// isa_begin.h.
#pragma once

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

#if CRESSET_ISA_HAS_AVX2
// Sixteen bytes of two rows, one behind the other: no number has to change its half of the register later, which takes some processors
// (AMD's first Zen) eight instructions.
inline __m256 halves(const char* low, const char* high) {
  const __m256 first = _mm256_castps128_ps256(_mm_loadu_ps(reinterpret_cast<const float*>(low)));
  return _mm256_insertf128_ps(first, _mm_loadu_ps(reinterpret_cast<const float*>(high)), 1);
}
// to[r][i] = from[i][r] for an 8 by 8 tile of 4-byte elements; row strides in bytes.
inline void transpose_block(char* to, int64_t to_stride, const char* from, int64_t from_stride, uint32_t) {
  for (int half = 0; half < 2; ++half, from += 16, to += 4 * to_stride) {
    __m256 a[4], b[4];
    for (int i = 0; i < 4; ++i) a[i] = halves(from + i * from_stride, from + (i + 4) * from_stride);
    for (int i = 0; i < 4; i += 2) {
      b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
      b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
      _mm256_storeu_ps(reinterpret_cast<float*>(to + 2 * i * to_stride), _mm256_shuffle_ps(b[i], b[i + 2], 0x44));
      _mm256_storeu_ps(reinterpret_cast<float*>(to + (2 * i + 1) * to_stride), _mm256_shuffle_ps(b[i], b[i + 2], 0xEE));
    }
  }
}
// The same for 4 by 4 elements of 8 bytes.
inline void transpose_block(char* to, int64_t to_stride, const char* from, int64_t from_stride, uint64_t) {
  for (int half = 0; half < 2; ++half, from += 16, to += 2 * to_stride) {
    const __m256d a = _mm256_castps_pd(halves(from, from + 2 * from_stride));
    const __m256d b = _mm256_castps_pd(halves(from + from_stride, from + 3 * from_stride));
    _mm256_storeu_pd(reinterpret_cast<double*>(to), _mm256_unpacklo_pd(a, b));
    _mm256_storeu_pd(reinterpret_cast<double*>(to + to_stride), _mm256_unpackhi_pd(a, b));
  }
}
#endif

// to[r][i] = from[i][r] for r < rows, i < n. Strides in bytes: of the rows of `to`, and of `from` between its own rows. T is an
// unsigned integer of the element's size.
template <class T>
void transpose(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n, int64_t rows) {
  constexpr int64_t size = sizeof(T);
  int64_t done = 0;  // columns of `to` that are complete in the first `whole` rows
  int64_t whole = 0;
#if CRESSET_ISA_HAS_AVX2
  if constexpr (size == 4 || size == 8) {
    constexpr int64_t side = 32 / size;
    done = n / side * side;
    whole = rows / side * side;
    constexpr int64_t ahead = 32, line = 64;  // what lies behind the end may be fetched without harm
    if (n > ahead)
      for (int64_t i = ahead; i < n + ahead; ++i)
        for (int64_t at = 0; at < rows * size; at += line) __builtin_prefetch(from + i * from_stride + at);
    for (int64_t r = 0; r < whole; r += side)  // rows of `to` are written from end to end
      for (int64_t i = 0; i < done; i += side)
        transpose_block(to + r * to_stride + i * size, to_stride, from + i * from_stride + r * size, from_stride, T());
  }
#endif
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = r < whole ? done : 0; i < n; ++i)
      *reinterpret_cast<T*>(to + r * to_stride + i * size) = *reinterpret_cast<const T*>(from + i * from_stride + r * size);
}

}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
