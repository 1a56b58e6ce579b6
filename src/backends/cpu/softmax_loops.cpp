// The loops of softmax_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
// Sums are kept in double; exponentials come from the vector math of scalar_math.h.
#include "backends/cpu/softmax_loops.h"

#include <algorithm>
#include <cstring>
#include <limits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backends/cpu/pointwise_loops.h"

#include "backends/cpu/transpose_loops.h"
#include "backends/cpu/vector_types.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

constexpr int64_t kShortRow = 32;

// The largest element; NaN stays out of it and shows up in the exponentials.
template <class T>
T largest(const T* p, int64_t n) {
  using V = std::conditional_t<std::is_same_v<T, float>, Floats, Doubles>;
  constexpr int64_t lanes = sizeof(V) / sizeof(T);
  T m = -std::numeric_limits<T>::infinity();
  if (n < lanes) {
    for (int64_t i = 0; i < n; ++i) m = p[i] > m ? p[i] : m;
    return m;
  }
  // The last vector may overlap the one before it.
  V a = all<V>(m), b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V v = load(p + i), w = load(p + i + lanes);
    a = choose(v > a, v, a);
    b = choose(w > b, w, b);
  }
  for (; i < n; i += lanes) {
    const V v = load(p + std::min(i, n - lanes));
    a = choose(v > a, v, a);
  }
  return join_all(choose(a > b, a, b), [](T x, T y) CRESSET_INLINE_LAMBDA { return y > x ? y : x; });
}

// These two are not inlined: loops of a known few steps would be unrolled, and the calls in them not become calls for vectors.

// exp of what is 0 or less. The vector library takes infinities, and whatever underflows, one by one: what is zero anyway never gets there.
template <class T>
CRESSET_VECTOR_INLINE T exp_below_zero(T x) {
  constexpr T kZero = std::is_same_v<T, float> ? T(-104) : T(-746);
  if constexpr (sizeof(T) == 8 && CRESSET_ISA_VECTOR_BYTES == 16) return scalar_math::exp(x);  // SSE2 compares no 64 bits
  return scalar_math::select(x < kZero, T(0), scalar_math::exp(x < kZero ? T(0) : x));
}

// out = exp(in - m)
template <class T>
CRESSET_NOINLINE void exponentials_of(const T* in, T m, T* out, int64_t n) {
  CRESSET_POINTWISE_FOR(i, n) out[i] = exp_below_zero(in[i] - m);
}

// What is subtracted from the elements (log), or multiplied with their exponentials, by the sums of exponentials.
template <class T>
CRESSET_NOINLINE void factors(const double* sum, T* factor, int64_t n, bool log) {
  using namespace scalar_math;
  if (log) {
    CRESSET_POINTWISE_FOR(i, n) factor[i] = static_cast<T>(scalar_math::log(sum[i]));
  } else {
    CRESSET_POINTWISE_FOR(i, n) factor[i] = static_cast<T>(1 / sum[i]);
  }
}

// The sum of exp(in - m), and out = exp(in - m) unless it is null. Elements that do not fill a vector are taken with those before them,
// or moved into one: a call for a single element costs as much as one for a vector.
template <class T>
double exponentials(const T* in, T m, T* out, int64_t n) {
  constexpr int64_t lanes = 64 / sizeof(T), kBlock = 512;
  const auto sum = [](const T* p, int64_t count) {
    return sum_of<T>(count, [&](int64_t i) CRESSET_INLINE_LAMBDA { return load(p + i); }, [&](int64_t i) { return p[i]; });
  };
  const int64_t whole = n / lanes * lanes, rest = n - whole;
  alignas(64) T last[lanes], block[kBlock];
  double total = 0;
  if (rest > 0) {
    // The last vector is written before the others: what is written last is what the sum reads.
    if (whole > 0)
      std::memcpy(last, in + n - lanes, sizeof(last));
    else
      for (int64_t i = 0; i < lanes; ++i) last[i] = in[i < rest ? i : 0];
    exponentials_of(last, m, last, lanes);
    if (whole > 0) {
      if (out) std::memcpy(out + n - lanes, last, sizeof(last));
      for (int64_t i = 0; i < lanes; ++i) last[i] = i < lanes - rest ? T(0) : last[i];
    } else {
      for (int64_t i = 0; i < lanes; ++i) {
        if (i < rest && out) out[i] = last[i];
        if (i >= rest) last[i] = 0;
      }
    }
    total = sum(last, lanes);
  }
  for (int64_t at = 0; at < whole; at += kBlock) {
    const int64_t count = std::min(kBlock, whole - at);
    T* const to = out ? out + at : block;
    exponentials_of(in + at, m, to, count);
    total += sum(to, count);
  }
  return total;
}

