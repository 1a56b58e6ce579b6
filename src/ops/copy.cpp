// Copies between tensors of any type, layout and device, and the conversions made of them.
#include <algorithm>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/pinned_memory.h>

#include "ops/ops_decl_copy.h"
#include "ops/shared/lifted.h"
#include "ops/shared/operator_call.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/promotion.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {
namespace {

bool is_host(const Tensor& t) { return t.is_cpu(); }

// src seen under self's sizes. Raises when it cannot be broadcast to them.
Tensor expanded_to(const Tensor& src, const Tensor& self) {
  if (src.sizes() == self.sizes()) return src;
  const Tensor* const both[] = {&self, &src};
  int64_t sizes[kMaxDims];
  const int ndim = broadcast_sizes(both, 2, sizes);
  const IntArrayRef common(sizes, static_cast<std::size_t>(ndim));
  CRESSET_CHECK(common == self.sizes(), "output with shape ", self.sizes(), " doesn't match the broadcast shape ", common);
  DimVector strides(self.sizes().size());
  aligned_strides(src, sizes, ndim, strides.data());
  return make_view(src, self.sizes(), strides, src.storage_offset());
}

// Does asking for `wanted` leave a tensor on `have` where it is?
bool stays(const std::optional<Device>& wanted, Device have) {
  return !wanted || *wanted == have || (wanted->type() == have.type() && (!wanted->has_index() || have.is_cpu()));
}

// Strides of a copy of self in a memory format; nothing for row-major.
std::optional<DimVector> copy_strides(const Tensor& self, std::optional<MemoryFormat> format) {
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  if (wanted == MemoryFormat::Contiguous) return std::nullopt;
  if (wanted != MemoryFormat::Preserve) return strides_for(self.sizes(), wanted);
  return preserved_strides(self);
}

}  // namespace

Tensor& copy_into(Tensor& self, const Tensor& src, bool non_blocking) {
  CRESSET_CHECK(self.defined(), "copy_: self is undefined");
  CRESSET_CHECK(src.defined(), "copy_: src is undefined");
  if (self.is_same(src)) return self;
  if (self.is_meta()) {
    expanded_to(src, self);
    return self;
  }
  CRESSET_CHECK_NOT_IMPLEMENTED(!src.is_meta(), "Cannot copy out of meta tensor; no data!");
  const Tensor from = expanded_to(src, self);
  if (self.has_storage()) {
    check_no_internal_overlap(self);
    check_no_partial_overlap(self, from);
  }
  if (self.numel() == 0) return self;
  if (from.is_complex() && !self.is_complex() && self.scalar_type() != kBool)
    CRESSET_WARN_ONCE("Casting complex values to real discards the imaginary part");
  // Only host memory converts: a device copies elements of one type.
  if (from.scalar_type() != self.scalar_type() && is_host(self) != is_host(from)) {
    if (is_host(from)) {
      cresset::_copy_from(to_copy_impl(from, self.scalar_type(), {}, {}, {}, false, {}), self, non_blocking);
    } else {
      const Tensor staged = allocate_cpu({DimVector(self.sizes()), from.scalar_type(), Device(kCPU), std::nullopt});
      cresset::_copy_from(from, staged, false);
      cresset::_copy_from(staged, self, false);
    }
    return self;
  }
  cresset::_copy_from(from, self, non_blocking);
  return self;
}

Tensor copy_impl(const Tensor& self, const Tensor& src, bool non_blocking) {
  Tensor result;
  if (self.has_storage() && !self.is_non_overlapping_and_dense() && !has_internal_overlap(self)) {
    // With what lies around its elements, which copy_ leaves as it is and views of the result may show.
    const auto whole = static_cast<int64_t>(self.storage().nbytes() / self.itemsize());
    result = make_view(make_view(self, {whole}, {1}, 0).clone(), self.sizes(), self.strides(), self.storage_offset());
  } else {
    result = allocate({DimVector(self.sizes()), self.scalar_type(), self.device(), copy_strides(self, {})}, self.device());
  }
  return copy_into(result, src, non_blocking);
}

Tensor meta_copy_from(const Tensor&, const Tensor& dst, bool) { return dst; }

Tensor to_copy_impl(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory, bool non_blocking, std::optional<MemoryFormat> memory_format) {
  CRESSET_CHECK(!layout || *layout == self.layout(),
                "to(options) doesn't support converting to a different layout, but got self.layout being ", to_string(self.layout()),
                " and options.layout set as ", to_string(*layout));
  const Device target = stays(device, self.device()) ? self.device() : *device;
  const TensorSpec spec{DimVector(self.sizes()), dtype.value_or(self.scalar_type()), target, copy_strides(self, memory_format)};
  CRESSET_CHECK(!pin_memory.value_or(false) || target.is_cpu(), "Only dense CPU tensors can be pinned; leave pin_memory out.");
  Tensor result = target.is_cpu() ? cresset::detail::empty_host(spec, pin_memory) : allocate(spec, target);
  return copy_into(result, self, non_blocking);
}

