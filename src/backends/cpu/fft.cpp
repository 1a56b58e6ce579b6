// Fourier transforms of lines. A block of neighbouring lines is read into buffers of double precision, transformed, and
// written; lines that lie across the memory are read and written together, so that every cache line is used whole.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/fft_plan.h"
#include "backends/cpu/lines.h"
#include "cpu/cpu_decl_fft.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kBlock = 8;  // lines at most

// Where the lines of one dimension begin in an input and an output of equal sizes beside that dimension. Lines are numbered
// so that neighbours are neighbours in the input's memory.
class Lines {
 public:
  Lines(const Tensor& in, const Tensor& out, int64_t dim) : in_stride(in.stride(dim)), out_stride(out.stride(dim)) {
    for (int64_t d = 0; d < in.dim(); ++d)
      if (d != dim) dims_.push_back({in.size(d), in.stride(d), out.stride(d)});
    std::stable_sort(dims_.begin(), dims_.end(), [](const auto& a, const auto& b) { return a.in > b.in; });
    for (const Dim& d : dims_) count *= d.size;
  }

  struct Start {
    int64_t in, out;
  };
  Start start(int64_t line) const {
    Start s{0, 0};
    for (auto d = dims_.rbegin(); d != dims_.rend(); ++d) {
      s.in += line % d->size * d->in;
      s.out += line % d->size * d->out;
      line /= d->size;
    }
    return s;
  }

  int64_t in_stride, out_stride;
  int64_t count = 1;

 private:
  struct Dim {
    int64_t size, in, out;
  };
  std::vector<Dim> dims_;
};

struct Block {
  int64_t lines = 0;
  std::array<int64_t, kBlock> in, out;
};

// Elements i of all lines: f(line in the block, offset, i), along the memory.
template <class F>
void each_element(const std::array<int64_t, kBlock>& starts, int64_t lines, int64_t n, int64_t stride, const F& f) {
  if (stride == 1 || lines == 1) {
    for (int64_t b = 0; b < lines; ++b)
      for (int64_t i = 0; i < n; ++i) f(b, starts[b] + i * stride, i);
  } else {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t b = 0; b < lines; ++b) f(b, starts[b] + i * stride, i);
  }
}

template <class T>
void read(const T* from, const Block& block, int64_t n, int64_t stride, FftNumber* to, int64_t pitch) {
  each_element(block.in, block.lines, n, stride,
               [&](int64_t b, int64_t offset, int64_t i) { to[b * pitch + i] = FftNumber(from[offset]); });
}

template <class T>
void write(const FftNumber* from, int64_t pitch, const Block& block, int64_t n, int64_t stride, double scale, std::complex<T>* to) {
  each_element(block.out, block.lines, n, stride,
               [&](int64_t b, int64_t offset, int64_t i) { to[offset] = std::complex<T>(from[b * pitch + i] * scale); });
}

// Buffers of a thread, before and after the transform.
struct Buffers {
  explicit Buffers(int64_t numbers) : x(static_cast<std::size_t>(numbers)), y(x.size()) {}
  std::vector<FftNumber> x, y;
  FftWorkspace workspace;
};

// Lines in a block: one where they are contiguous anyway, few where they are long, and every thread gets some.
int64_t block_size(const Lines& lines, int64_t pitch) {
  constexpr int64_t kNumbers = int64_t{1} << 20;
  if (lines.in_stride == 1 && lines.out_stride == 1) return 1;
  const int64_t threads = get_num_threads();
  return std::max<int64_t>(1, std::min({kBlock, kNumbers / pitch, (lines.count + threads - 1) / threads}));
}

// f(Block, Buffers&) for all blocks, on several threads when there is much to do. Buffers have `pitch` numbers for each line.
template <class F>
void for_each_block(const Lines& lines, int64_t pitch, const F& f) {
  constexpr int64_t kCost = 8;  // of a point, against a copy
  const int64_t size = block_size(lines, pitch), blocks = (lines.count + size - 1) / size;
  const int64_t grain = std::max<int64_t>(1, kLineWork / (pitch * size * kCost));
  parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    Buffers buffers(pitch * size);
    for (int64_t k = begin; k < end; ++k) {
      Block block;
      block.lines = std::min(size, lines.count - k * size);
      for (int64_t b = 0; b < block.lines; ++b) {
        const auto start = lines.start(k * size + b);
        block.in[b] = start.in;
        block.out[b] = start.out;
      }
      f(block, buffers);
    }
  });
}