template <class T>
void forward_columns(const T* in, T* out, int64_t n, int64_t stride, int64_t width, bool log) {
  T m[kColumnTile];
  double sum[kColumnTile];
  for (int64_t c = 0; c < width; ++c) {
    m[c] = in[c];
    sum[c] = 0;
  }
  for (int64_t r = 1; r < n; ++r)
    for (int64_t c = 0; c < width; ++c) m[c] = in[r * stride + c] > m[c] ? in[r * stride + c] : m[c];
  for (int64_t r = 0; r < n; ++r) {
    const T* const a = in + r * stride;
    T* const o = out + r * stride;
    CRESSET_POINTWISE_FOR(c, width) o[c] = exp_below_zero(a[c] - m[c]);
    for (int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(o[c]);
  }
  T factor[kColumnTile];
  factors(sum, factor, width, log);
  for (int64_t r = 0; r < n; ++r) {
    const T* const a = in + r * stride;
    T* const o = out + r * stride;
    if (log) {
      CRESSET_POINTWISE_FOR(c, width) o[c] = a[c] - m[c] - factor[c];
    } else {
      CRESSET_POINTWISE_FOR(c, width) o[c] = o[c] * factor[c];
    }
  }
}

// Rows that would not fill a vector become columns, whole vectors of them: a number must not depend on how many stand beside it.
template <class T>
void forward_short_rows(const T* in, T* out, int64_t rows, int64_t n, bool log) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int64_t size = sizeof(T), lanes = 64 / size;
  static_assert(kColumnTile % lanes == 0);
  T turned[kShortRow * kColumnTile], result[kShortRow * kColumnTile];
  for (int64_t some; rows > 0; rows -= some, in += some * n, out += some * n) {
    some = std::min(rows, kColumnTile);
    const int64_t width = (some + lanes - 1) / lanes * lanes;
    std::fill_n(turned, width * n, T(0));
    transpose<Bits>(reinterpret_cast<char*>(turned), width * size, reinterpret_cast<const char*>(in), n * size, some, n);
    forward_columns(turned, result, n, width, width, log);
    transpose<Bits>(reinterpret_cast<char*>(out), n * size, reinterpret_cast<const char*>(result), width * size, n, some);
  }
}

// Rows are taken several at a time, for the sake of the logarithms of their sums.
template <class T>
void forward_rows(const T* in, T* out, int64_t rows, int64_t n, bool log) {
  if (n <= kShortRow) return forward_short_rows(in, out, rows, n, log);
  constexpr int64_t kRows = 8, kElements = 2048;  // at most: what is read again is still in the first-level cache
  const int64_t together = std::clamp<int64_t>(kElements / n, 1, kRows);
  for (int64_t some; rows > 0; rows -= some, in += some * n, out += some * n) {
    some = std::min(rows, together);
    T m[kRows];
    double sum[kRows] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int64_t r = 0; r < some; ++r) {
      m[r] = largest(in + r * n, n);
      sum[r] = exponentials(in + r * n, m[r], log ? nullptr : out + r * n, n);
    }
    T factor[kRows];
    factors(sum, factor, kRows, log);
    for (int64_t r = 0; r < some; ++r) {
      const T* const a = in + r * n;
      T* const o = out + r * n;
      const T high = m[r], f = factor[r];
      if (log) {
        CRESSET_POINTWISE_FOR(i, n) o[i] = a[i] - high - f;
      } else {
        CRESSET_POINTWISE_FOR(i, n) o[i] = o[i] * f;
      }
    }
  }
}

template <class T>
void backward_row(const T* grad, const T* output, T* out, int64_t n, bool log) {
  using namespace scalar_math;
  if (log) {
    const T sum =
        static_cast<T>(sum_of<T>(n, [&](int64_t i) CRESSET_INLINE_LAMBDA { return load(grad + i); }, [&](int64_t i) { return grad[i]; }));
    CRESSET_POINTWISE_FOR(i, n) out[i] = grad[i] - exp(output[i]) * sum;
  } else {
    const T sum = static_cast<T>(sum_of<T>(
        n, [&](int64_t i) CRESSET_INLINE_LAMBDA { return load(grad + i) * load(output + i); },
        [&](int64_t i) { return grad[i] * output[i]; }));
    CRESSET_POINTWISE_FOR(i, n) out[i] = (grad[i] - sum) * output[i];
  }
}

template <class T>
void backward_columns(const T* grad, const T* output, T* out, int64_t n, int64_t stride, int64_t width, bool log) {
  using namespace scalar_math;
  double sum[kColumnTile];
  T total[kColumnTile];
  for (int64_t c = 0; c < width; ++c) sum[c] = 0;
  for (int64_t r = 0; r < n; ++r) {
    const T *const g = grad + r * stride, *const y = output + r * stride;
    if (log)
      for (int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(g[c]);
    else
      for (int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(g[c]) * static_cast<double>(y[c]);
  }
  for (int64_t c = 0; c < width; ++c) total[c] = static_cast<T>(sum[c]);
  for (int64_t r = 0; r < n; ++r) {
    const T *const g = grad + r * stride, *const y = output + r * stride;
    T* const o = out + r * stride;
    if (log) {
      CRESSET_POINTWISE_FOR(c, width) o[c] = g[c] - exp(y[c]) * total[c];
    } else {
      CRESSET_POINTWISE_FOR(c, width) o[c] = (g[c] - total[c]) * y[c];
    }
  }
}

template <class T>
void move_weights(const T* weights, T mean, T scale, T* moved, int64_t n) {
  CRESSET_POINTWISE_FOR(i, n) moved[i] = weights[i] * (moved[i] - mean) * scale;
}

template <class T>
constexpr SoftmaxLoops<T> loops = {forward_rows<T>, forward_columns<T>, backward_row<T>, backward_columns<T>,
                                   largest<T>,      exponentials<T>,    move_weights<T>};

}  // namespace

const SoftmaxLoops<float>& softmax_loops(float) { return loops<float>; }
const SoftmaxLoops<double>& softmax_loops(double) { return loops<double>; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
