// Views: sizes, strides and offsets over one storage. Nothing here touches elements except the gradient helpers,
// which fill zeros and copy through a view.
#include <algorithm>

#include <cresset/base/warn_always.h>
#include <cresset/core/supported_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/functions_view_copy.h>

#include "ops/ops_decl_view.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

namespace {

// The same storage and offset under other sizes and strides.
Tensor make_alias(const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  return make_view(self, sizes, strides, self.storage_offset());
}

struct Geometry {
  DimVector sizes, strides;
};

// What the caller of as_strided must have got right; that it lies inside the storage is checked by make_view.
void check_strided(IntArrayRef size, IntArrayRef stride, int64_t offset) {
  CRESSET_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  for (int64_t s : size) CRESSET_CHECK(s >= 0, "as_strided: sizes of at least 0 were required; got sizes=", size, " and strides=", stride);
  for (int64_t s : stride) CRESSET_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  CRESSET_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
}

Geometry transposed(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = maybe_wrap_dim(dim0, self.dim());
  dim1 = maybe_wrap_dim(dim1, self.dim());
  Geometry g{DimVector(self.sizes()), DimVector(self.strides())};
  if (self.dim() > 0) {
    std::swap(g.sizes[dim0], g.sizes[dim1]);
    std::swap(g.strides[dim0], g.strides[dim1]);
  }
  return g;
}

// Removes the dimensions of size 1 that `named` holds for.
template <class Named>
Geometry squeezed(const Tensor& self, const Named& named) {
  Geometry g;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) == 1 && named(d)) continue;
    g.sizes.push_back(self.size(d));
    g.strides.push_back(self.stride(d));
  }
  return g;
}

auto every_dim() {
  return [](int64_t) { return true; };
}
auto this_dim(const Tensor& self, int64_t dim) {
  return [at = maybe_wrap_dim(dim, self.dim())](int64_t d) { return d == at; };
}
auto listed_dims(const Tensor& self, IntArrayRef dims) {
  return [mask = dim_mask(dims, self.dim())](int64_t d) { return (mask >> d & 1) != 0; };
}

Geometry unsqueezed(const Tensor& self, int64_t dim) {
  dim = maybe_wrap_dim(dim, self.dim() + 1);
  Geometry g{DimVector(self.sizes()), DimVector(self.strides())};
  const int64_t stride = dim < self.dim() ? self.size(dim) * self.stride(dim) : 1;
  g.sizes.insert(g.sizes.begin() + dim, 1);
  g.strides.insert(g.strides.begin() + dim, stride);
  return g;
}

void set_geometry(Tensor& self, const Geometry& g) { self.unsafeGetTensorImpl()->set_sizes_and_strides(g.sizes, g.strides); }

void check_t(const Tensor& self, const char* name) {
  CRESSET_CHECK(self.dim() <= 2, name, "() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
}

}  // namespace

Tensor alias_view(const Tensor& self) { return make_view(self, self.sizes(), self.strides(), self.storage_offset()); }
Tensor& identity_inplace(Tensor& self) { return self; }

Tensor view_size(const Tensor& self, IntArrayRef size) {
  const DimVector sizes = infer_size(size, self.numel());
  const auto strides = view_strides(self.sizes(), self.strides(), sizes);
  CRESSET_CHECK(strides.has_value(),
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                "contiguous subspaces). Use .reshape(...) instead.");
  return make_alias(self, sizes, *strides);
}

Tensor reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  CRESSET_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(), ") must match dimensionality of strides (",
                stride.size(), ")");
  return make_view(self, size, stride, self.storage_offset());
}

Tensor reshape_impl(const Tensor& self, IntArrayRef shape) {
  const DimVector sizes = infer_size(shape, self.numel());
  if (view_strides(self.sizes(), self.strides(), sizes)) return self.view(sizes);
  return cresset::_unsafe_view(self.clone(MemoryFormat::Contiguous), sizes);
}

