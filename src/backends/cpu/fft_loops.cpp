// The loops of fft_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
//
// Stockham's algorithm (Cochran et al. (1967), "What is the fast Fourier transform?"), decimating in frequency: a stage of radix p takes
// x seen as [p][m][s] to y seen as [m][p][s],
//   y[k][j][q] = w^(jk) sum_r exp(-2 pi i r j / p) x[r][k][q]  with w = exp(-2 pi i / (p m)),
// and the next one has s p in place of s; results are in order and no bits are reversed.
#include "backends/cpu/fft_loops.h"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backends/cpu/isa_begin.h"

#include "backends/cpu/transpose_loops.h"
#include "backends/cpu/vector_types.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

template <class T>
constexpr int64_t kLanes = CRESSET_ISA_VECTOR_BYTES / sizeof(T);
template <class T>
using Register = VectorOf<T, kLanes<T>>::type;

template <class V>
struct Complex {
  V re, im;
};
template <class V>
CRESSET_VECTOR_INLINE Complex<V> operator+(const Complex<V>& a, const Complex<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
CRESSET_VECTOR_INLINE Complex<V> operator-(const Complex<V>& a, const Complex<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
// A factor of single numbers is the same for all lines.
template <class V, class W>
CRESSET_VECTOR_INLINE Complex<V> operator*(const Complex<V>& a, const Complex<W>& w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
template <class V, class T>
CRESSET_VECTOR_INLINE Complex<V> times(T s, const Complex<V>& a) {
  return {a.re * s, a.im * s};
}
template <class V>
CRESSET_VECTOR_INLINE Complex<V> times_minus_i(const Complex<V>& a) {
  return {a.im, -a.re};
}
template <class V>
CRESSET_VECTOR_INLINE Complex<V> conj(const Complex<V>& a) {
  return {a.re, -a.im};
}

// Element p of a block; `re` and `im` say which of the two parts is which: exchanged on both sides, a forward transform is the inverse.
template <class V, class T>
CRESSET_VECTOR_INLINE Complex<V> get(const T* p, int64_t re = 0, int64_t im = sizeof(V) / sizeof(T)) {
  return {load_as<V>(p + re), load_as<V>(p + im)};
}
template <class V, class T>
CRESSET_VECTOR_INLINE void put(T* p, const Complex<V>& v, int64_t re = 0, int64_t im = sizeof(V) / sizeof(T)) {
  std::memcpy(p + re, &v.re, sizeof v.re);
  std::memcpy(p + im, &v.im, sizeof v.im);
}
template <class T>
CRESSET_VECTOR_INLINE Complex<T> factor(const T* pairs, int64_t i) {
  return {pairs[2 * i], pairs[2 * i + 1]};
}

// Transforms of p elements, in place. T: the numbers in V.
template <class T, class V>
CRESSET_VECTOR_INLINE void transform_few(Complex<V> (&a)[2]) {
  const Complex<V> d = a[0] - a[1];
  a[0] = a[0] + a[1];
  a[1] = d;
}
template <class T, class V>
CRESSET_VECTOR_INLINE void transform_few(Complex<V> (&a)[3]) {
  constexpr T kSin = T(0.86602540378443864676);  // of 2 pi / 3
  const Complex<V> sum = a[1] + a[2], d = times_minus_i(times(kSin, a[1] - a[2]));
  const Complex<V> middle = a[0] - times(T(0.5), sum);
  a[0] = a[0] + sum;
  a[1] = middle + d;
  a[2] = middle - d;
}
template <class T, class V>
CRESSET_VECTOR_INLINE void transform_few(Complex<V> (&a)[4]) {
  const Complex<V> even = a[0] + a[2], odd = a[1] + a[3], d = a[0] - a[2], e = times_minus_i(a[1] - a[3]);
  a[0] = even + odd;
  a[1] = d + e;
  a[2] = even - odd;
  a[3] = d - e;
}
template <class T, class V>
CRESSET_VECTOR_INLINE void transform_few(Complex<V> (&a)[5]) {
  // cosines and sines of 2 pi / 5 and 4 pi / 5
  constexpr T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410), s1 = T(0.95105651629515357212),
              s2 = T(0.58778525229247312917);
  const Complex<V> p = a[1] + a[4], q = a[2] + a[3], m = a[1] - a[4], n = a[2] - a[3];
  const Complex<V> first = a[0] + times(c1, p) + times(c2, q), second = a[0] + times(c2, p) + times(c1, q);
  const Complex<V> d = times_minus_i(times(s1, m) + times(s2, n)), e = times_minus_i(times(s2, m) - times(s1, n));
  a[0] = a[0] + p + q;
  a[1] = first + d;
  a[4] = first - d;
  a[2] = second + e;
  a[3] = second - e;
}
template <class T, class V>
CRESSET_VECTOR_INLINE void transform_few(Complex<V> (&a)[8]) {
  constexpr T kRoot = T(0.70710678118654752440);
  Complex<V> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
  transform_few<T>(even);
  transform_few<T>(odd);
  odd[1] = times(kRoot, odd[1] + times_minus_i(odd[1]));
  odd[2] = times_minus_i(odd[2]);
  odd[3] = times(kRoot, times_minus_i(odd[3]) - odd[3]);
  for (int j = 0; j < 4; ++j) {
    a[j] = even[j] + odd[j];
    a[j + 4] = even[j] - odd[j];
  }
}

template <class T>
struct Stage {
  int64_t m, s;
  const T *twiddles, *roots;  // roots of radices that have no formula
  int64_t re, im;             // of the two parts of an element, where the real and the imaginary ones are
  T scale;                    // of the last stage, which has m = 1 and no factors
};

template <int p, class V, class T>
void run_stage(const Stage<T>& stage, const T* x, T* y) {
  constexpr int64_t kElement = 2 * sizeof(V) / sizeof(T);
  const int64_t m = stage.m, s = stage.s;
  for (int64_t k = 0; k < m; ++k) {
    const T* const w = stage.twiddles + k * 2 * (p - 1);
    for (int64_t q = 0; q < s; ++q) {
      Complex<V> a[p];
      for (int r = 0; r < p; ++r) a[r] = get<V>(x + (q + s * (k + m * r)) * kElement, stage.re, stage.im);
      transform_few<T>(a);
      T* const to = y + (q + s * p * k) * kElement;
      if (m == 1) {
        for (int j = 0; j < p; ++j) put(to + s * j * kElement, times(stage.scale, a[j]), stage.re, stage.im);
      } else {
        put(to, a[0], stage.re, stage.im);
        for (int j = 1; j < p; ++j) put(to + s * j * kElement, a[j] * factor(w, j - 1), stage.re, stage.im);
      }
    }
  }
}

template <class V, class T>
void run_other_stage(int p, const Stage<T>& stage, const T* x, T* y) {
  constexpr int64_t kElement = 2 * sizeof(V) / sizeof(T);
  const int64_t m = stage.m, s = stage.s;
  for (int64_t k = 0; k < m; ++k)
    for (int64_t q = 0; q < s; ++q)
      for (int64_t j = 0; j < p; ++j) {
        Complex<V> sum = get<V>(x + (q + s * k) * kElement, stage.re, stage.im);
        int64_t root = 0;  // r j modulo p
        for (int64_t r = 1; r < p; ++r) {
          root += j;
          if (root >= p) root -= p;
          sum = sum + get<V>(x + (q + s * (k + m * r)) * kElement, stage.re, stage.im) * factor(stage.roots, root);
        }
        if (m == 1)
          sum = times(stage.scale, sum);
        else if (j > 0)
          sum = sum * factor(stage.twiddles, k * (p - 1) + j - 1);
        put(y + (q + s * (p * k + j)) * kElement, sum, stage.re, stage.im);
      }
}

template <class V, class T>
T* transform_block(const FftStages<T>& stages, T* x, T* scratch, bool forward, T scale) {
  constexpr int64_t kWidth = sizeof(V) / sizeof(T);
  if (stages.n == 1) {
    put(x, times(scale, get<V>(x)));
    return x;
  }
  Stage<T> stage{stages.n, 1, stages.twiddles.data(), stages.roots.data(), forward ? 0 : kWidth, forward ? kWidth : 0, scale};
  for (const int p : stages.radices) {
    stage.m /= p;
    switch (p) {
      case 2: run_stage<2, V>(stage, x, scratch); break;
      case 3: run_stage<3, V>(stage, x, scratch); break;
      case 4: run_stage<4, V>(stage, x, scratch); break;
      case 5: run_stage<5, V>(stage, x, scratch); break;
      case 8: run_stage<8, V>(stage, x, scratch); break;
      default: run_other_stage<V>(p, stage, x, scratch); stage.roots += 2 * p;
    }
    stage.twiddles += 2 * (p - 1) * stage.m;
    stage.s *= p;
    std::swap(x, scratch);
  }
  return x;
}

template <class V, class T>
void multiply_block(T* x, const T* factors, int64_t n) {
  constexpr int64_t kElement = 2 * sizeof(V) / sizeof(T);
  for (int64_t i = 0; i < n; ++i) put(x + i * kElement, get<V>(x + i * kElement) * factor(factors, i));
}

// Two registers of complex numbers apart into real and imaginary ones, and together.
template <class V, std::size_t... i>
CRESSET_VECTOR_INLINE Complex<V> apart(const V& a, const V& b, std::index_sequence<i...>) {
  return {__builtin_shufflevector(a, b, (2 * static_cast<int>(i))...), __builtin_shufflevector(a, b, (2 * static_cast<int>(i) + 1)...)};
}
template <int first, class V, std::size_t... i>
CRESSET_VECTOR_INLINE V together(const Complex<V>& v, std::index_sequence<i...>) {
  constexpr int kCount = sizeof...(i);
  return __builtin_shufflevector(v.re, v.im, ((first + static_cast<int>(i)) / 2 + (first + static_cast<int>(i)) % 2 * kCount)...);
}

// As many elements of one line as V has numbers; and in the opposite order.
#if CRESSET_ISA_VECTOR_BYTES == 32
// By halves of registers, so that no number changes its half.
CRESSET_VECTOR_INLINE __m256 halves(const float* low, const float* high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}
CRESSET_VECTOR_INLINE __m256d halves(const double* low, const double* high) {
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(low)), _mm_loadu_pd(high), 1);
}
CRESSET_VECTOR_INLINE void put_halves(__m256 v, float* low, float* high) { _mm256_storeu2_m128(high, low, v); }
CRESSET_VECTOR_INLINE void put_halves(__m256d v, double* low, double* high) { _mm256_storeu2_m128d(high, low, v); }
CRESSET_VECTOR_INLINE Complex<__m256> apart(__m256 a, __m256 b) { return {_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xDD)}; }
CRESSET_VECTOR_INLINE Complex<__m256d> apart(__m256d a, __m256d b) { return {_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)}; }
CRESSET_VECTOR_INLINE Complex<__m256> together(__m256 a, __m256 b) { return {_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)}; }
CRESSET_VECTOR_INLINE Complex<__m256d> together(__m256d a, __m256d b) { return {_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)}; }

