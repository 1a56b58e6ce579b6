// The folds of reduce_fold.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cresset/base/half.h>
#include <cresset/core/scalar_type.h>

#include "backends/cpu/reduce_fold.h"
// Last, because it changes the instruction set.
#include "backends/cpu/isa_begin.h"

#include "backends/cpu/reduced_strips.h"
#include "backends/cpu/vector_types.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

template <class T>
constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::max();
}
template <class T>
constexpr bool is_nan(T v) {
  return v != v;
}

CRESSET_VECTOR_INLINE float to_float(Half h) { return static_cast<float>(h); }
CRESSET_VECTOR_INLINE float to_float(BFloat16 h) { return __builtin_bit_cast(float, static_cast<uint32_t>(h.x) << 16); }
template <class T>
  requires std::is_arithmetic_v<T>
CRESSET_VECTOR_INLINE T to_float(T v) {
  return v;
}
template <class H>
  requires has_strips<H>
CRESSET_VECTOR_INLINE Floats load16(const H* p) {
  float strip[kStrip];  // stays in registers
  widen_strip(p, strip);
  return load16(strip);
}

// ---- what is folded: Acc, start, take one element, join two accumulators, take a contiguous run, take rows of columns --
//
// run_of, where an operation has it, takes a run of half types as well.

// Elements are mapped by `Map` and added up in double (floating types) or int64. With `in_floats`, up to eight mapped floats are
// added in float first: that is as exact as a tree of additions, and the conversions are no longer what a sum waits for.
struct Plain {
  static constexpr bool in_floats = true;
  template <class V>
  CRESSET_VECTOR_INLINE static const V& map(const V& v) {
    return v;
  }
};
struct Square {
  static constexpr bool in_floats = false;  // may overflow
  template <class V>
  CRESSET_VECTOR_INLINE static V map(const V& v) {
    return v * v;
  }
};
struct Absolute {
  static constexpr bool in_floats = true;
  template <class V>
    requires std::is_arithmetic_v<V>
  CRESSET_VECTOR_INLINE static V map(V v) {
    return v < 0 ? -v : v;
  }
  template <class V>
    requires(!std::is_arithmetic_v<V>)
  CRESSET_VECTOR_INLINE static V map(const V& v) {
    return choose(v < V{}, -v, v);
  }
};
struct NanAsZero {
  static constexpr bool in_floats = true;
  template <class V>
    requires std::is_arithmetic_v<V>
  CRESSET_VECTOR_INLINE static V map(V v) {
    return v == v ? v : V(0);
  }
  template <class V>
    requires(!std::is_arithmetic_v<V>)
  CRESSET_VECTOR_INLINE static V map(const V& v) {
    return choose(v == v, v, V{});
  }
};

