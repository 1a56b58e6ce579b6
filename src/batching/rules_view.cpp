// Rules of operators whose arguments are sizes, of copies, and of those that ask for values.
#include <cresset/core/forward_levels.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/functions_view_copy.h>

#include "batching/batch_call.h"
#include "ops/shared/number_range.h"
#include "ops/shared/shape_util.h"

namespace cresset::batching {
namespace {

// --- views ------------------------------------------------------------------------------------------------------------------

Tensor view_rule(const Tensor& self, IntArrayRef size) {
  const Batch b(self);
  return b.wrap(cresset::view(b.front(self), with_front(b.size(), ops::infer_size(size, self.numel()))));
}
Tensor unsafe_view_rule(const Tensor& self, IntArrayRef size) {
  const Batch b(self);
  return b.wrap(cresset::reshape(b.front(self), with_front(b.size(), ops::infer_size(size, self.numel()))));
}
/// As in PyTorch a reshape: where the examples lie their strides are others.
Tensor reshape_alias_rule(const Tensor& self, IntArrayRef size, IntArrayRef) { return unsafe_view_rule(self, size); }

Tensor expand_rule(const Tensor& self, IntArrayRef size, bool implicit) {
  const Batch b(self);
  const auto rank = static_cast<int64_t>(size.size());
  CRESSET_CHECK(rank >= self.dim(), "expand(", self.toString(), "{", self.sizes(), "}, size=", size, "): the number of sizes provided (",
                rank, ") must be greater or equal to the number of dimensions in the tensor (", self.dim(), ")");
  return b.wrap(cresset::expand(b.aligned(self, rank), with_front(b.size(), size), implicit));
}

Tensor permute_rule(const Tensor& self, IntArrayRef dims) {
  const Batch b(self);
  CRESSET_CHECK(static_cast<int64_t>(dims.size()) == self.dim(),
                "permute(sparse_coo): number of dimensions in the tensor input does not "
                "match the length of the desired ordering of dimensions i.e. input.dim() = ",
                self.dim(), " is not equal to len(dims) = ", dims.size());
  DimVector all;
  all.push_back(0);
  for (int64_t d : dims) all.push_back(maybe_wrap_dim(d, self.dim()) + 1);
  return b.wrap(cresset::permute(b.front(self), all));
}

Tensor repeat_rule(const Tensor& self, IntArrayRef repeats) {
  const Batch b(self);
  const auto rank = static_cast<int64_t>(repeats.size());
  CRESSET_CHECK(rank >= self.dim(), "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  return b.wrap(cresset::repeat(b.aligned(self, rank), with_front(1, repeats)));
}

// The windows of a number have one dimension, as itself has none.
template <class F>
Tensor windows(const Tensor& self, int64_t dimension, const F& unfold) {
  const Batch b(self);
  const int64_t d = maybe_wrap_dim(dimension, self.dim()) + 1;
  return b.wrap(self.dim() == 0 ? cresset::select(unfold(b.front(self).unsqueeze(1), d), 1, 0) : unfold(b.front(self), d));
}
Tensor unfold_rule(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return windows(self, dimension, [&](const Tensor& t, int64_t d) { return cresset::unfold(t, d, size, step); });
}
Tensor unfold_copy_rule(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return windows(self, dimension, [&](const Tensor& t, int64_t d) { return cresset::unfold_copy(t, d, size, step); });
}

Tensor squeeze_rule(const Tensor& self) {
  const Batch b(self);
  DimVector dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) == 1) dims.push_back(d + 1);
  return b.wrap(cresset::squeeze(b.front(self), IntArrayRef(dims)));
}

Tensor t_rule(const Tensor& self) {
  const Batch b(self);
  CRESSET_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return b.wrap(self.dim() < 2 ? cresset::alias(b.front(self)) : cresset::transpose(b.front(self), 1, 2));
}

/// Every example is viewed as if it began where the batch begins; no example may reach beyond its own memory.
Tensor as_strided_rule(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) {
  const Batch b(self);
  Tensor front = b.front(self);
  // The formula for tangents takes the same strides, and that of an expanded tensor has memory for each example.
  if (b.size() > 1 && front.stride(0) == 0 && cresset::detail::forward_levels.load(std::memory_order_relaxed) > 0)
    front = cresset::contiguous(front);
  CRESSET_CHECK(size.size() == stride.size(), "Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size ",
                size, " and stride ", stride, ".");
  const auto reach = [](IntArrayRef sizes, IntArrayRef strides) {
    int64_t last = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) last += std::max<int64_t>(sizes[i] - 1, 0) * strides[i];
    return last;
  };
  const int64_t begin = front.storage_offset(), offset = storage_offset.value_or(begin), end = begin + reach(self.sizes(), self.strides());
  bool empty = false;
  for (int64_t s : size) empty |= s == 0;
  CRESSET_CHECK(empty || (offset >= begin && offset + reach(size, stride) <= end), "result = tensor.as_strided(", size, ", ", stride, ", ",
                offset, ") can access memory outside of `tensor`. `result` can access some memory in range [", offset, ", ",
                offset + reach(size, stride), "], but `tensor` can only access some memory in range [", begin, ", ", end,
                "]. This is not supported inside of vmap, please try to rewrite the `as_strided` call as a sequence of PyTorch view "
                "operations");
  return b.wrap(cresset::as_strided(front, with_front(b.size(), size), with_front(front.stride(0), stride), offset));
}