template <class V, class T>
CRESSET_VECTOR_INLINE Complex<V> get_pairs(const T* p) {
  constexpr std::size_t n = 16 / sizeof(T);
  const auto v = apart(halves(p, p + 2 * n), halves(p + n, p + 3 * n));
  return {std::bit_cast<V>(v.re), std::bit_cast<V>(v.im)};
}
template <class V, class T>
CRESSET_VECTOR_INLINE void put_pairs(T* p, const Complex<V>& v) {
  constexpr std::size_t n = 16 / sizeof(T);
  using R = decltype(halves(p, p));
  const auto both = together(std::bit_cast<R>(v.re), std::bit_cast<R>(v.im));
  put_halves(both.re, p, p + 2 * n);
  put_halves(both.im, p + n, p + 3 * n);
}
#else
template <class V, class T>
CRESSET_VECTOR_INLINE Complex<V> get_pairs(const T* p) {
  constexpr std::size_t n = sizeof(V) / sizeof(T);
  return apart(load_as<V>(p), load_as<V>(p + n), std::make_index_sequence<n>{});
}
template <class V, class T>
CRESSET_VECTOR_INLINE void put_pairs(T* p, const Complex<V>& v) {
  constexpr int n = sizeof(V) / sizeof(T);
  const V a = together<0>(v, std::make_index_sequence<n>{}), b = together<n>(v, std::make_index_sequence<n>{});
  std::memcpy(p, &a, sizeof a);
  std::memcpy(p + n, &b, sizeof b);
}
#endif
template <class V, std::size_t... i>
CRESSET_VECTOR_INLINE V turned_around(const V& v, std::index_sequence<i...>) {
  return __builtin_shufflevector(v, v, (static_cast<int>(sizeof...(i)) - 1 - static_cast<int>(i))...);
}
template <class V>
CRESSET_VECTOR_INLINE Complex<V> turned_around(const Complex<V>& v) {
  using Lanes = std::make_index_sequence<sizeof(V) / sizeof(v.re[0])>;
  return {turned_around(v.re, Lanes{}), turned_around(v.im, Lanes{})};
}