template <class T, class Map>
struct SumOf {
  using Acc = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  static constexpr Acc start = 0;
  CRESSET_VECTOR_INLINE static void take(Acc& acc, T v, int64_t) { acc += Map::map(static_cast<Acc>(v)); }
  static void join(Acc& acc, const Acc& other) { acc += other; }
  CRESSET_NOINLINE static void run(Acc& acc, const T* p, int64_t n, int64_t) {
    if constexpr (std::is_floating_point_v<T>) {
      acc += sum(p, n);
    } else {
      Acc s = 0;
      for (int64_t i = 0; i < n; ++i) s += Map::map(static_cast<Acc>(p[i]));
      acc += s;
    }
  }
  template <class H>
    requires Map::in_floats
  CRESSET_NOINLINE static void run_of(Acc& acc, const H* p, int64_t n) {
    int64_t i = 0;
    double s = total(sum_floats(n, i, [&](int64_t k) CRESSET_INLINE_LAMBDA { return Map::map(load16(p + k)); }));
    for (; i < n; ++i) s += Map::map(static_cast<double>(to_float(p[i])));
    acc += s;
  }
  CRESSET_NOINLINE static double sum(const T* p, int64_t n) {
    // float sums in double lose nothing that matters; sums of doubles are taken pairwise.
    if (std::is_same_v<T, double> && n > 4096) {
      const int64_t half = n / 64 * 32;
      return sum(p, half) + sum(p + half, n - half);
    }
    Doubles a{}, b{}, c{}, d{};
    int64_t i = 0;
    if constexpr (std::is_same_v<T, float> && Map::in_floats) {
      a = sum_floats(n, i, [&](int64_t k) CRESSET_INLINE_LAMBDA { return Map::map(load16(p + k)); });
    }
    for (; i + 32 <= n; i += 32) {
      a += Map::map(load8(p + i));
      b += Map::map(load8(p + i + 8));
      c += Map::map(load8(p + i + 16));
      d += Map::map(load8(p + i + 24));
    }
    for (; i + 8 <= n; i += 8) a += Map::map(load8(p + i));
    double rest = 0;
    for (; i < n; ++i) rest += Map::map(static_cast<double>(p[i]));
    return total((a + b) + (c + d)) + rest;
  }
  CRESSET_NOINLINE static void columns(const T* p, int64_t count, int64_t row_stride, int64_t n, int64_t, Acc* acc) {
    Acc block[kFoldTile];
    for (int64_t r = 0; r < count;) {
      const int64_t end = std::min(count, r + 256);
      for (int64_t c = 0; c < n; ++c) block[c] = 0;
      if constexpr (std::is_same_v<T, float> && Map::in_floats) {
        for (; r + 8 <= end; r += 8) {
          const T *p0 = p + r * row_stride, *p4 = p0 + 4 * row_stride;
          const int64_t s = row_stride;
          for (int64_t c = 0; c < n; ++c)
            block[c] += static_cast<Acc>(((Map::map(p0[c]) + Map::map(p0[c + s])) + (Map::map(p0[c + 2 * s]) + Map::map(p0[c + 3 * s]))) +
                                         ((Map::map(p4[c]) + Map::map(p4[c + s])) + (Map::map(p4[c + 2 * s]) + Map::map(p4[c + 3 * s]))));
        }
      }
      for (; r + 4 <= end; r += 4) {
        const T *p0 = p + r * row_stride, *p1 = p0 + row_stride, *p2 = p1 + row_stride, *p3 = p2 + row_stride;
        for (int64_t c = 0; c < n; ++c)
          block[c] += (Map::map(static_cast<Acc>(p0[c])) + Map::map(static_cast<Acc>(p1[c]))) +
                      (Map::map(static_cast<Acc>(p2[c])) + Map::map(static_cast<Acc>(p3[c])));
      }
      for (; r < end; ++r) {
        const T* row = p + r * row_stride;
        for (int64_t c = 0; c < n; ++c) block[c] += Map::map(static_cast<Acc>(row[c]));
      }
      for (int64_t c = 0; c < n; ++c) acc[c] += block[c];
    }
  }
};

