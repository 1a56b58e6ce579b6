// Gradients of views.
#include "autograd/formulas_view.h"

#include <cresset/core/layout.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_sort.h>
#include <cresset/ops/functions_view.h>

#include <algorithm>
#include <limits>

namespace cresset::autograd::formulas {

Tensor permute_backward(const Tensor& grad, IntArrayRef dims) {
  DimVector back(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) back[maybe_wrap_dim(dims[i], static_cast<int64_t>(dims.size()))] = static_cast<int64_t>(i);
  return cresset::permute(grad, back);
}

Tensor slice_backward_optional(const Tensor& grad, IntArrayRef sizes, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                               int64_t step) {
  return cresset::slice_backward(grad, sizes, dim, start.value_or(0), end.value_or(std::numeric_limits<int64_t>::max()), step);
}

namespace {

// Could two index tuples of this geometry name the same element?
bool may_overlap(IntArrayRef sizes, IntArrayRef strides) {
  SmallVector<int64_t, 8> order;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) order.push_back(static_cast<int64_t>(d));
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t reach = 0;
  for (int64_t d : order) {
    if (strides[d] <= reach) return true;
    reach += (sizes[d] - 1) * strides[d];
  }
  return false;
}

int64_t last_element(IntArrayRef sizes, IntArrayRef strides) {
  int64_t last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  return last;
}

bool is_empty(IntArrayRef sizes) { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }

}  // namespace

Tensor as_strided_backward(const Tensor& grad, IntArrayRef input_sizes, IntArrayRef input_strides, int64_t input_offset, IntArrayRef size,
                           IntArrayRef stride, std::optional<int64_t> storage_offset) {
  const TensorOptions options = grad.options();
  if (is_empty(input_sizes) || is_empty(size)) return cresset::zeros(input_sizes, options);
  // A stretch of storage that both geometries fit into; its gradient is collected, then seen through the input's geometry.
  const int64_t offset = storage_offset.value_or(input_offset), start = std::min(offset, input_offset);
  const int64_t length = std::max(offset + last_element(size, stride), input_offset + last_element(input_sizes, input_strides)) - start + 1;
  const TensorOptions index_options = TensorOptions(kLong).device(grad.device());
  const Tensor places = cresset::arange(length, index_options);
  Tensor flat = cresset::zeros({length}, options);
  if (may_overlap(size, stride)) {
    const Tensor index = cresset::reshape(cresset::as_strided(places, size, stride, offset - start), {-1});
    flat = cresset::index_add(flat, 0, index, cresset::reshape(grad, {-1}));
  } else {
    flat = cresset::as_strided_scatter(flat, grad, size, stride, offset - start);
  }
  if (may_overlap(input_sizes, input_strides)) {
    // An element that the input shows several times shares its gradient among them.
    const Tensor index = cresset::reshape(cresset::as_strided(places, input_sizes, input_strides, input_offset - start), {-1});
    const TensorOptions real = options.dtype(toRealValueType(grad.scalar_type()));
    const Tensor counts = cresset::index_add(cresset::zeros({length}, real), 0, index, cresset::ones({index.numel()}, real));
    flat = cresset::div(flat, cresset::clamp_min(counts, 1));  // 0 where the input shows nothing, and no gradient comes from there
  }
  return cresset::as_strided(flat, input_sizes, input_strides, input_offset - start);
}

Tensor as_strided_jvp(const Tensor& self_t, const Tensor& self, IntArrayRef size, IntArrayRef stride,
                      std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  const int64_t first = offset - self.storage_offset() + self_t.storage_offset();
  if (!self_t.has_storage() || is_empty(size)) return cresset::as_strided(self_t, size, stride, first);
  const int64_t there = static_cast<int64_t>(self_t.storage().nbytes() / self_t.itemsize());
  if (first >= 0 && first + last_element(size, stride) < there) return cresset::as_strided(self_t, size, stride, first);
  if (is_empty(self.sizes())) return cresset::zeros(size, self_t.options());
  // A tangent has no memory around its elements, as self has: there are zeros.
  const int64_t start = std::min(offset, self.storage_offset());
  const int64_t length =
      std::max(offset + last_element(size, stride), self.storage_offset() + last_element(self.sizes(), self.strides())) - start + 1;
  const Tensor flat = cresset::as_strided_scatter(cresset::zeros({length}, self_t.options()), self_t, self.sizes(), self.strides(),
                                                  self.storage_offset() - start);
  return cresset::as_strided(flat, size, stride, offset - start);
}

