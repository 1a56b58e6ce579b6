// The loops of panel_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
//
// Many rows: the outputs of two registers are a panel. A block of its inputs is turned into a buffer, which the second cache holds and the
// tiles of the product read from front to back, once for each twelve rows; or it lies like that in a copy of the weight. Weights of large
// models come from memory each time, which takes as long as a sixth of the products; so each panel asks for the next one while it is used.
// oneDNN's code (2.6) does not (figures: docs/design/engines.md).
//
// Some rows, less than a weight has: they are turned instead, once for the whole product, and so are the results.
//
// Few rows: both operands are read along their rows, and the lanes of the sums are added at the end.
#include "backends/cpu/panel_loops.h"

#include <algorithm>
#include <array>
#include <utility>
#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // what GCC 12's own header does in _mm512_undefined_epi32
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#endif

#include "backends/cpu/isa_begin.h"

#include "backends/cpu/multiply_add.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

constexpr int64_t kLanes = CRESSET_ISA_VECTOR_BYTES / sizeof(float);

#if CRESSET_ISA_VECTOR_BYTES == 64

constexpr int64_t kPanel = 2 * kLanes;
constexpr int64_t kMostDepth = 768;  // inputs of a block: the rows' part of them stays in the first cache
constexpr int kMostRows = 12;        // their sums fit into the registers

// The blocks of inputs, all of nearly the same depth, and but for the last one whole registers.
template <class F>
void for_blocks(int64_t inputs, const F& f) {
  const int64_t blocks = std::max<int64_t>(1, (inputs + kMostDepth - 1) / kMostDepth);
  for (int64_t b = 0, at = 0; b < blocks; ++b) {
    const int64_t left = inputs - at, share = (left / (blocks - b) + kLanes - 1) / kLanes * kLanes;
    const int64_t depth = b + 1 < blocks ? std::min({share, left, kMostDepth}) : left;
    f(at, depth);
    at += depth;
  }
}

// Rows of a weight that are asked for beside a product, which is as deep as they are long.
struct Ahead {
  const float* from;
  int64_t stride, rows;
};

// c[r * ldc + h * kLanes + j] (+)= bias[h * kLanes + j] + sum of a[r * lda + i] * panel[h][i * kPanel + j].
struct Tile {
  const float* a;
  int64_t lda, depth;
  std::array<const float*, 3> panel;  // for each register of c
  const float* bias;                  // null: none
  bool adds;
  float* c;
  int64_t ldc;
};

// R rows of H registers. Each sum is of so many chains: a product takes four cycles.
template <int R, int H, int kChains>
void tile(const Tile& t, Ahead ahead) {
  FloatRegister sums[kChains][R][H] = {};
  for (int r = 0; r < R; ++r)
    for (int h = 0; h < H; ++h) {
      if (t.bias) sums[0][r][h] = load_register(t.bias + h * kLanes);
      if (t.adds) sums[0][r][h] += load_register(t.c + r * t.ldc + h * kLanes);
    }
  const auto step = [&](int64_t i, FloatRegister(&to)[R][H]) __attribute__((always_inline)) {
    FloatRegister x[H];
#pragma GCC unroll 3
    for (int h = 0; h < H; ++h) x[h] = load_register(t.panel[h] + i * kPanel);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const FloatRegister factor = t.a[r * t.lda + i] - FloatRegister{};
#pragma GCC unroll 3
      for (int h = 0; h < H; ++h) to[r][h] = multiply_add(factor, x[h], to[r][h]);
    }
  };
  int64_t i = 0;
  for (; i + 4 <= t.depth; i += 4) {
    if (i % kLanes == 0)
      for (int64_t r = 0; r < ahead.rows; ++r) __builtin_prefetch(ahead.from + r * ahead.stride + i, 0, 2);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) step(i + j, sums[j % kChains]);
  }
  for (; i < t.depth; ++i) step(i, sums[0]);
  for (int r = 0; r < R; ++r)
    for (int h = 0; h < H; ++h) {
      FloatRegister sum = sums[0][r][h];
      for (int u = 1; u < kChains; ++u) sum += sums[u][r][h];
      store_register(sum, t.c + r * t.ldc + h * kLanes);
    }
}

template <int... r>
constexpr auto tiles_of(std::integer_sequence<int, r...>) {
  return std::array{tile<r + 1, 2, (r + 1 >= 6 ? 1 : r + 1 >= 3 ? 2 : 4)>...};
}
constexpr auto tiles = tiles_of(std::make_integer_sequence<int, kMostRows>());  // tiles[r - 1] is for r rows

