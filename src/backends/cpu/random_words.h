// What the fills of random streams share: words to uniform numbers, the choice of instruction set, blocks of
// normals. Where PyTorch's kernels contract a product and a sum into a fused multiply-add, std::fma stands in
// the fills, so that the numbers do not depend on the instruction set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include <cresset/base/error.h>
#include <cresset/base/half.h>
#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/generator.h>
#include <cresset/core/scalar_type.h>
#include <cresset/core/tensor.h>

#include "backends/cpu/box_muller.h"
#include "backends/cpu/isa.h"

namespace cresset::cpu::random_detail {

// ---- running a loop with fused multiply-add instructions where the processor has them

#if defined(__x86_64__)
inline bool use_fma() {
  static const bool yes = isa() != Isa::Baseline && __builtin_cpu_supports("fma");
  return yes;
}
template <class Loop, class... Args>
CRESSET_FMA_TARGET void run_with_fma(Args... args) {
  Loop::run(args...);
}
#endif

// Loop::run must be inlined always, so that it takes the instruction set of its caller.
template <class Loop, class... Args>
void run(Args... args) {
#if defined(__x86_64__)
  if (use_fma()) return run_with_fma<Loop>(args...);
#endif
  Loop::run(args...);
}

// ---- words to numbers

constexpr int64_t kWordStage = 2048;     // words drawn at once, on the stack
constexpr int64_t kDoubleChunk = 16384;  // doubles that one parallel region works on
constexpr int64_t kTranscendentalGrain = 512;

template <class T>
inline constexpr int kWordsPerUniform = std::is_same_v<opmath_type<T>, double> ? 2 : 1;

CRESSET_ALWAYS_INLINE uint64_t word64(const uint32_t* words, int64_t i) {
  return static_cast<uint64_t>(words[2 * i]) << 32 | words[2 * i + 1];
}
constexpr uint64_t kMask53 = (uint64_t{1} << 53) - 1;

// Number i of the words, uniform on [0, 1) with 24 or 53 bits.
template <class O>
CRESSET_ALWAYS_INLINE O unit_uniform(const uint32_t* words, int64_t i) {
  if constexpr (std::is_same_v<O, double>) {
    return static_cast<double>(static_cast<int64_t>(word64(words, i) & kMask53)) * 0x1p-53;
  } else {
    return static_cast<float>(static_cast<int32_t>(words[i] & 0x00FFFFFFu)) * 0x1p-24f;
  }
}

template <class T, class V>
CRESSET_ALWAYS_INLINE T narrow(V value) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<V>) {
    return static_cast<T>(value < V(0x1p63) ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::max());
  } else if constexpr (is_reduced_floating_point_v<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Calls body(words, first, count) for stretches of the n elements in order, each with its words_per_element words.
template <class F>
void for_words(int64_t n, int words_per_element, CPUGeneratorImpl& generator, const F& body) {
  alignas(64) uint32_t words[kWordStage];
  const int64_t stretch = kWordStage / words_per_element;
  for (int64_t i = 0; i < n; i += stretch) {
    const int64_t count = std::min(stretch, n - i);
    generator.random_words(words, count * words_per_element);
    body(static_cast<const uint32_t*>(words), i, count);
  }
}

// The same where the order of stretches does not matter: they may run on several threads.
template <class F>
void map_words(int64_t n, int words_per_element, CPUGeneratorImpl& generator, const F& body) {
  constexpr int64_t kShared = 1 << 17;  // words drawn for all threads at once
  if (get_num_threads() == 1 || in_parallel_region() || n * words_per_element < kShared / 2)
    return for_words(n, words_per_element, generator, body);
  const Tensor memory = detail::empty_cpu({kShared}, kInt);  // from the allocator that keeps big blocks
  auto* const words = reinterpret_cast<uint32_t*>(memory.mutable_data_ptr<int32_t>());
  const int64_t stretch = kShared / words_per_element;
  for (int64_t i = 0; i < n; i += stretch) {
    const int64_t count = std::min(stretch, n - i);
    generator.random_words(words, count * words_per_element);
    parallel_for(0, count, 8192, [&](int64_t begin, int64_t end) {
      body(static_cast<const uint32_t*>(words + begin * words_per_element), i + begin, end - begin);
    });
  }
}

template <class O>
struct UnitLoop {
  static CRESSET_ALWAYS_INLINE void run(const uint32_t* words, O* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = unit_uniform<O>(words, i);
  }
};
template <class O>
void unit_fill(O* out, int64_t n, CPUGeneratorImpl& generator) {
  map_words(n, kWordsPerUniform<O>, generator,
            [&](const uint32_t* words, int64_t first, int64_t count) { run<UnitLoop<O>>(words, out + first, count); });
}

template <class T>
constexpr ScalarType scalar_type_of = CppTypeToScalarType<T>::value;

// ---- uniform

// Does a value equal `to`? For half types by bits, which vectorises; `to` may be a zero of either sign.
template <class T>
struct Excluded {
  explicit Excluded(T to) : to(to) {}
  CRESSET_ALWAYS_INLINE bool operator()(T value) const { return value == to; }
  T to;
};
template <class T>
  requires is_reduced_floating_point_v<T>
struct Excluded<T> {
  explicit Excluded(T to) : bits(to.x), other(static_cast<float>(to) == 0.0f ? static_cast<uint16_t>(to.x ^ 0x8000u) : to.x) {}
  CRESSET_ALWAYS_INLINE bool operator()(T value) const { return (value.x == bits) | (value.x == other); }
  uint16_t bits, other;
};

template <class T>
struct UniformLoop {
  using O = opmath_type<T>;
  // Rounding may reach `to`, which is excluded: such a draw becomes `from`.
  static CRESSET_ALWAYS_INLINE void run(const uint32_t* words, T* out, int64_t n, O from, O span, Excluded<T> excluded) {
    const T first = narrow<T>(from);
    for (int64_t i = 0; i < n; ++i) {
      const T value = narrow<T>(std::fma(unit_uniform<O>(words, i), span, from));
      out[i] = excluded(value) ? first : value;
    }
  }
};

template <class T>
void check_uniform_bounds(double from, double to) {
  const double lowest = static_cast<opmath_type<T>>(std::numeric_limits<T>::lowest());
  const double highest = static_cast<opmath_type<T>>(std::numeric_limits<T>::max());
  CRESSET_CHECK(from >= lowest && from <= highest, "uniform_: from is out of bounds for ", scalar_type_of<T>, "; from=", from,
                " was given.");
  CRESSET_CHECK(to >= lowest && to <= highest, "uniform_: to is out of bounds for ", scalar_type_of<T>, "; to=", to, " was given.");
  CRESSET_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  CRESSET_CHECK(to - from <= highest, "uniform_ expects to-from <= ", highest, " (the largest ", scalar_type_of<T>, "), but found to=", to,
                " and from=", from);
}

// ---- blocks of normals

// Places j and j + 8 of a block of sixteen uniform doubles, as in box_muller.h but with the C library's
// functions.
struct DoubleBlockLoop {
  static CRESSET_ALWAYS_INLINE void run(double* data, int64_t blocks, double mean, double std) {
    for (double* end = data + blocks * kNormalBlock; data != end; data += kNormalBlock)
      for (int j = 0; j < 8; ++j) {
        const double radius = std::sqrt(-2.0 * std::log(1.0 - data[j]));
        const double angle = 2.0 * std::numbers::pi * data[j + 8];
        data[j] = std::fma(radius * std::cos(angle), std, mean);
        data[j + 8] = std::fma(radius * std::sin(angle), std, mean);
      }
  }
};

inline void transform_blocks(float* data, int64_t blocks, float mean, float std) {
  constexpr int64_t kPiece = int64_t{1} << 14;  // between two looks for an interrupt
  for (int64_t at = 0; at < blocks; at += kPiece) {
    check_interrupt();
    float* const piece = data + at * kNormalBlock;
    const int64_t n = std::min(kPiece, blocks - at);
#if defined(__x86_64__)
    if (use_fma()) {
      box_muller_avx2(piece, n, mean, std);
      continue;
    }
#endif
    box_muller_scalar(piece, n, mean, std);
  }
}
inline void transform_blocks(double* data, int64_t blocks, double mean, double std) {
  parallel_for(0, blocks, kTranscendentalGrain / kNormalBlock,
               [&](int64_t b, int64_t e) { run<DoubleBlockLoop>(data + b * kNormalBlock, e - b, mean, std); });
}

inline void check_normal_std(double std) { CRESSET_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std); }

}  // namespace cresset::cpu::random_detail
