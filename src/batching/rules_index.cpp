// Rules of indexing: the batch becomes one more index, or one more dimension in front.
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_embedding.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_sort.h>
#include <cresset/ops/functions_view.h>

#include <algorithm>

#include "batching/batch_call.h"
#include "ops/index_plan.h"
#include "ops/ops_decl_index.h"

namespace cresset::batching {
namespace {

// --- self[indices] --------------------------------------------------------------------------------------------------------

/// What an index says about one example: index tensors for some dimensions, and where their dimensions appear in the result.
struct Indices {
  std::vector<std::optional<Tensor>> list;  // one for each leading dimension of self; masks are index tensors by now
  int64_t rank = 0;                         // dimensions of the broadcast index tensors
  int64_t count = 0;                        // index tensors
  int64_t first = 0;                        // the first indexed dimension
  bool adjacent = true;                     // the indexed dimensions are neighbours: the result has its index dimensions at `first`
  bool batched = false;

  Indices(const Batch& b, OptionalTensorList given) {
    for (const std::optional<Tensor>& t : given) {
      if (!t || !t->defined()) {
        list.emplace_back();
        continue;
      }
      if (ops::is_mask(*t)) {
        CRESSET_CHECK(!b.has(*t),
                      "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a "
                      "boolean mask.");
        CRESSET_CHECK(t->dim() > 0, "vmap: a mask with dimensions was required; got one without. Use torch.where instead.");
        const Tensor places = cresset::nonzero(*t);
        for (int64_t d = 0; d < t->dim(); ++d) list.emplace_back(cresset::select(places, 1, d));
        continue;
      }
      list.emplace_back(*t);
    }
    int64_t last = -1;
    for (std::size_t d = 0; d < list.size(); ++d) {
      if (!list[d]) continue;
      const auto at = static_cast<int64_t>(d);
      if (count == 0)
        first = at;
      else
        adjacent &= last == at - 1;
      last = at;
      ++count;
      rank = std::max(rank, list[d]->dim());
      batched |= b.has(*list[d]);
    }
  }