// --- in-place changes of what a tensor looks like -------------------------------------------------------------------------------

/// The wrapper gets another value; the tensor that was given to vmap stays as it is.
Tensor& become(const char* op, Tensor& self, const Tensor& changed) {
  CRESSET_CHECK(is_batched(self), op, ": under vmap the tensor itself must be batched.");
  const BatchedTensorImpl* other = batched_impl(changed);
  batched_impl(self)->set_value(other->value(), other->batch_dim());
  return self;
}

Tensor& transposed_itself(Tensor& self) {
  CRESSET_CHECK(self.dim() <= 2, "t_() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return become("t_", self, t_rule(self));
}
Tensor& squeezed_itself(Tensor& self) { return become("squeeze_", self, squeeze_rule(self)); }
Tensor& strided_itself(Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) {
  return become("as_strided_", self, as_strided_rule(self, size, stride, storage_offset));
}

/// Each example keeps its first elements. New memory: other tensors may look at the old one.
Tensor& resize_rule(Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  const Batch b(self);
  CRESSET_CHECK(!memory_format || *memory_format == MemoryFormat::Contiguous, "resize_: under vmap Contiguous was required; got ",
                *memory_format, ".");
  if (self.sizes() == size) return self;
  const Tensor old = cresset::reshape(b.front(self), {b.size(), self.numel()});
  const Tensor grown = cresset::new_empty(old, with_front(b.size(), size));
  const int64_t count = grown.numel() / std::max<int64_t>(b.size(), 1), kept = std::min(self.numel(), count);
  Tensor target = cresset::narrow(cresset::view(grown, {b.size(), count}), 1, 0, kept);
  cresset::copy_(target, cresset::narrow(old, 1, 0, kept));
  return become("resize_", self, b.wrap(grown));
}
Tensor& resize_as_rule(Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  return cresset::resize_(self, the_template.sizes(), memory_format);
}

Tensor& set_rule(Tensor& self, const Tensor& source) {
  const Batch b(self, source);
  if (!b.has(self)) raise_inplace("set_");
  return become("set_", self, b.wrap(b.full(source)));
}
Tensor& set_to_nothing(Tensor& self) {
  const Batch b(self);
  return become("set_", self, b.wrap(cresset::new_empty(b.front(self), {b.size(), 0})));
}

// --- new tensors --------------------------------------------------------------------------------------------------------------

using OptType = std::optional<ScalarType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;

Tensor new_empty_rule(const Tensor& self, IntArrayRef size, OptType dtype, OptLayout layout, OptDevice device, std::optional<bool> pin) {
  const Batch b(self);
  return b.wrap(cresset::new_empty(b.front(self), with_front(b.size(), size), dtype, layout, device, pin));
}
Tensor new_zeros_rule(const Tensor& self, IntArrayRef size, OptType dtype, OptLayout layout, OptDevice device, std::optional<bool> pin) {
  const Batch b(self);
  return b.wrap(cresset::new_zeros(b.front(self), with_front(b.size(), size), dtype, layout, device, pin));
}
Tensor new_ones_rule(const Tensor& self, IntArrayRef size, OptType dtype, OptLayout layout, OptDevice device, std::optional<bool> pin) {
  const Batch b(self);
  return b.wrap(cresset::new_ones(b.front(self), with_front(b.size(), size), dtype, layout, device, pin));
}
Tensor new_full_rule(const Tensor& self, IntArrayRef size, const Scalar& value, OptType dtype, OptLayout layout, OptDevice device,
                     std::optional<bool> pin) {
  const Batch b(self);
  return b.wrap(cresset::new_full(b.front(self), with_front(b.size(), size), value, dtype, layout, device, pin));
}
Tensor new_empty_strided_rule(const Tensor& self, IntArrayRef size, IntArrayRef stride, OptType dtype, OptLayout layout, OptDevice device,
                              std::optional<bool> pin) {
  const Batch b(self);
  int64_t one = 1;  // elements of one example's memory
  for (std::size_t i = 0; i < size.size(); ++i) one += std::max<int64_t>(size[i] - 1, 0) * stride[i];
  return b.wrap(cresset::new_empty_strided(b.front(self), with_front(b.size(), size), with_front(one, stride), dtype, layout, device, pin));
}

// --- copies -------------------------------------------------------------------------------------------------------------------

Tensor& copy_rule(Tensor& self, const Tensor& src, bool non_blocking) {
  const Batch b(self, src);
  if (!b.has(self)) raise_inplace("inplace arithmetic");
  CRESSET_CHECK(src.dim() <= self.dim() || src.numel() == 1, "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
                src.sizes());
  Tensor target = b.front(self);
  Tensor source = b.has(src) ? b.front(src) : src;
  if (b.has(src) && src.dim() < self.dim()) source = insert_ones(source, 1, self.dim() - src.dim());
  if (b.has(src) && src.dim() > self.dim())
    source = cresset::view(source, with_front(b.size(), DimVector(static_cast<std::size_t>(self.dim()), 1)));
  cresset::copy_(target, source, non_blocking);
  return self;
}

Tensor& fill_tensor_rule(Tensor& self, const Tensor& value) {
  const Batch b(self, value);
  if (!b.has(self)) raise_inplace("inplace arithmetic");
  CRESSET_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(), " dimensions.");
  return copy_rule(self, value, false);
}