Tensor view_dtype(const Tensor& self, ScalarType dtype) {
  check_supported_type(dtype);
  const ScalarType from = self.scalar_type();
  if (from == dtype) return alias_view(self);
  const int64_t old_size = static_cast<int64_t>(self.itemsize()), new_size = static_cast<int64_t>(element_size(dtype));
  CRESSET_CHECK(new_size > 0, "view: a dtype with elements was required; got ", dtype, ".");
  DimVector sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  if (old_size != new_size) {
    const std::string what = str("to view ", from, " as ", dtype, " (different element sizes), but got ");
    CRESSET_CHECK(self.dim() > 0, "self.dim() cannot be 0 to view ", from, " as ", dtype, " (different element sizes)");
    const std::size_t last = sizes.size() - 1;
    CRESSET_CHECK(strides[last] == 1, "self.stride(-1) must be 1 ", what, strides[last]);
    if (new_size < old_size) {
      const int64_t ratio = old_size / new_size;
      for (std::size_t i = 0; i < last; ++i) strides[i] *= ratio;
      strides[last] = 1;
      sizes[last] *= ratio;
      offset *= ratio;
    } else {
      const int64_t ratio = new_size / old_size;
      CRESSET_CHECK(sizes[last] % ratio == 0, "self.size(-1) must be divisible by ", ratio, " ", what, sizes[last]);
      CRESSET_CHECK(offset % ratio == 0, "self.storage_offset() must be divisible by ", ratio, " ", what, offset);
      for (std::size_t i = 0; i < last; ++i) {
        CRESSET_CHECK(strides[i] % ratio == 0, "self.stride(", i, ") must be divisible by ", ratio, " ", what, strides[i]);
        strides[i] /= ratio;
      }
      sizes[last] /= ratio;
      offset /= ratio;
    }
  }
  return make_view(self, sizes, strides, offset, dtype);
}

Tensor expand_size(const Tensor& self, IntArrayRef size, bool) {
  check_expands(self, size);
  const int64_t n = static_cast<int64_t>(size.size()), extra = n - self.dim();
  DimVector sizes(n), strides(n);
  for (int64_t d = n - 1; d >= 0; --d) {
    if (d < extra) {
      sizes[d] = size[d];
      strides[d] = d + 1 < n ? sizes[d + 1] * strides[d + 1] : 1;
      if (sizes[d] != 1) strides[d] = 0;
      continue;
    }
    const int64_t have = self.size(d - extra);
    sizes[d] = size[d] == -1 ? have : size[d];
    strides[d] = sizes[d] == have ? self.stride(d - extra) : 0;
  }
  return make_alias(self, sizes, strides);
}

std::vector<Tensor> broadcast_tensors_impl(TensorList tensors) {
  DimVector sizes;
  for (const Tensor& t : tensors) sizes = infer_broadcast(sizes, t.sizes());
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(t.expand(sizes));
  return out;
}

Tensor permute_dims(const Tensor& self, IntArrayRef dims) {
  const int64_t n = self.dim();
  CRESSET_CHECK(static_cast<int64_t>(dims.size()) == n,
                "permute(): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. "
                "input.dim() = ",
                n, " is not equal to len(dims) = ", dims.size());
  DimVector sizes(n), strides(n);
  uint64_t seen = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t d = maybe_wrap_dim(dims[i], n);
    CRESSET_CHECK(!(seen >> d & 1), "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << d;
    sizes[i] = self.size(d);
    strides[i] = self.stride(d);
  }
  return make_alias(self, sizes, strides);
}

Tensor transpose_int(const Tensor& self, int64_t dim0, int64_t dim1) {
  const Geometry g = transposed(self, dim0, dim1);
  return make_alias(self, g.sizes, g.strides);
}
Tensor& transpose_inplace(Tensor& self, int64_t dim0, int64_t dim1) {
  set_geometry(self, transposed(self, dim0, dim1));
  return self;
}
Tensor t_matrix(const Tensor& self) {
  check_t(self, "t");
  return transpose_int(self, 0, self.dim() < 2 ? 0 : 1);
}
Tensor& t_inplace(Tensor& self) {
  check_t(self, "t_");
  return transpose_inplace(self, 0, self.dim() < 2 ? 0 : 1);
}

