// Gradients of indexing and embedding.
#include "autograd/formulas_index.h"

#include "autograd/formulas.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_embedding.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_sort.h>
#include <cresset/ops/functions_view.h>

#include "ops/shared/sparse_rows.h"

namespace cresset::autograd::formulas {

Tensor index_backward(const Tensor& grad, IntArrayRef sizes, OptionalTensorList indices) {
  return cresset::index_put(cresset::new_zeros(grad, sizes), indices, grad, /*accumulate=*/true);
}
Tensor index_put_self_backward(const Tensor& grad, OptionalTensorList indices, bool accumulate) {
  return accumulate ? grad : cresset::index_put(grad, indices, cresset::zeros({}, grad.options()), false);
}
Tensor index_put_values_backward(const Tensor& grad, OptionalTensorList indices, IntArrayRef sizes) {
  return cresset::sum_to_size(cresset::index(grad, indices), sizes);
}

Tensor gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index) {
  return cresset::scatter_add(cresset::new_zeros(grad, sizes), dim, index, grad);
}
Tensor gather_padded(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes) {
  const Tensor out = cresset::gather(grad, dim, index);
  if (out.sizes() == sizes) return out;
  if (index.numel() == 0) return cresset::new_zeros(grad, sizes);
  DimVector pad(2 * sizes.size(), 0);
  for (std::size_t d = 0; d < sizes.size(); ++d) pad[2 * (sizes.size() - 1 - d) + 1] = sizes[d] - out.size(static_cast<int64_t>(d));
  return cresset::constant_pad_nd(out, pad, 0);
}

Tensor index_add_source_backward(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes, const Scalar& alpha) {
  const Tensor out = cresset::reshape(cresset::index_select(grad, dim, index), sizes);
  return alpha.equal(1) ? out : cresset::mul(out, alpha.conj());
}
Tensor index_fill_value_backward(const Tensor& grad, int64_t dim, const Tensor& index) {
  // Indices that occur twice are filled once.
  const Tensor once = std::get<0>(cresset::_unique2(index, true, false, false));
  return cresset::sum(cresset::index_select(grad, dim, once));
}

