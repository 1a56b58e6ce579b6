// Fourier transforms of lines: as many as a register has numbers are read into a block, transformed together and written; long lines, and
// few, are transformed one by one.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
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

constexpr int64_t kMostLines = 16;  // of a block, whatever the instruction set

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

// Some lines' places in a tensor: at the same distance from each other or not.
struct Places {
  std::array<int64_t, kMostLines> starts;
  int64_t count = 0, stride = 0;

  int64_t between() const { return count > 1 ? starts[1] - starts[0] : 0; }
  bool evenly() const {
    for (int64_t b = 2; b < count; ++b)
      if (starts[b] - starts[b - 1] != between()) return false;
    return true;
  }
};

// Elements i < n of all lines, f(line in the block, offset, i), along the memory.
template <class F>
void each_element(const Places& places, int64_t n, const F& f) {
  if (places.stride == 1) {
    for (int64_t b = 0; b < places.count; ++b)
      for (int64_t i = 0; i < n; ++i) f(b, places.starts[b] + i, i);
  } else {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t b = 0; b < places.count; ++b) f(b, places.starts[b] + i * places.stride, i);
  }
}

// A block of one plan and the tensors' lines that go through it. T: what the plan computes in; S: what tensors hold.
template <class T>
class BlockOfLines {
 public:
  BlockOfLines(const FftPlan<T>& plan, bool wide, int64_t room) : plan_(plan), wide_(wide), room_(room), width_(plan.width(wide)) {}

  T* numbers() { return buffer_.numbers(2 * room_ * width_); }
  int64_t width() const { return width_; }
  bool wide() const { return wide_; }
  T* transform(T* x, bool forward, double scale) { return plan_.transform(x, wide_, forward, static_cast<T>(scale), workspace_); }

  // `n` complex elements, of which `from` begins with pairs of S.
  template <class S>
  T* read(const S* from, const Places& places, int64_t n) {
    T* const to = numbers();
    if constexpr (std::is_same_v<S, T>) {
      if (wide_ && places.evenly()) {
        plan_.loops().read({from + 2 * places.starts[0], places.between(), places.stride, places.count}, n, to);
        return to;
      }
      if (!wide_ && places.stride == 1) {
        std::copy_n(from + 2 * places.starts[0], 2 * n, to);
        return to;
      }
    }
    clear(places, n);
    each_element(places, n, [&](int64_t b, int64_t at, int64_t i) {
      to[2 * i * width_ + b] = static_cast<T>(from[2 * at]);
      to[(2 * i + 1) * width_ + b] = static_cast<T>(from[2 * at + 1]);
    });
    return to;
  }
  template <class S>
  void write(const T* from, int64_t n, const Places& places, S* to) const {
    if constexpr (std::is_same_v<S, T>)
      if (wide_ && places.evenly())
        return plan_.loops().write(from, n, {to + 2 * places.starts[0], places.between(), places.stride, places.count});
    each_element(places, n, [&](int64_t b, int64_t at, int64_t i) {
      to[2 * at] = static_cast<S>(from[2 * i * width_ + b]);
      to[2 * at + 1] = static_cast<S>(from[(2 * i + 1) * width_ + b]);
    });
  }

  // `n` real numbers, two of which are an element (pairs, n even), or each with a zero.
  template <class S>
  T* read_real(const S* from, const Places& places, int64_t n, bool pairs) {
    T* const to = numbers();
    if constexpr (std::is_same_v<S, T>) {
      if (pairs && wide_ && places.evenly()) {
        plan_.loops().read_pairs({from + places.starts[0], places.between(), places.stride, places.count}, n / 2, to);
        return to;
      }
    }
    const int64_t step = pairs ? width_ : 2 * width_;
    if (!pairs || places.count < width_) std::fill(to, to + n * step, T(0));
    each_element(places, n, [&](int64_t b, int64_t at, int64_t i) { to[i * step + b] = static_cast<T>(from[at]); });
    return to;
  }
  template <class S>
  void write_real(const T* from, int64_t n, const Places& places, bool pairs, S* to) const {
    if constexpr (std::is_same_v<S, T>)
      if (pairs && wide_ && places.evenly())
        return plan_.loops().write_pairs(from, n / 2, {to + places.starts[0], places.between(), places.stride, places.count});
    const int64_t step = pairs ? width_ : 2 * width_;
    each_element(places, n, [&](int64_t b, int64_t at, int64_t i) { to[at] = static_cast<S>(from[i * step + b]); });
  }

