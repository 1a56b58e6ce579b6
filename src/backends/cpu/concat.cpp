// Joining, reordering and padding: element moves by element size, and the padding gradients.
#include <algorithm>
#include <cstring>
#include <vector>

#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>

#include "backends/cpu/walk.h"
#include "cpu/cpu_decl_concat.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

namespace {

// Dense tensors, each of `outer` pieces of memory: row i of the result is piece i of each, one after the other. Threads share the bytes
// of the result.
void cat_rows(TensorList tensors, int64_t outer, char* to, int64_t bytes) {
  struct Piece {
    const char* data;
    int64_t size, before;  // bytes; place in the row
  };
  std::vector<Piece> pieces;
  int64_t row = 0;
  for (const Tensor& t : tensors) {
    const int64_t size = static_cast<int64_t>(t.nbytes()) / outer;
    if (size == 0) continue;
    pieces.push_back({static_cast<const char*>(t.const_data_ptr()), size, row});
    row += size;
  }
  parallel_for(0, bytes, kCopyGrain * 4, [&](int64_t begin, int64_t end) {
    const auto last = [](int64_t at, const Piece& p) { return at < p.before; };
    auto piece = std::upper_bound(pieces.begin(), pieces.end(), begin % row, last) - 1;
    int64_t i = begin / row, skipped = begin % row - piece->before;
    for (int64_t at = begin; at < end; skipped = 0) {
      const int64_t n = std::min(piece->size - skipped, end - at);
      std::memcpy(to + at, piece->data + i * piece->size + skipped, static_cast<std::size_t>(n));
      at += n;
      if (++piece != pieces.end()) continue;
      piece = pieces.begin();
      ++i;
    }
  });
}

}  // namespace

void cat(TensorList tensors, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t d = maybe_wrap_dim(dim, out.dim());
  constexpr int64_t kSmallPiece = 32;  // bytes, on average: such pieces are quicker to move as elements of strided tensors
  int64_t outer = 1;
  for (int64_t k = 0; k < d; ++k) outer *= out.size(k);
  bool plain = out.is_contiguous() && static_cast<int64_t>(out.nbytes()) >= kSmallPiece * outer * static_cast<int64_t>(tensors.size());
  for (const Tensor& t : tensors) plain &= t.is_contiguous() && t.scalar_type() == out.scalar_type();
  if (plain) {
    cat_rows(tensors, outer, static_cast<char*>(out.mutable_data_ptr()), static_cast<int64_t>(out.nbytes()));
    return;
  }
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    ops::copy_data(t, ops::make_view(out, t.sizes(), out.strides(), out.storage_offset() + start * out.stride(d)));
    start += t.size(d);
  }
}

Tensor repeat_interleave_tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  CRESSET_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  CRESSET_CHECK_NOT_IMPLEMENTED(repeats.scalar_type() == kLong || repeats.scalar_type() == kInt,
                                "\"repeat_interleave_cpu\" not implemented for '", repeats.scalar_type(), "'");
  const int64_t n = repeats.size(0);
  std::vector<int64_t> counts(static_cast<std::size_t>(n));
  int64_t total = 0;
  CRESSET_DISPATCH(repeats.scalar_type(), "repeat_interleave_cpu", CRESSET_INDEX_TYPES, [&] {
    const scalar_t* p = repeats.const_data_ptr<scalar_t>();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t c = p[i * repeats.stride(0)];
      CRESSET_CHECK(c >= 0, "repeats can not be negative");
      counts[i] = c;
      total += c;
    }
  });
  CRESSET_CHECK(!output_size || *output_size == total, "allocated size does not match required size");
  Tensor out = detail::empty_cpu({total}, repeats.scalar_type());
  CRESSET_DISPATCH(repeats.scalar_type(), "repeat_interleave_cpu", CRESSET_INDEX_TYPES, [&] {
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < n; ++i) to = std::fill_n(to, counts[i], static_cast<scalar_t>(i));
  });
  return out;
}

void flip(const Tensor& self, IntArrayRef dims, const Tensor& out) {
  if (out.numel() == 0) return;
  const uint64_t mask = ops::dim_mask(dims, self.dim());
  DimVector strides(self.strides());
  int64_t start = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!(mask >> d & 1)) continue;
    start += (self.size(d) - 1) * strides[d];
    strides[d] = -strides[d];
  }
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    copy_strided(static_cast<U*>(out.mutable_data_ptr()), out.strides(), static_cast<const U*>(self.const_data_ptr()) + start, strides,
                 self.sizes());
  });
}

void roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor flat = dims.empty() ? self.contiguous().view({-1}) : self;
  DimVector shift(flat.dim(), 0), to_strides(out.strides());
  if (dims.empty()) {
    shift[0] = shifts[0];
    to_strides = DimVector{1};
  }
  for (std::size_t i = 0; i < dims.size(); ++i) shift[maybe_wrap_dim(dims[i], self.dim())] += shifts[i];
  // Every rolled dimension splits into what stays in order and what comes around: 2^k blocks.
  std::vector<int64_t> rolled;
  for (int64_t d = 0; d < flat.dim(); ++d) {
    shift[d] = ((shift[d] % flat.size(d)) + flat.size(d)) % flat.size(d);
    if (shift[d] != 0) rolled.push_back(d);
  }
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    for (uint64_t block = 0; block < uint64_t{1} << rolled.size(); ++block) {
      DimVector sizes(flat.sizes());
      int64_t from = 0, to = 0;
      for (std::size_t i = 0; i < rolled.size(); ++i) {
        const int64_t d = rolled[i], size = flat.size(d);
        if (block >> i & 1) {
          sizes[d] = shift[d];
          from += (size - shift[d]) * flat.stride(d);
        } else {
          sizes[d] = size - shift[d];
          to += shift[d] * to_strides[d];
        }
      }
      copy_strided(static_cast<U*>(out.mutable_data_ptr()) + to, to_strides, static_cast<const U*>(flat.const_data_ptr()) + from,
                   flat.strides(), sizes);
    }
  });
}

void constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value, const Tensor& out) {
  if (out.numel() == 0) return;
  DimVector sizes(self.sizes());
  int64_t from = 0, to = 0;
  bool nothing = true, copies = true;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(i), before = pad[2 * i], after = pad[2 * i + 1];
    nothing &= before <= 0 && after <= 0;
    if (before < 0)
      from -= before * self.stride(d);
    else
      to += before * out.stride(d);
    sizes[d] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
  }
  for (int64_t s : sizes) copies &= s > 0;
  CRESSET_DISPATCH(self.scalar_type(), "constant_pad_nd_cpu", CRESSET_STORED_AND_ALL_TYPES, [&] {
    if (nothing) return;
    const scalar_t v = value.to<scalar_t>();
    std::fill_n(out.mutable_data_ptr<scalar_t>(), out.numel(), v);  // the shape function asks for a dense result
  });
  if (!copies) return;
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    copy_strided(static_cast<U*>(out.mutable_data_ptr()) + to, out.strides(), static_cast<const U*>(self.const_data_ptr()) + from,
                 self.strides(), sizes);
  });
}

// ---- borders -----------------------------------------------------------------------------------------------------

namespace {

// For each output position along a dimension, the input position it shows.
std::vector<int64_t> border_map(int64_t size, int64_t before, int64_t out_size, bool reflect) {
  std::vector<int64_t> map(static_cast<std::size_t>(out_size));
  for (int64_t o = 0; o < out_size; ++o) {
    int64_t i = o - before;
    if (reflect) {
      if (i < 0) i = -i;
      if (i >= size) i = 2 * (size - 1) - i;
    }
    map[o] = std::clamp<int64_t>(i, 0, size - 1);
  }
  return map;
}

// Where each place of the padded dimensions (depth, height, width; those not padded have size 1) comes from.
struct BorderPlan {
  std::vector<int64_t> x, y, z;
  int64_t run_begin, run_end;  // the part of x in which neighbours come from neighbours
  int64_t planes, inner_d, inner_h, inner_w, outer_d, outer_h, outer_w;

