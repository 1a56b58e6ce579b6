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
using VectorFor = decltype(load(static_cast<const T*>(nullptr)));
template <class T>
constexpr int kLanes = sizeof(VectorFor<T>) / sizeof(T);

// What vector(at, column) of each row adds up to, a vector of columns at a time; scalar(at, column) for the columns behind. Some rows are
// added in T, in four sums, then in double.
template <class T, class V, class S>
CRESSET_VECTOR_INLINE void add_columns(int64_t rows, int64_t pitch, int64_t n, double* sums, const V& vector, const S& scalar) {
  constexpr int64_t kRows = 64;
  for (int64_t from = 0; from < rows; from += kRows) {
    const int64_t end = rows < from + kRows ? rows : from + kRows;
    int64_t c = 0;
    for (; c + kLanes<T> <= n; c += kLanes<T>) {
      VectorFor<T> part[4] = {};
      int64_t r = from;
      for (; r + 4 <= end; r += 4)
        for (int k = 0; k < 4; ++k) part[k] += vector((r + k) * pitch + c, c);
      for (; r < end; ++r) part[0] += vector(r * pitch + c, c);
      const VectorFor<T> total = (part[0] + part[1]) + (part[2] + part[3]);
      T lanes[kLanes<T>];
      __builtin_memcpy(lanes, &total, sizeof lanes);
      for (int k = 0; k < kLanes<T>; ++k) sums[c + k] += static_cast<double>(lanes[k]);
    }
    for (; c < n; ++c) {
      T part[4] = {};
      int64_t r = from;
      for (; r + 4 <= end; r += 4)
        for (int k = 0; k < 4; ++k) part[k] += scalar((r + k) * pitch + c, c);
      for (; r < end; ++r) part[0] += scalar(r * pitch + c, c);
      sums[c] += static_cast<double>((part[0] + part[1]) + (part[2] + part[3]));
    }
  }
}

template <class T>
void sum_columns(const T* x, int64_t rows, int64_t pitch, int64_t n, double* sums) {
  add_columns<T>(
      rows, pitch, n, sums, [&](int64_t at, int64_t) CRESSET_INLINE_LAMBDA { return load(x + at); },
      [&](int64_t at, int64_t) CRESSET_INLINE_LAMBDA { return x[at]; });
}
template <class T>
void sum_squares(const T* x, int64_t rows, int64_t pitch, int64_t n, const T* mean, double* sums) {
  add_columns<T>(
      rows, pitch, n, sums,
      [&](int64_t at, int64_t c) CRESSET_INLINE_LAMBDA {
        const auto d = load(x + at) - load(mean + c);
        return d * d;
      },
      [&](int64_t at, int64_t c) CRESSET_INLINE_LAMBDA { return (x[at] - mean[c]) * (x[at] - mean[c]); });
}
template <class T>
void sum_gradients(const T* grad, const T* x, int64_t rows, int64_t pitch, int64_t n, const T* mean, double* sums, double* dots) {
  sum_columns(grad, rows, pitch, n, sums);
  add_columns<T>(
      rows, pitch, n, dots, [&](int64_t at, int64_t c) CRESSET_INLINE_LAMBDA { return load(grad + at) * (load(x + at) - load(mean + c)); },
      [&](int64_t at, int64_t c) CRESSET_INLINE_LAMBDA { return grad[at] * (x[at] - mean[c]); });
}

template <class T>
void scale_rows(const T* x, T* __restrict y, int64_t rows, int64_t pitch, int64_t n, const T* scale, const T* shift) {
  for (int64_t r = 0; r < rows; ++r, x += pitch, y += pitch)
    for (int64_t c = 0; c < n; ++c) {
      const T scaled = x[c] * scale[c];  // rounded by itself at every level
      y[c] = scaled + shift[c];
    }
}
template <class T>
void gradient_rows(const T* grad, const T* x, T* __restrict to, int64_t rows, int64_t pitch, int64_t n, const T* mean, const T* of_grad,
                   const T* of_x, const T* constant) {
  for (int64_t r = 0; r < rows; ++r, grad += pitch, x += pitch, to += pitch)
    for (int64_t c = 0; c < n; ++c) {
      const T line = (x[c] - mean[c]) * of_x[c], moved = grad[c] * of_grad[c];  // rounded by themselves at every level
      to[c] = moved + line + constant[c];
    }
}