// Elements k and m - k of half a spectrum from those of the transform of pairs, and back, with the factor of k; that of m - k is minus its
// conjugate. T: the numbers in V.
template <class T, class V, class W>
CRESSET_VECTOR_INLINE void unpack_two(Complex<V>& a, Complex<V>& b, const Complex<W>& w) {
  const Complex<V> even = times(T(0.5), a + conj(b)), turned = times_minus_i(times(T(0.5), a - conj(b))) * w;
  a = even + turned;
  b = conj(even - turned);
}
template <class T, class V, class W>
CRESSET_VECTOR_INLINE void pack_two(Complex<V>& a, Complex<V>& b, const Complex<W>& w) {
  const Complex<V> even = a + conj(b), odd = (a - conj(b)) * conj(w), turned = {-odd.im, odd.re};  // i times it
  a = even + turned;
  b = conj(even - turned);
}

// f(a, b, factor) for elements k and m - k of a block, k from `first` on.
template <class V, class T, class F>
CRESSET_VECTOR_INLINE void each_two(T* x, const T* twiddles, int64_t first, int64_t m, const F& f) {
  constexpr int64_t kElement = 2 * sizeof(V) / sizeof(T);
  for (int64_t k = first; 2 * k <= m; ++k) {
    Complex<V> a = get<V>(x + k * kElement), b = get<V>(x + (m - k) * kElement);
    f(a, b, factor(twiddles, k));
    put(x + k * kElement, a);
    put(x + (m - k) * kElement, b);
  }
}
// The same for one line, as many elements at once as a register has numbers.
template <class T, class F>
CRESSET_VECTOR_INLINE void each_two_of_line(T* x, const T* twiddles, int64_t m, const F& f) {
  using V = Register<T>;
  constexpr int64_t n = kLanes<T>;
  int64_t k = 1;
  for (; 2 * (k + n - 1) < m; k += n) {
    T* const mirrored = x + 2 * (m - k - n + 1);
    Complex<V> a = get_pairs<V>(x + 2 * k), b = turned_around(get_pairs<V>(mirrored));
    f(a, b, get_pairs<V>(twiddles + 2 * k));
    put_pairs(x + 2 * k, a);
    put_pairs(mirrored, turned_around(b));
  }
  each_two<T>(x, twiddles, k, m, f);
}

