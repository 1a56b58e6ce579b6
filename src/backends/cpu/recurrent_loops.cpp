// The loops of recurrent_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
//
// A block of 16 units has its weights in the order in which they are read: for each register's worth of units, for each element of the
// state (or pair of them, of bfloat16), one register for each gate. So a few rows' products read the weights once from front to back, at
// the speed of the memory, and many rows read a block out of the second cache.
#include "backends/cpu/recurrent_loops.h"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // what GCC 12's own header does in _mm512_undefined_epi32
#include <immintrin.h>
#endif

#include "backends/cpu/pointwise_loops.h"

#include "backends/cpu/multiply_add.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

// Products of pairs of bfloat16 are an extension of the set avx512: functions that have it are called where the processor does.
#if defined(__x86_64__) && CRESSET_ISA_VECTOR_BYTES == 64 && !defined(__clang__)
#define CRESSET_HAS_PAIR_PRODUCTS 1
#define CRESSET_PAIR_PRODUCTS __attribute__((target("avx512bf16")))
#endif

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

#define CRESSET_ALWAYS inline __attribute__((always_inline))

constexpr int64_t kLanes = CRESSET_ISA_VECTOR_BYTES / sizeof(float);
constexpr int64_t kParts = kRecurrentUnits / kLanes;  // registers of one gate's units
using Vector = FloatRegister;
typedef uint32_t Words __attribute__((vector_size(CRESSET_ISA_VECTOR_BYTES)));

// Rows whose sums fit into the registers beside the weights.
constexpr int kMostRows = kLanes == 16 ? 6 : 2;

CRESSET_ALWAYS Vector spread(float v) { return v - Vector{}; }
template <class V>
CRESSET_ALWAYS V load_vector(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Elements of the state that a step of the product takes, and its arithmetic: sum += the products of gate g.
struct Singles {
  using State = float;
  static constexpr int64_t kElements = 1;
  struct Spread {
    Vector v;
  };
  struct Weight {
    Vector v;
  };
  static CRESSET_ALWAYS Spread state(float h) { return {spread(h)}; }
  static CRESSET_ALWAYS Weight weight(const void* p) { return {load_vector<Vector>(p)}; }
  static CRESSET_ALWAYS Vector add(const Weight& w, const Spread& h, Vector sum) { return multiply_add(w.v, h.v, sum); }
};
// Bfloat16 is the upper half of a float.
struct Pairs {
  using State = uint32_t;
  static constexpr int64_t kElements = 2;
  struct Spread {
    Vector even, odd;
  };
  using Weight = Spread;
  static constexpr uint32_t kUpper = 0xffff0000U;
  static CRESSET_ALWAYS Spread state(uint32_t h) {
    return {spread(std::bit_cast<float>(h << 16)), spread(std::bit_cast<float>(h & kUpper))};
  }
  static CRESSET_ALWAYS Weight weight(const void* p) {
    const Words w = load_vector<Words>(p);
    return {reinterpret_cast<Vector>(w << 16), reinterpret_cast<Vector>(w & kUpper)};
  }
  static CRESSET_ALWAYS Vector add(const Weight& w, const Spread& h, Vector sum) {
    return multiply_add(w.odd, h.odd, multiply_add(w.even, h.even, sum));
  }
};

int64_t steps_of(int64_t hidden, int64_t elements) { return (hidden + elements - 1) / elements; }
int64_t blocks_of(int64_t hidden) { return (hidden + kRecurrentUnits - 1) / kRecurrentUnits; }
// A register's worth of words for each gate: words of one block.
int64_t block_words(int64_t gates, int64_t steps) { return kRecurrentUnits * gates * steps; }

// sums[r][g][unit of the block] = the product of row r's state with the weights.
template <class Kind, int G, int R>
CRESSET_ALWAYS void product(const typename Kind::State* h, int64_t stride, int64_t steps, const uint32_t* weight, float* sums) {
  // Additions wait for each other: a single row has more than one sum of each.
  constexpr int kChains = R * G >= 8 ? 1 : R * G >= 3 ? 2 : 4;
  for (int64_t part = 0; part < kParts; ++part) {
    Vector acc[kChains][R][G] = {};
    const auto add = [&](int64_t k, int chain) __attribute__((always_inline)) {
      typename Kind::Weight w[G];
      for (int g = 0; g < G; ++g) w[g] = Kind::weight(weight + (k * G + g) * kLanes);
      for (int r = 0; r < R; ++r) {
        const typename Kind::Spread s = Kind::state(h[r * stride + k]);
        for (int g = 0; g < G; ++g) acc[chain][r][g] = Kind::add(w[g], s, acc[chain][r][g]);
      }
    };
    int64_t k = 0;
    for (; k + kChains <= steps; k += kChains)
#pragma GCC unroll 4
      for (int chain = 0; chain < kChains; ++chain) add(k + chain, chain);
    for (; k < steps; ++k) add(k, 0);
    for (int r = 0; r < R; ++r)
      for (int g = 0; g < G; ++g) {
        Vector sum = acc[0][r][g];
        for (int chain = 1; chain < kChains; ++chain) sum += acc[chain][r][g];
        std::memcpy(sums + (r * G + g) * kRecurrentUnits + part * kLanes, &sum, sizeof sum);
      }
    weight += steps * G * kLanes;
  }
}

#ifdef CRESSET_HAS_PAIR_PRODUCTS
template <int G, int R>
CRESSET_PAIR_PRODUCTS void pair_product(const uint32_t* h, int64_t stride, int64_t steps, const uint32_t* weight, float* sums) {
  constexpr int kChains = R * G >= 8 ? 1 : R * G >= 3 ? 2 : 4;
  __m512 acc[kChains][R][G] = {};
  int64_t k = 0;
  for (; k + kChains <= steps; k += kChains)
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; ++chain)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g)
          acc[chain][r][g] =
              _mm512_dpbf16_ps(acc[chain][r][g], reinterpret_cast<__m512bh>(_mm512_loadu_si512(weight + ((k + chain) * G + g) * kLanes)),
                               reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(h[r * stride + k + chain]))));
  for (; k < steps; ++k)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g)
        acc[0][r][g] = _mm512_dpbf16_ps(acc[0][r][g], reinterpret_cast<__m512bh>(_mm512_loadu_si512(weight + (k * G + g) * kLanes)),
                                        reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(h[r * stride + k]))));
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      __m512 sum = acc[0][r][g];
      for (int chain = 1; chain < kChains; ++chain) sum = _mm512_add_ps(sum, acc[chain][r][g]);
      _mm512_storeu_ps(sums + (r * G + g) * kRecurrentUnits, sum);
    }
}
#endif