template <class T>
struct ProductOf {
  using Acc = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  static constexpr Acc start = 1;
  CRESSET_VECTOR_INLINE static void take(Acc& acc, T v, int64_t) { acc = mul(acc, static_cast<Acc>(v)); }
  static void join(Acc& acc, const Acc& other) { acc = mul(acc, other); }
  CRESSET_VECTOR_INLINE static Acc mul(Acc a, Acc b) {
    if constexpr (std::is_same_v<Acc, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
  CRESSET_NOINLINE static void run(Acc& acc, const T* p, int64_t n, int64_t) {
    // Lanes stay unsigned: GCC 12 loses factors when products are cast to the signed type in between.
    using Lane = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    Lane lanes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (int k = 0; k < 8; ++k) lanes[k] *= static_cast<Lane>(p[i + k]);
    Lane r = ((lanes[0] * lanes[1]) * (lanes[2] * lanes[3])) * ((lanes[4] * lanes[5]) * (lanes[6] * lanes[7]));
    for (; i < n; ++i) r *= static_cast<Lane>(p[i]);
    acc = mul(acc, static_cast<Acc>(r));
  }
  CRESSET_NOINLINE static void columns(const T* p, int64_t count, int64_t row_stride, int64_t n, int64_t, Acc* acc) {
    for (int64_t r = 0; r < count; ++r, p += row_stride)
      for (int64_t c = 0; c < n; ++c) acc[c] = mul(acc[c], static_cast<Acc>(p[c]));
  }
};

template <class T>
struct CountOf {
  using Acc = int64_t;
  static constexpr Acc start = 0;
  CRESSET_VECTOR_INLINE static void take(Acc& acc, T v, int64_t) { acc += v != T(0); }
  static void join(Acc& acc, const Acc& other) { acc += other; }
  CRESSET_NOINLINE static void run(Acc& acc, const T* p, int64_t n, int64_t) {
    for (int64_t i = 0; i < n;) {
      const int64_t end = std::min(n, i + (int64_t{1} << 30));
      int32_t s = 0;
      for (; i < end; ++i) s += p[i] != T(0);
      acc += s;
    }
  }
  CRESSET_NOINLINE static void columns(const T* p, int64_t count, int64_t row_stride, int64_t n, int64_t, Acc* acc) {
    for (int64_t r = 0; r < count; ++r, p += row_stride)
      for (int64_t c = 0; c < n; ++c) acc[c] += p[c] != T(0);
  }
};

// The larger or smaller of elements as they are (Acc = T) or of their absolute values (Acc = double); NaN wins.
template <class T, bool max, bool absolute>
struct ExtremeOf {
  using Acc = std::conditional_t<absolute, double, T>;
  static constexpr Acc start = max ? (absolute ? Acc(-1) : lowest<Acc>()) : highest<Acc>();
  CRESSET_VECTOR_INLINE static Acc map(T v) {
    if constexpr (absolute)
      return v < 0 ? -static_cast<double>(v) : static_cast<double>(v);
    else
      return v;
  }
  CRESSET_VECTOR_INLINE static Acc better(Acc acc, Acc v) {
    const Acc kept = (max ? v > acc : v < acc) ? v : acc;  // a NaN in acc stays
    if constexpr (std::is_floating_point_v<Acc>)
      return is_nan(v) ? v : kept;
    else
      return kept;
  }
  CRESSET_VECTOR_INLINE static void take(Acc& acc, T v, int64_t) { acc = better(acc, map(v)); }
  static void join(Acc& acc, const Acc& other) { acc = better(acc, other); }
  CRESSET_NOINLINE static void run(Acc& acc, const T* p, int64_t n, int64_t) {
    if constexpr (std::is_same_v<T, float>) {
      acc = better(acc, vector_run<Floats>(p, n));
    } else if constexpr (std::is_same_v<T, double>) {
      acc = better(acc, vector_run<Doubles>(p, n));
    } else {
      Acc m = acc;
      for (int64_t i = 0; i < n; ++i) m = better(m, map(p[i]));
      acc = m;
    }
  }
  template <class V>
  CRESSET_VECTOR_INLINE static V better_of(const V& a, const V& v) {
    return choose((max ? v > a : v < a) | (v != v), v, a);
  }
  template <class V, class E>
  CRESSET_VECTOR_INLINE static V load_mapped(const E* p) {
    V v;
    if constexpr (std::is_same_v<E, double>)
      v = load8(p);
    else
      v = load16(p);
    return absolute ? choose(v < V{}, -v, v) : v;
  }
  template <class V, class E>
  CRESSET_VECTOR_INLINE static Acc vector_run(const E* p, int64_t n) {
    constexpr int64_t width = sizeof(V) / sizeof(T);
    V a = all<V>(static_cast<T>(start)), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
      a = better_of(a, load_mapped<V>(p + i));
      b = better_of(b, load_mapped<V>(p + i + width));
      c = better_of(c, load_mapped<V>(p + i + 2 * width));
      d = better_of(d, load_mapped<V>(p + i + 3 * width));
    }
    for (; i + width <= n; i += width) a = better_of(a, load_mapped<V>(p + i));
    const V best = better_of(better_of(a, b), better_of(c, d));
    Acc m = join_all(best, [](T x, T y) CRESSET_INLINE_LAMBDA { return static_cast<T>(better(x, y)); });
    for (; i < n; ++i) m = better(m, map(to_float(p[i])));
    return m;
  }
  template <class H>
  CRESSET_NOINLINE static void run_of(Acc& acc, const H* p, int64_t n) {
    acc = better(acc, vector_run<Floats>(p, n));
  }
  CRESSET_NOINLINE static void columns(const T* p, int64_t count, int64_t row_stride, int64_t n, int64_t, Acc* acc) {
    for (int64_t r = 0; r < count; ++r, p += row_stride)
      for (int64_t c = 0; c < n; ++c) acc[c] = better(acc[c], map(p[c]));
  }
};

template <class T>
struct MomentsOf {
  using Acc = FoldMoments;
  static constexpr Acc start = {0, 0, 0};
  static constexpr int64_t kBlock = 256;
  static void join(Acc& a, const Acc& b) {
    if (b.n == 0) return;
    if (a.n == 0) {
      a = b;
      return;
    }
    const double n = a.n + b.n, delta = b.mean - a.mean;
    a.m2 += b.m2 + delta * delta * (a.n * b.n / n);
    a.mean += delta * (b.n / n);
    a.n = n;
  }
  static void take(Acc& acc, T v, int64_t) { join(acc, {1, static_cast<double>(v), 0}); }
  CRESSET_NOINLINE static void run(Acc& acc, const T* p, int64_t n, int64_t) {
    // Mean first, then distances from it, block by block, so that the block is still in the cache.
    for (int64_t i = 0; i < n; i += 4 * kBlock) {
      const int64_t len = std::min(n - i, 4 * kBlock);
      const double mean = SumOf<T, Plain>::sum(p + i, len) / static_cast<double>(len);
      Doubles a{}, b{};
      int64_t k = 0;
      for (; k + 16 <= len; k += 16) {
        const Doubles x = load8(p + i + k) - mean, y = load8(p + i + k + 8) - mean;
        a += x * x;
        b += y * y;
      }
      double m2 = total(a + b);
      for (; k < len; ++k) {
        const double x = static_cast<double>(p[i + k]) - mean;
        m2 += x * x;
      }
      join(acc, {static_cast<double>(len), mean, m2});
    }
  }
  CRESSET_NOINLINE static void columns(const T* p, int64_t count, int64_t row_stride, int64_t n, int64_t, Acc* acc) {
    double mean[kBlock], m2[kBlock];
    for (int64_t c0 = 0; c0 < n; c0 += kBlock) {
      const int64_t width = std::min(n - c0, kBlock);
      for (int64_t r0 = 0; r0 < count; r0 += 32) {
        const int64_t rows = std::min<int64_t>(count - r0, 32);
        const T* const base = p + c0 + r0 * row_stride;
        for (int64_t c = 0; c < width; ++c) mean[c] = m2[c] = 0;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < width; ++c) mean[c] += static_cast<double>(base[r * row_stride + c]);
        for (int64_t c = 0; c < width; ++c) mean[c] /= static_cast<double>(rows);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < width; ++c) {
            const double x = static_cast<double>(base[r * row_stride + c]) - mean[c];
            m2[c] += x * x;
          }
        for (int64_t c = 0; c < width; ++c) join(acc[c0 + c], {static_cast<double>(rows), mean[c], m2[c]});
      }
    }
  }
};