Tensor numpy_t(const Tensor& self) {
  if (self.dim() != 2 && self.dim() != 0)
    CRESSET_WARN_FIRST(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future "
        "release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
        "dimensions of a tensor.");
  DimVector dims(self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) dims[i] = self.dim() - 1 - i;
  return self.permute(dims);
}
Tensor matrix_transpose(const Tensor& self) {
  if (self.dim() == 0) return self.alias();
  CRESSET_CHECK(self.dim() >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ", self.dim(), "-D tensor.");
  return self.transpose(-2, -1);
}
Tensor matrix_adjoint(const Tensor& self) {
  if (self.dim() == 0) return self.is_complex() ? self.conj() : self.alias();
  CRESSET_CHECK(self.dim() >= 2, "tensor.adjoint() is only supported on matrices or batches of matrices. Got ", self.dim(), "-D tensor.");
  const Tensor t = self.transpose(-2, -1);
  return self.is_complex() ? t.conj() : t;
}
Tensor matrix_h(const Tensor& self) {
  CRESSET_CHECK(self.dim() == 2 || self.dim() == 0, "tensor.H is only supported on matrices (2-D tensors). Got ", self.dim(), "-D tensor.",
                self.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return matrix_adjoint(self);
}

Tensor squeeze_all(const Tensor& self) {
  const Geometry g = squeezed(self, every_dim());
  return make_alias(self, g.sizes, g.strides);
}
Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  const Geometry g = squeezed(self, this_dim(self, dim));
  return make_alias(self, g.sizes, g.strides);
}
Tensor squeeze_dims(const Tensor& self, IntArrayRef dims) {
  const Geometry g = squeezed(self, listed_dims(self, dims));
  return make_alias(self, g.sizes, g.strides);
}
Tensor& squeeze_all_inplace(Tensor& self) {
  set_geometry(self, squeezed(self, every_dim()));
  return self;
}
Tensor& squeeze_dim_inplace(Tensor& self, int64_t dim) {
  set_geometry(self, squeezed(self, this_dim(self, dim)));
  return self;
}
Tensor& squeeze_dims_inplace(Tensor& self, IntArrayRef dims) {
  set_geometry(self, squeezed(self, listed_dims(self, dims)));
  return self;
}
Tensor unsqueeze_dim(const Tensor& self, int64_t dim) {
  const Geometry g = unsqueezed(self, dim);
  return make_alias(self, g.sizes, g.strides);
}
Tensor& unsqueeze_inplace(Tensor& self, int64_t dim) {
  set_geometry(self, unsqueezed(self, dim));
  return self;
}

Tensor select_int(const Tensor& self, int64_t dim, int64_t index) {
  CRESSET_CHECK_INDEX(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.size(dim);
  CRESSET_CHECK_INDEX(index >= -size && index < size, "select(): index ", index, " out of range for tensor of size ", self.sizes(),
                      " at dimension ", dim);
  if (index < 0) index += size;
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t offset = self.storage_offset() + index * strides[dim];
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return make_view(self, sizes, strides, offset);
}

Tensor slice_tensor(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  CRESSET_CHECK_INDEX(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK(step > 0, "slice step must be positive");
  const int64_t size = self.size(dim);
  const SliceRange r = clamp_slice(start, end, size);
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t offset = self.storage_offset() + r.start * strides[dim];
  sizes[dim] = (r.end - r.start) / step + ((r.end - r.start) % step != 0);
  strides[dim] *= step;
  return make_view(self, sizes, strides, offset);
}

Tensor narrow_int(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  CRESSET_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  CRESSET_CHECK(length >= 0, "narrow(): length must be non-negative.");
  const int64_t size = self.size(maybe_wrap_dim(dim, self.dim()));
  CRESSET_CHECK_INDEX(start >= -size && start <= size, "start out of range (expected to be in range of [", -size, ", ", size, "], but got ",
                      start, ")");
  if (start < 0) start += size;
  CRESSET_CHECK(start <= size - length, "start (", start, ") + length (", length, ") exceeds dimension size (", size, ").");
  return cresset::slice(self, dim, start, start + length, 1);
}
Tensor narrow_copy_impl(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return cresset::narrow(self, dim, start, length).clone(MemoryFormat::Contiguous);
}
Tensor narrow_tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  CRESSET_CHECK(start.dim() == 0 && isIntegralType(start.scalar_type(), false), "start must be an 0-dim integral Tensor.");
  return cresset::narrow(self, dim, start.item<int64_t>(), length);
}

Tensor flatten_ints(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  start_dim = maybe_wrap_dim(start_dim, self.dim());
  end_dim = maybe_wrap_dim(end_dim, self.dim());
  CRESSET_CHECK(start_dim <= end_dim, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return self.reshape({1});
  if (start_dim == end_dim) return self;
  int64_t merged = 1;
  for (int64_t d = start_dim; d <= end_dim; ++d) merged *= self.size(d);
  DimVector sizes(self.sizes().slice(0, start_dim));
  sizes.push_back(merged);
  for (int64_t d = end_dim + 1; d < self.dim(); ++d) sizes.push_back(self.size(d));
  return self.reshape(sizes);
}

Tensor unflatten_int(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  dim = maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  int64_t known = 1, unknown = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      CRESSET_CHECK(unknown < 0, "unflatten: only one dimension can be inferred; got sizes ", sizes, ".");
      unknown = static_cast<int64_t>(i);
    } else {
      CRESSET_CHECK(sizes[i] >= 0, "unflatten: invalid shape dimension ", sizes[i], " at index ", i, " of shape ", sizes);
      known *= sizes[i];
    }
  }
  const int64_t size = self.size(dim);
  const bool fits = unknown < 0 ? known == size : known > 0 && size % known == 0;
  CRESSET_CHECK(fits, "unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ", dim, " (", size,
                ") in the input tensor");
  DimVector shape(self.sizes().slice(0, dim));
  for (int64_t s : sizes) shape.push_back(s == -1 ? size / known : s);
  for (int64_t d = dim + 1; d < self.dim(); ++d) shape.push_back(self.size(d));
  return self.view(shape);
}

Tensor diagonal_view(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t d1 = maybe_wrap_dim(dim1, self.dim()), d2 = maybe_wrap_dim(dim2, self.dim());
  CRESSET_CHECK(d1 != d2, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t length =
      std::max<int64_t>(0, offset >= 0 ? std::min(self.size(d1), self.size(d2) - offset) : std::min(self.size(d1) + offset, self.size(d2)));
  int64_t start = self.storage_offset();
  if (length > 0) start += offset >= 0 ? offset * self.stride(d2) : -offset * self.stride(d1);
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == d1 || d == d2) continue;
    sizes.push_back(self.size(d));
    strides.push_back(self.stride(d));
  }
  sizes.push_back(length);
  strides.push_back(self.stride(d1) + self.stride(d2));
  return make_view(self, sizes, strides, start);
}