// One row's n units from `first` on, from their sums; the order of operations is that of the operators (src/ops/rnn.cpp).
template <Recurrence kind>
CRESSET_ALWAYS void finish(const RecurrentStep& s, int64_t row, int64_t first, int64_t n, const float* sums) {
  using namespace scalar_math;
  constexpr int64_t U = kRecurrentUnits;
  const float* const gates = s.gates + row * s.gates_stride + first;
  float* const out = s.out + row * s.out_stride + first;
  if constexpr (kind == Recurrence::Tanh) {
    CRESSET_POINTWISE_FOR(u, n) out[u] = tanh(gates[u] + sums[u]);
  } else if constexpr (kind == Recurrence::Relu) {
    CRESSET_POINTWISE_FOR(u, n) out[u] = maximum(gates[u] + sums[u], 0.0f);
  } else if constexpr (kind == Recurrence::Gru) {
    const float* const state = s.state + row * s.state_stride + first;
    const float *const g1 = gates + s.hidden, *const g2 = g1 + s.hidden;
    float fresh_part[U] = {};
    if (s.new_bias)
      for (int64_t u = 0; u < n; ++u) fresh_part[u] = s.new_bias[first + u];
    CRESSET_POINTWISE_FOR(u, n) {
      const float reset = sigmoid(gates[u] + sums[u]), update = sigmoid(g1[u] + sums[U + u]);
      const float fresh = tanh(g2[u] + reset * (sums[2 * U + u] + fresh_part[u]));
      out[u] = (state[u] - fresh) * update + fresh;
    }
  } else {
    float* const cell = s.cell + row * s.hidden + first;
    const float *const g1 = gates + s.hidden, *const g2 = g1 + s.hidden, *const g3 = g2 + s.hidden;
    CRESSET_POINTWISE_FOR(u, n) {
      const float in = sigmoid(gates[u] + sums[u]), forget = sigmoid(g1[u] + sums[U + u]);
      const float fresh = tanh(g2[u] + sums[2 * U + u]), open = sigmoid(g3[u] + sums[3 * U + u]);
      const float c = forget * cell[u] + in * fresh;
      cell[u] = c;
      out[u] = open * tanh(c);
    }
  }
}

template <class Kind, int G, int R>
void product_of(const typename Kind::State* h, int64_t stride, int64_t steps, const uint32_t* weight, float* sums) {
  product<Kind, G, R>(h, stride, steps, weight, sums);
}

// products[r - 1] is for r rows.
template <class State>
using Product = void (*)(const State* h, int64_t stride, int64_t steps, const uint32_t* weight, float* sums);