  int64_t inner_size() const { return inner_d * inner_h * inner_w; }
  int64_t outer_rows() const { return outer_d * outer_h; }
  // Offset in an inner block of the row that an outer row shows.
  int64_t inner_row(int64_t outer_row) const { return (z[outer_row / outer_h] * inner_h + y[outer_row % outer_h]) * inner_w; }
};
BorderPlan border_plan(const Tensor& inner, const Tensor& padded, IntArrayRef padding, bool reflect) {
  BorderPlan p;
  const std::size_t n = padding.size() / 2;
  const auto size = [&](const Tensor& t, std::size_t i) { return i < n ? t.size(-1 - static_cast<int64_t>(i)) : 1; };
  const auto map = [&](std::size_t i) { return border_map(size(inner, i), i < n ? padding[2 * i] : 0, size(padded, i), reflect); };
  p.inner_w = size(inner, 0), p.inner_h = size(inner, 1), p.inner_d = size(inner, 2);
  p.outer_w = size(padded, 0), p.outer_h = size(padded, 1), p.outer_d = size(padded, 2);
  p.x = map(0), p.y = map(1), p.z = map(2);
  p.planes = padded.numel() / (p.outer_rows() * p.outer_w);
  p.run_begin = std::clamp<int64_t>(n > 0 ? padding[0] : 0, 0, p.outer_w);
  p.run_end = p.run_begin;
  while (p.run_end < p.outer_w && p.x[p.run_end] == p.x[p.run_begin] + p.run_end - p.run_begin) ++p.run_end;
  return p;
}

void border_pad(const Tensor& self, IntArrayRef padding, bool reflect, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor from = self.contiguous();
  const Tensor to = out.is_contiguous() ? out : detail::empty_cpu(out.sizes(), out.scalar_type());
  const BorderPlan p = border_plan(from, to, padding, reflect);
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    const U* const source = static_cast<const U*>(from.const_data_ptr());
    U* const target = static_cast<U*>(to.mutable_data_ptr());
    parallel_for(0, p.planes * p.outer_rows(), std::max<int64_t>(1, kCopyGrain / p.outer_w), [&](int64_t b, int64_t e) {
      for (int64_t row = b; row < e; ++row) {
        const U* const in = source + row / p.outer_rows() * p.inner_size() + p.inner_row(row % p.outer_rows());
        U* const o = target + row * p.outer_w;
        for (int64_t i = 0; i < p.run_begin; ++i) o[i] = in[p.x[i]];
        if (p.run_begin < p.run_end) copy_row(o + p.run_begin, 1, in + p.x[p.run_begin], 1, p.run_end - p.run_begin);
        for (int64_t i = p.run_end; i < p.outer_w; ++i) o[i] = in[p.x[i]];
      }
    });
  });
  if (!to.is_same(out)) ops::copy_data(to, out);
}

void border_pad_backward(const Tensor& grad_output, IntArrayRef padding, bool reflect, const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  if (grad_output.numel() == 0) {
    Tensor(grad_input).zero_();
    return;
  }
  const Tensor from = grad_output.contiguous();
  const Tensor to = grad_input.is_contiguous() ? grad_input : detail::empty_cpu(grad_input.sizes(), grad_input.scalar_type());
  const BorderPlan p = border_plan(to, from, padding, reflect);
  CRESSET_DISPATCH(grad_output.scalar_type(), "padding_backward_cpu", CRESSET_FLOATING_AND_COMPLEX_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t* const source = from.const_data_ptr<scalar_t>();
    scalar_t* const target = to.mutable_data_ptr<scalar_t>();
    const int64_t block = p.inner_size();
    parallel_for(0, p.planes, std::max<int64_t>(1, kCopyGrain / (p.outer_rows() * p.outer_w)), [&](int64_t b, int64_t e) {
      std::vector<C> sums(static_cast<std::size_t>(block));
      for (int64_t n = b; n < e; ++n) {
        std::fill(sums.begin(), sums.end(), C(0));
        for (int64_t row = 0; row < p.outer_rows(); ++row) {
          const scalar_t* const in = source + (n * p.outer_rows() + row) * p.outer_w;
          C* const o = sums.data() + p.inner_row(row);
          for (int64_t i = 0; i < p.outer_w; ++i) o[p.x[i]] += static_cast<C>(in[i]);
        }
        for (int64_t i = 0; i < block; ++i) target[n * block + i] = static_cast<scalar_t>(sums[i]);
      }
    });
  });
  if (!to.is_same(grad_input)) ops::copy_data(to, grad_input);
}

}  // namespace

void reflection_pad(const Tensor& self, IntArrayRef padding, const Tensor& out) { border_pad(self, padding, true, out); }
void replication_pad(const Tensor& self, IntArrayRef padding, const Tensor& out) { border_pad(self, padding, false, out); }
void reflection_pad_backward(const Tensor& grad_output, const Tensor&, IntArrayRef padding, const Tensor& grad_input) {
  border_pad_backward(grad_output, padding, true, grad_input);
}
void replication_pad_backward(const Tensor& grad_output, const Tensor&, IntArrayRef padding, const Tensor& grad_input) {
  border_pad_backward(grad_output, padding, false, grad_input);
}

}  // namespace cresset::cpu