  /// The index tensors for physical tensors: batched ones have the batch in front of `rank` dimensions.
  std::vector<std::optional<Tensor>> physical(const Batch& b) const {
    std::vector<std::optional<Tensor>> out;
    for (const auto& t : list) out.push_back(t && b.has(*t) ? std::optional<Tensor>(b.aligned(*t, rank)) : t);
    return out;
  }
};

/// 0 … B-1, shaped so that it broadcasts with index tensors of `rank` dimensions.
Tensor example_numbers(const Batch& b, int64_t rank, Device device) {
  const Tensor numbers = cresset::arange(b.size(), TensorOptions(kLong).device(device));
  return cresset::view(numbers, with_front(b.size(), DimVector(static_cast<std::size_t>(rank), 1)));
}

/// Moves `count` dimensions that begin at `from` to `to`.
Tensor move_block(const Tensor& t, int64_t from, int64_t count, int64_t to) {
  if (from == to || count == 0) return t;
  std::vector<int64_t> order, block;
  for (int64_t d = 0; d < t.dim(); ++d) (d >= from && d < from + count ? block : order).push_back(d);
  order.insert(order.begin() + to, block.begin(), block.end());
  return cresset::permute(t, order);
}

Tensor index_rule(const Tensor& self, OptionalTensorList given) {
  std::vector<Tensor> tensors;
  for (const auto& t : given)
    if (t) tensors.push_back(*t);
  const Batch b(self, tensors);
  const Indices indices(b, given);
  if (!indices.batched) {
    // The batch is a dimension that is not indexed, in front.
    std::vector<std::optional<Tensor>> list = indices.list;
    list.insert(list.begin(), std::nullopt);
    return b.wrap(cresset::index(b.front(self), list), indices.adjacent ? 0 : indices.rank);
  }
  if (!b.has(self)) return b.wrap(cresset::index(self, indices.physical(b)), indices.adjacent ? indices.first : 0);
  std::vector<std::optional<Tensor>> list = indices.physical(b);
  list.insert(list.begin(), example_numbers(b, indices.rank, self.device()));
  // The result begins with the index dimensions unless all indexed dimensions were in front anyway.
  const Tensor out = cresset::index(b.front(self), list);
  return b.wrap(indices.adjacent ? move_block(out, 1, indices.rank, 1 + indices.first) : out);
}

Tensor& index_put_into(Tensor& self, OptionalTensorList given, const Tensor& values, bool accumulate) {
  std::vector<Tensor> tensors;
  for (const auto& t : given)
    if (t) tensors.push_back(*t);
  const Batch b(self, values, tensors);
  if (!b.has(self)) raise_inplace("index_put_");
  const Indices indices(b, given);
  Tensor target = b.front(self);
  std::vector<std::optional<Tensor>> list = indices.physical(b);
  list.insert(list.begin(), example_numbers(b, indices.rank, self.device()));
  // Places of one example have rank + (what is not indexed) dimensions; in the physical call the index dimensions come first.
  const int64_t places = indices.rank + self.dim() - indices.count;
  Tensor source = values;
  if (b.has(values) || (values.dim() > 0 && indices.adjacent && indices.first > 0)) {
    source = b.has(values) ? b.aligned(values, places) : insert_ones(values, 0, places - values.dim() + 1);
    if (indices.adjacent) source = move_block(source, 1 + indices.first, indices.rank, 1);
  }
  cresset::index_put_(target, list, source, accumulate);
  return self;
}

Tensor& index_put_rule(Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate) {
  return index_put_into(self, indices, values, accumulate);
}
Tensor& index_put_impl_rule(Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate, bool) {
  return index_put_into(self, indices, values, accumulate);
}
Tensor index_put_copy_rule(const Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate) {
  std::vector<Tensor> tensors;
  for (const auto& t : indices)
    if (t) tensors.push_back(*t);
  Tensor copy = batched_as(self, values);
  for (const Tensor& t : tensors) copy = batched_as(copy, t);
  copy = cresset::clone(copy, MemoryFormat::Contiguous);
  return index_put_into(copy, indices, values, accumulate);
}

// --- gather and scatter -----------------------------------------------------------------------------------------------------

/// The three tensors of a scatter for a physical call; zero-dimensional examples have one dimension there.
struct Scatter {
  Batch b;
  bool scalar;
  int64_t dim;
  template <class... T>
  Scatter(const Tensor& self, int64_t d, const T&... others)
      : b(self, others...), scalar(self.dim() == 0), dim(maybe_wrap_dim(d, self.dim()) + 1) {}
  Tensor operator()(const Tensor& t) const {
    const Tensor full = b.full(t);
    return t.dim() == 0 ? cresset::unsqueeze(full, 1) : full;
  }
  Tensor wrap(const Tensor& t, bool to_scalar) const { return b.wrap(to_scalar ? cresset::squeeze(t, 1) : t); }
};

Tensor gather_rule(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  const Scatter s(self, dim, index);
  return s.wrap(cresset::gather(s(self), s.dim, s(index), sparse_grad), index.dim() == 0);
}
Tensor scatter_src_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Scatter s(self, dim, index, src);
  return s.wrap(cresset::scatter(s(self), s.dim, s(index), s(src)), s.scalar);
}
Tensor scatter_value_rule(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Scatter s(self, dim, index);
  return s.wrap(cresset::scatter(s(self), s.dim, s(index), value), s.scalar);
}
Tensor scatter_reduce_op_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  const Scatter s(self, dim, index, src);
  return s.wrap(cresset::scatter(s(self), s.dim, s(index), s(src), reduce), s.scalar);
}
Tensor scatter_value_reduce_rule(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) {
  const Scatter s(self, dim, index);
  return s.wrap(cresset::scatter(s(self), s.dim, s(index), value, reduce), s.scalar);
}
Tensor scatter_add_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Scatter s(self, dim, index, src);
  return s.wrap(cresset::scatter_add(s(self), s.dim, s(index), s(src)), s.scalar);
}
Tensor scatter_reduce_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include) {
  const Scatter s(self, dim, index, src);
  return s.wrap(cresset::scatter_reduce(s(self), s.dim, s(index), s(src), reduce, include), s.scalar);
}

/// A list of places along `dim` as an index for scatter: expanded over the other dimensions of `like`, whose first is the batch.
Tensor spread(const Tensor& places, int64_t dim, const Tensor& like) {
  DimVector sizes(static_cast<std::size_t>(like.dim()), 1);
  sizes[0] = places.size(0);
  sizes[static_cast<std::size_t>(dim)] = places.size(1);
  DimVector all(like.sizes());
  all[static_cast<std::size_t>(dim)] = places.size(1);
  return cresset::expand(cresset::view(places, sizes), all);
}

Tensor index_select_rule(const Tensor& self, int64_t dim, const Tensor& index) {
  const Scatter s(self, dim, index);
  const Batch& b = s.b;
  if (!b.has(index)) return s.wrap(cresset::index_select(s(self), s.dim, index), s.scalar);
  ops::index_select_shape(self, dim, index);  // what one example is asked
  const Tensor places = index.dim() == 0 ? cresset::unsqueeze(b.front(index), 1) : b.front(index);
  if (!b.has(self) && !s.scalar) {
    const Tensor all = cresset::index_select(self, s.dim - 1, cresset::flatten(places, 0, -1));
    return b.wrap(split_dim(all, s.dim - 1, b.size()), s.dim - 1);
  }
  const Tensor x = s(self);
  return s.wrap(cresset::gather(x, s.dim, spread(places.to(kLong), s.dim, x)), s.scalar);
}

