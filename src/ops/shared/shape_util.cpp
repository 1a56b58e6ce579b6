// Arithmetic on sizes and strides.
#include "ops/shared/shape_util.h"

#include <algorithm>

namespace cresset::ops {

TensorSpec spec_like(const Tensor& like, IntArrayRef sizes, std::optional<ScalarType> dtype, MemoryFormat format) {
  TensorSpec spec{DimVector(sizes), dtype.value_or(like.scalar_type()), like.device(), std::nullopt};
  if (format != MemoryFormat::Contiguous) spec.strides = strides_for(sizes, format);
  return spec;
}

DimVector infer_size(IntArrayRef shape, int64_t numel) {
  DimVector out(shape);
  int64_t known = 1, unknown = -1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1) {
      CRESSET_CHECK(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
      continue;
    }
    CRESSET_CHECK(out[i] >= 0, "invalid shape dimension ", out[i], " at index ", i, " of shape ", shape);
    CRESSET_CHECK(!__builtin_mul_overflow(known, out[i], &known), "shape '", shape, "' is invalid for input of size ", numel);
  }
  if (unknown < 0) {
    CRESSET_CHECK(known == numel, "shape '", shape, "' is invalid for input of size ", numel);
    return out;
  }
  CRESSET_CHECK(known > 0 ? numel % known == 0 : numel == 0, "shape '", shape, "' is invalid for input of size ", numel);
  CRESSET_CHECK(known != 0, "cannot reshape tensor of 0 elements into shape ", shape,
                " because the unspecified dimension size -1 can be any value and is ambiguous");
  out[unknown] = numel / known;
  return out;
}

std::optional<DimVector> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef new_sizes) {
  int64_t numel = 1;
  for (int64_t s : sizes) numel *= s;
  if (numel == 0) {
    if (sizes == new_sizes) return DimVector(strides);
    return contiguous_strides(new_sizes);
  }
  DimVector out(new_sizes.size());
  int64_t to = static_cast<int64_t>(new_sizes.size()) - 1;
  int64_t chunk_stride = strides.empty() ? 1 : strides.back(), chunk = 1, placed = 1;
  // From the last dimension on: old dimensions that lie behind one another form a chunk, which new dimensions must fill.
  for (int64_t from = static_cast<int64_t>(sizes.size()) - 1; from >= 0; --from) {
    chunk *= sizes[from];
    if (from > 0 && (sizes[from - 1] == 1 || strides[from - 1] == chunk * chunk_stride)) continue;
    while (to >= 0 && (placed < chunk || new_sizes[to] == 1)) {
      out[to] = placed * chunk_stride;
      placed *= new_sizes[to--];
    }
    if (placed != chunk) return std::nullopt;
    if (from > 0) chunk_stride = strides[from - 1];
    chunk = placed = 1;
  }
  while (to >= 0) {
    if (new_sizes[to] != 1) return std::nullopt;
    out[to--] = 1;
  }
  return out;
}

DimVector infer_broadcast(IntArrayRef a, IntArrayRef b) {
  const std::size_t n = std::max(a.size(), b.size());
  DimVector out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    CRESSET_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x, ") must match the size of tensor b (", y,
                  ") at non-singleton dimension ", n - 1 - i);
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

uint64_t dim_mask(IntArrayRef dims, int64_t ndim) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    const int64_t w = maybe_wrap_dim(d, ndim);
    CRESSET_CHECK(!(mask >> w & 1), "dim ", w, " appears multiple times in the list of dims");
    mask |= uint64_t{1} << w;
  }
  return ndim == 0 ? 0 : mask;  // a tensor of no dimensions accepts dim 0, but there is nothing to reduce
}

uint64_t reduce_mask(OptionalIntArrayRef dims, int64_t ndim) {
  if (!dims || dims->empty()) return ndim >= 64 ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1;
  return dim_mask(*dims, ndim);
}

DimVector reduced_sizes(IntArrayRef sizes, uint64_t mask, bool keepdim) {
  DimVector out;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1))
      out.push_back(sizes[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

SliceRange clamp_slice(std::optional<int64_t> start, std::optional<int64_t> end, int64_t size) {
  int64_t s = start.value_or(0), e = end.value_or(size);
  if (s < 0) s += size;
  if (e < 0) e += size;
  s = std::clamp<int64_t>(s, 0, size);
  e = std::clamp<int64_t>(e, s, size);
  return {s, e};
}

Tensor make_view(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset, std::optional<ScalarType> dtype) {
  if (!dtype || *dtype == self.scalar_type()) return detail::alias_with_sizes_and_strides(self, sizes, strides, offset);
  TensorImpl* from = self.unsafeGetTensorImpl();
  if (!from->has_storage()) {
    const Tensor view = detail::alias_with_sizes_and_strides(self, sizes, strides, offset);
    view.unsafeGetTensorImpl()->set_storage_and_dtype(Storage(), *dtype);
    return view;
  }
  auto impl = make_intrusive<TensorImpl>(from->storage(), from->key_set(), *dtype, sizes, strides, offset);
  if (from->is_inference())
    impl->set_inference(true);
  else
    impl->share_version_with(*from);
  return Tensor(std::move(impl));
}

ScalarType promoted_type(TensorList tensors) {
  ScalarType type = tensors[0].scalar_type();
  for (const Tensor& t : tensors.slice(1)) type = promote_types(type, t.scalar_type());
  return type;
}

void check_same_device(const char* op, const Tensor& self, const Tensor& other, const char* name) {
  CRESSET_CHECK(self.device() == other.device(), op, ": ", name, " on ", self.device(), " was required; got ", other.device(),
                ". Move it with to().");
}

void check_expands(const Tensor& self, IntArrayRef size) {
  const int64_t n = static_cast<int64_t>(size.size()), extra = n - self.dim();
  CRESSET_CHECK(extra >= 0, "expand(", type_name(self), "{", self.sizes(), "}, size=", size, "): the number of sizes provided (", n,
                ") must be greater or equal to the number of dimensions in the tensor (", self.dim(), ")");
  for (int64_t d = n - 1; d >= 0; --d) {
    CRESSET_CHECK(d >= extra || size[d] >= 0, "The expanded size of the tensor (", size[d],
                  ") isn't allowed in a leading, non-existing dimension ", d);
    if (d < extra) continue;
    const int64_t have = self.size(d - extra), want = size[d] == -1 ? have : size[d];
    CRESSET_CHECK(want == have || (have == 1 && want >= 0), "The expanded size of the tensor (", want, ") must match the existing size (",
                  have, ") at non-singleton dimension ", d, ".  Target sizes: ", size, ".  Tensor sizes: ", self.sizes());
  }
}

std::string type_name(const Tensor& t) {
  const std::string type = toString(t.scalar_type());
  return t.is_complex() ? "CPU" + type + "Type" : "torch." + type + "Tensor";
}

}  // namespace cresset::ops
