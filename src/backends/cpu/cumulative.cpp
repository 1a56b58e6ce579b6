// Running totals along a dimension, and order statistics (median, mode) of the reduce family.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>

#include "backends/cpu/lines.h"
#include "cpu/cpu_decl_reduce.h"
#include "ops/shape_util.h"
#include "ops/structured.h"

namespace cresset::cpu {

namespace {

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

// Both tensors contiguous: [outer, n, inner]. Columns run side by side, so that memory is read in order.
template <class T, class F>
void running(const Tensor& self, int64_t dim, const Tensor& out, typename RunningType<T>::type start, const F& step) {
  using R = typename RunningType<T>::type;
  const Tensor in = self.contiguous();
  const T* const from = in.const_data_ptr<T>();
  T* const to = out.mutable_data_ptr<T>();
  int64_t outer = 1, n = 1, inner = 1;
  const int64_t d = maybe_wrap_dim(dim, in.dim());
  for (int64_t i = 0; i < in.dim(); ++i) (i < d ? outer : i == d ? n : inner) *= in.size(i);
  const int64_t tile = column_tile(inner), tiles = (inner + tile - 1) / tile;
  parallel_for(0, outer * tiles, std::max<int64_t>(1, kLineWork / (n * std::min(inner, tile))), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % tiles * tile, width = std::min(tile, inner - column);
      const T* a = from + i / tiles * n * inner + column;
      T* b = to + i / tiles * n * inner + column;
      R acc[kColumnTile];
      std::fill_n(acc, width, start);
      if (inner == 1) {
        R one = start;
        int64_t k = 0;
        if constexpr (std::is_same_v<T, float>) {
          // Pairs first: in double the order of floats does not show, and a step no longer waits for the one before it.
          for (; k + 4 <= n; k += 4) {
            const R x0 = a[k], x2 = a[k + 2], first = step(x0, static_cast<R>(a[k + 1])), second = step(x2, static_cast<R>(a[k + 3]));
            const R middle = step(one, first);
            b[k] = static_cast<T>(step(one, x0));
            b[k + 1] = static_cast<T>(middle);
            b[k + 2] = static_cast<T>(step(middle, x2));
            one = step(one, step(first, second));
            b[k + 3] = static_cast<T>(one);
          }
        }
        for (; k < n; ++k) {
          one = step(one, static_cast<R>(a[k]));
          b[k] = static_cast<T>(one);
        }
        continue;
      }
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

void running_extreme(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices, bool max) {
  if (self.numel() == 0) return;
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
void check_not_bool(const char* op, const Tensor& out) {
  CRESSET_CHECK_NOT_IMPLEMENTED(out.scalar_type() != kBool || out.dim() == 0, "\"", op, "_out_cpu\" not implemented for 'Bool'");
}
}  // namespace

void cumsum(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  if (out.numel() == 0) return;
  check_not_bool("cumsum", out);
  const Tensor from = in_type(self, out);
  CRESSET_DISPATCH(out.scalar_type(), "cumsum_cpu", CRESSET_ALL_TYPES, [&] {
    using R = typename RunningType<scalar_t>::type;
    running<scalar_t>(from, dim, out, R(0), [](R a, R b) { return static_cast<R>(a + b); });
  });
}
void cumprod(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  if (out.numel() == 0) return;
  check_not_bool("cumprod", out);
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
template <class T>
int64_t median_index(const T* p, int64_t n, int64_t stride, bool skip_nan, std::vector<int64_t>& order) {
  using C = opmath_type<T>;
  const auto at = [&](int64_t i) { return static_cast<C>(p[i * stride]); };
  order.clear();
  for (int64_t i = 0; i < n; ++i) {
    if (at(i) == at(i))
      order.push_back(i);
    else if (!skip_nan)
      return i;
  }
  if (order.empty()) return 0;
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(), [&](int64_t a, int64_t b) { return at(a) != at(b) ? at(a) < at(b) : a < b; });
  return *middle;
}

void median_along(const Tensor& self, int64_t dim, bool skip_nan, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  CRESSET_DISPATCH(self.scalar_type(), "median_cpu", CRESSET_REAL_TYPES, [&] {
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const to = values.mutable_data_ptr<scalar_t>();
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    // Results are dense in the order of lines.
    for_each_line_with<std::vector<int64_t>, 1>(
        dim, self.sizes(), {self.strides()},
        [&](const LineAt<1>& l, std::vector<int64_t>& order) {
          const scalar_t* const line = from + l.offset[0];
          const int64_t i = median_index(line, l.size, l.stride[0], skip_nan, order);
          to[l.number] = line[i * l.stride[0]];
          to_index[l.number] = i;
        },
        8);
  });
}
void median_of_all(const Tensor& self, bool skip_nan, const Tensor& out) {
  const Tensor flat = self.contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "median_cpu", CRESSET_REAL_TYPES, [&] {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    if (flat.numel() == 0) {
      *to = static_cast<scalar_t>(std::nanf(""));
      return;
    }
    std::vector<int64_t> order;
    const scalar_t* const p = flat.const_data_ptr<scalar_t>();
    *to = p[median_index(p, flat.numel(), 1, skip_nan, order)];
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
  if (values.numel() == 0) return;
  CRESSET_DISPATCH(self.scalar_type(), "mode_cpu", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const to = values.mutable_data_ptr<scalar_t>();
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    for_each_line_with<std::vector<int64_t>, 1>(
        dim, self.sizes(), {self.strides()},
        [&](const LineAt<1>& l, std::vector<int64_t>& order) {
          order.resize(static_cast<std::size_t>(l.size));
          std::iota(order.begin(), order.end(), 0);
          const auto at = [&](int64_t i) { return static_cast<C>(from[l.offset[0] + i * l.stride[0]]); };
          std::stable_sort(order.begin(), order.end(),
                           [&](int64_t a, int64_t b) { return at(a) < at(b) || (at(a) == at(a) && at(b) != at(b)); });
          int64_t best = 0, best_count = 0;
          for (int64_t i = 0; i < l.size;) {
            int64_t j = i + 1;
            while (j < l.size && at(order[j]) == at(order[i])) ++j;
            if (j - i > best_count) {
              best_count = j - i;
              best = order[j - 1];
            }
            i = j;
          }
          to[l.number] = from[l.offset[0] + best * l.stride[0]];
          to_index[l.number] = best;
        },
        16);
  });
}

}  // namespace cresset::cpu
