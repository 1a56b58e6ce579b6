// Running totals along a dimension, and order statistics (median, mode) of the reduce family.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/lines.h"
#include "backends/cpu/radix_sort.h"
#include "cpu/cpu_decl_reduce.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

namespace {

constexpr int64_t kRunBlock = 1 << 14;  // elements of a long line that are added up by themselves

// Running values are kept wider than they are stored.
template <class T>
struct RunningType {
  using type = T;
};
template <>
struct RunningType<float> {
  using type = double;
};
template <>
struct RunningType<Half> {
  using type = float;
};
template <>
struct RunningType<BFloat16> {
  using type = float;
};
template <>
struct RunningType<std::complex<float>> {
  using type = std::complex<double>;
};

// Running values that may be added up in any order: no sum overflows in R, and in double the order of floats does not show.
template <class T>
inline constexpr bool kAnyOrder = std::is_same_v<T, float> || (std::is_integral_v<T> && !std::is_same_v<T, bool>);

// Running values of n neighbours after `before`, unless b is null; with kTotal returns the total of the n alone, which does not depend on
// `before`. `none` is what leaves another value alone.
template <bool kTotal, class T, class R, class F>
R run_line(const T* a, T* b, int64_t n, R before, R none, const F& step) {
  int64_t k = 0;
  R total[2] = {none, none};
  if constexpr (kAnyOrder<T>) {
    // Four together, so that a step does not wait for the one before it.
    for (; k + 8 <= n; k += 8)
      for (int half = 0; half < 2; ++half) {
        const T* const x = a + k + 4 * half;
        const R x0 = x[0], x2 = x[2], first = step(x0, static_cast<R>(x[1])), second = step(x2, static_cast<R>(x[3]));
        const R four = step(first, second);
        if constexpr (kTotal) total[half] = step(total[half], four);
        if (b) {
          T* const y = b + k + 4 * half;
          const R middle = step(before, first);
          y[0] = static_cast<T>(step(before, x0));
          y[1] = static_cast<T>(middle);
          y[2] = static_cast<T>(step(middle, x2));
          before = step(before, four);
          y[3] = static_cast<T>(before);
        }
      }
  }
  for (; k < n; ++k) {
    const R x = a[k];
    if constexpr (kTotal) total[0] = step(total[0], x);
    if (b) {
      before = step(before, x);
      b[k] = static_cast<T>(before);
    }
  }
  return step(total[0], total[1]);
}

// The same for a long line, in blocks of one size: each begins with the totals of those before it, so that the results do not depend on
// the number of threads.
template <class T, class R, class F>
void run_long_line(const T* a, T* b, int64_t n, R none, const F& step) {
  const int64_t blocks = (n + kRunBlock - 1) / kRunBlock;
  const auto run_block = [&](int64_t k, bool write, R before) {
    const int64_t at = k * kRunBlock;
    return run_line<true, T>(a + at, write ? b + at : nullptr, std::min(kRunBlock, n - at), before, none, step);
  };
  // Writes blocks [begin, end); returns what comes before the next one.
  const auto write = [&](int64_t begin, int64_t end, R before) {
    for (int64_t k = begin; k < end; ++k) before = step(before, run_block(k, true, before));
    return before;
  };
  // One thread writes the first blocks while the others only add up a part each, which takes about a third of the time; then each writes
  // a part.
  const int64_t threads = in_parallel_region() ? 1 : get_num_threads(),
                part = threads == 1 || blocks < 16 ? 0 : 3 * blocks / (3 * threads + 1);
  if (part == 0) return static_cast<void>(write(0, blocks, none));
  const int64_t first = blocks - threads * part;
  std::vector<R> before(static_cast<std::size_t>(blocks), none);
  parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (t == 0)
        before[first] = write(0, first, none);
      else
        for (int64_t k = first + (t - 1) * part; k < first + t * part; ++k) before[k + 1] = run_block(k, false, none);
    }
  });
  for (int64_t k = first; k + part < blocks; ++k) before[k + 1] = step(before[k], before[k + 1]);
  parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) write(first + t * part, first + (t + 1) * part, before[first + t * part]);
  });
}

