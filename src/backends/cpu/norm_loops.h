// Inner loops of layer_norm and its gradient, compiled for every instruction set.
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
};

CRESSET_IN_EACH_ISA(const NormLoops<float>& norm_loops(float); const NormLoops<double>& norm_loops(double);)

// The loops for this process.
template <class T>
const NormLoops<T>& find_norm_loops() {
  return CRESSET_FOR_THIS_PROCESSOR(norm_loops(T()));
}

}  // namespace cresset::cpu
