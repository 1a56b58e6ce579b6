// Indexing by tensors and masks: shape rules, checks and compositions. Index values are checked by the kernels.
#include <algorithm>
#include <string_view>
#include <vector>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>

#include "ops/index_plan.h"
#include "ops/ops_decl_index.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {

namespace {

bool is_index_type(ScalarType t) { return t == kLong || t == kInt; }

void check_same_dtype(const char* op, const Tensor& self, const Tensor& src, const char* name) {
  CRESSET_CHECK(self.scalar_type() == src.scalar_type(), op, "(): Expected self.dtype to be equal to ", name, ".dtype; got ",
                self.scalar_type(), " and ", src.scalar_type(), ".");
}

// What gather and the scatter family ask of index; `self_limits` is false where only other dimensions limit it.
int64_t check_gather_index(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src, const char* self_name) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  check_same_device(op, self, index, "index");
  if (index.numel() == 0) return d;
  CRESSET_CHECK(is_index_type(index.scalar_type()), op, "(): Expected dtype int32/int64 for index");
  const int64_t n = std::max<int64_t>(self.dim(), 1);
  CRESSET_CHECK(std::max<int64_t>(index.dim(), 1) == n, "Index tensor must have the same number of dimensions as ", self_name, " tensor");
  CRESSET_CHECK(!src || std::max<int64_t>(src->dim(), 1) == n, "Index tensor must have the same number of dimensions as src tensor");
  for (int64_t i = 0; i < index.dim(); ++i) {
    const int64_t have = self.dim() == 0 ? 1 : self.size(i);
    const bool within_self = i == d || index.size(i) <= have;
    const bool within_src = !src || index.size(i) <= (src->dim() == 0 ? 1 : src->size(i));
    if (within_self && within_src) continue;
    CRESSET_CHECK(src || std::string_view(op) != "gather", "Size does not match at dimension ", i, " expected index ", index.sizes(),
                  " to be no larger than self ", self.sizes(), " apart from dimension ", d);
    CRESSET_CHECK(src, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(), " apart from dimension ", d);
    CRESSET_THROW(Error, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(), " apart from dimension ", d,
                  " and to be no larger size than src ", src->sizes());
  }
  return d;
}

TensorSpec scatter_spec(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src) {
  if (src) {
    check_same_dtype(op, self, *src, "src");
    check_same_device(op, self, *src, "src");
  }
  check_gather_index(op, self, dim, index, src, "self");
  return spec_like(self, self.sizes());
}

// A kernel writes elements one by one, so no two of them may share a place.
void check_writable(const Tensor& self) {
  for (int64_t d = 0; d < self.dim(); ++d)
    CRESSET_CHECK(
        self.size(d) <= 1 || self.stride(d) != 0,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() "
        "the tensor before performing the operation.");
}
// Some operators write expanded tensors all the same; `indexing` is how Python writes such a call.
void warn_of_expanded(const char* op, const char* indexing, const Tensor& self) {
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) <= 1 || self.stride(d) != 0) continue;
    warn(str("Use of ", op,
             " on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also applies ",
             "to advanced indexing e.g. ", indexing));
    return;
  }
}
// Nor may it write what it still has to read.
template <class... Read>
void check_writable(const Tensor& self, const Read&... read) {
  check_writable(self);
  (check_apart(read, self), ...);
}

}  // namespace

// ---- index and index_put -----------------------------------------------------------------------------------------

Tensor index_meta(const Tensor& self, OptionalTensorList indices) {
  for (const std::optional<Tensor>& i : indices)
    CRESSET_CHECK_NOT_IMPLEMENTED(!i || !i->defined() || !is_mask(*i) || i->device().is_cpu(),
                                  "index: the size of the result depends on a mask's values, which a meta tensor does not have.");
  const IndexPlan plan = plan_index(self, indices);
  return allocate_meta({plan.result_sizes, self.scalar_type(), Device(kMeta), index_strides(plan)});
}