// The inverse transform is the forward one read backwards.
void transform(const FftPlan& plan, const FftNumber* in, FftNumber* out, bool forward, FftWorkspace& workspace) {
  plan.forward(in, out, workspace);
  if (!forward) std::reverse(out + 1, out + plan.size());
}

template <class T>
void c2c_lines(const Tensor& in, const Tensor& out, int64_t dim, bool forward, double scale) {
  const int64_t n = out.size(dim);
  const Lines lines(in, out, dim);
  const auto plan = fft_plan(n);
  const auto* from = in.const_data_ptr<std::complex<T>>();
  auto* to = out.mutable_data_ptr<std::complex<T>>();
  for_each_block(lines, n, [&](const Block& block, Buffers& buffers) {
    FftNumber *x = buffers.x.data(), *y = buffers.y.data();
    read(from, block, n, lines.in_stride, x, n);
    for (int64_t b = 0; b < block.lines; ++b) transform(*plan, x + b * n, y + b * n, forward, buffers.workspace);
    write(y, n, block, n, lines.out_stride, scale, to);
  });
}

// Half a spectrum of n = 2m real numbers from the transform z of the pairs x[2j] + i x[2j+1]: with E and O the transforms of the
// even and the odd elements, z = E + iO, E[k] = conj(E[m-k]), O likewise, and X[k] = E[k] + exp(-2 pi i k / n) O[k].
void unpack_pairs(const FftNumber* z, const std::vector<FftNumber>& twiddles, FftNumber* x) {
  const std::size_t m = twiddles.size();
  x[0] = z[0].real() + z[0].imag();
  x[m] = z[0].real() - z[0].imag();
  for (std::size_t k = 1; k < m; ++k) {
    const FftNumber mirror = std::conj(z[m - k]);
    const FftNumber even = (z[k] + mirror) * 0.5, odd = (z[k] - mirror) * FftNumber(0, -0.5);
    x[k] = even + twiddles[k] * odd;
  }
}

// The reverse for an unnormalised inverse transform. Imaginary parts of x[0] and x[m], which real signals do not have, are ignored.
void pack_pairs(const FftNumber* x, const std::vector<FftNumber>& twiddles, FftNumber* z) {
  const std::size_t m = twiddles.size();
  z[0] = {x[0].real() + x[m].real(), x[0].real() - x[m].real()};
  for (std::size_t k = 1; k < m; ++k) {
    const FftNumber mirror = std::conj(x[m - k]);
    const FftNumber even = x[k] + mirror, odd = (x[k] - mirror) * std::conj(twiddles[k]);
    z[k] = even + FftNumber(-odd.imag(), odd.real());
  }
}

template <class T>
void r2c_lines(const Tensor& in, const Tensor& out, int64_t dim, double scale) {
  const int64_t n = in.size(dim), pitch = n + 1;
  const bool whole = out.size(dim) == n;
  const Lines lines(in, out, dim);
  const bool pairs = n % 2 == 0;
  const auto real_plan = pairs ? real_fft_plan(n) : nullptr;
  const auto plan = pairs ? real_plan->half : fft_plan(n);
  const auto* from = in.const_data_ptr<T>();
  auto* to = out.mutable_data_ptr<std::complex<T>>();
  for_each_block(lines, pitch, [&](const Block& block, Buffers& buffers) {
    FftNumber *x = buffers.x.data(), *y = buffers.y.data();
    if (pairs) {
      // Two neighbouring real numbers are one complex number.
      double* flat = reinterpret_cast<double*>(x);
      each_element(block.in, block.lines, n, lines.in_stride,
                   [&](int64_t b, int64_t offset, int64_t i) { flat[2 * b * pitch + i] = static_cast<double>(from[offset]); });
    } else {
      read(from, block, n, lines.in_stride, x, pitch);
    }
    for (int64_t b = 0; b < block.lines; ++b) {
      FftNumber *a = x + b * pitch, *s = y + b * pitch;
      plan->forward(a, s, buffers.workspace);
      if (!pairs) continue;
      unpack_pairs(s, real_plan->twiddles, a);
      std::copy(a, a + n / 2 + 1, s);
      if (whole)
        for (int64_t k = n / 2 + 1; k < n; ++k) s[k] = std::conj(s[n - k]);
    }
    write(y, pitch, block, out.size(dim), lines.out_stride, scale, to);
  });
}