  // A line from memory to memory, where the plan has that; they may be the same.
  void transform_line(const T* from, T* to, bool forward, double scale) {
    plan_.transform_in_parts(from, to, forward, static_cast<T>(scale), workspace_);
  }

  // The elements from `from` on are the conjugates of those that mirror them in n.
  void complete(T* x, int64_t from, int64_t n) const {
    for (int64_t k = from; k < n; ++k)
      for (int64_t b = 0; b < width_; ++b) {
        x[2 * k * width_ + b] = x[2 * (n - k) * width_ + b];
        x[(2 * k + 1) * width_ + b] = -x[(2 * (n - k) + 1) * width_ + b];
      }
  }

 private:
  void clear(const Places& places, int64_t n) {
    if (places.count < width_) std::fill(numbers(), numbers() + 2 * n * width_, T(0));
  }

  const FftPlan<T>& plan_;
  const bool wide_;
  const int64_t room_, width_;  // elements of a line
  FftBuffer<T> buffer_;
  FftWorkspace<T> workspace_;
};

// Are lines as the plan takes them, so that each goes from memory to memory?
template <class T, class S>
bool in_lines(const FftPlan<T>& plan, const Lines& lines) {
  return std::is_same_v<T, S> && plan.in_parts() && lines.in_stride == 1 && lines.out_stride == 1;
}

// f(block, places in the input, places in the output) for all lines, on several threads when there is much to do. `room`: elements that
// a line in a block has. `alone`: lines do not come in blocks.
template <class T, class F>
void for_each_block(const FftPlan<T>& plan, const Lines& lines, int64_t room, bool alone, const F& f) {
  constexpr int64_t kCost = 4;  // of a point, against a copy
  // A block of lines costs about as much as four that come alone.
  const bool wide = !alone && plan.takes_blocks() && lines.count >= std::min<int64_t>(4, plan.loops().lanes);
  const int64_t size = plan.width(wide), blocks = (lines.count + size - 1) / size;
  const int64_t grain = std::max<int64_t>(1, kLineWork / (room * size * kCost));
  parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    BlockOfLines<T> block(plan, wide, room);
    for (int64_t k = begin; k < end; ++k) {
      Places in, out;
      in.count = out.count = std::min(size, lines.count - k * size);
      in.stride = lines.in_stride;
      out.stride = lines.out_stride;
      for (int64_t b = 0; b < in.count; ++b) {
        const auto start = lines.start(k * size + b);
        in.starts[static_cast<std::size_t>(b)] = start.in;
        out.starts[static_cast<std::size_t>(b)] = start.out;
      }
      f(block, in, out);
    }
  });
}

template <class T, class S>
void c2c_lines(const Tensor& in, const Tensor& out, int64_t dim, bool forward, double scale) {
  const int64_t n = out.size(dim);
  const auto plan = fft_plan<T>(n);
  const auto* from = static_cast<const S*>(in.const_data_ptr());
  auto* to = static_cast<S*>(out.mutable_data_ptr());
  const Lines lines(in, out, dim);
  const bool alone = in_lines<T, S>(*plan, lines);
  for_each_block(*plan, lines, n, alone, [&](BlockOfLines<T>& block, const Places& read, const Places& write) {
    if constexpr (std::is_same_v<T, S>)
      if (alone) return block.transform_line(from + 2 * read.starts[0], to + 2 * write.starts[0], forward, scale);
    block.write(block.transform(block.read(from, read, n), forward, scale), n, write, to);
  });
}

// The elements of a line from `from` on are the conjugates of those that mirror them in n.
template <class S>
void mirror(S* line, int64_t from, int64_t n, int64_t stride) {
  if (std::is_same_v<S, float> && stride == 1) {
    // Pairs of floats are words, whose order the compiler turns by vectors; the imaginary part's sign is the upper bit.
    typedef uint64_t __attribute__((may_alias, aligned(4))) Word;
    auto* const words = reinterpret_cast<Word*>(line);
#pragma GCC ivdep
    for (int64_t k = from; k < n; ++k) words[k] = words[n - k] ^ (uint64_t{1} << 63);
    return;
  }
  for (int64_t k = from; k < n; ++k) {
    line[2 * k * stride] = line[2 * (n - k) * stride];
    line[2 * k * stride + 1] = -line[2 * (n - k) * stride + 1];
  }
}