Tensor& index_put_meta(Tensor& self, OptionalTensorList indices, const Tensor& values, bool, bool) {
  CRESSET_CHECK(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ",
                self.scalar_type(), " for the destination and ", values.scalar_type(), " for the source.");
  if (values.dim() > 0) check_same_device("index_put_", self, values, "values");
  warn_of_expanded("index_put_", "tensor[indices] = tensor", self);
  check_apart(values, self);
  for (const std::optional<Tensor>& index : indices)
    if (index && index->defined()) {
      if (index->is_meta()) check_same_device("index_put_", self, *index, "indices");
      check_apart(*index, self);
    }
  return self;
}
namespace {
// Where a mask alone stands before one element, this may be of any type: the call fills.
Tensor values_for(const Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate) {
  if (values.scalar_type() == self.scalar_type() || accumulate || values.numel() != 1 || !values.is_cpu()) return values;
  int masks = 0, others = 0;
  for (const std::optional<Tensor>& index : indices)
    if (index && index->defined()) ++(is_mask(*index) ? masks : others);
  return masks == 1 && others == 0 ? cresset::scalar_tensor(values.item(), TensorOptions(self.scalar_type())) : values;
}
}  // namespace

Tensor& index_put_inplace(Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate) {
  return cresset::_index_put_impl_(self, indices, values_for(self, indices, values, accumulate), accumulate, false);
}
Tensor index_put_copy(const Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate) {
  Tensor out = self.clone();
  cresset::_index_put_impl_(out, indices, values_for(self, indices, values, accumulate), accumulate, false);
  return out;
}

namespace {
// Indices that no mask can make unsafe: those out of range moved to the nearest one in it.
std::vector<std::optional<Tensor>> clamped(const Tensor& self, OptionalTensorList indices) {
  CRESSET_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(), "too many indices for tensor of dimension ", self.dim(), " (got ",
                      indices.size(), ")");
  std::vector<std::optional<Tensor>> out(indices.begin(), indices.end());
  for (std::size_t d = 0; d < out.size(); ++d)
    if (out[d] && out[d]->defined()) out[d] = cresset::clamp(*out[d], -self.size(d), self.size(d) - 1);
  return out;
}
}  // namespace

Tensor unsafe_masked_index(const Tensor& self, const Tensor& mask, OptionalTensorList indices, const Scalar& fill) {
  return cresset::masked_fill(cresset::index(self, clamped(self, indices)), cresset::logical_not(mask), fill);
}
Tensor unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask, OptionalTensorList indices, const Tensor& values) {
  return cresset::index_put(self, clamped(self, indices), cresset::masked_fill(values, cresset::logical_not(mask), 0), /*accumulate=*/true);
}

// ---- one index a slice -------------------------------------------------------------------------------------------

TensorSpec index_select_shape(const Tensor& self, int64_t dim, const Tensor& index) {
  CRESSET_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  CRESSET_CHECK(is_index_type(index.scalar_type()), "index_select(): Expected dtype int32 or int64 for index");
  check_same_device("index_select", self, index, "index");
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  DimVector sizes(self.sizes());
  if (self.dim() == 0)
    CRESSET_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ", index.numel(), " value(s)");
  else
    sizes[d] = index.numel();
  return spec_like(self, sizes);
}

namespace {
// Slices of source that are combined with those of self at the index; `op` is the name in errors.
TensorSpec combined_slices(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK_INDEX(index.dim() <= 1, op, "(): Index is supposed to be a vector, but got dim: ", index.dim(),
                      " with type: ", index.scalar_type(), " and size: ", index.sizes());
  CRESSET_CHECK(is_index_type(index.scalar_type()), op, "(): Expected dtype int32/int64 for index but got: ", index.scalar_type());
  CRESSET_CHECK(self.scalar_type() == source.scalar_type(), op, "(): self (", self.scalar_type(), ") and source (", source.scalar_type(),
                ") must have the same scalar type");
  check_same_device(op, self, index, "index");
  check_same_device(op, self, source, "source");
  const int64_t slices = source.dim() == 0 ? 1 : source.size(maybe_wrap_dim(dim, source.dim()));
  CRESSET_CHECK(index.numel() == slices, op, "(): Number of indices (", index.numel(), ") should be equal to source.size(dim): (", slices,
                "), for dim: ", d);
  bool same = self.dim() == source.dim();
  for (int64_t i = 0; same && i < self.dim(); ++i) same = i == d || self.size(i) == source.size(i);
  CRESSET_CHECK(same,
                "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ", self.sizes(),
                " source.shape = ", source.sizes());
  return spec_like(self, self.sizes());
}
}  // namespace