// Both tensors contiguous: [outer, n, inner]. Columns run side by side, so that memory is read in order.
template <class T, bool kBlocks = false, class F>
void running(const Tensor& self, int64_t dim, const Tensor& out, typename RunningType<T>::type start, const F& step) {
  using R = typename RunningType<T>::type;
  const Tensor in = self.contiguous();
  const T* const from = in.const_data_ptr<T>();
  T* const to = out.mutable_data_ptr<T>();
  int64_t outer = 1, n = 1, inner = 1;
  const int64_t d = maybe_wrap_dim(dim, in.dim());
  for (int64_t i = 0; i < in.dim(); ++i) (i < d ? outer : i == d ? n : inner) *= in.size(i);
  if (inner == 1) {
    const bool by_lines = outer >= get_num_threads() || n <= kRunBlock;
    parallel_for(0, outer, by_lines ? std::max<int64_t>(1, kLineWork / n) : outer, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (kBlocks && kAnyOrder<T>) {
          if (n > kRunBlock) {
            run_long_line<T, R>(from + i * n, to + i * n, n, start, step);
            continue;
          }
        }
        run_line<false, T, R>(from + i * n, to + i * n, n, start, start, step);
      }
    });
    return;
  }
  const int64_t tile = column_tile(inner), tiles = (inner + tile - 1) / tile;
  parallel_for(0, outer * tiles, std::max<int64_t>(1, kLineWork / (n * std::min(inner, tile))), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % tiles * tile, width = std::min(tile, inner - column);
      const T* a = from + i / tiles * n * inner + column;
      T* b = to + i / tiles * n * inner + column;
      R acc[kColumnTile];
      std::fill_n(acc, width, start);
      for (int64_t k = 0; k < n; ++k, a += inner, b += inner)
        for (int64_t c = 0; c < width; ++c) {
          acc[c] = step(acc[c], static_cast<R>(a[c]));
          b[c] = static_cast<T>(acc[c]);
        }
    }
  });
}

template <class R>
R multiply(R a, R b) {
  if constexpr (std::is_same_v<R, bool>)
    return a && b;
  else
    return static_cast<R>(a * b);
}

Tensor in_type(const Tensor& self, const Tensor& out) {
  return self.scalar_type() == out.scalar_type() ? self : self.to(out.scalar_type());
}

void running_extreme(const Tensor& given, int64_t dim, const Tensor& values, const Tensor& indices, bool max) {
  if (given.numel() == 0) return;
  const Tensor self = standard_bools(given);
  int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
  CRESSET_DISPATCH(self.scalar_type(), max ? "cummax_cpu" : "cummin_cpu", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const to = values.mutable_data_ptr<scalar_t>();
    for_each_line<3>(dim, self.sizes(), {self.strides(), values.strides(), indices.strides()}, [&](const LineAt<3>& l) {
      C best{};
      int64_t at = 0;
      for (int64_t i = 0; i < l.size; ++i) {
        const C v = static_cast<C>(from[l.offset[0] + i * l.stride[0]]);
        // The last of equals; once NaN, only a later NaN takes over.
        if (i == 0 || v != v || (best == best && (max ? v >= best : v <= best))) {
          best = v;
          at = i;
        }
        to[l.offset[1] + i * l.stride[1]] = static_cast<scalar_t>(best);
        to_index[l.offset[2] + i * l.stride[2]] = at;
      }
    });
  });
}

}  // namespace

namespace {
// Truth values add up in int64; a result of truth values is refused, as in PyTorch, where there is something to add.
void check_running(const char* op, const Tensor& out) {
  CRESSET_CHECK_NOT_IMPLEMENTED(out.scalar_type() != kBool || out.dim() == 0, "\"", op, "_out_cpu\" not implemented for 'Bool'");
}
}  // namespace