// A panel at the edge has columns that y does not have.
void edge_tile(Tile t, int64_t rows, int64_t columns, Ahead ahead) {
  float part[kMostRows * kPanel] = {}, bias[kPanel] = {};
  float* const c = t.c;
  for (int64_t r = 0; r < rows && t.adds; ++r) std::copy_n(c + r * t.ldc, columns, part + r * kPanel);
  if (t.bias) std::copy_n(std::exchange(t.bias, bias), columns, bias);
  const int64_t ldc = std::exchange(t.ldc, kPanel);
  t.c = part;
  tiles[static_cast<std::size_t>(rows - 1)](t, ahead);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(part + r * kPanel, columns, c + r * ldc);
}

// Calls take(i, lanes) for i < kLanes, where lane j has from[j * ld + i].
template <class F>
__attribute__((always_inline)) inline void turn_square(const float* from, int64_t ld, const F& take) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(from + i * ld);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xEE);
    a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xEE);
  }
  // Quarter q of a[4 * g + i] has column 4 * q + i of the rows 4 * g to 4 * g + 3.
  for (int i = 0; i < 4; ++i) {
    const __m512 even = _mm512_shuffle_f32x4(a[i], a[4 + i], 0x88), odd = _mm512_shuffle_f32x4(a[i], a[4 + i], 0xDD);
    const __m512 even_below = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0x88), odd_below = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0xDD);
    take(i, _mm512_shuffle_f32x4(even, even_below, 0x88));
    take(4 + i, _mm512_shuffle_f32x4(odd, odd_below, 0x88));
    take(8 + i, _mm512_shuffle_f32x4(even, even_below, 0xDD));
    take(12 + i, _mm512_shuffle_f32x4(odd, odd_below, 0xDD));
  }
}

// panel[i * kPanel + j] = weight[j * ldw + i], or 0 from `columns` on.
void turn_panel(const float* weight, int64_t ldw, int64_t depth, int64_t columns, float* panel) {
  int64_t i = 0;
  if (columns == kPanel)
    for (; i + kLanes <= depth; i += kLanes)
      for (int64_t half = 0; half < kPanel; half += kLanes)
        turn_square(weight + half * ldw + i, ldw, [&](int64_t at, __m512 v) { _mm512_storeu_ps(panel + (i + at) * kPanel + half, v); });
  for (; i < depth; ++i)
    for (int64_t j = 0; j < kPanel; ++j) panel[i * kPanel + j] = j < columns ? weight[j * ldw + i] : 0;
}
void turn(const float* rows, int64_t ld, int64_t n, int64_t inputs, float* turned) {
  for (int64_t row = 0; row < n; row += kPanel) turn_panel(rows + row * ld, ld, inputs, std::min(kPanel, n - row), turned + row * inputs);
}

void run(const PanelProduct& p) {
  alignas(64) float buffer[kMostDepth * kPanel];
  const int64_t row_blocks = (p.rows + kMostRows - 1) / kMostRows;
  for_blocks(p.inputs, [&](int64_t at, int64_t depth) {
    for (int64_t column = 0; column < p.outputs; column += kPanel) {
      const int64_t columns = std::min(kPanel, p.outputs - column), left = p.outputs - column - kPanel;
      const float* panel = buffer;
      Ahead next{};
      if (p.turned) {
        panel = p.turned + column * p.inputs + at * kPanel;
        next = {panel + kPanel * p.inputs, depth, left > 0 ? kPanel : 0};
      } else {
        const float* const weight = p.weight + column * p.ldw + at;
        turn_panel(weight, p.ldw, depth, columns, buffer);
        next = {weight + kPanel * p.ldw, p.ldw, std::clamp<int64_t>(left, 0, kPanel)};
      }
      int64_t row = 0;
      for (int64_t b = 0; b < row_blocks; ++b) {
        const int64_t rows = (p.rows - row) / (row_blocks - b), from = next.rows * b / row_blocks;
        const Ahead ahead{next.from + from * next.stride, next.stride, next.rows * (b + 1) / row_blocks - from};
        const Tile t{p.x + row * p.ldx + at,
                     p.ldx,
                     depth,
                     {panel, panel + kLanes},
                     p.bias && at == 0 ? p.bias + column : nullptr,
                     p.adds || at > 0,
                     p.y + row * p.ldy + column,
                     p.ldy};
        if (columns < kPanel)
          edge_tile(t, rows, columns, ahead);
        else
          tiles[static_cast<std::size_t>(rows - 1)](t, ahead);
        row += rows;
      }
    }
  });
}