template <class T, bool max>
struct ArgOf {
  using Acc = FoldIndexed;
  using Extreme = ExtremeOf<T, max, false>;
  static constexpr Acc start = {0, 0, -1};
  CRESSET_VECTOR_INLINE static T value(const Acc& a) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(a.value);
    else
      return static_cast<T>(a.exact);
  }
  CRESSET_VECTOR_INLINE static bool beats(T v, const Acc& acc) {
    if (acc.index < 0) return true;
    const T best = value(acc);
    return (max ? v > best : v < best) || (is_nan(v) && !is_nan(best));
  }
  CRESSET_VECTOR_INLINE static void put(Acc& acc, T v, int64_t index) {
    if constexpr (std::is_floating_point_v<T>)
      acc.value = v;
    else
      acc.exact = v;
    acc.index = index;
  }
  CRESSET_VECTOR_INLINE static void take(Acc& acc, T v, int64_t index) {
    if (beats(v, acc)) put(acc, v, index);
  }
  static void join(Acc& acc, const Acc& other) {
    if (other.index >= 0) take(acc, value(other), other.index);
  }
  CRESSET_NOINLINE static void run(Acc& acc, const T* p, int64_t n, int64_t first) {
    // The best value of a block by vector code; its place is looked for only when it beats all before.
    for (int64_t i = 0; i < n; i += 512) {
      const int64_t len = std::min<int64_t>(n - i, 512);
      T best = Extreme::start;
      Extreme::run(best, p + i, len, 0);
      if (!beats(best, acc)) continue;
      int64_t k = 0;
      while (k + 1 < len && !(p[i + k] == best || (is_nan(best) && is_nan(p[i + k])))) ++k;
      put(acc, best, first + i + k);
    }
  }
  CRESSET_NOINLINE static void columns(const T* p, int64_t count, int64_t row_stride, int64_t n, int64_t first, Acc* acc) {
    using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr int64_t kRows = int64_t{1} << 30;
    T best[kFoldTile];
    Index at[kFoldTile];
    for (int64_t r0 = 0; r0 < count; r0 += kRows) {
      const int64_t rows = std::min(count - r0, kRows);
      const T* row = p + r0 * row_stride;
      for (int64_t c = 0; c < n; ++c) {
        best[c] = row[c];
        at[c] = 0;
      }
      row += row_stride;
      for (int64_t r = 1; r < rows; ++r, row += row_stride) {
        const Index index = static_cast<Index>(r);
        for (int64_t c = 0; c < n; ++c) {
          const T v = row[c], b = best[c];
          bool better = max ? v > b : v < b;
          if constexpr (std::is_floating_point_v<T>) better |= is_nan(v) & !is_nan(b);
          best[c] = better ? v : b;
          at[c] = better ? index : at[c];
        }
      }
      for (int64_t c = 0; c < n; ++c) take(acc[c], best[c], first + r0 + at[c]);
    }
  }
};