template <class Kind, Recurrence kind>
void run(const RecurrentStep& s, int64_t first, int64_t last, const Product<typename Kind::State>* products) {
  constexpr int G = static_cast<int>(recurrent_gates(kind));
  const int64_t steps = steps_of(s.hidden, Kind::kElements);
  const auto* const h = static_cast<const typename Kind::State*>(s.products_of);
  alignas(64) float sums[kMostRows * G * kRecurrentUnits];
  for (int64_t block = first; block < last; ++block) {
    const auto* const weight = static_cast<const uint32_t*>(s.weight) + block * block_words(G, steps);
    const int64_t unit = block * kRecurrentUnits, n = std::min(kRecurrentUnits, s.hidden - unit);
    for (int64_t row = 0; row < s.rows; row += kMostRows) {
      const int64_t rows = std::min<int64_t>(kMostRows, s.rows - row);
      products[rows - 1](h + row * s.products_stride, s.products_stride, steps, weight, sums);
      for (int64_t r = 0; r < rows; ++r) {
        const float* const of_row = sums + r * G * kRecurrentUnits;
        if (n == kRecurrentUnits)  // a loop of a known count becomes vectors
          finish<kind>(s, row + r, unit, kRecurrentUnits, of_row);
        else
          finish<kind>(s, row + r, unit, n, of_row);
      }
    }
  }
}

template <class Kind, Recurrence kind, int... r>
void run_plain(const RecurrentStep& s, int64_t first, int64_t last, std::integer_sequence<int, r...>) {
  constexpr int G = static_cast<int>(recurrent_gates(kind));
  static constexpr Product<typename Kind::State> products[] = {product_of<Kind, G, r + 1>...};
  run<Kind, kind>(s, first, last, products);
}
template <Recurrence kind, int... r>
void run_pairs(const RecurrentStep& s, int64_t first, int64_t last, std::integer_sequence<int, r...> rows) {
#ifdef CRESSET_HAS_PAIR_PRODUCTS
  static const bool has = __builtin_cpu_supports("avx512bf16");
  if (has) {
    constexpr int G = static_cast<int>(recurrent_gates(kind));
    static constexpr Product<uint32_t> products[] = {pair_product<G, r + 1>...};
    return run<Pairs, kind>(s, first, last, products);
  }
#endif
  run_plain<Pairs, kind>(s, first, last, rows);
}

template <class F>
void with_kind(Recurrence kind, const F& f) {
  switch (kind) {
    case Recurrence::Tanh: return f(std::integral_constant<Recurrence, Recurrence::Tanh>());
    case Recurrence::Relu: return f(std::integral_constant<Recurrence, Recurrence::Relu>());
    case Recurrence::Gru: return f(std::integral_constant<Recurrence, Recurrence::Gru>());
    case Recurrence::Lstm: return f(std::integral_constant<Recurrence, Recurrence::Lstm>());
  }
}

using Rows = std::make_integer_sequence<int, kMostRows>;

void step(const RecurrentStep& s, int64_t first, int64_t last) {
  with_kind(s.kind, [&](auto kind) { run_plain<Singles, decltype(kind)::value>(s, first, last, Rows()); });
}
void step_bfloat16(const RecurrentStep& s, int64_t first, int64_t last) {
  with_kind(s.kind, [&](auto kind) { run_pairs<decltype(kind)::value>(s, first, last, Rows()); });
}

int64_t bytes(Recurrence kind, int64_t hidden, bool bfloat16) {
  const int64_t words = block_words(recurrent_gates(kind), steps_of(hidden, bfloat16 ? 2 : 1));
  return blocks_of(hidden) * words * static_cast<int64_t>(sizeof(uint32_t));
}

// The upper half of the nearest bfloat16; NaN stays NaN.
uint32_t rounded(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return (bits >> 16) | 0x40U;
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
}

void to_words(const float* x, int64_t n, uint32_t* words) {
  for (int64_t i = 0; i + 1 < n; i += 2) words[i / 2] = rounded(x[i]) | rounded(x[i + 1]) << 16;
  if (n % 2) words[n / 2] = rounded(x[n - 1]);
}

void pack(Recurrence kind, int64_t hidden, bool bfloat16, const float* weight, void* packed) {
  const int64_t gates = recurrent_gates(kind), elements = bfloat16 ? 2 : 1, steps = steps_of(hidden, elements);
  auto* to = static_cast<uint32_t*>(packed);
  const auto at = [&](int64_t gate, int64_t unit, int64_t k) {
    return unit < hidden && k < hidden ? weight[(gate * hidden + unit) * hidden + k] : 0.0f;
  };
  for (int64_t part = 0; part < blocks_of(hidden) * kParts; ++part)
    for (int64_t k = 0; k < steps; ++k)
      for (int64_t g = 0; g < gates; ++g)
        for (int64_t unit = part * kLanes; unit < (part + 1) * kLanes; ++unit)
          *to++ = bfloat16 ? rounded(at(g, unit, 2 * k)) | rounded(at(g, unit, 2 * k + 1)) << 16 : std::bit_cast<uint32_t>(at(g, unit, k));
}

}  // namespace

extern const RecurrentLoops recurrent_loops = {bytes, pack, step, step_bfloat16, to_words};

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