TensorSpec index_add_shape(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar&) {
  return combined_slices("index_add_", self, dim, index, source);
}
Tensor& index_add_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  index_add_shape(self, dim, index, source, alpha);
  check_writable(self, index, source);
  return self;
}

TensorSpec index_reduce_shape(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, bool) {
  CRESSET_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
                "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  return combined_slices("index_reduce_", self, dim, index, source);
}
Tensor& index_reduce_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                          bool include_self) {
  index_reduce_shape(self, dim, index, source, reduce, include_self);
  check_writable(self, index, source);
  return self;
}

TensorSpec index_copy_shape(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK_INDEX(index.dim() <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  CRESSET_CHECK(index.scalar_type() == kLong, "index_copy_(): Expected a long tensor for index, but got ", index.scalar_type());
  CRESSET_CHECK(self.scalar_type() == source.scalar_type(),
                "index_copy_(): self and source expected to have the same dtype, but got (self) ", self.scalar_type(), " and (source) ",
                source.scalar_type());
  check_same_device("index_copy_", self, index, "index");
  check_same_device("index_copy_", self, source, "source");
  DimVector to(self.sizes()), from(source.sizes());
  if (self.dim() > 0) to.erase(to.begin() + d);
  if (source.dim() > 0) {
    const int64_t sd = maybe_wrap_dim(dim, source.dim());
    CRESSET_CHECK_INDEX(source.size(sd) == index.numel(), "index_copy_(): Number of indices (", index.numel(),
                        ") should be equal to source.size(dim) (", source.size(sd), ")");
    from.erase(from.begin() + sd);
  } else {
    CRESSET_CHECK_INDEX(index.numel() == 1, "index_copy_(): When source is scalar, index should have one element (got ", index.numel(),
                        ")");
  }
  CRESSET_CHECK(to == from, "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ", to,
                " at dimension ", d, " and source slice shape: ", from, " at dimension 0.");
  return spec_like(self, self.sizes());
}
Tensor& index_copy_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  index_copy_shape(self, dim, index, source);
  check_writable(self, index, source);
  return self;
}

Tensor& index_fill_scalar_meta(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK_INDEX(index.scalar_type() == kLong, "index_fill_(): Expected dtype int64 for index.");
  CRESSET_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  CRESSET_CHECK(self.is_complex() || !value.isComplex(), "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  check_same_device("index_fill_", self, index, "index");
  warn_of_expanded("index_fill_", "tensor[mask] = scalar", self);  // one value everywhere: the order of writes does not matter
  check_apart(index, self);
  return self;
}
Tensor& index_fill_tensor_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  CRESSET_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
                " dimension(s).");
  CRESSET_CHECK(self.is_complex() || !value.is_complex(), "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  return index_fill_scalar_meta(self, dim, index, 0);
}
Tensor index_fill_scalar_copy(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  Tensor out = self.clone();
  out.index_fill_(dim, index, value);
  return out;
}
Tensor index_fill_tensor_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  Tensor out = self.clone();
  out.index_fill_(dim, index, value);
  return out;
}

// ---- one index an element ----------------------------------------------------------------------------------------

TensorSpec gather_shape(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  check_gather_index("gather", self, dim, index, nullptr, "input");
  return spec_like(self, index.sizes());
}

