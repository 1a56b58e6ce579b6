// Sorting, ranks, unique values and searching: shape rules, checks and compositions.
#include <algorithm>
#include <string_view>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_sort.h>

#include "ops/ops_decl_sort.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

namespace {
using Two = std::array<TensorSpec, 2>;

// Sorting keeps the layout.
Two sorted_like(const Tensor& self) {
  TensorSpec values = spec_like(self, self.sizes());
  values.strides = preserved_strides(self);
  TensorSpec indices = values;
  indices.dtype = kLong;
  return {values, indices};
}
}  // namespace

Two sort_stable_shape(const Tensor& self, std::optional<bool>, int64_t dim, bool) {
  maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK(!self.is_complex(), " Sort does not support complex dtypes on CPU");
  return sorted_like(self);
}
std::tuple<Tensor, Tensor> sort_impl(const Tensor& self, int64_t dim, bool descending) {
  return cresset::sort(self, std::optional<bool>(false), dim, descending);
}
Tensor argsort_impl(const Tensor& self, int64_t dim, bool descending) { return std::get<1>(cresset::sort(self, dim, descending)); }
Tensor argsort_stable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(cresset::sort(self, std::optional<bool>(stable), dim, descending));
}
Tensor msort_impl(const Tensor& self) { return std::get<0>(cresset::sort(self, 0, false)); }

Two topk_shape(const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  CRESSET_CHECK(!self.is_complex(), " topk does not support complex dtypes on CPU");
  CRESSET_CHECK(self.scalar_type() != kBool, "topk does not support bool dtypes on CPU");
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK(k >= 0 && k <= (self.dim() == 0 ? 1 : self.size(d)), "selected index k out of range");
  DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[d] = k;
  return {spec_like(self, sizes), spec_like(self, sizes, kLong)};
}

Two kthvalue_shape(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = maybe_wrap_dim(dim, self.dim()), size = self.dim() == 0 ? 1 : self.size(d);
  CRESSET_CHECK_INDEX(self.numel() > 0 || size > 0, "kthvalue(): Expected reduction dim ", d, " to have non-zero size.");
  CRESSET_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", d);
  CRESSET_CHECK_NOT_IMPLEMENTED(!self.is_complex() && self.scalar_type() != kBool, "\"kthvalue_cpu\" not implemented for '",
                                self.scalar_type(), "'");
  const DimVector sizes = reduced_sizes(self.sizes(), self.dim() == 0 ? 0 : uint64_t{1} << d, keepdim);
  return {spec_like(self, sizes), spec_like(self, sizes, kLong)};
}

namespace {
bool sides_agree(bool right, std::optional<std::string_view> side) {
  CRESSET_CHECK(!side || *side == "left" || *side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got ",
                side.value_or(""));
  CRESSET_CHECK(!side || *side == "right" || !right,
                "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  return true;
}
}  // namespace

TensorSpec searchsorted_shape(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                              std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  sides_agree(right, side);
  check_same_device("torch.searchsorted()", sorted_sequence, self, "input");
  CRESSET_CHECK(sorted_sequence.dim() > 0, "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  CRESSET_CHECK(self.dim() > 0 || sorted_sequence.dim() == 1,
                "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, "
                "but we got boundaries tensor dim(",
                sorted_sequence.dim(), ") and input value's dim(", self.dim(), ") numel(", self.numel(), ")");
  bool match = sorted_sequence.dim() == 1 || sorted_sequence.dim() == self.dim();
  for (int64_t d = 0; match && sorted_sequence.dim() > 1 && d + 1 < self.dim(); ++d) match = self.size(d) == sorted_sequence.size(d);
  CRESSET_CHECK(
      match,
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
      "tensor must match, but we got boundaries tensor ",
      sorted_sequence.sizes(), " and input value tensor ", self.sizes());
  CRESSET_CHECK(!sorted_sequence.is_complex() && !self.is_complex(), "torch.searchsorted(): complex tensors have no order.");
  if (sorter && sorter->defined()) {
    CRESSET_CHECK(sorter->sizes() == sorted_sequence.sizes(),
                  "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ", sorted_sequence.sizes(),
                  " and got sorter tensor ", sorter->sizes());
    CRESSET_CHECK(sorter->scalar_type() == kLong, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
                  sorter->scalar_type());
  }
  return spec_like(self, self.sizes(), out_int32 ? kInt : kLong);
}
Tensor searchsorted_scalar(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  const Tensor value =
      cresset::full({}, self, TensorOptions(self.isFloatingPoint() ? get_default_dtype() : self.type()).device(sorted_sequence.device()));
  return cresset::searchsorted(sorted_sequence, value, out_int32, right, side, sorter);
}
TensorSpec bucketize_shape(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  CRESSET_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_shape(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}
Tensor bucketize_scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  CRESSET_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_scalar(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

namespace {
void check_isin(ScalarType type) {
  CRESSET_CHECK(type != kBool && !isComplexType(type), "Unsupported input type encountered for isin(): ", type);
}
// Numbers of the type as ones that can be searched; numbers of 64 bits in another order.
Tensor searchable(const Tensor& t, ScalarType type) {
  const Tensor same = t.to(type);
  return type == kUInt64 ? same.contiguous().view(kLong) : type == kUInt16 || type == kUInt32 ? same.to(kLong) : same;
}
}  // namespace
Tensor coo_to_csr(const Tensor& rows, int64_t size, bool out_int32) {
  return cresset::searchsorted(rows, cresset::arange(size + 1, rows.options()), out_int32);
}

Tensor csr_to_coo(const Tensor& crow_indices, const Tensor& col_indices, bool out_int32, bool transpose) {
  const ScalarType type = out_int32 ? kInt : kLong;
  const Tensor at = cresset::arange(col_indices.numel(), crow_indices.options());
  const Tensor rows = cresset::searchsorted(crow_indices.slice(0, 1), at, out_int32, true), columns = col_indices.to(type);
  const Tensor both[] = {transpose ? columns : rows, transpose ? rows : columns};
  return cresset::stack(both);
}

Tensor isin_tensors(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  check_isin(elements.scalar_type());
  check_isin(test_elements.scalar_type());
  if (test_elements.numel() == 0) return invert ? cresset::ones_like(elements, kBool) : cresset::zeros_like(elements, kBool);
  const ScalarType type = promote_types(elements.scalar_type(), test_elements.scalar_type());
  // Places in the sorted test elements; what is there is equal or the element is not among them.
  const Tensor sorted = std::get<0>(cresset::sort(searchable(test_elements, type).reshape({-1}), 0, false));
  const Tensor values = searchable(elements, type);
  const Tensor at = cresset::clamp(cresset::searchsorted(sorted, values), std::nullopt, std::optional<Scalar>(sorted.numel() - 1));
  const Tensor there = cresset::eq(cresset::take(sorted, at), values);
  return invert ? cresset::logical_not(there) : there;
}
Tensor isin_tensor_scalar(const Tensor& elements, const Scalar& test_element, bool, bool invert) {
  check_isin(elements.scalar_type());
  check_isin(test_element.type());
  return invert ? cresset::ne(elements, test_element) : cresset::eq(elements, test_element);
}
Tensor isin_scalar_tensor(const Scalar& element, const Tensor& test_elements, bool, bool invert) {
  check_isin(element.type());
  check_isin(test_elements.scalar_type());
  const Tensor found = cresset::any(cresset::eq(test_elements, element));
  return invert ? cresset::logical_not(found) : found;
}

}  // namespace cresset::ops
