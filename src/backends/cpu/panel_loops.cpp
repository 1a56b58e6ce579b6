// The loops of panel_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
//
// The weight lies in chunks of outputs, a chunk in blocks of inputs, a block in panels of two registers' outputs, a panel by inputs: the
// products read it from front to back, once for each block of rows. Weights of large models come from memory each time, which takes as long
// as a sixth of the products; so each panel asks for the next one while it is used. oneDNN's code (2.6) does not (figures:
// docs/design/engines.md).
#include "backends/cpu/panel_loops.h"

#include <algorithm>
#include <array>
#include <utility>
#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // what GCC 12's own header does in _mm512_undefined_epi32
#include <immintrin.h>
#endif

#include "backends/cpu/isa_begin.h"

#include "backends/cpu/multiply_add.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

constexpr int64_t kLanes = CRESSET_ISA_VECTOR_BYTES / sizeof(float), kPanel = 2 * kLanes;
constexpr int64_t kChunkPanels = kChunkOutputs / kPanel;
constexpr int64_t kMostDepth = 768;  // inputs of a block: the rows' part of them stays in the first cache
constexpr int kMostRows = 12;        // their sums fit into the registers
constexpr int64_t kLine = 64;        // bytes

// The blocks of inputs, all of nearly the same depth.
template <class F>
void for_blocks(int64_t inputs, const F& f) {
  const int64_t blocks = std::max<int64_t>(1, (inputs + kMostDepth - 1) / kMostDepth);
  for (int64_t b = 0, at = 0; b < blocks; ++b) {
    const int64_t depth = (inputs - at) / (blocks - b);
    f(at, depth);
    at += depth;
  }
}
int64_t panels_of(int64_t outputs) { return (outputs + kPanel - 1) / kPanel; }

// What is asked for beside a product: so many lines in four steps.
struct Ahead {
  const char* from;
  int64_t lines;
};

// c[r * ldc + j] += sum of a[r * lda + i] * panel[i * kPanel + j], or that with the bias alone.
struct Tile {
  const float* a;
  int64_t lda, depth;
  const float* panel;
  const float* bias;  // null: none
  bool adds;
  float* c;
  int64_t ldc;
};

template <int R>
void tile(const Tile& t, Ahead ahead) {
  constexpr int kChains = R >= 6 ? 1 : R >= 3 ? 2 : 4;  // independent sums: a product takes four cycles
  FloatRegister sums[kChains][R][2] = {};
  for (int r = 0; r < R; ++r)
    for (int h = 0; h < 2; ++h) {
      if (t.adds)
        sums[0][r][h] = load_register(t.c + r * t.ldc + h * kLanes);
      else if (t.bias)
        sums[0][r][h] = load_register(t.bias + h * kLanes);
    }
  const auto step = [&](int64_t i, FloatRegister(&to)[R][2]) __attribute__((always_inline)) {
    const FloatRegister x = load_register(t.panel + i * kPanel), y = load_register(t.panel + i * kPanel + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const FloatRegister factor = t.a[r * t.lda + i] - FloatRegister{};
      to[r][0] = multiply_add(factor, x, to[r][0]);
      to[r][1] = multiply_add(factor, y, to[r][1]);
    }
  };
  int64_t i = 0;
  for (; i + 4 <= t.depth; i += 4) {
    for (int64_t l = 0; l < ahead.lines; ++l) __builtin_prefetch(ahead.from + l * kLine, 0, 2);
    ahead.from += ahead.lines * kLine;
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) step(i + j, sums[j % kChains]);
  }
  for (; i < t.depth; ++i) step(i, sums[0]);
  for (int r = 0; r < R; ++r)
    for (int h = 0; h < 2; ++h) {
      FloatRegister sum = sums[0][r][h];
      for (int u = 1; u < kChains; ++u) sum += sums[u][r][h];
      store_register(sum, t.c + r * t.ldc + h * kLanes);
    }
}

template <int... r>
constexpr auto tiles_of(std::integer_sequence<int, r...>) {
  return std::array{tile<r + 1>...};
}
constexpr auto tiles = tiles_of(std::make_integer_sequence<int, kMostRows>());  // tiles[r - 1] is for r rows

// A panel at the edge has columns that y does not have.
void edge_tile(Tile t, int64_t rows, int64_t columns, Ahead ahead) {
  float part[kMostRows * kPanel] = {}, bias[kPanel] = {};
  float* const c = t.c;
  for (int64_t r = 0; r < rows && t.adds; ++r) std::copy_n(c + r * t.ldc, columns, part + r * kPanel);
  if (t.bias) std::copy_n(t.bias, columns, bias);
  const int64_t ldc = std::exchange(t.ldc, kPanel);
  t.bias = bias;
  t.c = part;
  tiles[static_cast<std::size_t>(rows - 1)](t, ahead);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(part + r * kPanel, columns, c + r * ldc);
}

int64_t size(int64_t outputs, int64_t inputs) { return panels_of(outputs) * kPanel * inputs; }

void pack(const float* weight, int64_t outputs, int64_t inputs, float* packed) {
  const int64_t all = panels_of(outputs);
  for (int64_t first = 0; first < all; first += kChunkPanels)
    for_blocks(inputs, [&](int64_t at, int64_t depth) {
      for (int64_t panel = first; panel < std::min(all, first + kChunkPanels); ++panel)
        for (int64_t i = 0; i < depth; ++i)
          for (int64_t j = panel * kPanel; j < (panel + 1) * kPanel; ++j) *packed++ = j < outputs ? weight[j * inputs + at + i] : 0;
    });
}

void run(const PanelProduct& p, int64_t chunk) {
  const int64_t first = chunk * kChunkPanels, last = std::min(panels_of(p.outputs), first + kChunkPanels);
  const int64_t row_blocks = (p.rows + kMostRows - 1) / kMostRows;
  const float* panel = p.packed + first * kPanel * p.inputs;
  for_blocks(p.inputs, [&](int64_t at, int64_t depth) {
    const int64_t bytes = depth * kPanel * static_cast<int64_t>(sizeof(float)), fours = std::max<int64_t>(1, depth / 4);
    const int64_t lines = std::min<int64_t>(8, (bytes / kLine + row_blocks * fours - 1) / (row_blocks * fours));
    for (int64_t i = first; i < last; ++i, panel += depth * kPanel) {
      const char* next = reinterpret_cast<const char*>(panel) + bytes;
      const int64_t column = i * kPanel, columns = std::min(kPanel, p.outputs - column);
      int64_t row = 0;
      for (int64_t b = 0; b < row_blocks; ++b) {
        const int64_t rows = (p.rows - row) / (row_blocks - b);
        const Ahead ahead{next + b * lines * fours * kLine, b * lines * fours * kLine < bytes ? lines : 0};
        const Tile t{p.x + row * p.inputs + at,      p.inputs, depth, panel, p.bias ? p.bias + column : nullptr, at > 0,
                     p.y + row * p.outputs + column, p.outputs};
        if (columns < kPanel)
          edge_tile(t, rows, columns, ahead);
        else
          tiles[static_cast<std::size_t>(rows - 1)](t, ahead);
        row += rows;
      }
    }
  });
}

constexpr bool kQuick = CRESSET_ISA_VECTOR_BYTES == 64;
template <bool quick>
constexpr PanelLoops loops() {
  if constexpr (quick)
    return {true, kPanel, size, pack, run};
  else
    return {false, kPanel, nullptr, nullptr, nullptr};
}

}  // namespace

extern const PanelLoops panel_loops = loops<kQuick>();

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
