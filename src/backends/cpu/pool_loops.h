// Inner loops of max_pool, compiled for every instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

// As wide as T, so that vectors of both have the same lanes.
template <class T>
using PoolPlace = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// One row of windows: of each, `taps` columns `dilation` apart, `stride` columns behind those of the window before it.
struct PoolRow {
  int64_t stride, dilation, taps, windows;
  // Columns of each residue of stride. Arrays of columns hold stride * residues() elements, by residue: column c at c % stride * residues()
  // + c / stride, where neighbouring windows find neighbouring elements.
  int64_t residues() const { return windows + (taps - 1) * dilation / stride; }
};

// NaN is larger than any number; of equal elements the first wins, of NaNs the last. T is float or double.
template <class T>
struct PoolLoops {
  // high becomes the row's element and place `number` where that is larger.
  void (*take_row)(const T* row, int64_t n, PoolPlace<T> number, T* high, PoolPlace<T>* place);
  // Brings columns into the order of `row`.
  void (*by_residue)(const T* high, const PoolPlace<T>* place, const PoolRow& row, T* to_high, PoolPlace<T>* to_place);
  // The largest column of each window, its place and its tap. The smaller of two places comes first.
  void (*windows)(const T* high, const PoolPlace<T>* place, const PoolRow& row, T* value, PoolPlace<T>* at, PoolPlace<T>* tap);
  // to = starts[at] + first + the tap's column of each window, for indices of elements.
  void (*elements)(const PoolPlace<T>* at, const PoolPlace<T>* tap, const PoolRow& row, const int64_t* starts, int64_t first, int64_t* to);
  // Windows of a single row that lies in them whole: the largest element of each and where it lies, `first` for the row's first element.
  void (*one_row)(const T* row, const PoolRow& windows, int64_t first, T* value, int64_t* index);
  // Of n neighbouring channels of the `count` elements at plane + elements[k] * n: the largest of each and its element, which PoolPlace<T>
  // can hold; or their sum over the divisor.
  void (*largest)(const T* plane, const int64_t* elements, int64_t count, int64_t n, T* value, int64_t* index);
  void (*mean)(const T* plane, const int64_t* elements, int64_t count, int64_t n, T divisor, T* value);
};

CRESSET_IN_EACH_ISA(const PoolLoops<float>& pool_loops(float); const PoolLoops<double>& pool_loops(double);)

// The loops for this process.
template <class T>
const PoolLoops<T>& find_pool_loops() {
  return CRESSET_FOR_THIS_PROCESSOR(pool_loops(T()));
}

}  // namespace cresset::cpu