Tensor index_add_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  const Scatter s(self, dim, index, source);
  if (!s.b.has(index)) return s.wrap(cresset::index_add(s(self), s.dim, index, s(source), alpha), s.scalar);
  ops::index_add_shape(self, dim, index, source, alpha);  // what one example is asked
  const bool whole = isIntegralType(source.scalar_type(), true) && alpha.isFloatingPoint();
  const Scalar factor = whole ? Scalar(static_cast<int64_t>(alpha.toDouble())) : alpha;
  const Tensor values = alpha.equal(1) ? s(source) : cresset::mul(s(source), factor).to(source.scalar_type());
  return s.wrap(cresset::scatter_add(s(self), s.dim, spread(s(index).to(kLong), s.dim, values), values), s.scalar);
}
Tensor index_copy_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const Scatter s(self, dim, index, source);
  if (!s.b.has(index)) return s.wrap(cresset::index_copy(s(self), s.dim, index, s(source)), s.scalar);
  ops::index_copy_shape(self, dim, index, source);
  const Tensor values = s(source);
  return s.wrap(cresset::scatter(s(self), s.dim, spread(s(index).to(kLong), s.dim, values), values), s.scalar);
}
void check_filled(const Tensor& index) {
  CRESSET_CHECK_INDEX(index.scalar_type() == kLong, "index_fill_(): Expected dtype int64 for index.");
  CRESSET_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
}
Tensor index_fill_scalar_rule(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Scatter s(self, dim, index);
  if (!s.b.has(index)) return s.wrap(cresset::index_fill(s(self), s.dim, index, value), s.scalar);
  check_filled(index);
  const Tensor x = s(self);
  return s.wrap(cresset::scatter(x, s.dim, spread(s(index).to(kLong), s.dim, x), value), s.scalar);
}
Tensor index_fill_tensor_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  const Scatter s(self, dim, index, value);
  CRESSET_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
                " dimension(s).");
  if (!s.b.has(index) && !s.b.has(value)) return s.wrap(cresset::index_fill(s(self), s.dim, index, value), s.scalar);
  check_filled(index);
  const Tensor x = s(self), places = spread(s(index).to(kLong), s.dim, x);
  const Tensor values = insert_ones(s(value), 2, x.dim() - 2).to(x.scalar_type());
  return s.wrap(cresset::scatter(x, s.dim, places, cresset::expand(values, places.sizes())), s.scalar);
}

DimVector with_back(IntArrayRef sizes, int64_t last) {
  DimVector out(sizes);
  out.push_back(last);
  return out;
}

Tensor take_rule(const Tensor& self, const Tensor& index) {
  const Batch b(self, index);
  ops::take_shape(self, index);
  if (!b.has(self)) return b.wrap(cresset::take(self, b.front(index)));
  const auto flat = [](const Tensor& t) { return t.dim() == 1 ? cresset::unsqueeze(t, 1) : cresset::flatten(t, 1, -1); };
  const Tensor values = flat(b.front(self)), places = flat(b.full(index));
  const int64_t n = values.size(1);
  const Tensor wrapped = cresset::where(cresset::lt(places, 0), cresset::add(places, Scalar(n)), places);
  return b.wrap(cresset::reshape(cresset::gather(values, 1, wrapped), with_front(b.size(), index.sizes())));
}

Tensor one_hot_rule(const Tensor& self, int64_t num_classes) {
  CRESSET_CHECK(num_classes > 0, "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument.");
  const Tensor zeros = cresset::new_zeros(self, with_back(self.sizes(), num_classes));
  return cresset::scatter(zeros, -1, cresset::unsqueeze(self, -1), Scalar(1));
}

// --- embedding --------------------------------------------------------------------------------------------------------------

/// Places in the tables of all examples laid end to end.
Tensor offset_places(const Batch& b, const Tensor& indices, int64_t rows) {
  const Tensor full = b.full(indices);
  // A place outside of its own table would be one of the next.
  if (full.is_cpu() && full.numel() > 0 && !batched_impl(full)) {
    const Tensor outside = cresset::logical_or(cresset::lt(full, 0), cresset::ge(full, Scalar(rows)));
    CRESSET_CHECK_INDEX(!outside.any().item().toBool(), "index out of range in self");
  }
  const Tensor numbers = cresset::arange(b.size(), TensorOptions(indices.scalar_type()).device(indices.device()));
  const DimVector ones(static_cast<std::size_t>(indices.dim()), 1);
  return cresset::add(full, cresset::mul(cresset::view(numbers, with_front(b.size(), ones)), Scalar(rows)));
}

