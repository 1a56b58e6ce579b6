// The loops of pool_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include "backends/cpu/pool_loops.h"

#include <algorithm>

#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/vector_types.h"

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

// stride and dilation are given where the compiler knows them, else 0.
template <class T, int64_t known_stride, int64_t known_dilation>
void one_row_of(const T* row, const PoolRow& windows, int64_t first, T* value, int64_t* index) {
  constexpr int64_t kBlock = 256;
  PoolPlace<T> tap[kBlock];
  const int64_t stride = known_stride == 0 ? windows.stride : known_stride,
                dilation = known_dilation == 0 ? windows.dilation : known_dilation;
  for (int64_t begin = 0; begin < windows.windows; begin += kBlock) {
    const int64_t n = std::min(kBlock, windows.windows - begin), start = first + begin * stride;
    const T* const from = row + begin * stride;
    T* const best = value + begin;
    // A window of one tap is compared with itself.
    const PoolPlace<T> second = windows.taps > 1;
    CRESSET_POINTWISE_FOR(i, n) {
      const T v = from[i * stride + (known_dilation == 0 ? second * dilation : known_dilation)], before = from[i * stride];
      const bool larger = (v > before) | (v != v);
      best[i] = larger ? v : before;
      tap[i] = larger ? second : PoolPlace<T>(0);
    }
    for (int64_t t = 2; t < windows.taps; ++t) {
      const auto number = static_cast<PoolPlace<T>>(t);
      CRESSET_POINTWISE_FOR(i, n) {
        const T v = from[i * stride + t * dilation], before = best[i];
        const bool larger = (v > before) | (v != v);
        best[i] = larger ? v : before;
        tap[i] = larger ? number : tap[i];
      }
    }
    int64_t* const to = index + begin;
    CRESSET_POINTWISE_FOR(i, n) to[i] = start + i * stride + tap[i] * dilation;
  }
}
template <class T>
void one_row(const T* row, const PoolRow& windows, int64_t first, T* value, int64_t* index) {
  const bool near = windows.dilation == 1 && windows.taps > 1;
  if (windows.stride == 2 && near) return one_row_of<T, 2, 1>(row, windows, first, value, index);
  if (windows.stride == 1 && near) return one_row_of<T, 1, 1>(row, windows, first, value, index);
  one_row_of<T, 0, 0>(row, windows, first, value, index);
}

template <class T>
constexpr int64_t kLanes = 64 / sizeof(T);
template <class T>
using Values = typename VectorOf<T, kLanes<T>>::type;

template <class T>
void largest(const T* plane, const int64_t* elements, int64_t count, int64_t n, T* value, int64_t* index) {
  using Place = PoolPlace<T>;
  using Places = typename VectorOf<Place, kLanes<T>>::type;
  int64_t c = 0;
  for (; c + kLanes<T> <= n; c += kLanes<T>) {
    Values<T> best = load_as<Values<T>>(plane + elements[0] * n + c);
    Places place = all<Places>(static_cast<Place>(elements[0]));
    for (int64_t k = 1; k < count; ++k) {
      const Values<T> v = load_as<Values<T>>(plane + elements[k] * n + c);
      const auto larger = (v > best) | (v != v);
      best = choose(larger, v, best);
      place = choose(larger, all<Places>(static_cast<Place>(elements[k])), place);
    }
    Place places[kLanes<T>];
    __builtin_memcpy(value + c, &best, sizeof best);
    __builtin_memcpy(places, &place, sizeof place);
    for (int64_t i = 0; i < kLanes<T>; ++i) index[c + i] = places[i];
  }
  for (; c < n; ++c) {
    int64_t place = elements[0];
    T best = plane[place * n + c];
    for (int64_t k = 1; k < count; ++k) {
      const T v = plane[elements[k] * n + c];
      if (v > best || v != v) best = v, place = elements[k];
    }
    value[c] = best;
    index[c] = place;
  }
}

// Several vectors at a time are as many independent sums.
template <int vectors, class T>
CRESSET_VECTOR_INLINE void mean_of_vectors(const T* channel, const int64_t* elements, int64_t count, int64_t n, T divisor, T* value) {
  Values<T> sum[vectors]{};
  for (int64_t k = 0; k < count; ++k)
    for (int v = 0; v < vectors; ++v) sum[v] += load_as<Values<T>>(channel + elements[k] * n + v * kLanes<T>);
  for (int v = 0; v < vectors; ++v) {
    const Values<T> mean = sum[v] / divisor;
    __builtin_memcpy(value + v * kLanes<T>, &mean, sizeof mean);
  }
}
template <class T>
void mean(const T* plane, const int64_t* elements, int64_t count, int64_t n, T divisor, T* value) {
  int64_t c = 0;
  for (; c + 4 * kLanes<T> <= n; c += 4 * kLanes<T>) mean_of_vectors<4>(plane + c, elements, count, n, divisor, value + c);
  for (; c + kLanes<T> <= n; c += kLanes<T>) mean_of_vectors<1>(plane + c, elements, count, n, divisor, value + c);
  for (; c < n; ++c) {
    T sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += plane[elements[k] * n + c];
    value[c] = sum / divisor;
  }
}

template <class T>
constexpr PoolLoops<T> loops = {take_row<T>, by_residue<T>, windows<T>, elements<T>, one_row<T>, largest<T>, mean<T>};

}  // namespace

const PoolLoops<float>& pool_loops(float) { return loops<float>; }
const PoolLoops<double>& pool_loops(double) { return loops<double>; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
