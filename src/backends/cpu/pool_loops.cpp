// The loops of pool_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include "backends/cpu/pool_loops.h"

#include <algorithm>

#include "backends/cpu/pointwise_loops.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

template <class T>
void take_row(const T* row, int64_t n, PoolPlace<T> number, T* high, PoolPlace<T>* place) {
  CRESSET_POINTWISE_FOR(i, n) {
    const T v = row[i], best = high[i];
    const bool larger = (v > best) | (v != v);
    high[i] = larger ? v : best;
    place[i] = larger ? number : place[i];
  }
}

template <class T, int64_t stride>
void spread(const T* from, int64_t given, int64_t n, T* to) {
  const int64_t step = stride == 0 ? given : stride;
  for (int64_t p = 0; p < step; ++p) CRESSET_POINTWISE_FOR(i, n) to[p * n + i] = from[i * step + p];
}

template <class T>
void by_residue(const T* high, const PoolPlace<T>* place, const PoolRow& row, T* to_high, PoolPlace<T>* to_place) {
  const int64_t n = row.residues();
  if (row.stride == 2) {
    spread<T, 2>(high, 2, n, to_high);
    spread<PoolPlace<T>, 2>(place, 2, n, to_place);
  } else {
    spread<T, 0>(high, row.stride, n, to_high);
    spread<PoolPlace<T>, 0>(place, row.stride, n, to_place);
  }
}

template <class T>
void take_tap(const T* high, const PoolPlace<T>* place, int64_t n, PoolPlace<T> number, T* value, PoolPlace<T>* at, PoolPlace<T>* tap) {
  CRESSET_POINTWISE_FOR(i, n) {
    const T v = high[i], best = value[i];
    const PoolPlace<T> there = place[i], here = at[i];
    const bool larger = (v > best) | ((v == best) & (there < here)) | ((v != v) & ((best == best) | (there >= here)));
    value[i] = larger ? v : best;
    at[i] = larger ? there : here;
    tap[i] = larger ? number : tap[i];
  }
}

template <class T>
void windows(const T* high, const PoolPlace<T>* place, const PoolRow& row, T* value, PoolPlace<T>* at, PoolPlace<T>* tap) {
  std::copy_n(high, row.windows, value);
  std::copy_n(place, row.windows, at);
  std::fill_n(tap, row.windows, PoolPlace<T>(0));
  for (int64_t t = 1; t < row.taps; ++t) {
    const int64_t column = t * row.dilation, from = column % row.stride * row.residues() + column / row.stride;
    take_tap(high + from, place + from, row.windows, static_cast<PoolPlace<T>>(t), value, at, tap);
  }
}

template <class T>
void elements(const PoolPlace<T>* at, const PoolPlace<T>* tap, const PoolRow& row, const int64_t* starts, int64_t first, int64_t* to) {
  const int64_t n = row.windows, stride = row.stride, dilation = row.dilation;
  if (dilation == 1) {
    CRESSET_POINTWISE_FOR(i, n) to[i] = starts[at[i]] + first + i * stride + tap[i];
  } else {
    CRESSET_POINTWISE_FOR(i, n) to[i] = starts[at[i]] + first + i * stride + tap[i] * dilation;
  }
}

template <class T>
void add_row(const T* row, int64_t n, T* sum) {
  CRESSET_POINTWISE_FOR(i, n) sum[i] += row[i];
}

template <class T>
constexpr PoolLoops<T> loops = {take_row<T>, by_residue<T>, windows<T>, elements<T>, add_row<T>};

}  // namespace

const PoolLoops<float>& pool_loops(float) { return loops<float>; }
const PoolLoops<double>& pool_loops(double) { return loops<double>; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
