// Softmax, its logarithm and their gradients: rows and blocks of columns split among threads.
#include <algorithm>
#include <array>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_softmax.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/lines.h"
#include "backends/cpu/softmax_loops.h"
#include "cpu/cpu_decl_softmax.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

namespace {

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
};
Shape shape_of(const Tensor& t, int64_t dim) {
  Shape s;
  if (t.dim() == 0) return s;
  const int64_t d = maybe_wrap_dim(dim, t.dim());
  for (int64_t i = 0; i < t.dim(); ++i) (i < d ? s.outer : i == d ? s.n : s.inner) *= t.size(i);
  return s;
}

// rows(offset, number of rows) where elements of a row are neighbours, otherwise columns(offset, number of columns).
template <class R, class C>
void for_each_block(const Shape& s, const R& rows, const C& columns) {
  constexpr int64_t kWork = 1 << 13;  // exponentials worth waking a thread for
  if (s.inner == 1) {
    parallel_for(0, s.outer, std::max<int64_t>(1, kWork / s.n), [&](int64_t b, int64_t e) { rows(b * s.n, e - b); });
    return;
  }
  const int64_t tile = column_tile(s.inner), tiles = (s.inner + tile - 1) / tile;
  parallel_for(0, s.outer * tiles, std::max<int64_t>(1, kWork / (s.n * std::min(s.inner, tile))), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t column = i % tiles * tile;
      columns(i / tiles * s.n * s.inner + column, std::min(tile, s.inner - column));
    }
  });
}

// Half types are computed as float and converted at the ends.
bool through_float(const Tensor& t) { return isReducedFloatingType(t.scalar_type()); }

// Some rows of half types at a time: f(operands, result, rows) computes on floats in the second cache. False where elements of a row are no
// neighbours.
template <std::size_t N, class F>
bool each_half_rows(const std::array<Tensor, N>& in, const Tensor& out, const Shape& s, const F& f) {
  constexpr int64_t kBlock = 1 << 14, kLongest = 1 << 16, kWork = 1 << 13;  // elements
  const ScalarType type = out.scalar_type();
  const auto fits = [&](const Tensor& t) { return t.scalar_type() == type && t.is_contiguous(); };
  if (!isReducedFloatingType(type) || s.inner != 1 || s.n > kLongest || !fits(out) || !std::all_of(in.begin(), in.end(), fits))
    return false;
  const int64_t together = std::max<int64_t>(1, kBlock / s.n), bytes = out.element_size();
  const LoadFunction load = load_function(type, ComputeType::Float);
  const StoreFunction store = store_function(ComputeType::Float, type);
  parallel_for(0, s.outer, std::max<int64_t>(1, kWork / s.n), [&](int64_t begin, int64_t end) {
    const int64_t most = std::min(together, end - begin);
    const Tensor memory = detail::empty_cpu({static_cast<int64_t>(N) + 1, most * s.n}, kFloat);
    float* const result = memory.data_ptr<float>();
    std::array<float*, N> blocks;
    for (std::size_t i = 0; i < N; ++i) blocks[i] = result + static_cast<int64_t>(i + 1) * most * s.n;
    for (int64_t row = begin, some; row < end; row += some) {
      some = std::min(most, end - row);
      const auto rows = [&](const Tensor& t) { return Rows{static_cast<char*>(t.data_ptr()) + row * s.n * bytes, bytes, s.n * bytes}; };
      for (std::size_t i = 0; i < N; ++i) load(blocks[i], rows(in[i]), s.n, some);
      f(blocks, result, some);
      store(rows(out), result, s.n, some);
    }
  });
  return true;
}

void forward(const Tensor& self, int64_t dim, bool log, const Tensor& out) {
  if (out.numel() == 0) return;
  const SoftmaxLoops<float>& floats = find_softmax_loops<float>();
  const Shape whole = shape_of(self, dim);
  const auto rows = [&](const auto& from, float* to, int64_t n) { floats.forward_rows(from[0], to, n, whole.n, log); };
  if (each_half_rows(std::array{self}, out, whole, rows)) return;
  const Tensor in = (through_float(self) ? self.to(kFloat) : self).contiguous();
  const Tensor to = out.scalar_type() == in.scalar_type() ? out : detail::empty_cpu(out.sizes(), in.scalar_type());
  const Shape s = shape_of(in, dim);
  CRESSET_DISPATCH(in.scalar_type(), "softmax", CRESSET_FLOATING_TYPES, [&] {
    const SoftmaxLoops<scalar_t>& loops = find_softmax_loops<scalar_t>();
    const scalar_t* const a = in.const_data_ptr<scalar_t>();
    scalar_t* const o = to.mutable_data_ptr<scalar_t>();
    for_each_block(
        s, [&](int64_t at, int64_t rows) { loops.forward_rows(a + at, o + at, rows, s.n, log); },
        [&](int64_t at, int64_t width) { loops.forward_columns(a + at, o + at, s.n, s.inner, width, log); });
  });
  if (!to.is_same(out)) ops::copy_data(to, out);
}

void backward(const Tensor& grad_output, const Tensor& output, int64_t dim, bool log, const Tensor& out) {
  if (out.numel() == 0) return;
  const SoftmaxLoops<float>& floats = find_softmax_loops<float>();
  const Shape whole = shape_of(output, dim);
  const auto each_row = [&](const auto& from, float* to, int64_t rows) {
    for (int64_t at = 0; at < rows * whole.n; at += whole.n) floats.backward_row(from[0] + at, from[1] + at, to + at, whole.n, log);
  };
  if (each_half_rows(std::array{grad_output, output}, out, whole, each_row)) return;
  const Tensor g = (through_float(grad_output) ? grad_output.to(kFloat) : grad_output).contiguous();
  const Tensor y = output.to(g.scalar_type()).contiguous();
  const Tensor to = out.scalar_type() == g.scalar_type() ? out : detail::empty_cpu(out.sizes(), g.scalar_type());
  const Shape s = shape_of(g, dim);
  CRESSET_DISPATCH(g.scalar_type(), "softmax_backward", CRESSET_FLOATING_TYPES, [&] {
    const SoftmaxLoops<scalar_t>& loops = find_softmax_loops<scalar_t>();
    const scalar_t *const a = g.const_data_ptr<scalar_t>(), *const b = y.const_data_ptr<scalar_t>();
    scalar_t* const o = to.mutable_data_ptr<scalar_t>();
    for_each_block(
        s,
        [&](int64_t at, int64_t rows) {
          for (const int64_t end = at + rows * s.n; at < end; at += s.n) loops.backward_row(a + at, b + at, o + at, s.n, log);
        },
        [&](int64_t at, int64_t width) { loops.backward_columns(a + at, b + at, o + at, s.n, s.inner, width, log); });
  });
  if (!to.is_same(out)) ops::copy_data(to, out);
}

}  // namespace

void softmax(const Tensor& self, int64_t dim, bool, const Tensor& out) { forward(self, dim, false, out); }
void log_softmax(const Tensor& self, int64_t dim, bool, const Tensor& out) { forward(self, dim, true, out); }
void softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType, const Tensor& grad_input) {
  backward(grad_output, output, dim, false, grad_input);
}
void log_softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType, const Tensor& out) {
  backward(grad_output, output, dim, true, out);
}

}  // namespace cresset::cpu