template <class V, class T>
void unpack_ends(T* z, int64_t m) {
  constexpr int64_t kElement = 2 * sizeof(V) / sizeof(T);
  const Complex<V> first = get<V>(z);
  put(z, Complex<V>{first.re + first.im, V{}});
  put(z + m * kElement, Complex<V>{first.re - first.im, V{}});
}
template <class V, class T>
void pack_ends(T* x, int64_t m) {
  constexpr int64_t kElement = 2 * sizeof(V) / sizeof(T);
  const V first = get<V>(x).re, last = get<V>(x + m * kElement).re;
  put(x, Complex<V>{first + last, first - last});
}

template <class T>
struct Block {
  static constexpr int64_t kWidth = kLanes<T>;
  using V = Register<T>;
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

  // Lines of `numbers` numbers each, one behind the other in memory: rows of a matrix that is transposed. Cache lines are used whole at
  // once: where lines lie powers of two apart, few stay in the cache together.
  static constexpr int64_t kCacheLine = 64 / sizeof(T), kTile = 32 / sizeof(T);

  static void read_rows(const T* first, int64_t between, int64_t count, int64_t numbers, T* block) {
    if (count < kWidth) std::fill(block, block + numbers * kWidth, T(0));
    for (int64_t i = 0; i < numbers; i += kCacheLine)
      for (int64_t l = 0; l < count; l += kTile)
        transpose<Word>(reinterpret_cast<char*>(block + i * kWidth + l), kWidth * sizeof(T),
                        reinterpret_cast<const char*>(first + l * between + i), between * sizeof(T), std::min(kTile, count - l),
                        std::min(kCacheLine, numbers - i));
  }
  static void write_rows(const T* block, int64_t numbers, T* first, int64_t between, int64_t count) {
    for (int64_t i = 0; i < numbers; i += kCacheLine)
      for (int64_t l = 0; l < count; l += kTile)
        transpose<Word>(reinterpret_cast<char*>(first + l * between + i), between * sizeof(T),
                        reinterpret_cast<const char*>(block + i * kWidth + l), kWidth * sizeof(T), std::min(kCacheLine, numbers - i),
                        std::min(kTile, count - l));
  }

