// The loops of panel_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
//
// Many rows: the outputs of two registers are a panel. A block of its inputs is turned into a buffer, which the second cache holds and the
// tiles of the product read from front to back, once for each twelve rows; or it lies like that in a copy of the weight. Weights of large
// models come from memory each time, which takes as long as a sixth of the products; so each panel asks for the next one while it is used.
// oneDNN's code (2.6) does not (figures: docs/design/engines.md).
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

// c[r * ldc + j] (+)= bias[j] + sum of a[r * lda + i] * panel[i * kPanel + j].
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
      if (t.bias) sums[0][r][h] = load_register(t.bias + h * kLanes);
      if (t.adds) sums[0][r][h] += load_register(t.c + r * t.ldc + h * kLanes);
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
    if (i % kLanes == 0)
      for (int64_t r = 0; r < ahead.rows; ++r) __builtin_prefetch(ahead.from + r * ahead.stride + i, 0, 2);
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
  if (t.bias) std::copy_n(std::exchange(t.bias, bias), columns, bias);
  const int64_t ldc = std::exchange(t.ldc, kPanel);
  t.c = part;
  tiles[static_cast<std::size_t>(rows - 1)](t, ahead);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(part + r * kPanel, columns, c + r * ldc);
}

// to[i * kPanel + j] = from[j * ld + i] for i, j < kLanes.
void turn_square(const float* from, int64_t ld, float* to) {
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
    _mm512_storeu_ps(to + i * kPanel, _mm512_shuffle_f32x4(even, even_below, 0x88));
    _mm512_storeu_ps(to + (4 + i) * kPanel, _mm512_shuffle_f32x4(odd, odd_below, 0x88));
    _mm512_storeu_ps(to + (8 + i) * kPanel, _mm512_shuffle_f32x4(even, even_below, 0xDD));
    _mm512_storeu_ps(to + (12 + i) * kPanel, _mm512_shuffle_f32x4(odd, odd_below, 0xDD));
  }
}

// panel[i * kPanel + j] = weight[j * ldw + i], or 0 from `columns` on.
void turn_panel(const float* weight, int64_t ldw, int64_t depth, int64_t columns, float* panel) {
  int64_t i = 0;
  if (columns == kPanel)
    for (; i + kLanes <= depth; i += kLanes)
      for (int64_t half = 0; half < kPanel; half += kLanes) turn_square(weight + half * ldw + i, ldw, panel + i * kPanel + half);
  for (; i < depth; ++i)
    for (int64_t j = 0; j < kPanel; ++j) panel[i * kPanel + j] = j < columns ? weight[j * ldw + i] : 0;
}
void turn(const float* weight, int64_t outputs, int64_t inputs, float* turned) {
  for (int64_t column = 0; column < outputs; column += kPanel)
    turn_panel(weight + column * inputs, inputs, inputs, std::min(kPanel, outputs - column), turned + column * inputs);
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
        const Tile t{p.x + row * p.ldx + at,     p.ldx, depth, panel, p.bias && at == 0 ? p.bias + column : nullptr, p.adds || at > 0,
                     p.y + row * p.ldy + column, p.ldy};
        if (columns < kPanel)
          edge_tile(t, rows, columns, ahead);
        else
          tiles[static_cast<std::size_t>(rows - 1)](t, ahead);
        row += rows;
      }
    }
  });
}

constexpr int64_t kRowsTogether = 6, kFewRows = 32, kFewSplitRows = 6;
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

#endif

}  // namespace

#if CRESSET_ISA_VECTOR_BYTES == 64
extern const PanelLoops panel_loops = {kPanel, kFewRows, kFewSplitRows, turn, run, run_few};
#elif CRESSET_ISA_HAS_AVX2
extern const PanelLoops panel_loops = {0, kFewRows, kFewSplitRows, nullptr, nullptr, run_few};
#else
extern const PanelLoops panel_loops = {0, 0, 0, nullptr, nullptr, nullptr};
#endif

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
