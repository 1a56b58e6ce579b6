// The loops of norm_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include "backends/cpu/norm_loops.h"

#include <cmath>
#include <type_traits>

// Last, because it changes the instruction set.
#include "backends/cpu/isa_begin.h"

#include "backends/cpu/vector_types.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

template <class T>
void forward_rows(const T* x, T* y, int64_t rows, int64_t n, const T* weight, const T* bias, double eps, T* mean, T* rstd) {
  const auto count = static_cast<double>(n);
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const T m =
        static_cast<T>(sum_of<T>(n, [&](int64_t i) CRESSET_INLINE_LAMBDA { return load(x + i); }, [&](int64_t i) { return x[i]; }) / count);
    const double squares = sum_of<T>(
        n,
        [&](int64_t i) CRESSET_INLINE_LAMBDA {
          const auto d = load(x + i) - m;
          return d * d;
        },
        [&](int64_t i) { return (x[i] - m) * (x[i] - m); });
    const T s = T(1) / std::sqrt(static_cast<T>(squares / count) + static_cast<T>(eps));
    mean[r] = m;
    rstd[r] = s;
    if (weight && bias)
      for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * s * weight[i] + bias[i];
    else if (weight)
      for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * s * weight[i];
    else if (bias)
      for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * s + bias[i];
    else
      for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * s;
  }
}

template <bool kWeighted, class T>
void backward_row(const T* g, const T* x, T* to, int64_t n, const T* weight, T m, T s) {
  const auto vector = [&](int64_t i) CRESSET_INLINE_LAMBDA {
    if constexpr (kWeighted)
      return load(g + i) * load(weight + i);
    else
      return load(g + i);
  };
  const auto scalar = [&](int64_t i) CRESSET_INLINE_LAMBDA { return kWeighted ? g[i] * weight[i] : g[i]; };
  const T sum = static_cast<T>(sum_of<T>(n, vector, scalar) / static_cast<double>(n));
  const T slope = static_cast<T>(sum_of<T>(
                                     n, [&](int64_t i) CRESSET_INLINE_LAMBDA { return vector(i) * ((load(x + i) - m) * s); },
                                     [&](int64_t i) { return scalar(i) * ((x[i] - m) * s); }) /
                                 static_cast<double>(n));
  for (int64_t i = 0; i < n; ++i) to[i] = s * (scalar(i) - sum - (x[i] - m) * s * slope);
}
template <class T>
void backward_rows(const T* grad, const T* x, T* to, int64_t rows, int64_t n, const T* weight, const T* mean, const T* rstd) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * n;
    if (weight)
      backward_row<true>(grad + at, x + at, to + at, n, weight, mean[r], rstd[r]);
    else
      backward_row<false>(grad + at, x + at, to + at, n, weight, mean[r], rstd[r]);
  }
}

template <class T>
void backward_columns(const T* grad, const T* x, int64_t rows, int64_t n, int64_t begin, int64_t end, const T* mean, const T* rstd,
                      T* sum_weight, T* sum_bias) {
  for (int64_t r = 0; r < rows; ++r, grad += n, x += n) {
    const T m = mean[r], s = rstd[r];
    for (int64_t i = begin; i < end; ++i) {
      sum_weight[i] += grad[i] * (x[i] - m) * s;
      sum_bias[i] += grad[i];
    }
  }
}

template <class T>
constexpr NormLoops<T> loops = {forward_rows<T>, backward_rows<T>, backward_columns<T>};

}  // namespace

const NormLoops<float>& norm_loops(float) { return loops<float>; }
const NormLoops<double>& norm_loops(double) { return loops<double>; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