TensorSpec scatter_src_shape(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_spec("scatter", self, dim, index, &src);
}
TensorSpec scatter_value_shape(const Tensor& self, int64_t dim, const Tensor& index, const Scalar&) {
  return scatter_spec("scatter", self, dim, index, nullptr);
}
TensorSpec scatter_add_shape(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_spec("scatter", self, dim, index, &src);
}
namespace {
void check_old_reduce(std::string_view reduce) {
  CRESSET_CHECK(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
}
}  // namespace
TensorSpec scatter_reduce_old_shape(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  check_old_reduce(reduce);
  return scatter_spec("scatter", self, dim, index, &src);
}
TensorSpec scatter_value_reduce_shape(const Tensor& self, int64_t dim, const Tensor& index, const Scalar&, std::string_view reduce) {
  check_old_reduce(reduce);
  return scatter_spec("scatter", self, dim, index, nullptr);
}
TensorSpec scatter_reduce_shape(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool) {
  CRESSET_CHECK(reduce == "sum" || reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
                "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  return scatter_spec("scatter", self, dim, index, &src);
}

Tensor& scatter_src_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_src_shape(self, dim, index, src);
  check_writable(self, index, src);
  return self;
}
Tensor& scatter_value_meta(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  scatter_value_shape(self, dim, index, value);
  check_writable(self, index);
  return self;
}
Tensor& scatter_add_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_add_shape(self, dim, index, src);
  check_writable(self, index, src);
  return self;
}
Tensor& scatter_reduce_old_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  scatter_reduce_old_shape(self, dim, index, src, reduce);
  check_writable(self, index, src);
  return self;
}
Tensor& scatter_value_reduce_meta(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) {
  scatter_value_reduce_shape(self, dim, index, value, reduce);
  check_writable(self, index);
  return self;
}
Tensor& scatter_reduce_meta(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include_self) {
  scatter_reduce_shape(self, dim, index, src, reduce, include_self);
  check_writable(self, index, src);
  return self;
}

TensorSpec take_shape(const Tensor& self, const Tensor& index) {
  CRESSET_CHECK(index.scalar_type() == kLong, "take(): Expected a long tensor for index, but got ", index.scalar_type());
  CRESSET_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  check_same_device("take", self, index, "index");
  return spec_like(self, index.sizes());
}
Tensor take_along_dim_impl(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) return self.reshape({-1}).gather(0, indices.reshape({-1}));
  CRESSET_CHECK(indices.scalar_type() == kLong, "torch.take_along_dim(): dtype of indices should be Long but got ", indices.scalar_type());
  CRESSET_CHECK(self.dim() == indices.dim(),
                "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ", self.dim(),
                " dimensions for input, and ", indices.dim(), " dimensions for indices");
  const int64_t d = maybe_wrap_dim(*dim, self.dim());
  DimVector from(self.sizes()), index(indices.sizes());
  if (self.dim() > 0) {
    from[d] = index[d] = 1;
    const DimVector both = infer_broadcast(from, index);
    from = both;
    index = both;
    from[d] = self.size(d);
    index[d] = indices.size(d);
  }
  // Indices wrap around: negative ones count from the end.
  const Tensor wrapped = cresset::remainder(indices, self.dim() == 0 ? 1 : self.size(d));
  return self.expand(from).gather(d, wrapped.expand(index));
}

Tensor& put_meta(Tensor& self, const Tensor& index, const Tensor& source, bool) {
  CRESSET_CHECK(index.scalar_type() == kLong, "put_(): Expected a long tensor for index, but got ", index.scalar_type());
  CRESSET_CHECK(self.scalar_type() == source.scalar_type(),
                "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
                " and source.dtype = ", source.scalar_type());
  CRESSET_CHECK_INDEX(source.numel() == index.numel(),
                      "put_(): Expected source and index to have the same number of elements, but got source.numel() = ", source.numel(),
                      ", index.numel() = ", index.numel());
  CRESSET_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "put_(): tried to put elements into an empty tensor");
  check_same_device("put_", self, index, "index");
  check_same_device("put_", self, source, "source");
  check_writable(self, index, source);
  return self;
}
Tensor put_copy(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  Tensor out = self.clone();
  out.put_(index, source, accumulate);
  return out;
}

