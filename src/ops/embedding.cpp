// Rows of a table by index: shape rules, checks and compositions.
#include "ops/embedding.h"

#include <cresset/dispatch/dispatcher.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_embedding.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_embedding.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/sparse_rows.h"

namespace cresset::ops {

namespace {
void check_indices(const char* op, const Tensor& indices) {
  CRESSET_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt,
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.",
                indices.scalar_type(), "Tensor instead (while checking arguments for ", op, ")");
}
}  // namespace

Tensor embedding_impl(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  CRESSET_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_indices("embedding", indices);
  // A table without values takes indices from anywhere.
  const Tensor rows = weight.is_meta() && !indices.is_meta() ? indices.to(weight.device()) : indices;
  if (rows.dim() == 1) return weight.index_select(0, rows);
  DimVector sizes(rows.sizes());
  sizes.push_back(weight.size(1));
  const Tensor chosen = weight.index_select(0, rows.reshape({-1}));
  return chosen.is_contiguous() ? cresset::_unsafe_view(chosen, sizes) : chosen.reshape(sizes);
}

TensorSpec embedding_dense_backward_shape(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t, bool) {
  check_indices("embedding_dense_backward", indices);
  check_same_device("embedding_dense_backward", grad_output, indices, "indices");
  CRESSET_CHECK(grad_output.dim() == indices.dim() + 1 && grad_output.sizes().slice(0, indices.dim()) == indices.sizes(),
                "embedding_dense_backward: a gradient of the indices' size and one more dimension was required; got ", grad_output.sizes(),
                " for indices ", indices.sizes(), ".");
  return spec_like(grad_output, {num_weights, grad_output.size(-1)});
}

Tensor& embedding_renorm_meta(Tensor& self, const Tensor& indices, double, double) {
  CRESSET_CHECK(self.dim() == 2, "embedding_renorm_: a 2-dimensional table was required; got size ", self.sizes(), ".");
  check_indices("embedding_renorm_", indices);
  return self;
}

// ---- bags