  static void read(const FftLines<const T>& lines, int64_t n, T* block) {
    if (lines.stride == 1) return read_rows(lines.first, 2 * lines.between, lines.count, 2 * n, block);
    for (int64_t i = 0; i < n; ++i) {
      const T* const from = lines.first + 2 * i * lines.stride;
      T* const to = block + 2 * i * kWidth;
      if (lines.between == 1 && lines.count == kWidth) {
        put(to, get_pairs<V>(from));
        continue;
      }
      for (int64_t l = 0; l < kWidth; ++l) {
        to[l] = l < lines.count ? from[2 * l * lines.between] : T(0);
        to[kWidth + l] = l < lines.count ? from[2 * l * lines.between + 1] : T(0);
      }
    }
  }
  static void write(const T* block, int64_t n, const FftLines<T>& lines) {
    if (lines.stride == 1) return write_rows(block, 2 * n, lines.first, 2 * lines.between, lines.count);
    for (int64_t i = 0; i < n; ++i) {
      const T* const from = block + 2 * i * kWidth;
      T* const to = lines.first + 2 * i * lines.stride;
      if (lines.between == 1 && lines.count == kWidth) {
        put_pairs(to, get<V>(from));
        continue;
      }
      for (int64_t l = 0; l < lines.count; ++l) {
        to[2 * l * lines.between] = from[l];
        to[2 * l * lines.between + 1] = from[kWidth + l];
      }
    }
  }

  static void read_pairs(const FftLines<const T>& lines, int64_t n, T* block) {
    if (lines.stride == 1) return read_rows(lines.first, lines.between, lines.count, 2 * n, block);
    for (int64_t i = 0; i < 2 * n; ++i)
      for (int64_t l = 0; l < kWidth; ++l)
        block[i * kWidth + l] = l < lines.count ? lines.first[i * lines.stride + l * lines.between] : T(0);
  }
  static void write_pairs(const T* block, int64_t n, const FftLines<T>& lines) {
    if (lines.stride == 1) return write_rows(block, 2 * n, lines.first, lines.between, lines.count);
    for (int64_t i = 0; i < 2 * n; ++i)
      for (int64_t l = 0; l < lines.count; ++l) lines.first[i * lines.stride + l * lines.between] = block[i * kWidth + l];
  }

  static T* transform(const FftStages<T>& stages, T* x, T* scratch, bool wide, bool forward, T scale) {
    return wide ? transform_block<V>(stages, x, scratch, forward, scale) : transform_block<T>(stages, x, scratch, forward, scale);
  }
  static void multiply(T* x, const T* factors, int64_t n, bool wide) {
    wide ? multiply_block<V>(x, factors, n) : multiply_block<T>(x, factors, n);
  }
  static void multiply_each(const T* x, const T* factors, int64_t n, bool conjugate, T* to) {
    const int64_t re = conjugate ? kWidth : 0, im = kWidth - re;
    for (int64_t i = 0; i < 2 * n * kWidth; i += 2 * kWidth) put(to + i, get<V>(x + i, re, im) * get<V>(factors + i), re, im);
  }
  static void turn(const T* blocks, int64_t rows, int64_t columns, int64_t first, int64_t count, T* to) {
    constexpr int64_t kElement = 2 * kWidth * sizeof(T);
    if (count < kWidth) std::fill(to, to + 2 * columns * kWidth, T(0));
    for (int64_t c = 0; c < columns; c += kWidth)
      for (const int64_t part : {int64_t{0}, kWidth})
        transpose<Word>(reinterpret_cast<char*>(to + 2 * c * kWidth + part), kElement,
                        reinterpret_cast<const char*>(blocks + 2 * (c * rows + first * kWidth) + part), kElement, count,
                        std::min(kWidth, columns - c));
  }
  static void unpack_pairs(T* z, const T* twiddles, int64_t m, bool wide) {
    const auto f = [](auto& a, auto& b, const auto& w) CRESSET_INLINE_LAMBDA { unpack_two<T>(a, b, w); };
    wide ? unpack_ends<V>(z, m) : unpack_ends<T>(z, m);
    wide ? each_two<V>(z, twiddles, 1, m, f) : each_two_of_line(z, twiddles, m, f);
  }
  static void pack_pairs(T* x, const T* twiddles, int64_t m, bool wide) {
    const auto f = [](auto& a, auto& b, const auto& w) CRESSET_INLINE_LAMBDA { pack_two<T>(a, b, w); };
    wide ? pack_ends<V>(x, m) : pack_ends<T>(x, m);
    wide ? each_two<V>(x, twiddles, 1, m, f) : each_two_of_line(x, twiddles, m, f);
  }

  static constexpr FftLoops<T> kLoops = {kWidth, transform,  multiply,    multiply_each, turn,      read,
                                         write,  read_pairs, write_pairs, unpack_pairs,  pack_pairs};
};

}  // namespace

const FftLoops<float> fft_loops_float = Block<float>::kLoops;
const FftLoops<double> fft_loops_double = Block<double>::kLoops;

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
