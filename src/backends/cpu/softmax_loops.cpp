// The loops of softmax_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
// Sums are kept in double; exponentials come from the vector math of scalar_math.h.
#include "backends/cpu/softmax_loops.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/pointwise_loops.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors stay inside inlined functions

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

typedef double Doubles __attribute__((vector_size(64)));
typedef double LooseDoubles __attribute__((vector_size(64), aligned(8), may_alias));
typedef float LooseFloats __attribute__((vector_size(32), aligned(4), may_alias));
inline __attribute__((always_inline)) Doubles load8(const float* p) {
  return __builtin_convertvector(*reinterpret_cast<const LooseFloats*>(p), Doubles);
}
inline __attribute__((always_inline)) Doubles load8(const double* p) { return *reinterpret_cast<const LooseDoubles*>(p); }

// Sums f(i) over vectors of eight and the rest.
template <class V, class S>
inline __attribute__((always_inline)) double sum_of(int64_t n, const V& vector, const S& scalar) {
  Doubles a{}, b{};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    a += vector(i);
    b += vector(i + 8);
  }
  a += b;
  double s = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
  for (; i < n; ++i) s += scalar(i);
  return s;
}

// The largest element; NaN stays out of it and shows up in the exponentials.
template <class T>
T largest(const T* p, int64_t n) {
  T lanes[16];
  std::fill_n(lanes, 16, -std::numeric_limits<T>::infinity());
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 16; ++k) lanes[k] = p[i + k] > lanes[k] ? p[i + k] : lanes[k];
  T m = lanes[0];
  for (int k = 1; k < 16; ++k) m = lanes[k] > m ? lanes[k] : m;
  for (; i < n; ++i) m = p[i] > m ? p[i] : m;
  return m;
}

template <class T>
void forward_row(const T* in, T* out, int64_t n, bool log) {
  using namespace scalar_math;
  const T m = largest(in, n);
  CRESSET_POINTWISE_FOR(i, n) out[i] = exp(in[i] - m);
  const double sum = sum_of(n, [&](int64_t i) { return load8(out + i); }, [&](int64_t i) { return static_cast<double>(out[i]); });
  if (log) {
    const T shift = static_cast<T>(__builtin_log(sum));
    CRESSET_POINTWISE_FOR(i, n) out[i] = in[i] - m - shift;
  } else {
    const T scale = static_cast<T>(1 / sum);
    CRESSET_POINTWISE_FOR(i, n) out[i] = out[i] * scale;
  }
}

template <class T>
void forward_columns(const T* in, T* out, int64_t n, int64_t stride, int64_t width, bool log) {
  using namespace scalar_math;
  T m[kSoftmaxTile];
  double sum[kSoftmaxTile];
  for (int64_t c = 0; c < width; ++c) {
    m[c] = in[c];
    sum[c] = 0;
  }
  for (int64_t r = 1; r < n; ++r)
    for (int64_t c = 0; c < width; ++c) m[c] = in[r * stride + c] > m[c] ? in[r * stride + c] : m[c];
  for (int64_t r = 0; r < n; ++r) {
    const T* const a = in + r * stride;
    T* const o = out + r * stride;
    CRESSET_POINTWISE_FOR(c, width) o[c] = exp(a[c] - m[c]);
    for (int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(o[c]);
  }
  T factor[kSoftmaxTile];
  for (int64_t c = 0; c < width; ++c) factor[c] = static_cast<T>(log ? __builtin_log(sum[c]) : 1 / sum[c]);
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

template <class T>
void backward_row(const T* grad, const T* output, T* out, int64_t n, bool log) {
  using namespace scalar_math;
  if (log) {
    const T sum =
        static_cast<T>(sum_of(n, [&](int64_t i) { return load8(grad + i); }, [&](int64_t i) { return static_cast<double>(grad[i]); }));
    CRESSET_POINTWISE_FOR(i, n) out[i] = grad[i] - exp(output[i]) * sum;
  } else {
    const T sum = static_cast<T>(sum_of(
        n, [&](int64_t i) { return load8(grad + i) * load8(output + i); },
        [&](int64_t i) { return static_cast<double>(grad[i]) * static_cast<double>(output[i]); }));
    CRESSET_POINTWISE_FOR(i, n) out[i] = (grad[i] - sum) * output[i];
  }
}

template <class T>
void backward_columns(const T* grad, const T* output, T* out, int64_t n, int64_t stride, int64_t width, bool log) {
  using namespace scalar_math;
  double sum[kSoftmaxTile];
  T total[kSoftmaxTile];
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
constexpr SoftmaxLoops<T> loops = {forward_row<T>, forward_columns<T>, backward_row<T>, backward_columns<T>};

}  // namespace

const SoftmaxLoops<float>& softmax_loops(float) { return loops<float>; }
const SoftmaxLoops<double>& softmax_loops(double) { return loops<double>; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