namespace {

// The geometry of the result of as_strided_scatter: that of self, or of a copy of it where elements share memory.
struct Scattered {
  DimVector strides;
  int64_t offset;
};
Scattered scattered_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  if (!may_overlap(sizes, strides)) return {DimVector(strides), offset};
  return {contiguous_strides(sizes), 0};
}

}  // namespace

Tensor as_strided_scatter_linear(const Tensor& self_part, const Tensor& src_part, IntArrayRef self_strides, int64_t self_offset,
                                 IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) {
  const IntArrayRef sizes = self_part.sizes();
  if (is_empty(sizes) || is_empty(size)) return self_part;
  const Scattered out = scattered_geometry(sizes, self_strides, self_offset);
  const int64_t offset = storage_offset.value_or(self_offset), start = std::min(offset, out.offset);
  const int64_t length = std::max(offset + last_element(size, stride), out.offset + last_element(sizes, out.strides)) - start + 1;
  const Tensor zeros = cresset::zeros({length}, self_part.options());
  Tensor flat = cresset::as_strided_scatter(zeros, self_part, sizes, out.strides, out.offset - start);
  flat = cresset::as_strided_scatter(flat, src_part, size, stride, offset - start);
  return cresset::as_strided(flat, sizes, out.strides, out.offset - start);
}

Tensor as_strided_scatter_backward_self(const Tensor& grad, IntArrayRef self_strides, int64_t self_offset, IntArrayRef size,
                                        IntArrayRef stride, std::optional<int64_t> storage_offset) {
  return as_strided_scatter_linear(grad, cresset::zeros(size, grad.options()), self_strides, self_offset, size, stride, storage_offset);
}

Tensor as_strided_scatter_backward_src(const Tensor& grad, IntArrayRef self_strides, int64_t self_offset, IntArrayRef size,
                                       IntArrayRef stride, std::optional<int64_t> storage_offset) {
  const IntArrayRef sizes = grad.sizes();
  const Scattered out = scattered_geometry(sizes, self_strides, self_offset);
  return as_strided_backward(grad, size, stride, storage_offset.value_or(self_offset), sizes, out.strides, out.offset);
}

Tensor split_with_sizes_backward(const std::vector<Tensor>& grads, IntArrayRef split_sizes, int64_t dim, IntArrayRef sizes,
                                 const TensorOptions& options) {
  dim = maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  TensorOptions like = options;
  for (const Tensor& g : grads)
    if (g.defined()) like = g.options();
  std::vector<Tensor> pieces;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
      pieces.push_back(grads[i]);
      continue;
    }
    DimVector piece(sizes);
    piece[dim] = split_sizes[i];
    pieces.push_back(cresset::zeros(piece, like));
  }
  return cresset::cat(pieces, dim);
}

Tensor split_backward(const std::vector<Tensor>& grads, int64_t split_size, int64_t dim, IntArrayRef sizes, const TensorOptions& options) {
  const int64_t size = sizes[maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()))];
  DimVector pieces(grads.size(), split_size);
  if (!grads.empty()) pieces[grads.size() - 1] = size - split_size * static_cast<int64_t>(grads.size() - 1);
  return split_with_sizes_backward(grads, pieces, dim, sizes, options);
}

Tensor unsqueeze_to(const Tensor& grad, IntArrayRef sizes) {
  Tensor result = grad;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1) result = cresset::unsqueeze(result, static_cast<int64_t>(d));
  return result;
}

Tensor unsqueeze_to(const Tensor& grad, IntArrayRef sizes, IntArrayRef dims) {
  if (sizes.empty()) return grad;
  DimVector taken;
  for (int64_t d : dims) taken.push_back(maybe_wrap_dim(d, static_cast<int64_t>(sizes.size())));
  std::sort(taken.begin(), taken.end());
  Tensor result = grad;
  for (int64_t d : taken)
    if (sizes[static_cast<std::size_t>(d)] == 1) result = cresset::unsqueeze(result, d);
  return result;
}

Tensor unbind_backward(const std::vector<Tensor>& grads, int64_t dim, IntArrayRef sizes, const TensorOptions& options) {
  dim = maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  TensorOptions like = options;
  for (const Tensor& g : grads)
    if (g.defined()) like = g.options();
  DimVector piece(sizes);
  piece.erase(piece.begin() + dim);
  std::vector<Tensor> pieces;
  for (const Tensor& g : grads) pieces.push_back(g.defined() ? g : cresset::zeros(piece, like));
  return cresset::stack(pieces, dim);
}

}  // namespace cresset::autograd::formulas