template <class T>
void c2r_lines(const Tensor& in, const Tensor& out, int64_t dim, double scale) {
  const int64_t n = out.size(dim), half = n / 2 + 1, pitch = n + 1;
  const Lines lines(in, out, dim);
  const bool pairs = n % 2 == 0;
  const auto real_plan = pairs ? real_fft_plan(n) : nullptr;
  const auto plan = pairs ? real_plan->half : fft_plan(n);
  const auto* from = in.const_data_ptr<std::complex<T>>();
  auto* to = out.mutable_data_ptr<T>();
  for_each_block(lines, pitch, [&](const Block& block, Buffers& buffers) {
    FftNumber *x = buffers.x.data(), *y = buffers.y.data();
    read(from, block, half, lines.in_stride, x, pitch);
    for (int64_t b = 0; b < block.lines; ++b) {
      FftNumber *a = x + b * pitch, *s = y + b * pitch;
      if (pairs) {
        pack_pairs(a, real_plan->twiddles, s);
        transform(*plan, s, a, false, buffers.workspace);
      } else {
        a[0].imag(0);
        for (int64_t k = half; k < n; ++k) a[k] = std::conj(a[n - k]);
        transform(*plan, a, s, false, buffers.workspace);
      }
    }
    const double* flat = reinterpret_cast<const double*>(pairs ? x : y);
    const int64_t step = pairs ? 1 : 2;
    each_element(block.out, block.lines, n, lines.out_stride,
                 [&](int64_t b, int64_t offset, int64_t i) { to[offset] = static_cast<T>(flat[2 * b * pitch + i * step] * scale); });
  });
}

double scale_of(int64_t normalization, double points) {
  return normalization == 0 ? 1.0 : normalization == 1 ? 1.0 / std::sqrt(points) : 1.0 / points;
}

double points_of(const Tensor& t, IntArrayRef dims) {
  double points = 1;
  for (int64_t d : dims) points *= static_cast<double>(t.size(maybe_wrap_dim(d, t.dim())));
  return points;
}

// Complex transforms over dims, from in to out of the same sizes; the scale is applied on the way.
template <class T>
void c2c_dims(const Tensor& in, const Tensor& out, IntArrayRef dims, bool forward, double scale) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    c2c_lines<T>(i == 0 ? in : out, out, maybe_wrap_dim(dims[i], out.dim()), forward, i == 0 ? scale : 1.0);
}

}  // namespace

void fft_c2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward, const Tensor& out) {
  if (dim.empty()) {
    Tensor(out).copy_(self);
    return;
  }
  if (out.numel() == 0) return;
  const double scale = scale_of(normalization, points_of(self, dim));
  if (self.scalar_type() == kComplexDouble)
    c2c_dims<double>(self, out, dim, forward, scale);
  else
    c2c_dims<float>(self, out, dim, forward, scale);
}

void fft_r2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool, const Tensor& out) {
  if (out.numel() == 0) return;
  const double scale = scale_of(normalization, points_of(self, dim));
  const int64_t last = maybe_wrap_dim(dim.back(), self.dim());
  const IntArrayRef others = dim.slice(0, dim.size() - 1);
  CRESSET_DISPATCH(self.scalar_type(), "_fft_r2c", CRESSET_FLOATING_TYPES, [&] {
    r2c_lines<scalar_t>(self, out, last, scale);
    c2c_dims<scalar_t>(out, out, others, true, 1.0);
  });
}

void fft_c2r(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t last = maybe_wrap_dim(dim.back(), self.dim());
  const IntArrayRef others = dim.slice(0, dim.size() - 1);
  const double scale = scale_of(normalization, points_of(out, dim));
  const Tensor used = self.narrow(last, 0, last_dim_size / 2 + 1);
  CRESSET_DISPATCH(out.scalar_type(), "_fft_c2r", CRESSET_FLOATING_TYPES, [&] {
    Tensor columns = used;
    if (!others.empty()) {
      columns = detail::empty_cpu(used.sizes(), used.scalar_type());
      c2c_dims<scalar_t>(used, columns, others, false, 1.0);
    }
    c2r_lines<scalar_t>(columns, out, last, scale);
  });
}

}  // namespace cresset::cpu