void check_embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                         const std::optional<Tensor>& per_sample_weights, bool include_last_offset) {
  check_indices("embedding_bag", indices);
  check_indices("embedding_bag", offsets);
  CRESSET_CHECK(
      isFloatingType(weight.scalar_type()),
      "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, Double; but got ",
      weight.scalar_type(), " instead (while checking arguments for embedding_bag)");
  CRESSET_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  CRESSET_CHECK(indices.dim() == 1 || indices.dim() == 2, "input has to be a 1D or 2D Tensor, but got Tensor of dimension ", indices.dim());
  CRESSET_CHECK(indices.dim() == 1, "input has to be a 1D Tensor, but got Tensor of dimension ", indices.dim());
  CRESSET_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
  CRESSET_CHECK(mode >= kBagSum && mode <= kBagMax, "`mode` must be sum, mean, or max.");
  CRESSET_CHECK(!include_last_offset || offsets.numel() >= 1, "include_last_offset: number of offset should be at least 1");
  if (!per_sample_weights) return;
  CRESSET_CHECK(mode == kBagSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
  CRESSET_CHECK(per_sample_weights->scalar_type() == weight.scalar_type(),
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type ",
                weight.scalar_type(), " does not equal ", per_sample_weights->scalar_type(),
                " (while checking arguments for embedding_bag)");
  CRESSET_CHECK(per_sample_weights->sizes() == indices.sizes(), "embedding_bag: per_sample_weights of size ", indices.sizes(),
                " were required; got ", per_sample_weights->sizes(), ".");
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag_meta(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                                                              int64_t mode, bool, const std::optional<Tensor>& per_sample_weights,
                                                              bool include_last_offset, int64_t padding_idx) {
  check_embedding_bag(weight, indices, offsets, mode, per_sample_weights, include_last_offset);
  if (!weight.is_meta()) {  // a table without values takes indices from anywhere
    check_same_device("embedding_bag", weight, indices, "input");
    check_same_device("embedding_bag", weight, offsets, "offsets");
    if (per_sample_weights) check_same_device("embedding_bag", weight, *per_sample_weights, "per_sample_weights");
  }
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  TensorOptions integers = indices.options().dtype(promote_types(indices.scalar_type(), offsets.scalar_type()));
  if (weight.is_meta()) integers = integers.device(weight.device());
  // Plain sums need no record of which index went where; later operators work it out from the offsets.
  const int64_t recorded = mode == kBagSum && padding_idx < 0 ? 0 : indices.numel();
  Tensor maxima = mode == kBagMax ? cresset::empty({bags, weight.size(1)}, integers) : cresset::empty({bags}, integers);
  return {cresset::empty({bags, weight.size(1)}, weight.options()), cresset::empty({recorded}, integers), cresset::empty({bags}, integers),
          maxima};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag_impl(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                                              bool scale_grad_by_freq, int64_t mode, bool sparse,
                                                              const std::optional<Tensor>& per_sample_weights, bool include_last_offset) {
  return cresset::_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag_padding_idx(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                                                     bool scale_grad_by_freq, int64_t mode, bool sparse,
                                                                     const std::optional<Tensor>& per_sample_weights,
                                                                     bool include_last_offset, std::optional<int64_t> padding_idx) {
  int64_t row = -1;
  if (padding_idx) {
    CRESSET_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
    const int64_t n = weight.size(0);
    CRESSET_CHECK(*padding_idx >= -n && *padding_idx < n, "padding_idx must be within the number of embeddings, ", -n, " through ", n - 1,
                  ", but got ", *padding_idx);
    row = *padding_idx < 0 ? *padding_idx + n : *padding_idx;
  }
  return cresset::_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, row);
}

namespace {

// The bag of every index; recorded by the forward pass or worked out from the offsets.
Tensor bag_of_each(const Tensor& indices, const Tensor& offsets, const Tensor& offset2bag) {
  if (offset2bag.numel() > 0 || indices.numel() == 0) return offset2bag;
  const Tensor starts = cresset::zeros({indices.numel() + 1}, indices.options().dtype(kLong));
  const Tensor marks = cresset::index_add(starts, 0, offsets, cresset::ones({offsets.numel()}, starts.options()));
  return cresset::cumsum(marks, 0).narrow(0, 0, indices.numel()) - 1;
}

// What each index adds to its row.
Tensor bag_terms(const Tensor& grad, const Tensor& bags, const Tensor& bag_size, int64_t mode,
                 const std::optional<Tensor>& per_sample_weights) {
  Tensor terms = grad.index_select(0, bags);
  if (mode == kBagMean) terms = terms / bag_size.clamp_min(1).index_select(0, bags).to(grad.scalar_type()).unsqueeze(1);
  return per_sample_weights ? terms * per_sample_weights->unsqueeze(1) : terms;
}

// Zeros the terms that belong to indices of the padding row.
Tensor without_padding(const Tensor& terms, const Tensor& indices, int64_t padding_idx) {
  if (padding_idx < 0) return terms;
  Tensor padded = cresset::eq(indices, padding_idx);
  if (terms.dim() == 2) padded = padded.unsqueeze(1);
  return terms.masked_fill(padded, 0);
}

}  // namespace

Tensor sparse_rows(const Tensor& terms, const Tensor& indices, int64_t rows, int64_t padding_idx, bool scale_by_frequency) {
  CRESSET_CHECK(!scale_by_frequency, "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  const auto op = Dispatcher::singleton().findSchema({"aten::_sparse_rows", ""});
  CRESSET_CHECK_NOT_IMPLEMENTED(op, "embedding: sparse gradients belong to the Python package, which this program has not loaded.");
  // The gradient may outlive the indices as they are now: places of its own.
  Tensor places = indices.reshape({-1}).to(kLong, false, true), values = terms.reshape({places.numel(), terms.size(-1)});
  if (padding_idx >= 0) {
    const Tensor kept = cresset::nonzero(cresset::ne(places, padding_idx)).reshape({-1});
    places = places.index_select(0, kept), values = values.index_select(0, kept);
  }
  return op->typed<Tensor(const Tensor&, const Tensor&, int64_t)>().call(values, places, rows);
}

Tensor embedding_bag_backward_impl(const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor& offset2bag,
                                   const Tensor& bag_size, const Tensor& maximum_indices, int64_t num_weights, bool scale_grad_by_freq,
                                   int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights, int64_t padding_idx) {
  const Tensor bags = bag_of_each(indices, offsets, offset2bag);
  if (sparse) {
    CRESSET_CHECK(mode != kBagMax, "embedding_bag: max mode does not support sparse weights");
    return sparse_rows(bag_terms(grad, bags, bag_size, mode, per_sample_weights), indices, num_weights, padding_idx, scale_grad_by_freq);
  }
  return cresset::_embedding_bag_dense_backward(grad, indices, bags, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
                                                per_sample_weights, padding_idx);
}

Tensor embedding_bag_dense_backward_impl(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag, const Tensor& bag_size,
                                         const Tensor& maximum_indices, int64_t num_weights, bool scale_grad_by_freq, int64_t mode,
                                         const std::optional<Tensor>& per_sample_weights, int64_t padding_idx) {
  CRESSET_CHECK(grad.dim() == 2, "_embedding_bag_dense_backward: a 2-dimensional gradient was required; got size ", grad.sizes(), ".");
  const Tensor table = cresset::zeros({num_weights, grad.size(1)}, grad.options());
  if (mode == kBagMax) {
    const Tensor kept = grad.masked_fill(cresset::eq(bag_size, 0).unsqueeze(1), 0);
    return cresset::scatter_add(table, 0, maximum_indices.to(kLong), kept);
  }
  Tensor terms = bag_terms(grad, offset2bag, bag_size, mode, per_sample_weights);
  if (scale_grad_by_freq) {
    const Tensor ones = cresset::ones({indices.numel()}, grad.options());
    const Tensor counts = cresset::index_add(cresset::zeros({num_weights}, grad.options()), 0, indices, ones);
    terms = terms / counts.index_select(0, indices).unsqueeze(1);
  }
  return cresset::index_add(table, 0, indices, without_padding(terms, indices, padding_idx));
}

Tensor embedding_bag_per_sample_weights_backward_impl(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                                      const Tensor& offsets, const Tensor& offset2bag, int64_t mode, int64_t padding_idx) {
  CRESSET_CHECK(mode == kBagSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  const Tensor bags = bag_of_each(indices, offsets, offset2bag);
  return without_padding(cresset::sum(grad.index_select(0, bags) * weight.index_select(0, indices), 1), indices, padding_idx);
}

Tensor embedding_renormed(const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  Tensor copy = self.clone();
  return cresset::embedding_renorm_(copy, indices, max_norm, norm_type);
}

}  // namespace cresset::ops