// ---- masks -------------------------------------------------------------------------------------------------------

Tensor& masked_scatter_meta(Tensor& self, const Tensor& mask, const Tensor& source) {
  CRESSET_CHECK(mask.scalar_type() == kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
  CRESSET_CHECK(self.scalar_type() == source.scalar_type(), "masked_scatter: expected self and source to have same dtypes but got ",
                self.scalar_type(), " and ", source.scalar_type());
  CRESSET_CHECK(infer_broadcast(self.sizes(), mask.sizes()) == DimVector(self.sizes()), "masked_scatter_: a mask that broadcasts to ",
                self.sizes(), " was required; got ", mask.sizes(), ".");
  check_same_device("masked_scatter_", self, mask, "mask");
  check_same_device("masked_scatter_", self, source, "source");
  check_writable(self);
  return self;
}
Tensor masked_scatter_copy(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const DimVector sizes = infer_broadcast(self.sizes(), mask.sizes());
  Tensor out = self.expand(sizes).clone(MemoryFormat::Contiguous);
  out.masked_scatter_(mask, source);
  return out;
}
Tensor masked_scatter_backward_impl(const Tensor& grad_output, const Tensor& mask, IntArrayRef sizes) {
  int64_t numel = 1;
  for (int64_t s : sizes) numel *= s;
  if (grad_output.is_meta()) return cresset::empty(sizes, grad_output.options());  // how many are picked is not known, and need not be
  // By places, which a batch of gradients can be read at.
  const Tensor places = mask.expand(grad_output.sizes()).reshape({-1}).nonzero().view({-1});
  const Tensor picked = grad_output.reshape({-1}).index_select(0, places);
  return cresset::constant_pad_nd(picked, {0, numel - picked.numel()}, 0).reshape(sizes);
}

TensorSpec nonzero_static_shape(const Tensor& self, int64_t size, int64_t) {
  CRESSET_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  return spec_like(self, {size, self.dim()}, kLong);
}
std::vector<Tensor> nonzero_numpy_impl(const Tensor& self) { return (self.dim() == 0 ? self.unsqueeze(0) : self).nonzero().unbind(1); }

Tensor one_hot_impl(const Tensor& self, int64_t num_classes) {
  CRESSET_CHECK(self.scalar_type() == kLong, "one_hot is only applicable to index tensor of type LongTensor.");
  DimVector sizes(self.sizes());
  if (self.numel() == 0) {
    CRESSET_CHECK(num_classes > 0, "Can not infer total number of classes from empty tensor.");
    sizes.push_back(num_classes);
    return cresset::empty(sizes, self.options());
  }
  if (!self.is_meta()) {
    CRESSET_CHECK(self.min().item<int64_t>() >= 0, "Class values must be non-negative.");
    const int64_t largest = self.max().item<int64_t>();
    if (num_classes == -1) num_classes = largest + 1;
    CRESSET_CHECK(num_classes > largest, "Class values must be smaller than num_classes.");
  }
  CRESSET_CHECK(num_classes > 0, "one_hot: num_classes must be given for a meta tensor.");
  sizes.push_back(num_classes);
  return cresset::zeros(sizes, self.options()).scatter(-1, self.unsqueeze(-1), 1);
}

Tensor gather_gradient(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  CRESSET_CHECK_NOT_IMPLEMENTED(!sparse_grad, "gather_backward: a sparse gradient is made by gather itself only.");
  return cresset::scatter_add(cresset::new_zeros(grad, self.sizes()), dim, index, grad);
}
Tensor masked_select_gradient(const Tensor& grad, const Tensor& input, const Tensor& mask) {
  return cresset::masked_scatter(cresset::new_zeros(grad, infer_broadcast(input.sizes(), mask.sizes())), mask, grad);
}

}  // namespace cresset::ops