void cumsum(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  if (out.numel() == 0) return;
  check_running("cumsum", out);
  const Tensor from = in_type(self, out);
  CRESSET_DISPATCH(out.scalar_type(), "cumsum_cpu", CRESSET_ALL_TYPES, [&] {
    using R = typename RunningType<scalar_t>::type;
    running<scalar_t, true>(from, dim, out, R(0), [](R a, R b) { return static_cast<R>(a + b); });
  });
}
void cumprod(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  if (out.numel() == 0) return;
  check_running("cumprod", out);
  const Tensor from = in_type(self, out);
  CRESSET_DISPATCH(out.scalar_type(), "cumprod_cpu", CRESSET_ALL_TYPES, [&] {
    using R = typename RunningType<scalar_t>::type;
    running<scalar_t>(from, dim, out, R(1), [](R a, R b) { return multiply(a, b); });
  });
}
namespace {
// log(exp(a) + exp(b)), with the larger one (by its real part) outside of the exponential.
template <class R>
R log_add_exp(R a, R b) {
  const R high = a != a || b != b ? a + b : std::max(a, b), low = std::min(a, b);
  if (high != high || std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}
template <class R>
std::complex<R> log_add_exp(std::complex<R> a, std::complex<R> b) {
  if (a != a || b != b) return {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::quiet_NaN()};
  const bool first = a.real() >= b.real();
  const std::complex<R> high = first ? a : b, low = first ? b : a;
  if (std::isinf(high.real()) || std::isinf(low.real())) return high;
  return high + std::log(R(1) + std::exp(low - high));
}
}  // namespace
void logcumsumexp(const Tensor& self, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  CRESSET_DISPATCH(out.scalar_type(), "logcumsumexp_out_cpu", CRESSET_FLOATING_AND_COMPLEX_TYPES, [&] {
    using R = typename RunningType<scalar_t>::type;
    using Part = decltype(std::abs(R()));
    running<scalar_t>(self, dim, out, R(-std::numeric_limits<Part>::infinity()), [](R a, R b) { return log_add_exp(a, b); });
  });
}
void cummax(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  running_extreme(self, dim, values, indices, true);
}
void cummin(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  running_extreme(self, dim, values, indices, false);
}

// ---- order statistics ------------------------------------------------------------------------------------------------

namespace {

// Position of the lower median; a NaN wins, or is left out when skip_nan.
template <class K>
int64_t median_index(const KeysOf<K>& keys, const void* p, int64_t n, int64_t stride, bool skip_nan, Items<Item<K>>& items) {
  load_items(keys, p, n, stride, false, items);
  int64_t numbers = n;
  if (keys.has_nan) {
    const auto is_nan = [&](const Item<K>& item) { return keys.is_nan(item.key); };
    if (!skip_nan) {
      if (const auto first = std::find_if(items.begin(), items.end(), is_nan); first != items.end()) return first->index;
    } else {
      numbers -= std::count_if(items.begin(), items.end(), is_nan);
      if (numbers == 0) return 0;
    }
  }
  const auto middle = items.begin() + (numbers - 1) / 2;  // NaNs are the largest
  std::nth_element(items.begin(), middle, items.end(), by_key_and_index<K>);
  return middle->index;
}

// f(keys, line, index of the element to choose) along each line; results are dense in the order of lines.
template <class Choose>
void choose_along(const Tensor& self, int64_t dim, const char* name, const Tensor& values, const Tensor& indices, int64_t cost,
                  const Choose& choose) {
  if (values.numel() == 0) return;
  with_keys(self.scalar_type(), name, [&]<class K>(const KeysOf<K>& keys) {
    const K* const from = static_cast<const K*>(self.const_data_ptr());
    K* const to = static_cast<K*>(values.mutable_data_ptr());
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    for_each_line_with<std::array<Items<Item<K>>, 2>, 1>(
        dim, self.sizes(), {self.strides()},
        [&](const LineAt<1>& l, std::array<Items<Item<K>>, 2>& items) {
          const K* const line = from + l.offset[0];
          const int64_t i = choose(keys, line, l, items);
          to[l.number] = line[i * l.stride[0]];
          to_index[l.number] = i;
        },
        cost);
  });
}

void median_along(const Tensor& self, int64_t dim, bool skip_nan, const Tensor& values, const Tensor& indices) {
  if (values.numel() > 0) check_not_bool("median_cpu", self);
  choose_along(self, dim, "median_cpu", values, indices, 8, [&](const auto& keys, const auto* line, const LineAt<1>& l, auto& items) {
    return median_index(keys, line, l.size, l.stride[0], skip_nan, items[0]);
  });
}
void median_of_all(const Tensor& self, bool skip_nan, const Tensor& out) {
  check_not_bool("median_cpu", self);
  const Tensor flat = self.contiguous();
  if (flat.numel() == 0) {
    CRESSET_DISPATCH(self.scalar_type(), "median_cpu", CRESSET_REAL_TYPES,
                     [&] { *out.mutable_data_ptr<scalar_t>() = static_cast<scalar_t>(std::nanf("")); });
    return;
  }
  with_keys(self.scalar_type(), "median_cpu", [&]<class K>(const KeysOf<K>& keys) {
    Items<Item<K>> items;
    const K* const p = static_cast<const K*>(flat.const_data_ptr());
    *static_cast<K*>(out.mutable_data_ptr()) = p[median_index(keys, p, flat.numel(), 1, skip_nan, items)];
  });
}

}  // namespace

void median_all(const Tensor& self, const Tensor& out) { median_of_all(self, false, out); }
void nanmedian_all(const Tensor& self, const Tensor& out) { median_of_all(self, true, out); }
void median_dim(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  median_along(self, dim, false, values, indices);
}
void nanmedian_dim(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  median_along(self, dim, true, values, indices);
}

void mode(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  choose_along(standard_bools(self), dim, "mode_cpu", values, indices, 16,
               [](const auto& keys, const auto* line, const LineAt<1>& l, auto& items) {
                 auto& sorted = items[0];
                 load_items(keys, line, l.size, l.stride[0], false, sorted);
                 sort_items(sorted, items[1]);
                 int64_t best = 0, best_count = 0;
                 for (int64_t i = 0, j; i < l.size; i = j) {
                   j = i + 1;
                   if (!keys.is_nan(sorted[i].key))
                     while (j < l.size && sorted[j].key == sorted[i].key) ++j;
                   if (j - i > best_count) {
                     best_count = j - i;
                     best = sorted[j - 1].index;
                   }
                 }
                 return best;
               });
}

}  // namespace cresset::cpu