// ---- the table -----------------------------------------------------------------------------------------------------

template <class T, class Op>
struct Entry {
  using Acc = typename Op::Acc;
  static void init(void* acc, int64_t n) { std::fill_n(static_cast<Acc*>(acc), n, Op::start); }
  static void combine(void* acc, const void* other, int64_t n) {
    for (int64_t i = 0; i < n; ++i) Op::join(static_cast<Acc*>(acc)[i], static_cast<const Acc*>(other)[i]);
  }
  // Short rows are columns of a block that is turned; elements that lie apart are brought together.
  static void rows(const void* data, int64_t count, int64_t row_stride, int64_t n, int64_t stride, int64_t first, void* acc) {
    constexpr int64_t kShort = 16, kRows = 64, kBlock = 512;
    const T* p = static_cast<const T*>(data);
    Acc* const a = static_cast<Acc*>(acc);
    if (count > 1 && n <= kShort) {
      T block[kShort * kRows];
      for (int64_t r = 0, some; r < count && n > 0; r += some, p += some * row_stride) {
        some = std::min(kRows, count - r);
        for (int64_t k = 0; k < some; ++k)
          for (int64_t i = 0; i < n; ++i) block[i * some + k] = p[k * row_stride + i * stride];
        Op::columns(block, n, some, some, first, a + r);
      }
      return;
    }
    for (int64_t r = 0; r < count; ++r, p += row_stride) {
      if (stride == 1) {
        Op::run(a[r], p, n, first);
        continue;
      }
      T block[kBlock];
      for (int64_t i = 0, some; i < n; i += some) {
        some = std::min(kBlock, n - i);
        for (int64_t k = 0; k < some; ++k) block[k] = p[(i + k) * stride];
        Op::run(a[r], block, some, first + i);
      }
    }
  }
  static void columns(const void* data, int64_t count, int64_t row_stride, int64_t n, int64_t first, void* acc) {
    if (count > 0) Op::columns(static_cast<const T*>(data), count, row_stride, n, first, static_cast<Acc*>(acc));
  }
  static constexpr Fold fold() { return {sizeof(Acc), init, rows, columns, combine}; }
};

template <class H>
CRESSET_NOINLINE void widen(const H* p, int64_t n, int64_t stride, float* to) {
  int64_t i = 0;
  if (stride == 1)
    for (; i + kStrip <= n; i += kStrip) widen_strip(p + i, to + i);
  if (stride == 1)
    for (; i < n; ++i) to[i] = to_float(p[i]);
  else
    for (; i < n; ++i) to[i] = to_float(p[i * stride]);
}

// Half types are folded as float, widened block by block where an operation does not read them itself.
template <class H, class Op>
struct HalfEntry {
  using Acc = typename Op::Acc;
  using Base = Entry<float, Op>;
  static constexpr int64_t kBlock = 4096, kRows = 32, kColumns = 256;
  static void rows(const void* data, int64_t count, int64_t row_stride, int64_t n, int64_t stride, int64_t first, void* acc) {
    const H* p = static_cast<const H*>(data);
    if constexpr (requires(Acc& a) { Op::run_of(a, p, n); }) {
      if (stride == 1) {
        for (int64_t r = 0; r < count; ++r, p += row_stride) Op::run_of(static_cast<Acc*>(acc)[r], p, n);
        return;
      }
    }
    float block[kBlock];
    for (int64_t r = 0; r < count; ++r, p += row_stride)
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t len = std::min(n - i, kBlock);
        widen(p + i * stride, len, stride, block);
        Op::run(static_cast<Acc*>(acc)[r], block, len, first + i);
      }
  }
  static void columns(const void* data, int64_t count, int64_t row_stride, int64_t n, int64_t first, void* acc) {
    const H* p = static_cast<const H*>(data);
    float block[kRows * kColumns];
    for (int64_t c = 0; c < n; c += kColumns) {
      const int64_t width = std::min(n - c, kColumns);
      for (int64_t r = 0; r < count; r += kRows) {
        const int64_t rows = std::min(count - r, kRows);
        for (int64_t k = 0; k < rows; ++k) widen(p + c + (r + k) * row_stride, width, 1, block + k * width);
        Op::columns(block, rows, width, width, first + r, static_cast<Acc*>(acc) + c);
      }
    }
  }
  static constexpr Fold fold() { return {sizeof(Acc), Base::init, rows, columns, Base::combine}; }
};