Tensor diag_embed_impl(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t n = self.dim() + 1, d1 = maybe_wrap_dim(dim1, n), d2 = maybe_wrap_dim(dim2, n);
  CRESSET_CHECK(d1 != d2, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t side = (self.dim() > 0 ? self.size(-1) : 1) + std::abs(offset);
  DimVector sizes;
  int64_t from = 0;
  for (int64_t d = 0; d < n; ++d) sizes.push_back(d == d1 || d == d2 ? side : self.size(from++));
  Tensor out = cresset::zeros(sizes, self.options());
  out.diagonal(offset, d1, d2).copy_(self);
  return out;
}

Tensor diag_impl(const Tensor& self, int64_t diagonal) {
  CRESSET_CHECK(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", self.dim(), "D");
  return self.dim() == 1 ? cresset::diag_embed(self, diagonal) : cresset::diagonal_copy(self, diagonal, 0, 1);
}

Tensor as_strided_view(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  check_strided(size, stride, offset);
  return make_view(self, size, stride, offset);
}
Tensor& as_strided_inplace(Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  check_strided(size, stride, offset);
  make_view(self, size, stride, offset);  // raises when it would leave the storage
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}

Tensor unfold_view(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = maybe_wrap_dim(dimension, self.dim());
  const int64_t have = self.dim() == 0 ? 1 : self.size(d);
  CRESSET_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  CRESSET_CHECK(size <= have, "maximum size for tensor at dimension ", d, " is ", have, " but size is ", size);
  CRESSET_CHECK(step > 0, "step is ", step, " but must be > 0");
  DimVector sizes(self.sizes()), strides(self.strides());
  strides.push_back(self.dim() == 0 ? 1 : strides[d]);
  sizes.push_back(size);
  if (self.dim() > 0) {
    sizes[d] = (have - size) / step + 1;
    strides[d] *= step;
  }
  return make_alias(self, sizes, strides);
}

Tensor movedim_list(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  CRESSET_CHECK(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (", source,
                " dims) should contain the same number of dims as destination (", destination, " dims)");
  const int64_t n = self.dim();
  DimVector order(n, -1);
  uint64_t from = 0, to = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const int64_t s = maybe_wrap_dim(source[i], n), d = maybe_wrap_dim(destination[i], n);
    CRESSET_CHECK(!(from >> s & 1), "movedim: repeated dim in `source` (", source, ")");
    CRESSET_CHECK(!(to >> d & 1), "movedim: repeated dim in `destination` (", destination, ")");
    from |= uint64_t{1} << s;
    to |= uint64_t{1} << d;
    if (n > 0) order[d] = s;
  }
  if (n == 0) return self.alias();
  int64_t next = 0;
  for (int64_t d = 0; d < n; ++d) {
    if (to >> d & 1) continue;
    while (from >> next & 1) ++next;
    order[d] = next++;
  }
  return self.permute(order);
}
Tensor movedim_int(const Tensor& self, int64_t source, int64_t destination) {
  return cresset::movedim(self, IntArrayRef(source), IntArrayRef(destination));
}

// ---- complex -----------------------------------------------------------------------------------------------------

Tensor view_as_real_pairs(const Tensor& self) {
  CRESSET_CHECK(self.is_complex(), "view_as_real is only supported for complex tensors");
  DimVector sizes(self.sizes()), strides;
  for (int64_t s : self.strides()) strides.push_back(s * 2);
  sizes.push_back(2);
  strides.push_back(1);
  return make_view(self, sizes, strides, self.storage_offset() * 2, toRealValueType(self.scalar_type()));
}
Tensor view_as_complex_numbers(const Tensor& self) {
  CRESSET_CHECK(
      self.scalar_type() == kHalf || self.scalar_type() == kFloat || self.scalar_type() == kDouble,
      "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ", self.scalar_type());
  CRESSET_CHECK(self.dim() > 0, "Input tensor must have one or more dimensions");
  CRESSET_CHECK(self.size(-1) == 2, "Tensor must have a last dimension of size 2");
  CRESSET_CHECK(self.stride(-1) == 1, "Tensor must have a last dimension with stride 1");
  CRESSET_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    CRESSET_CHECK(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  return make_view(self, sizes, strides, self.storage_offset() / 2, toComplexType(self.scalar_type()));
}
Tensor real_part(const Tensor& self) { return self.is_complex() ? cresset::view_as_real(self).select(-1, 0) : self; }
Tensor imag_part(const Tensor& self) {
  CRESSET_CHECK(self.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
  return cresset::view_as_real(self).select(-1, 1);
}

// ---- gradients and functional inverses of views ------------------------------------------------------------------

Tensor select_backward_impl(const Tensor& grad_output, IntArrayRef input_sizes, int64_t dim, int64_t index) {
  Tensor out = cresset::zeros(input_sizes, grad_output.options());
  out.select(dim, index).copy_(grad_output);
  return out;
}
Tensor slice_backward_impl(const Tensor& grad_output, IntArrayRef input_sizes, int64_t dim, int64_t start, int64_t end, int64_t step) {
  Tensor out = cresset::zeros(input_sizes, grad_output.options());
  cresset::slice(out, dim, start, end, step).copy_(grad_output);
  return out;
}
Tensor diagonal_backward_impl(const Tensor& grad_output, IntArrayRef input_sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  Tensor out = cresset::zeros(input_sizes, grad_output.options());
  out.diagonal(offset, dim1, dim2).copy_(grad_output);
  return out;
}
Tensor unfold_backward_impl(const Tensor& grad_in, IntArrayRef input_sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor out = cresset::zeros(input_sizes, grad_in.options());
  CRESSET_CHECK_VALUE(step > 0, "step is ", step, " but must be > 0");
  dim = maybe_wrap_dim(dim, static_cast<int64_t>(input_sizes.size()));
  const DimVector expected(out.unfold(dim, size, step).sizes());
  CRESSET_CHECK(grad_in.sizes() == IntArrayRef(expected), "unfold_backward: expected grad_in to have shape ", expected, ", but got ",
                grad_in.sizes());
  if (size == 0) return out;
  if (input_sizes.empty()) return out.copy_(grad_in.reshape({}));
  // Windows that start `step` apart: element k of every window is a slice of the input, so `size` slices are added.
  const int64_t windows = expected[static_cast<std::size_t>(dim)];
  for (int64_t k = 0; k < size; ++k) cresset::slice(out, dim, k, k + (windows - 1) * step + 1, step).add_(grad_in.select(-1, k));
  return out;
}

namespace {
int64_t last_element(IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  for (std::size_t d = 0; d < sizes.size(); ++d) offset += (sizes[d] - 1) * strides[d];
  return offset;
}

// A copy with the strides and the offset of self, also where they leave gaps: memory is copied from its beginning, to element `reach` at
// least where there is one.
Tensor clone_in_place(const Tensor& self, int64_t reach = 0) {
  if (!self.has_storage() || self.numel() == 0 || has_internal_overlap(self)) return self.clone(MemoryFormat::Contiguous);
  const int64_t there = static_cast<int64_t>(self.storage().nbytes() / self.itemsize()) - 1;
  const int64_t last = std::max(last_element(self.sizes(), self.strides(), self.storage_offset()), std::min(reach, there));
  return self.as_strided({last + 1}, {1}, 0).clone().as_strided(self.sizes(), self.strides(), self.storage_offset());
}

// A copy of self with src in the part that view(copy) shows.
template <class F>
Tensor scattered_with(const Tensor& self, const Tensor& src, const char* name, const F& view, int64_t reach = 0) {
  Tensor out = clone_in_place(self, reach);
  Tensor place = view(out);
  CRESSET_CHECK(place.sizes() == src.sizes(), name, ": expected src to have a size equal to the slice of self. src size = ", src.sizes(),
                ", slice size = ", place.sizes());
  place.copy_(src);
  return out;
}
}  // namespace

Tensor select_scatter_impl(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return scattered_with(self, src, "select_scatter", [&](const Tensor& t) { return t.select(dim, index); });
}
Tensor slice_scatter_impl(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                          int64_t step) {
  return scattered_with(self, src, "slice_scatter", [&](const Tensor& t) { return cresset::slice(t, dim, start, end, step); });
}
Tensor diagonal_scatter_impl(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  return scattered_with(self, src, "diagonal_scatter", [&](const Tensor& t) { return t.diagonal(offset, dim1, dim2); });
}
Tensor as_strided_scatter_impl(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride,
                               std::optional<int64_t> storage_offset) {
  const bool whole = size.size() == stride.size() && std::ranges::find(size, 0) == size.end();
  const int64_t reach = whole ? last_element(size, stride, storage_offset.value_or(self.storage_offset())) : 0;
  return scattered_with(
      self, src, "as_strided_scatter", [&](const Tensor& t) { return t.as_strided(size, stride, storage_offset); }, reach);
}

// ---- at least n dimensions ---------------------------------------------------------------------------------------

Tensor atleast_1d_one(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }
Tensor atleast_2d_one(const Tensor& self) { return self.dim() == 0 ? self.reshape({1, 1}) : self.dim() == 1 ? self.unsqueeze(0) : self; }
Tensor atleast_3d_one(const Tensor& self) {
  switch (self.dim()) {
    case 0: return self.reshape({1, 1, 1});
    case 1: return self.unsqueeze(0).unsqueeze(-1);
    case 2: return self.unsqueeze(-1);
    default: return self;
  }
}
namespace {
std::vector<Tensor> map_tensors(TensorList tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}
}  // namespace
std::vector<Tensor> atleast_1d_all(TensorList tensors) { return map_tensors(tensors, atleast_1d_one); }
std::vector<Tensor> atleast_2d_all(TensorList tensors) { return map_tensors(tensors, atleast_2d_one); }
std::vector<Tensor> atleast_3d_all(TensorList tensors) { return map_tensors(tensors, atleast_3d_one); }

Tensor trace_gradient(const Tensor& grad, IntArrayRef sizes) {
  CRESSET_CHECK(sizes.size() == 2, "expected matrix input");
  return cresset::diagonal_backward(grad.expand({std::min(sizes[0], sizes[1])}), sizes, 0, 0, 1);
}
bool is_set_to_impl(const Tensor& self, const Tensor& tensor) {
  return self.storage().is_alias_of(tensor.storage()) && self.storage_offset() == tensor.storage_offset() &&
         self.sizes() == tensor.sizes() && self.strides() == tensor.strides();
}
Tensor reshape_from_tensor(const Tensor& self, const Tensor& shape) {
  CRESSET_CHECK(shape.dim() == 1, "reshape: a vector of sizes was required; a tensor of ", shape.dim(), " dimensions was given.");
  const Tensor sizes = shape.to(kCPU).to(kLong).contiguous();  // of a meta tensor: an error
  return cresset::reshape(self, IntArrayRef(sizes.data_ptr<int64_t>(), static_cast<std::size_t>(sizes.numel())));
}

}  // namespace cresset::ops