constexpr int64_t kRowsTogether = 6, kFewRows = 28, kFewSplitRows = 6, kTurnedRows = 160;
__m256 half_of(FloatRegister v) { return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)); }

#elif CRESSET_ISA_HAS_AVX2

constexpr int64_t kRowsTogether = 2, kFewRows = 4, kFewSplitRows = 4;
__m256 half_of(FloatRegister v) { return v; }

#endif

#if CRESSET_ISA_HAS_AVX2

constexpr int kOutputsTogether = 4;

template <int O>
__m128 sums_of_lanes(const FloatRegister (&sums)[O]) {
  __m256 v[4];
  for (int o = 0; o < 4; ++o) v[o] = o < O ? half_of(sums[o]) : __m256{};
  const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

// O columns of R rows of y.
template <int O, int R>
void dots(const PanelProduct& p, int64_t row, int64_t column) {
  const float *const x = p.x + row * p.ldx, *const weight = p.weight + column * p.ldw;
  FloatRegister sums[R][O] = {};
  int64_t i = 0;
  for (; i + kLanes <= p.inputs; i += kLanes) {
    FloatRegister w[O];
#pragma GCC unroll 4
    for (int o = 0; o < O; ++o) {
      w[o] = load_register(weight + o * p.ldw + i);
      __builtin_prefetch(weight + (O + o) * p.ldw + i, 0, 2);  // what lies behind the end may be asked for without harm
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const FloatRegister v = load_register(x + r * p.ldx + i);
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) sums[r][o] = multiply_add(v, w[o], sums[r][o]);
    }
  }
  for (int r = 0; r < R; ++r) {
    __m128 out = sums_of_lanes<O>(sums[r]);
    for (int64_t last = i; last < p.inputs; ++last)
      for (int o = 0; o < O; ++o) out[o] += x[r * p.ldx + last] * weight[o * p.ldw + last];
    float* const y = p.y + (row + r) * p.ldy + column;
    if constexpr (O == 4) {
      if (p.bias) out = _mm_add_ps(out, _mm_loadu_ps(p.bias + column));
      _mm_storeu_ps(y, p.adds ? _mm_add_ps(_mm_loadu_ps(y), out) : out);
    } else {
      for (int o = 0; o < O; ++o) {
        const float sum = p.bias ? out[o] + p.bias[column + o] : out[o];
        y[o] = p.adds ? y[o] + sum : sum;
      }
    }
  }
}

template <int O, int... r>
constexpr auto dots_of(std::integer_sequence<int, r...>) {
  return std::array{dots<O, r + 1>...};
}
template <int O>
constexpr auto all_dots = dots_of<O>(std::make_integer_sequence<int, kRowsTogether>());  // all_dots[r - 1] is for r rows

void run_few(const PanelProduct& p) {
  const int64_t blocks = (p.rows + kRowsTogether - 1) / kRowsTogether;
  for (int64_t column = 0; column < p.outputs;) {
    const bool together = column + kOutputsTogether <= p.outputs;
    for (int64_t b = 0, row = 0; b < blocks; ++b) {
      const int64_t rows = (p.rows - row) / (blocks - b);
      (together ? all_dots<kOutputsTogether> : all_dots<1>)[static_cast<std::size_t>(rows - 1)](p, row, column);
      row += rows;
    }
    column += together ? kOutputsTogether : 1;
  }
}

#if CRESSET_ISA_VECTOR_BYTES == 64

constexpr int64_t kGroup = 48;           // outputs: whole tiles and squares
constexpr int64_t kWidest = 3 * kLanes;  // rows

// y[r * ldy + j] (+)= bias[j] + part[j * kWidest + r].
void turn_results(const float* part, int64_t columns, int64_t rows, const float* bias, bool adds, float* y, int64_t ldy) {
  for (int64_t column = 0; column < columns; column += kLanes) {
    const int64_t width = std::min(kLanes, columns - column);
    const auto lanes = static_cast<__mmask16>((1U << width) - 1);
    const __m512 start = bias ? _mm512_maskz_loadu_ps(lanes, bias + column) : _mm512_setzero_ps();
    for (int64_t row = 0; row < rows; row += kLanes)
      turn_square(part + column * kWidest + row, kWidest, [&](int64_t at, __m512 v) {
        if (row + at >= rows) return;
        float* const to = y + (row + at) * ldy + column;
        const __m512 sum = _mm512_add_ps(v, start);
        _mm512_mask_storeu_ps(to, lanes, adds ? _mm512_add_ps(sum, _mm512_maskz_loadu_ps(lanes, to)) : sum);
      });
  }
}