Tensor fill_rule(const Tensor& self, const Tensor& value) {
  Tensor out = cresset::empty_like(batched_as(self, value));
  return fill_tensor_rule(out, value);
}

Tensor as_strided_scatter_rule(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride,
                               std::optional<int64_t> storage_offset) {
  const Tensor out = cresset::clone(batched_as(self, src), MemoryFormat::Contiguous);
  // The copy begins at 0 whatever the offset of self is.
  const int64_t offset = storage_offset.value_or(self.storage_offset()) - self.storage_offset();
  Tensor part = as_strided_rule(out, size, stride, offset);
  cresset::copy_(part, src);
  return out;
}

Tensor masked_fill_rule(const Tensor& self, const Tensor& mask, const Tensor& value) {
  CRESSET_CHECK(value.dim() == 0, "masked_fill only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
                " dimension(s).");
  const ScalarType type = self.scalar_type();
  if (value.scalar_type() != type && type != kBool && value.is_cpu() && value.has_storage()) ops::check_number(value.item(), type);
  return cresset::where(mask, value.to(type), self);
}

// --- values -------------------------------------------------------------------------------------------------------------------

Scalar item_rule(const Tensor&) {
  CRESSET_THROW(
      Error,
      "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try "
      "to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a "
      "bug report.");
}
bool is_nonzero_rule(const Tensor&) {
  CRESSET_THROW(Error,
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, "
                "please file an issue at https://github.com/pytorch/pytorch/issues .");
}
bool allclose_rule(const Tensor&, const Tensor&, double, double, bool) {
  CRESSET_THROW(
      Error,
      "vmap over torch.allclose isn't supported yet. Please file an issue at https://github.com/pytorch/pytorch/issues if you need "
      "this feature.");
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  m.impl("view", CRESSET_FN(view_rule));
  m.impl("_unsafe_view", CRESSET_FN(unsafe_view_rule));
  m.impl("_reshape_alias", CRESSET_FN(reshape_alias_rule));
  m.impl("expand", CRESSET_FN(expand_rule));
  m.impl("permute", CRESSET_FN(permute_rule));
  m.impl("repeat", CRESSET_FN(repeat_rule));
  m.impl("squeeze", CRESSET_FN(squeeze_rule));
  m.impl("unfold", CRESSET_FN(unfold_rule));
  m.impl("unfold_copy", CRESSET_FN(unfold_copy_rule));
  m.impl("t", CRESSET_FN(t_rule));
  m.impl("as_strided", CRESSET_FN(as_strided_rule));
  m.impl("t_", CRESSET_FN(transposed_itself));
  m.impl("squeeze_", CRESSET_FN(squeezed_itself));
  m.impl("as_strided_", CRESSET_FN(strided_itself));
  m.impl("resize_", CRESSET_FN(resize_rule));
  m.impl("resize_as_", CRESSET_FN(resize_as_rule));
  m.impl("set_.source_Tensor", CRESSET_FN(set_rule));
  m.impl("set_", CRESSET_FN(set_to_nothing));
  m.impl("new_empty", CRESSET_FN(new_empty_rule));
  m.impl("new_zeros", CRESSET_FN(new_zeros_rule));
  m.impl("new_ones", CRESSET_FN(new_ones_rule));
  m.impl("new_full", CRESSET_FN(new_full_rule));
  m.impl("new_empty_strided", CRESSET_FN(new_empty_strided_rule));
  m.impl("copy_", CRESSET_FN(copy_rule));
  m.impl("fill_.Tensor", CRESSET_FN(fill_tensor_rule));
  m.impl("fill.Tensor", CRESSET_FN(fill_rule));
  m.impl("as_strided_scatter", CRESSET_FN(as_strided_scatter_rule));
  m.impl("masked_fill.Tensor", CRESSET_FN(masked_fill_rule));
  m.impl("_local_scalar_dense", CRESSET_FN(item_rule));
  m.impl("item", CRESSET_FN(item_rule));
  m.impl("is_nonzero", CRESSET_FN(is_nonzero_rule));
  m.impl("allclose", CRESSET_FN(allclose_rule));
}

}  // namespace cresset::batching