// f(offset, elements) for each row; once, where the rows lie behind each other.
template <class F>
CRESSET_VECTOR_INLINE void each_row(int64_t rows, int64_t pitch, int64_t n, const F& f) {
  if (pitch == n) return f(int64_t{0}, rows * n);
  for (int64_t r = 0; r < rows; ++r) f(r * pitch, n);
}
template <class T>
double sum_plane(const T* x, int64_t rows, int64_t pitch, int64_t n) {
  double sum = 0;
  each_row(rows, pitch, n, [&](int64_t at, int64_t many) CRESSET_INLINE_LAMBDA {
    const T* const row = x + at;
    sum += sum_of<T>(many, [&](int64_t i) CRESSET_INLINE_LAMBDA { return load(row + i); }, [&](int64_t i) { return row[i]; });
  });
  return sum;
}
template <class T>
double squares_of_plane(const T* x, int64_t rows, int64_t pitch, int64_t n, T mean) {
  double sum = 0;
  each_row(rows, pitch, n, [&](int64_t at, int64_t many) CRESSET_INLINE_LAMBDA {
    const T* const row = x + at;
    sum += sum_of<T>(
        many,
        [&](int64_t i) CRESSET_INLINE_LAMBDA {
          const auto d = load(row + i) - mean;
          return d * d;
        },
        [&](int64_t i) { return (row[i] - mean) * (row[i] - mean); });
  });
  return sum;
}
template <class T>
double dot_of_plane(const T* grad, const T* x, int64_t rows, int64_t pitch, int64_t n, T mean) {
  double sum = 0;
  each_row(rows, pitch, n, [&](int64_t at, int64_t many) CRESSET_INLINE_LAMBDA {
    const T *const g = grad + at, *const row = x + at;
    sum += sum_of<T>(
        many, [&](int64_t i) CRESSET_INLINE_LAMBDA { return load(g + i) * (load(row + i) - mean); },
        [&](int64_t i) { return g[i] * (row[i] - mean); });
  });
  return sum;
}
template <class T>
void scale_plane(const T* x, T* to, int64_t rows, int64_t pitch, int64_t n, T scale, T shift) {
  each_row(rows, pitch, n, [&](int64_t at, int64_t many) CRESSET_INLINE_LAMBDA {
    const T* const row = x + at;
    T* const __restrict y = to + at;
    for (int64_t i = 0; i < many; ++i) {
      const T scaled = row[i] * scale;  // rounded by itself at every level
      y[i] = scaled + shift;
    }
  });
}
template <class T>
void gradient_of_plane(const T* grad, const T* x, T* to, int64_t rows, int64_t pitch, int64_t n, T mean, T of_grad, T of_x, T constant) {
  each_row(rows, pitch, n, [&](int64_t at, int64_t many) CRESSET_INLINE_LAMBDA {
    const T *const g = grad + at, *const row = x + at;
    T* const __restrict y = to + at;
    for (int64_t i = 0; i < many; ++i) {
      const T line = (row[i] - mean) * of_x, moved = g[i] * of_grad;  // rounded by themselves at every level
      y[i] = moved + line + constant;
    }
  });
}

template <class T>
constexpr NormLoops<T> loops = {
    .forward_rows = forward_rows<T>,
    .backward_rows = backward_rows<T>,
    .backward_columns = backward_columns<T>,
    .sum_columns = sum_columns<T>,
    .sum_squares = sum_squares<T>,
    .sum_gradients = sum_gradients<T>,
    .scale_rows = scale_rows<T>,
    .gradient_rows = gradient_rows<T>,
    .sum_plane = sum_plane<T>,
    .squares_of_plane = squares_of_plane<T>,
    .dot_of_plane = dot_of_plane<T>,
    .scale_plane = scale_plane<T>,
    .gradient_of_plane = gradient_of_plane<T>,
};

}  // namespace

const NormLoops<float>& norm_loops(float) { return loops<float>; }
const NormLoops<double>& norm_loops(double) { return loops<double>; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