template <class T>
using PlainSum = SumOf<T, Plain>;
template <class T>
using NanSum = SumOf<T, NanAsZero>;
template <class T>
using AbsoluteSum = SumOf<T, Absolute>;
template <class T>
using SquareSum = SumOf<T, Square>;
template <class T>
using Largest = ExtremeOf<T, true, false>;
template <class T>
using Smallest = ExtremeOf<T, false, false>;
template <class T>
using LargestAbsolute = ExtremeOf<T, true, true>;
template <class T>
using SmallestAbsolute = ExtremeOf<T, false, true>;
template <class T>
using ArgLargest = ArgOf<T, true>;
template <class T>
using ArgSmallest = ArgOf<T, false>;

template <template <class> class Op>
constexpr void fill(Fold* row) {
  const auto at = [&](ScalarType t) -> Fold& { return row[static_cast<int>(t)]; };
  at(ScalarType::Float) = Entry<float, Op<float>>::fold();
  at(ScalarType::Double) = Entry<double, Op<double>>::fold();
  at(ScalarType::Half) = HalfEntry<Half, Op<float>>::fold();
  at(ScalarType::BFloat16) = HalfEntry<BFloat16, Op<float>>::fold();
}
template <template <class> class Op>
constexpr void fill_integers(Fold* row) {
  const auto at = [&](ScalarType t) -> Fold& { return row[static_cast<int>(t)]; };
  at(ScalarType::Byte) = Entry<uint8_t, Op<uint8_t>>::fold();
  at(ScalarType::Bool) = Entry<uint8_t, Op<uint8_t>>::fold();
  at(ScalarType::Char) = Entry<int8_t, Op<int8_t>>::fold();
  at(ScalarType::Short) = Entry<int16_t, Op<int16_t>>::fold();
  at(ScalarType::Int) = Entry<int32_t, Op<int32_t>>::fold();
  at(ScalarType::Long) = Entry<int64_t, Op<int64_t>>::fold();
}

struct Table {
  FoldTable entries;
};
constexpr Table make_table() {
  Table t{};
  const auto row = [&](FoldKind k) { return t.entries[static_cast<int>(k)]; };
  fill<PlainSum>(row(FoldKind::Sum));
  fill_integers<PlainSum>(row(FoldKind::Sum));
  fill<NanSum>(row(FoldKind::NanSum));
  fill<ProductOf>(row(FoldKind::Prod));
  fill_integers<ProductOf>(row(FoldKind::Prod));
  fill<CountOf>(row(FoldKind::CountNonzero));
  fill_integers<CountOf>(row(FoldKind::CountNonzero));
  fill<Largest>(row(FoldKind::Max));
  fill_integers<Largest>(row(FoldKind::Max));
  fill<Smallest>(row(FoldKind::Min));
  fill_integers<Smallest>(row(FoldKind::Min));
  fill<AbsoluteSum>(row(FoldKind::SumAbs));
  fill<SquareSum>(row(FoldKind::SumSquares));
  fill<LargestAbsolute>(row(FoldKind::MaxAbs));
  fill<SmallestAbsolute>(row(FoldKind::MinAbs));
  fill<MomentsOf>(row(FoldKind::Moments));
  fill<ArgLargest>(row(FoldKind::ArgMax));
  fill_integers<ArgLargest>(row(FoldKind::ArgMax));
  fill<ArgSmallest>(row(FoldKind::ArgMin));
  fill_integers<ArgSmallest>(row(FoldKind::ArgMin));
  return t;
}
constexpr Table table = make_table();

}  // namespace

const FoldTable& folds() { return table.entries; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