Tensor to_dtype_layout(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                       std::optional<bool> pin_memory, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) {
  const bool same_format = !memory_format || *memory_format == MemoryFormat::Preserve || self.suggest_memory_format() == *memory_format;
  if (!copy && same_format && stays(device, self.device()) && (!dtype || *dtype == self.scalar_type()) &&
      (!layout || *layout == self.layout()))
    return self;
  return cresset::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
}

void check_no_requires_grad(const TensorOptions& options) {
  CRESSET_CHECK(!options.requires_grad(),
                "to(options): options without requires_grad were required; got requires_grad=true. Call requires_grad_() on the result.");
}

Tensor to_device(const Tensor& self, Device device, ScalarType dtype, bool non_blocking, bool copy,
                 std::optional<MemoryFormat> memory_format) {
  return to_dtype_layout(self, dtype, std::nullopt, device, std::nullopt, non_blocking, copy, memory_format);
}

Tensor to_dtype(const Tensor& self, ScalarType dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) {
  return to_dtype_layout(self, dtype, std::nullopt, std::nullopt, std::nullopt, non_blocking, copy, memory_format);
}

Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) {
  return to_dtype_layout(self, other.scalar_type(), std::nullopt, other.device(), std::nullopt, non_blocking, copy, memory_format);
}

Tensor type_as_impl(const Tensor& self, const Tensor& other) { return to_other(self, other, false, false, std::nullopt); }

Tensor clone_impl(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  Tensor result = allocate({DimVector(self.sizes()), self.scalar_type(), self.device(), copy_strides(self, memory_format)}, self.device());
  return copy_into(result, self, false);
}

Tensor contiguous_impl(const Tensor& self, MemoryFormat memory_format) {
  if (self.is_contiguous(memory_format)) return self;
  CRESSET_CHECK(memory_format != MemoryFormat::Preserve, "preserve memory format is unsupported by the contiguous operator");
  return cresset::clone(self, memory_format);
}

Tensor& fill_tensor_(Tensor& self, const Tensor& value) {
  CRESSET_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(), " dimensions.");
  return copy_into(self, value, false);
}

Tensor fill_scalar(const Tensor& self, const Scalar& value) {
  Tensor result = cresset::empty_like(self);
  return result.fill_(value);
}

Tensor fill_tensor(const Tensor& self, const Tensor& value) {
  Tensor result = cresset::empty_like(self);
  return fill_tensor_(result, value);
}

Tensor& meta_fill_(Tensor& self, const Scalar&) { return self; }
Tensor& meta_zero_(Tensor& self) { return self; }

Scalar meta_local_scalar_dense(const Tensor&) { CRESSET_THROW(Error, "Tensor.item() cannot be called on meta tensors"); }

Scalar item_impl(const Tensor& self) {
  CRESSET_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  return cresset::_local_scalar_dense(self);
}

bool is_nonzero_impl(const Tensor& self) {
  CRESSET_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  CRESSET_CHECK(self.numel() < 2, "Boolean value of Tensor with more than one value is ambiguous");
  return item_impl(self).to<bool>();
}

namespace {
void check_assertion(const Tensor& self, std::string_view words) {
  if (self.device().type() == DeviceType::Meta) return;
  CRESSET_CHECK(is_nonzero_impl(self), words);
}
}  // namespace

void assert_async_impl(const Tensor& self) { check_assertion(self, "Expected Tensor with single nonzero value, but got zero"); }
void assert_async_impl(const Tensor& self, std::string_view assert_msg) { check_assertion(self, assert_msg); }

Tensor pin_memory(const Tensor& self, std::optional<Device> device) { return cresset::pin_memory(self, device); }

Tensor shape_as_tensor(const Tensor& self) {
  Tensor sizes = detail::empty_cpu({self.dim()}, kLong);
  std::copy(self.sizes().begin(), self.sizes().end(), sizes.data_ptr<int64_t>());
  return lifted(std::move(sizes));  // a graph that records operators has them as a constant
}

Tensor all_true(const Tensor& self) {
  CRESSET_CHECK(self.scalar_type() == kBool, "_is_all_true: self must be a bool tensor, got ", self.scalar_type());
  return cresset::all(self);
}

Tensor any_true(const Tensor& self) {
  CRESSET_CHECK(self.scalar_type() == kBool, "_is_any_true: self must be a bool tensor, got ", self.scalar_type());
  return cresset::any(self);
}

Tensor self_impl(const Tensor& self) { return self; }

}  // namespace cresset::ops