// Tiles of columns by H registers of rows, the larger ones first: of rows that are whole pages apart, as columns of a weight may be, the
// first cache holds eight. All have one chain, so that parts of a product do not change its sums.
struct TurnedTile {
  int64_t columns;
  void (*run)(const Tile& t, Ahead ahead);
};
template <int H>
constexpr std::array<TurnedTile, 3> turned_tiles = {{{8, tile<8, H, 1>}, {4, tile<4, H, 1>}, {1, tile<1, H, 1>}}};

// `rows` rows of the product, whose inputs are `together` registers of x, two or three; each group of columns asks for the next one.
void run_registers(const PanelProduct& p, const std::array<const float*, 3>& x, int64_t together, int64_t rows) {
  alignas(64) float part[kGroup * kWidest] = {};
  for (int64_t column = 0; column < p.outputs; column += kGroup) {
    const int64_t columns = std::min(kGroup, p.outputs - column), left = std::clamp<int64_t>(p.outputs - column - kGroup, 0, kGroup);
    const float *const weight = p.weight + column * p.ldw, *const next = weight + kGroup * p.ldw;
    const TurnedTile* tile = (together == 3 ? turned_tiles<3> : turned_tiles<2>).data();
    for (int64_t j = 0, asked = 0; j < columns; j += tile->columns) {
      while (tile->columns > columns - j) ++tile;
      const int64_t ahead = left * (j + tile->columns) / columns - asked;
      for (int64_t r = rows * j / columns; r < rows * (j + tile->columns) / columns; ++r)
        for (int64_t i = 0; i < columns; i += kLanes) __builtin_prefetch(p.y + r * p.ldy + column + i, 1, 2);
      tile->run({weight + j * p.ldw, p.ldw, p.inputs, x, nullptr, false, part + j * kWidest, kWidest},
                {next + asked * p.ldw, p.ldw, ahead});
      asked += ahead;
    }
    turn_results(part, columns, rows, p.bias ? p.bias + column : nullptr, p.adds, p.y + column, p.ldy);
  }
}

// The second cache holds the weights of some outputs while all rows go over them. Rows that do not fill half of a register are left to
// run_few.
void run_turned(const PanelProduct& p) {
  constexpr int64_t kOutputs = 2 * kGroup;
  const int64_t over = p.rows % kLanes, rest = over <= kLanes / 2 ? over : 0, whole = p.rows - rest;
  const int64_t registers = (whole + kLanes - 1) / kLanes, parts = (registers + 2) / 3;
  for_blocks(p.inputs, [&](int64_t at, int64_t depth) {
    for (int64_t column = 0; column < p.outputs; column += kOutputs) {
      PanelProduct block = p;
      block.inputs = depth;
      block.outputs = std::min(kOutputs, p.outputs - column);
      block.weight += column * p.ldw + at;
      block.adds = p.adds || at > 0;
      block.bias = p.bias && at == 0 ? p.bias + column : nullptr;
      block.y += column;
      for (int64_t part = 0, first = 0; part < parts; ++part) {
        const int64_t together = registers - first > 2 * (parts - part) ? 3 : 2, rows = std::min(together * kLanes, whole - first * kLanes);
        std::array<const float*, 3> x{};
        for (int64_t h = 0; h < together; ++h)
          x[static_cast<std::size_t>(h)] = p.turned + (first + h) / 2 * kPanel * p.inputs + at * kPanel + (first + h) % 2 * kLanes;
        run_registers(block, x, together, rows);
        block.y += rows * p.ldy;
        first += together;
      }
      if (rest == 0) continue;
      block.x += whole * p.ldx + at;
      block.rows = rest;
      run_few(block);
    }
  });
}

#endif

#endif

}  // namespace

#if CRESSET_ISA_VECTOR_BYTES == 64
extern const PanelLoops panel_loops = {kPanel, kFewRows, kFewSplitRows, kTurnedRows, turn, run, run_turned, run_few};
#elif CRESSET_ISA_HAS_AVX2
extern const PanelLoops panel_loops = {0, kFewRows, kFewSplitRows, 0, nullptr, nullptr, nullptr, run_few};
#else
extern const PanelLoops panel_loops = {0, 0, 0, 0, nullptr, nullptr, nullptr, nullptr};
#endif

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
