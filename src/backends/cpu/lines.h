// Runs a function over every line of a tensor along one dimension, on several threads when there is much to do.
#pragma once

#include <cresset/base/parallel.h>
#include <cresset/core/limits.h>
#include <cresset/core/tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace cresset::cpu {

// One line: `size` elements of each of N operands. Offsets and strides count elements.
template <int N>
struct LineAt {
  int64_t number;  // position among lines, the other dimensions in their order
  int64_t size;
  std::array<int64_t, N> offset, stride;
};

inline constexpr int64_t kLineWork = 1 << 15;

// Neighbouring columns that a kernel takes together, at most kColumnTile: cache lines as a whole, and several tiles where there are few
// columns, so that threads share them evenly. It must not depend on the number of threads, because vectors start anew in each tile.
inline constexpr int64_t kColumnTile = 128;
inline int64_t column_tile(int64_t columns) { return std::clamp<int64_t>(columns / 4 / 32 * 32, 32, kColumnTile); }

// f(LineAt, State&) for every line along `dim`; a tensor of no dimensions is one line of one element. Each thread has a
// State of its own (buffers that lines share one after the other). cost: how much more than a copy an element takes.
template <class State, int N, class F>
void for_each_line_with(int64_t dim, IntArrayRef sizes, const std::array<IntArrayRef, N>& strides, const F& f, int64_t cost) {
  const int64_t n = static_cast<int64_t>(sizes.size());
  const int64_t d = maybe_wrap_dim(dim, n);
  LineAt<N> line{0, n == 0 ? 1 : sizes[d], {}, {}};
  for (int k = 0; k < N; ++k) line.stride[k] = n == 0 ? 1 : strides[k][d];
  int64_t lines = 1;
  for (int64_t i = 0; i < n; ++i)
    if (i != d) lines *= sizes[i];
  const int64_t grain = std::max<int64_t>(1, kLineWork / std::max<int64_t>(1, line.size * cost));
  parallel_for(0, lines, grain, [&](int64_t begin, int64_t end) {
    LineAt<N> at = line;
    State state;
    int64_t place[kMaxDims];
    int64_t rest = begin;
    for (int64_t i = n - 1; i >= 0; --i) {
      if (i == d) continue;
      place[i] = rest % sizes[i];
      rest /= sizes[i];
      for (int k = 0; k < N; ++k) at.offset[k] += place[i] * strides[k][i];
    }
    for (int64_t number = begin; number < end; ++number) {
      at.number = number;
      f(at, state);
      for (int64_t i = n - 1; i >= 0; --i) {
        if (i == d) continue;
        for (int k = 0; k < N; ++k) at.offset[k] += strides[k][i];
        if (++place[i] < sizes[i]) break;
        for (int k = 0; k < N; ++k) at.offset[k] -= place[i] * strides[k][i];
        place[i] = 0;
      }
    }
  });
}

struct NoState {};

// f(LineAt) for every line along `dim`.
template <int N, class F>
void for_each_line(int64_t dim, IntArrayRef sizes, const std::array<IntArrayRef, N>& strides, const F& f, int64_t cost = 1) {
  for_each_line_with<NoState, N>(dim, sizes, strides, [&](const LineAt<N>& at, NoState&) { f(at); }, cost);
}

}  // namespace cresset::cpu