namespace {

// The parts of scatter_reduce and index_reduce that differ: reading at the index, and adding at it.
struct AtIndex {
  int64_t dim;
  const Tensor& index;
  bool slices;
  Tensor read(const Tensor& from) const { return slices ? cresset::index_select(from, dim, index) : cresset::gather(from, dim, index); }
  Tensor add(const Tensor& to, const Tensor& values) const {
    return slices ? cresset::index_add(to, dim, index, values) : cresset::scatter_add(to, dim, index, values);
  }
  Tensor zero(const Tensor& t) const { return slices ? cresset::index_fill(t, dim, index, 0) : cresset::scatter(t, dim, index, 0); }
  // src may be larger than the index.
  Tensor cut(const Tensor& src) const {
    if (slices || src.sizes() == index.sizes()) return src;
    return cresset::as_strided(cresset::contiguous(src), index.sizes(), contiguous_strides(src.sizes()));
  }
};

/// The zeros among the factors of products: how many a place has, their sum and the sum of their squares (of which only derivatives
/// matter).
struct Zeros {
  Tensor count, sum, squares;
};

/// The product of all factors of a place but this one, to be differentiated again. `whole` is the product of all of them and `nonzero` that
/// of those that are not zero. A product of zeros is an elementary symmetric polynomial of them, written with power sums: for up to two
/// others. With more of them its first two derivatives are zero, and higher ones are not given.
Tensor other_factors(const Tensor& factor, const Tensor& is_zero, const Zeros& zeros, const Tensor& whole, const Tensor& nonzero) {
  const Tensor own = cresset::where(is_zero, factor, Scalar(0));
  const Tensor others = cresset::sub(zeros.count, is_zero.to(zeros.count.scalar_type()));
  const Tensor sum = cresset::sub(zeros.sum, own);
  const Tensor pairs = cresset::div(cresset::sub(cresset::mul(sum, sum), cresset::sub(zeros.squares, cresset::mul(own, own))), 2);
  const Tensor two_or_more = cresset::where(cresset::eq(others, 2), pairs, Scalar(0));
  const Tensor product = cresset::where(cresset::eq(others, 0), Scalar(1), cresset::where(cresset::eq(others, 1), sum, two_or_more));
  return cresset::where(is_zero, cresset::mul(nonzero, product), cresset::div(whole, cresset::masked_fill(factor, is_zero, 1)));
}

std::tuple<Tensor, Tensor> reduce_backward(const Tensor& grad, const Tensor& self, const AtIndex& at, const Tensor& whole_src,
                                           std::string_view reduce, bool include_self, const Tensor& result) {
  Tensor grad_self, grad_src;
  const Tensor src = at.cut(whole_src);
  if (reduce == "sum") {
    grad_self = grad;
    grad_src = at.read(grad);
  } else if (reduce == "mean") {
    const Tensor ones = cresset::ones_like(self);
    Tensor counts = include_self ? ones : at.zero(ones);
    counts = at.add(counts, cresset::ones_like(src));
    counts = cresset::masked_fill(counts, cresset::eq(counts, 0), 1);
    const Tensor scaled = cresset::div(grad, counts);
    grad_self = scaled;
    grad_src = at.read(scaled);
  } else if (reduce == "prod") {
    // The product without one factor: exact where no factor is zero, and where exactly one is.
    const Tensor start = include_self ? self
                         : at.slices  ? cresset::index_fill(self, at.dim, at.index, 1)
                                      : cresset::scatter(self, at.dim, at.index, 1);
    const Tensor self_zero = cresset::eq(start, 0), src_zero = cresset::eq(src, 0);
    Zeros zeros;
    zeros.count = at.add(self_zero.to(self.scalar_type()), src_zero.to(self.scalar_type()));
    const Tensor safe_self = cresset::masked_fill(start, self_zero, 1), safe_src = cresset::masked_fill(src, src_zero, 1);
    const Tensor nonzero = at.slices ? cresset::index_reduce(safe_self, at.dim, at.index, safe_src, "prod", true)
                                     : cresset::scatter_reduce(safe_self, at.dim, at.index, safe_src, "prod", true);
    if (GradMode::is_enabled()) {
      const Tensor zero_self = cresset::where(self_zero, start, Scalar(0)), zero_src = cresset::where(src_zero, src, Scalar(0));
      zeros.sum = at.add(zero_self, zero_src);
      zeros.squares = at.add(cresset::mul(zero_self, zero_self), cresset::mul(zero_src, zero_src));
      grad_self = cresset::mul(grad, conjugate(other_factors(start, self_zero, zeros, result, nonzero)));
      const Zeros read{at.read(zeros.count), at.read(zeros.sum), at.read(zeros.squares)};
      grad_src = cresset::mul(at.read(grad), conjugate(other_factors(src, src_zero, read, at.read(result), at.read(nonzero))));
    } else {
      const Tensor scaled = cresset::mul(grad, conjugate(nonzero));
      const Tensor alone_self = cresset::eq(cresset::sub(zeros.count, self_zero.to(self.scalar_type())), 0);
      grad_self = cresset::mul(cresset::div(scaled, conjugate(safe_self)), alone_self);
      const Tensor alone_src = cresset::eq(cresset::sub(at.read(zeros.count), src_zero.to(self.scalar_type())), 0);
      grad_src = cresset::mul(cresset::div(at.read(scaled), conjugate(safe_src)), alone_src);
    }
  } else {
    // amax, amin: equal values share the gradient.
    const Tensor self_is = cresset::eq(self, result).to(self.scalar_type()),
                 src_is = cresset::eq(src, at.read(result)).to(self.scalar_type());
    const Tensor counts = at.add(include_self ? self_is : at.zero(self_is), src_is);
    const Tensor shared = cresset::div(grad, cresset::masked_fill(counts, cresset::eq(counts, 0), 1));
    grad_self = cresset::mul(self_is, shared);
    grad_src = cresset::mul(src_is, at.read(shared));
  }
  if (!include_self) grad_self = at.zero(grad_self);
  if (grad_src.sizes() != whole_src.sizes()) {
    DimVector pad;
    for (int64_t d = whole_src.dim() - 1; d >= 0; --d) {
      pad.push_back(0);
      pad.push_back(whole_src.size(d) - grad_src.size(d));
    }
    grad_src = cresset::constant_pad_nd(grad_src, pad, 0);
  }
  return {grad_self, grad_src};
}

// Every element goes into one place, so what the gradient of ones is at an element is how much that place moves with it.
Tensor reduce_jvp(const Tensor& self, const Tensor& self_t, const AtIndex& at, const Tensor& src, const Tensor& src_t,
                  std::string_view reduce, bool include_self, const Tensor& result) {
  const auto [by_self, by_src] = reduce_backward(cresset::ones_like(result), self, at, src, reduce, include_self, result);
  return at.add(cresset::mul(self_t, conjugate(by_self)), at.cut(cresset::mul(src_t, conjugate(by_src))));
}

}  // namespace

