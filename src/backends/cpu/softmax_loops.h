// Inner loops of softmax and its gradient, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"
#include "backends/cpu/lines.h"

namespace cresset::cpu {

// The tensor is seen as [outer, n, inner]. A row is n neighbouring elements (inner 1); a column block is `width` neighbouring
// columns of n elements, `stride` apart, width <= kColumnTile. In and out never overlap. T is float or double.
template <class T>
struct SoftmaxLoops {
  void (*forward_rows)(const T* in, T* out, int64_t rows, int64_t n, bool log);
  void (*forward_columns)(const T* in, T* out, int64_t n, int64_t stride, int64_t width, bool log);
  void (*backward_row)(const T* grad, const T* output, T* out, int64_t n, bool log);
  void (*backward_columns)(const T* grad, const T* output, T* out, int64_t n, int64_t stride, int64_t width, bool log);
  // Pieces of rows, for attention: the largest element; out = exp(in - high), and its sum; moved = weights * (moved - mean) * scale.
  T (*largest)(const T* in, int64_t n);
  double (*exponentials)(const T* in, T high, T* out, int64_t n);
  void (*move_weights)(const T* weights, T mean, T scale, T* moved, int64_t n);
};

CRESSET_IN_EACH_ISA(const SoftmaxLoops<float>& softmax_loops(float); const SoftmaxLoops<double>& softmax_loops(double);)

// The loops for this process.
template <class T>
const SoftmaxLoops<T>& find_softmax_loops() {
  return CRESSET_FOR_THIS_PROCESSOR(softmax_loops(T()));
}

}  // namespace cresset::cpu
