// Inner loops of layer_norm, of batch_norm over rows of neighbouring channels, and of their gradients, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

// Rows are n > 0 neighbouring elements; weight and bias have n or are null. T is float or double.
template <class T>
struct NormLoops {
  // y = (x - mean) * rstd * weight + bias
  void (*forward_rows)(const T* x, T* y, int64_t rows, int64_t n, const T* weight, const T* bias, double eps, T* mean, T* rstd);
  void (*backward_rows)(const T* grad, const T* x, T* to, int64_t rows, int64_t n, const T* weight, const T* mean, const T* rstd);
  // Adds the gradients of weight and bias of columns [begin, end) to sums of all n columns.
  void (*backward_columns)(const T* grad, const T* x, int64_t rows, int64_t n, int64_t begin, int64_t end, const T* mean, const T* rstd,
                           T* sum_weight, T* sum_bias);

  // Sums of n columns over rows that begin `pitch` elements apart, added to `sums`: of x, of its squared distance from the columns' means,
  // and of grad and grad * (x - mean).
  void (*sum_columns)(const T* x, int64_t rows, int64_t pitch, int64_t n, double* sums);
  void (*sum_squares)(const T* x, int64_t rows, int64_t pitch, int64_t n, const T* mean, double* sums);
  void (*sum_gradients)(const T* grad, const T* x, int64_t rows, int64_t pitch, int64_t n, const T* mean, double* sums, double* dots);
  // y = x * scale + shift, and to = grad * of_grad + (x - mean) * of_x + constant; a number for each column, rows `pitch` elements apart.
  void (*scale_rows)(const T* x, T* y, int64_t rows, int64_t pitch, int64_t n, const T* scale, const T* shift);
  void (*gradient_rows)(const T* grad, const T* x, T* to, int64_t rows, int64_t pitch, int64_t n, const T* mean, const T* of_grad,
                        const T* of_x, const T* constant);

  // The same for rows of one channel: one number for all of them.
  double (*sum_plane)(const T* x, int64_t rows, int64_t pitch, int64_t n);
  double (*squares_of_plane)(const T* x, int64_t rows, int64_t pitch, int64_t n, T mean);
  double (*dot_of_plane)(const T* grad, const T* x, int64_t rows, int64_t pitch, int64_t n, T mean);  // of grad * (x - mean)
  void (*scale_plane)(const T* x, T* y, int64_t rows, int64_t pitch, int64_t n, T scale, T shift);
  void (*gradient_of_plane)(const T* grad, const T* x, T* to, int64_t rows, int64_t pitch, int64_t n, T mean, T of_grad, T of_x,
                            T constant);
};

CRESSET_IN_EACH_ISA(const NormLoops<float>& norm_loops(float); const NormLoops<double>& norm_loops(double);)

// The loops for this process.
template <class T>
const NormLoops<T>& find_norm_loops() {
  return CRESSET_FOR_THIS_PROCESSOR(norm_loops(T()));
}

}  // namespace cresset::cpu