Tensor scatter_reduce_jvp(const Tensor& self, const Tensor& self_t, int64_t dim, const Tensor& index, const Tensor& src,
                          const Tensor& src_t, std::string_view reduce, bool include_self, const Tensor& result) {
  return reduce_jvp(self, self_t, AtIndex{dim, index, false}, src, src_t, reduce, include_self, result);
}
Tensor index_reduce_jvp(const Tensor& self, const Tensor& self_t, int64_t dim, const Tensor& index, const Tensor& source,
                        const Tensor& source_t, std::string_view reduce, bool include_self, const Tensor& result) {
  return reduce_jvp(self, self_t, AtIndex{dim, index, true}, source, source_t, reduce, include_self, result);
}

std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                                   const Tensor& src, std::string_view reduce, bool include_self, const Tensor& result) {
  return reduce_backward(grad, self, AtIndex{dim, index, false}, src, reduce, include_self, result);
}
std::tuple<Tensor, Tensor> index_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                                 const Tensor& source, std::string_view reduce, bool include_self, const Tensor& result) {
  return reduce_backward(grad, self, AtIndex{dim, index, true}, source, reduce, include_self, result);
}

Tensor take_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& index) {
  return cresset::put(cresset::new_zeros(grad, sizes), index, grad, /*accumulate=*/true);
}
Tensor put_self_backward(const Tensor& grad, const Tensor& index, bool accumulate) {
  return accumulate ? grad : cresset::put(grad, index, cresset::zeros(index.sizes(), grad.options()), false);
}

Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask) {
  const Tensor zeros = cresset::new_zeros(grad, sizes);
  return cresset::sum_to_size(cresset::masked_scatter(zeros, mask, grad), sizes);
}
Tensor masked_scatter_self_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes) {
  return cresset::sum_to_size(cresset::masked_fill(grad, mask, 0), sizes);
}

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq,
                          bool sparse) {
  if (sparse) return ops::sparse_rows(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
  return cresset::embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
}

Tensor embedding_dense_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx, int64_t num_weights,
                                       bool scale_grad_by_freq) {
  const Tensor flat = cresset::reshape(indices, {-1});
  Tensor out = cresset::index_select(grad, 0, flat);
  if (scale_grad_by_freq) {
    const Tensor ones = cresset::ones({flat.numel()}, grad.options());
    const Tensor counts = cresset::index_add(cresset::zeros({num_weights}, grad.options()), 0, flat, ones);
    out = cresset::div(out, cresset::unsqueeze(cresset::index_select(counts, 0, flat), 1));
  }
  if (padding_idx >= 0) out = cresset::masked_fill(out, cresset::unsqueeze(cresset::eq(flat, padding_idx), 1), 0);
  DimVector sizes(indices.sizes());
  sizes.push_back(grad.size(1));
  return cresset::reshape(out, sizes);
}

}  // namespace cresset::autograd::formulas
