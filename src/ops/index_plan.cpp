// Planning of advanced indexing.
#include "ops/index_plan.h"

#include <cresset/ops/functions_reduce.h>

#include <algorithm>

#include "ops/shared/ordered_strides.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

namespace {

bool given(const std::optional<Tensor>& t) { return t && t->defined(); }

// One entry for each dimension of self: an index tensor or undefined.
std::vector<Tensor> expand_masks(const Tensor& self, OptionalTensorList indices) {
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    if (!given(indices[k])) {
      out.emplace_back();
      continue;
    }
    const Tensor& index = *indices[k];
    if (!is_mask(index)) {
      out.push_back(index);
      continue;
    }
    if (index.scalar_type() == kByte) warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
    const int64_t at = static_cast<int64_t>(out.size());
    for (int64_t d = 0; d < index.dim(); ++d)
      CRESSET_CHECK_INDEX(at + d < self.dim() && index.size(d) == self.size(at + d), "The shape of the mask ", index.sizes(), " at index ",
                          d, " does not match the shape of the indexed tensor ", self.sizes(), " at index ", at + d);
    const Tensor positions = index.nonzero();
    for (int64_t d = 0; d < index.dim(); ++d) out.push_back(positions.select(1, d));
  }
  CRESSET_CHECK_INDEX(static_cast<int64_t>(out.size()) <= self.dim(), "too many indices for tensor of dimension ", self.dim(), " (got ",
                      out.size(), ")");
  out.resize(self.dim());
  return out;
}

}  // namespace

IndexPlan plan_index(const Tensor& self, OptionalTensorList indices) {
  CRESSET_CHECK_INDEX(indices.size() > 0, "at least one index must be provided");
  for (const std::optional<Tensor>& i : indices) {
    if (!given(i)) continue;
    const ScalarType t = i->scalar_type();
    CRESSET_CHECK_INDEX(t == kLong || t == kInt || is_mask(*i), "tensors used as indices must be long, int, byte or bool tensors");
    CRESSET_CHECK(i->device() == self.device() || i->device().is_cpu(),
                  "indices should be either on cpu or on the same device as the indexed tensor (", self.device(), "); got ", i->device(),
                  ".");
  }
  IndexPlan plan;
  std::vector<Tensor> all = expand_masks(self, indices);
  DimVector indexed, others;
  for (std::size_t d = 0; d < all.size(); ++d) (all[d].defined() ? indexed : others).push_back(static_cast<int64_t>(d));
  plan.count = static_cast<int64_t>(indexed.size());
  for (int64_t d : indexed) {
    if (d == indexed.front()) {
      plan.index_sizes = DimVector(all[d].sizes());
      continue;
    }
    bool fits = true;
    const IntArrayRef a = plan.index_sizes, b = all[d].sizes();
    for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i)
      fits &= a[a.size() - i] == b[b.size() - i] || a[a.size() - i] == 1 || b[b.size() - i] == 1;
    if (!fits) {
      std::string shapes;
      for (int64_t k : indexed) shapes += (shapes.empty() ? "" : ", ") + to_string(all[k].sizes());
      CRESSET_THROW(IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
    }
    plan.index_sizes = infer_broadcast(a, b);
  }
  // Neighbouring indexed dimensions stay where they are; separated ones move to the front.
  const bool adjacent = plan.count == 0 || indexed.back() - indexed.front() + 1 == plan.count;
  plan.first = adjacent && plan.count > 0 ? indexed.front() : 0;
  DimVector sizes(self.sizes()), strides(self.strides());
  if (!adjacent) {
    DimVector order(indexed);
    order.append(others.begin(), others.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      sizes[i] = self.size(order[i]);
      strides[i] = self.stride(order[i]);
    }
  }
  plan.self = adjacent ? self : make_view(self, sizes, strides, self.storage_offset());
  for (int64_t d : indexed) {
    const Tensor& t = all[d];
    plan.indices.push_back(t.sizes() == IntArrayRef(plan.index_sizes) ? t : t.expand(plan.index_sizes));
  }
  for (int64_t d = 0; d < plan.first; ++d) plan.result_sizes.push_back(sizes[d]);
  for (int64_t s : plan.index_sizes) plan.result_sizes.push_back(s);
  for (std::size_t d = plan.first + plan.count; d < sizes.size(); ++d) plan.result_sizes.push_back(sizes[d]);
  return plan;
}

std::optional<DimVector> index_strides(const IndexPlan& plan) {
  const std::size_t ndim = plan.result_sizes.size(), first = static_cast<std::size_t>(plan.first), between = plan.index_sizes.size();
  // self and the indices as operands of the result's dimensions; a stride of 0 tells nothing about the order.
  std::vector<DimVector> operands(1 + plan.indices.size(), DimVector(ndim, 0));
  const IntArrayRef from = plan.self.strides();
  for (std::size_t d = 0; d < first; ++d) operands[0][d] = from[d];
  for (std::size_t d = first + between; d < ndim; ++d) operands[0][d] = from[d - between + static_cast<std::size_t>(plan.count)];
  std::vector<const int64_t*> strides{operands[0].data()};
  for (std::size_t k = 0; k < plan.indices.size(); ++k) {
    for (std::size_t d = 0; d < between; ++d) operands[k + 1][first + d] = plan.indices[k].stride(static_cast<int64_t>(d));
    strides.push_back(operands[k + 1].data());
  }
  return ordered_strides(plan.result_sizes, strides.data(), static_cast<int>(strides.size()));
}

}  // namespace cresset::ops