template <class T, class S>
void r2c_lines(const Tensor& in, const Tensor& out, int64_t dim, double scale) {
  const int64_t n = in.size(dim), half = n / 2 + 1;
  const bool pairs = n % 2 == 0, whole = out.size(dim) == n;
  const auto plan = fft_plan<T>(pairs ? n / 2 : n);
  const auto factors = pairs ? real_fft_factors<T>(n) : nullptr;
  const auto* from = in.const_data_ptr<S>();
  auto* to = static_cast<S*>(out.mutable_data_ptr());
  const Lines lines(in, out, dim);
  const bool alone = pairs && in_lines<T, S>(*plan, lines);
  const auto compute = [&](BlockOfLines<T>& block, const Places& read, const Places& write) {
    if constexpr (std::is_same_v<T, S>) {
      if (alone) {
        T* const line = to + 2 * write.starts[0];
        block.transform_line(from + read.starts[0], line, true, scale);
        plan->loops().unpack_pairs(line, factors->pairs.data(), n / 2, false);
        return;
      }
    }
    T* const x = block.transform(block.read_real(from, read, n, pairs), true, scale);
    if (pairs) plan->loops().unpack_pairs(x, factors->pairs.data(), n / 2, block.wide());
    block.write(x, pairs ? half : out.size(dim), write, to);
  };
  for_each_block(*plan, lines, pairs ? half : n, alone, [&](BlockOfLines<T>& block, const Places& read, const Places& write) {
    compute(block, read, write);
    if (pairs && whole)
      for (int64_t b = 0; b < write.count; ++b) mirror(to + 2 * write.starts[static_cast<std::size_t>(b)], half, n, write.stride);
  });
}

template <class T, class S>
void c2r_lines(const Tensor& in, const Tensor& out, int64_t dim, double scale) {
  const int64_t n = out.size(dim), half = n / 2 + 1;
  const bool pairs = n % 2 == 0;
  const auto plan = fft_plan<T>(pairs ? n / 2 : n);
  const auto factors = pairs ? real_fft_factors<T>(n) : nullptr;
  const auto* from = static_cast<const S*>(in.const_data_ptr());
  auto* to = out.mutable_data_ptr<S>();
  const Lines lines(in, out, dim);
  const bool alone = pairs && in_lines<T, S>(*plan, lines);
  for_each_block(*plan, lines, pairs ? half : n, alone, [&](BlockOfLines<T>& block, const Places& read, const Places& write) {
    T* const x = block.read(from, read, half);
    if (pairs) {
      plan->loops().pack_pairs(x, factors->pairs.data(), n / 2, block.wide());
      if constexpr (std::is_same_v<T, S>)
        if (alone) return block.transform_line(x, to + write.starts[0], false, scale);
    } else {
      std::fill(x + block.width(), x + 2 * block.width(), T(0));
      block.complete(x, half, n);
    }
    block.write_real(block.transform(x, false, scale), n, write, pairs, to);
  });
}

// f(T) with what a plan of n points computes in for numbers of type S.
template <class S, class F>
void in_type_for(int64_t n, const F& f) {
  if (std::is_same_v<S, float> && fft_wants_double(n))
    f(double());
  else
    f(S());
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
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = maybe_wrap_dim(dims[i], out.dim());
    in_type_for<T>(out.size(dim), [&](auto t) { c2c_lines<decltype(t), T>(i == 0 ? in : out, out, dim, forward, i == 0 ? scale : 1.0); });
  }
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
    in_type_for<scalar_t>(self.size(last), [&](auto t) { r2c_lines<decltype(t), scalar_t>(self, out, last, scale); });
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
    in_type_for<scalar_t>(last_dim_size, [&](auto t) { c2r_lines<decltype(t), scalar_t>(columns, out, last, scale); });
  });
}

}  // namespace cresset::cpu