Tensor embedding_rule(const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
  const Batch b(weight, indices);
  if (!b.has(weight)) return b.wrap(cresset::embedding(weight, b.front(indices), padding_idx, scale_grad_by_freq, sparse));
  const int64_t rows = weight.size(0);
  const Tensor out = cresset::embedding(merge_dims(b.front(weight), 0), offset_places(b, indices, rows), -1, scale_grad_by_freq, sparse);
  if (padding_idx < 0) return b.wrap(out);
  // Rows of the padding get no gradient.
  const Tensor padded = cresset::unsqueeze(cresset::eq(b.full(indices), Scalar(padding_idx)), -1);
  return b.wrap(cresset::where(padded, out.detach(), out));
}

Tensor embedding_dense_backward_rule(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                                     bool scale_grad_by_freq) {
  const Batch b(grad_output, indices);
  Tensor grad = b.full(grad_output);
  if (padding_idx >= 0)
    grad = cresset::masked_fill(grad, cresset::unsqueeze(cresset::eq(b.full(indices), Scalar(padding_idx)), -1), Scalar(0));
  const Tensor all =
      cresset::embedding_dense_backward(grad, offset_places(b, indices, num_weights), num_weights * b.size(), -1, scale_grad_by_freq);
  return b.wrap(split_dim(all, 0, b.size()));
}

// --- places in sorted sequences ------------------------------------------------------------------------------------------------

Tensor searchsorted_rule(const Tensor& sequence, const Tensor& values, bool out_int32, bool right, std::optional<std::string_view> side,
                         const std::optional<Tensor>& sorter) {
  const Batch b(sequence, values, sorter);
  CRESSET_CHECK(
      sequence.dim() == 1 || sequence.dim() == values.dim(),
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
      "tensor must match, but we got boundaries tensor ",
      sequence.sizes(), " and input value tensor ", values.sizes());
  // One vector for all examples searches whatever is given; otherwise every example has a sequence of its own, and its values in one row.
  if (sequence.dim() == 1 && !b.has(sequence) && !b.has(sorter))
    return b.wrap(cresset::searchsorted(sequence, b.front(values), out_int32, right, side, sorter));
  const Tensor full = b.full(values);
  const Tensor rows = sequence.dim() == 1 ? cresset::reshape(full, {b.size(), values.numel()}) : full;
  const std::optional<Tensor> order = sorter ? std::optional<Tensor>(b.full(*sorter)) : std::nullopt;
  const Tensor places = cresset::searchsorted(b.full(sequence), rows, out_int32, right, side, order);
  return b.wrap(sequence.dim() == 1 ? cresset::reshape(places, full.sizes()) : places);
}

Tensor bucketize_rule(const Tensor& values, const Tensor& boundaries, bool out_int32, bool right) {
  CRESSET_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_rule(boundaries, values, out_int32, right, std::nullopt, std::nullopt);
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  m.impl("index.Tensor", CRESSET_FN(index_rule));
  m.impl("index_put", CRESSET_FN(index_put_copy_rule));
  m.impl("index_put_", CRESSET_FN(index_put_rule));
  m.impl("_index_put_impl_", CRESSET_FN(index_put_impl_rule));
  m.impl("gather", CRESSET_FN(gather_rule));
  m.impl("scatter.src", CRESSET_FN(scatter_src_rule));
  m.impl("scatter.value", CRESSET_FN(scatter_value_rule));
  m.impl("scatter.reduce", CRESSET_FN(scatter_reduce_op_rule));
  m.impl("scatter.value_reduce", CRESSET_FN(scatter_value_reduce_rule));
  m.impl("scatter_add", CRESSET_FN(scatter_add_rule));
  m.impl("scatter_reduce.two", CRESSET_FN(scatter_reduce_rule));
  m.impl("index_select", CRESSET_FN(index_select_rule));
  m.impl("index_add", CRESSET_FN(index_add_rule));
  m.impl("index_copy", CRESSET_FN(index_copy_rule));
  m.impl("index_fill.int_Scalar", CRESSET_FN(index_fill_scalar_rule));
  m.impl("index_fill.int_Tensor", CRESSET_FN(index_fill_tensor_rule));
  m.impl("take", CRESSET_FN(take_rule));
  m.impl("one_hot", CRESSET_FN(one_hot_rule));
  m.impl("embedding", CRESSET_FN(embedding_rule));
  m.impl("embedding_dense_backward", CRESSET_FN(embedding_dense_backward_rule));
  m.impl("searchsorted.Tensor", CRESSET_FN(searchsorted_rule));
  m.impl("bucketize.Tensor", CRESSET_FN(bucketize_rule));
}

}  // namespace cresset::batching
