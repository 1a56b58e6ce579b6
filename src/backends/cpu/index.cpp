// Indexing by tensors: whole slices or blocks by index (index, index_put, index_select, index_add, …).
// Every index is checked before anything is written. Single elements by index are in index_elements.cpp.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_sort.h>

#include "backends/cpu/index_common.h"
#include "backends/cpu/walk.h"
#include "cpu/cpu_decl_index.h"
#include "ops/index_plan.h"
#include "ops/ops_decl_index.h"
#include "ops/shared/number_range.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

namespace {

// A strided tensor seen as [before, indexed, rest]: one index picks a block of `rest` elements for each of `before`.
// The other operand is dense: before x number of indices x rest.
struct Blocks {
  Blocks(const Tensor& self, int64_t first, int64_t count)
      : before(self.sizes().slice(0, first), {self.strides().slice(0, first)}),
        dense_rest_strides(contiguous_strides(self.sizes().slice(first + count))),
        rest(self.sizes().slice(first + count), {self.strides().slice(first + count), IntArrayRef(dense_rest_strides)}) {}

  // f(offset in self, offset in the dense operand) for every pair of an outer position and an index, in order.
  template <class F>
  void run(const Indices& offsets, bool parallel, const F& f) const {
    const int64_t n = static_cast<int64_t>(offsets.size()), size = rest.numel();
    if (size == 0) return;
    const auto part = [&](int64_t begin, int64_t end) {
      int64_t outer = begin / n, i = begin % n;
      const int64_t width = before.row_size();
      int64_t row_start = 0;
      const auto locate = [&](int64_t o) {
        int64_t at = 0;
        before.run(o / width, o / width + 1, [&](const std::array<int64_t, 1>& offset) { at = offset[0]; });
        return at + (o % width) * before.stride(0);
      };
      row_start = locate(outer);
      for (int64_t k = begin;;) {
        const int64_t count = std::min(n - i, end - k);
        const int64_t* const at = offsets.data() + i;
        for (int64_t j = 0; j < count; ++j) f(row_start + at[j], (k + j) * size);
        if ((k += count) == end) return;
        i = 0;
        row_start = locate(++outer);
      }
    };
    const int64_t total = before.numel() * n;
    if (parallel)
      parallel_for(0, total, std::max<int64_t>(1, kCopyGrain / size), part);
    else if (total > 0)
      part(0, total);
  }

  Walk<1> before;
  DimVector dense_rest_strides;
  Walk<2> rest;  // self, dense
};

// Where each index points, in elements from the start of self. Text of errors as PyTorch's index.
Indices plan_offsets(const ops::IndexPlan& plan) {
  int64_t n = 1;
  for (int64_t s : plan.index_sizes) n *= s;
  Indices offsets;
  for (int64_t k = 0; k < plan.count; ++k) {
    const int64_t d = plan.first + k, size = plan.self.size(d), stride = plan.self.stride(d);
    CRESSET_CHECK_INDEX(size > 0 || n == 0, "index is out of bounds for dimension with size 0");
    Indices index = read_indices(plan.indices[k]);
    for (int64_t& i : index) {
      CRESSET_CHECK_INDEX(i >= -size && i < size, "index ", i, " is out of bounds for dimension ", d, " with size ", size);
      i = (i < 0 ? i + size : i) * stride;
    }
    if (k == 0)
      offsets = std::move(index);
    else
      for (int64_t i = 0; i < n; ++i) offsets[i] += index[i];
  }
  if (plan.count == 0) offsets.assign(static_cast<std::size_t>(n), 0);
  return offsets;
}

// Offsets of a vector of slices; negative values only where the operator allows them.
template <class Fail>
Indices slice_offsets(const Tensor& self, int64_t dim, const Tensor& index, bool negative, const Fail& fail) {
  const int64_t size = self.dim() == 0 ? 1 : self.size(dim), stride = self.dim() == 0 ? 1 : self.stride(dim);
  Indices offsets = read_indices(index);
  for (int64_t& i : offsets) {
    const int64_t w = negative && i < 0 ? i + size : i;
    if (CRESSET_UNLIKELY(w < 0 || w >= size)) fail(i, size);
    i = w * stride;
  }
  return offsets;
}

// A tensor of no dimensions counts as one of size [1].
Tensor at_least_1d(const Tensor& t) { return t.dim() == 0 ? ops::make_view(t, {1}, {1}, t.storage_offset()) : t; }

// Asks for the beginning of a block that is read soon; the processor finds the rest of it by itself.
inline void fetch_block(const void* block, std::size_t bytes) {
  constexpr std::size_t kLine = 64, kBeginning = 512;
  for (std::size_t at = 0; at < std::min(bytes, kBeginning); at += kLine) __builtin_prefetch(static_cast<const char*>(block) + at);
}

template <class U>
void read_blocks(const Tensor& self, const Blocks& blocks, const Indices& offsets, U* out) {
  const U* const from = static_cast<const U*>(self.const_data_ptr());
  const Walk<2>& rest = blocks.rest;
  if (rest.numel() == 1) {
    blocks.run(offsets, true, [&](int64_t at, int64_t dense) { out[dense] = from[at]; });
  } else if (rest.dense(0)) {
    const int64_t size = rest.numel(), last = static_cast<int64_t>(offsets.size()) - 1;
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(U);
    constexpr int64_t kAhead = 3;  // blocks
    blocks.run(offsets, true, [&](int64_t at, int64_t dense) {
      const int64_t i = dense / size % (last + 1);
      fetch_block(from + at - offsets[i] + offsets[std::min(i + kAhead, last)], bytes);
      std::memcpy(out + dense, from + at, bytes);
    });
  } else {
    blocks.run(offsets, true, [&](int64_t at, int64_t dense) {
      rest.run([&](const std::array<int64_t, 2>& o) {
        copy_row(out + dense + o[1], rest.stride(1), from + at + o[0], rest.stride(0), rest.row_size());
      });
    });
  }
}

// Repeated indices write one after the other, so this part does not run on several threads.
template <class U>
void write_blocks(const Tensor& self, const Blocks& blocks, const Indices& offsets, const U* values, bool one_value) {
  U* const to = static_cast<U*>(self.mutable_data_ptr());
  const Walk<2>& rest = blocks.rest;
  const int64_t step = one_value ? 0 : 1;
  if (rest.numel() == 1) return blocks.run(offsets, false, [&](int64_t at, int64_t dense) { to[at] = values[dense * step]; });
  blocks.run(offsets, false, [&](int64_t at, int64_t dense) {
    rest.run([&](const std::array<int64_t, 2>& o) {
      copy_row(to + at + o[0], rest.stride(0), values + (dense + o[1]) * step, rest.stride(1) * step, rest.row_size());
    });
  });
}

// One element, of the tensor's type, everywhere.
void fill_blocks(const Tensor& self, const Blocks& blocks, const Indices& offsets, const void* value) {
  with_element_bits(self.itemsize(), [&](auto bits) {
    std::memcpy(&bits, value, sizeof(bits));
    write_blocks(self, blocks, offsets, &bits, true);
  });
}

// combine(place, value) for every element of every block.
template <class T, class F>
void combine_blocks(const Tensor& self, const Blocks& blocks, const Indices& offsets, const T* values, bool one_value, const F& combine) {
  T* const to = self.mutable_data_ptr<T>();
  const Walk<2>& rest = blocks.rest;
  const int64_t step = one_value ? 0 : 1;
  if (rest.numel() == 1) return blocks.run(offsets, false, [&](int64_t at, int64_t dense) { combine(to[at], values[dense * step]); });
  blocks.run(offsets, false, [&](int64_t at, int64_t dense) {
    rest.run([&](const std::array<int64_t, 2>& o) {
      T* const t = to + at + o[0];
      const T* const v = values + (dense + o[1]) * step;
      const int64_t n = rest.row_size(), ts = rest.stride(0), vs = rest.stride(1) * step;
      for (int64_t i = 0; i < n; ++i) combine(t[i * ts], v[i * vs]);
    });
  });
}

[[noreturn]] void raise_out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  CRESSET_THROW(Error, "index ", index, " is out of bounds for dimension ", dim, " with size ", size);
}

[[noreturn]] void raise_out_of_range() { CRESSET_THROW(IndexError, "index out of range in self"); }

// Several elements lie in one place: writing back what need not change could undo what another one wrote.
bool is_expanded(const Tensor& self) {
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) > 1 && self.stride(d) == 0) return true;
  return false;
}

// The only index is a mask of self's own sizes: positions need not be listed.
bool is_whole_mask(const Tensor& self, OptionalTensorList indices) {
  return indices.size() == 1 && indices[0] && indices[0]->defined() && indices[0]->scalar_type() == kBool && indices[0]->is_cpu() &&
         self.dim() > 0 && indices[0]->sizes() == self.sizes();
}

// Apart from the loop over rows, so that the value is no memory that the row may be.
template <class U>
CRESSET_NOINLINE void fill_row(U* row, int64_t step, const uint8_t* mask, int64_t mask_step, int64_t n, const U value) {
  if (step == 1 && mask_step == 1)
    for (int64_t i = 0; i < n; ++i) row[i] = mask[i] != 0 ? value : row[i];
  else
    for (int64_t i = 0; i < n; ++i) row[i * step] = mask[i * mask_step] != 0 ? value : row[i * step];
}

// A mask without dimensions that is false selects nothing at all.
bool selects_nothing(OptionalTensorList indices) {
  for (const std::optional<Tensor>& i : indices)
    if (i && i->defined() && i->dim() == 0 && ops::is_mask(*i) && !i->item().toBool()) return true;
  return false;
}

void fill_where(const Tensor& self, const Tensor& mask, const Tensor& value) {
  const Walk<2> walk(self.sizes(), {self.strides(), mask.strides()});
  const Flags keep(mask);
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    const U v = *static_cast<const U*>(value.const_data_ptr());
    U* const to = static_cast<U*>(self.mutable_data_ptr());
    walk.parallel(kCopyGrain, [&](const std::array<int64_t, 2>& at) {
      const int64_t n = walk.row_size(), s0 = walk.stride(0), s1 = walk.stride(1);
      fill_row(to + at[0], s0, keep.bytes + at[1], s1, n, v);
    });
  });
}

}  // namespace

Tensor index_tensor(const Tensor& self, OptionalTensorList indices) {
  if (is_whole_mask(self, indices)) return cpu::masked_select(self, *indices[0]);
  const ops::IndexPlan plan = ops::plan_index(self, indices);
  CRESSET_CHECK_INDEX(!selects_nothing(indices),
                      "index: a mask with dimensions was required; got one without that is false. Index with mask.reshape(1) a tensor that "
                      "got a dimension by unsqueeze(0).");
  const Indices offsets = plan_offsets(plan);
  const std::optional<DimVector> strides = ops::index_strides(plan);
  Tensor out = detail::empty_cpu(plan.result_sizes, self.scalar_type());
  if (out.numel() == 0) return strides ? detail::empty_strided_cpu(plan.result_sizes, *strides, self.scalar_type()) : out;
  const Blocks blocks(plan.self, plan.first, plan.count);
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    read_blocks(plan.self, blocks, offsets, static_cast<U*>(out.mutable_data_ptr()));
  });
  if (!strides) return out;
  const Tensor ordered = detail::empty_strided_cpu(plan.result_sizes, *strides, self.scalar_type());
  ops::copy_data(out, ordered);
  return ordered;
}

Tensor& index_put_impl(Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate, bool) {
  // What does not fit is said before types are; without indices the place is one element.
  const bool one_type = self.scalar_type() == values.scalar_type();
  if (one_type) ops::index_put_meta(self, indices, values, accumulate, false);
  if (one_type && !accumulate && values.numel() == 1 && is_whole_mask(self, indices) && !is_expanded(self)) {
    fill_where(self, *indices[0], values);
    return self;
  }
  if (indices.size() == 0 && values.dim() > 0)
    CRESSET_THROW(Error, "shape mismatch: value tensor of shape ", values.sizes(), " cannot be broadcast to indexing result of shape []");
  const ops::IndexPlan plan = ops::plan_index(self, indices);
  const IntArrayRef target = plan.result_sizes;
  bool fits = values.dim() <= static_cast<int64_t>(target.size());
  for (int64_t i = 1; fits && i <= values.dim(); ++i) fits = values.size(-i) == 1 || values.size(-i) == target[target.size() - i];
  CRESSET_CHECK(fits, "shape mismatch: value tensor of shape ", values.sizes(), " cannot be broadcast to indexing result of shape ",
                target);
  if (!one_type) ops::index_put_meta(self, indices, values, accumulate, false);
  if (selects_nothing(indices)) return self;
  const Indices offsets = plan_offsets(plan);
  const Blocks blocks(plan.self, plan.first, plan.count);
  const bool one = values.numel() == 1, aliased = values.is_alias_of(self);
  // Contiguous, and apart from self: writing self must not change what is still to be read.
  const Tensor dense = aliased ? values.expand(one ? values.sizes() : target).clone(MemoryFormat::Contiguous)
                       : one   ? values
                               : values.expand(target).contiguous();
  if (!accumulate) {
    with_element_bits(self.itemsize(), [&](auto bits) {
      using U = decltype(bits);
      write_blocks(plan.self, blocks, offsets, static_cast<const U*>(dense.const_data_ptr()), one);
    });
    return self;
  }
  CRESSET_DISPATCH(self.scalar_type(), "index_put", CRESSET_ALL_TYPES,
                   [&] { combine_blocks(plan.self, blocks, offsets, dense.const_data_ptr<scalar_t>(), one, AddInto()); });
  return self;
}

void index_select(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  const Tensor from = at_least_1d(self);
  const Indices offsets = slice_offsets(self, d, index, false, [&](int64_t i, int64_t size) {
    if (self.dim() <= 1) raise_out_of_range();
    CRESSET_CHECK(size > 0, "index_select(): self indexing axis dim should be positive");
    if (d != 1 && out.numel() > 0) raise_out_of_range();
    CRESSET_THROW(Error, "INDICES element is out of DATA bounds, id=", i, " axis_dim=", size);
  });
  if (out.numel() == 0) return;
  const Blocks blocks(from, d, 1);
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    read_blocks(from, blocks, offsets, static_cast<U*>(out.mutable_data_ptr()));
  });
}

// ---- slices into a tensor ----------------------------------------------------------------------------------------

namespace {

void add_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  const Indices offsets = slice_offsets(self, d, index, false, [&](int64_t i, int64_t size) {
    if (self.dim() <= 1) raise_out_of_range();
    raise_out_of_bounds(i, d, size);
  });
  if (source.numel() == 0) return;
  const Tensor to = at_least_1d(self), values = source.contiguous();
  const Blocks blocks(to, d, 1);
  CRESSET_DISPATCH(self.scalar_type(), "index_add_", CRESSET_ALL_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    if (alpha.equal(1)) {
      combine_blocks(to, blocks, offsets, values.const_data_ptr<scalar_t>(), false, AddInto());
      return;
    }
    C a;
    if constexpr (std::is_integral_v<scalar_t>)
      a = alpha.isFloatingPoint() ? static_cast<C>(alpha.toDouble()) : alpha.to<C>();
    else
      a = alpha.to<C>();
    combine_blocks(to, blocks, offsets, values.const_data_ptr<scalar_t>(), false,
                   [a](scalar_t& place, scalar_t v) { place = add_scaled(place, a, v); });
  });
}

void copy_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  const Indices offsets = slice_offsets(self, d, index, false, [&](int64_t i, int64_t size) {
    CRESSET_THROW(IndexError, "index_copy_(): index ", i, " is out of bounds for dimension ", d, " with size ", size);
  });
  if (source.numel() == 0) return;
  const Tensor to = at_least_1d(self), values = source.is_alias_of(self) ? source.clone(MemoryFormat::Contiguous) : source.contiguous();
  const Blocks blocks(to, d, 1);
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    write_blocks(to, blocks, offsets, static_cast<const U*>(values.const_data_ptr()), false);
  });
}

void fill_slices(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  const Indices offsets = slice_offsets(self, d, index, true, [&](int64_t i, int64_t size) {
    CRESSET_THROW(IndexError, "index ", i, " is out of bounds for dimension ", d, " with size ", size);
  });
  ops::check_number(value, self.scalar_type());
  if (self.numel() == 0) return;
  const Tensor to = at_least_1d(self);
  const Blocks blocks(to, d, 1);
  CRESSET_DISPATCH(self.scalar_type(), "index_fill_", CRESSET_ALL_TYPES, [&] {
    const scalar_t v = value.to<scalar_t>();
    fill_blocks(to, blocks, offsets, &v);
  });
}

// Which types have the reduction: without self's own values only those with a value to start from; flags have no mean, complex numbers no
// order.
void check_reducible(ScalarType type, int64_t dims, Reduction how, bool include_self) {
  const bool real = type != kBool && !isComplexType(type);
  CRESSET_CHECK_NOT_IMPLEMENTED(include_self || real, "\"index_reduce_func_exclude_input_init\" not implemented for '", type, "'");
  CRESSET_CHECK_NOT_IMPLEMENTED(dims > 1 || real, "\"index_func_\" not implemented for '", type, "'");
  CRESSET_CHECK_NOT_IMPLEMENTED(how != Reduction::Mean || type != kBool, "\"div_floor_cpu\" not implemented for '", type, "'");
  CRESSET_CHECK_NOT_IMPLEMENTED(how != Reduction::Amax || !isComplexType(type), "\"maximum_cpu\" not implemented for '", type, "'");
  CRESSET_CHECK_NOT_IMPLEMENTED(how != Reduction::Amin || !isComplexType(type), "\"minimum_cpu\" not implemented for '", type, "'");
}

void reduce_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, bool include_self) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  const Reduction how = reduction_named(reduce);
  check_reducible(self.scalar_type(), self.dim(), how, include_self);
  const Indices offsets = slice_offsets(self, d, index, false, [](int64_t, int64_t) { raise_out_of_range(); });
  if (source.numel() == 0) return;
  const Tensor to = at_least_1d(self), values = source.contiguous();
  const Blocks blocks(to, d, 1);
  CRESSET_DISPATCH(self.scalar_type(), "index_func_", CRESSET_ALL_TYPES, [&] {
    if constexpr (!is_complex_v<scalar_t>) {
      if (!include_self) {
        const scalar_t start = reduction_start<scalar_t>(how);
        fill_blocks(to, blocks, offsets, &start);
      }
    }
    with_reduction<scalar_t>(how,
                             [&](auto combine) { combine_blocks(to, blocks, offsets, values.const_data_ptr<scalar_t>(), false, combine); });
    if (how != Reduction::Mean) return;
    std::vector<int64_t> counts(static_cast<std::size_t>(to.size(d)), include_self ? 1 : 0);
    const int64_t stride = std::max<int64_t>(to.stride(d), 1);
    for (int64_t o : offsets) ++counts[o / stride];
    Indices touched(offsets);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (int64_t o : touched) {
      const scalar_t one{};
      const int64_t n = counts[o / stride];
      combine_blocks(to, blocks, {o}, &one, true, [n](scalar_t& place, scalar_t) { place = divide_mean(place, n); });
    }
  });
}

}  // namespace

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha, const Tensor& out) {
  ops::copy_data(self, out);
  add_slices(out, dim, index, source, alpha);
}
Tensor& index_add_inplace(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  ops::index_add_meta(self, dim, index, source, alpha);
  add_slices(self, dim, index, source.is_alias_of(self) ? source.clone() : source, alpha);
  return self;
}
void index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Tensor& out) {
  ops::copy_data(self, out);
  copy_slices(out, dim, index, source);
}
Tensor& index_copy_inplace(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  ops::index_copy_meta(self, dim, index, source);
  copy_slices(self, dim, index, source);
  return self;
}
Tensor& index_fill_scalar(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  ops::index_fill_scalar_meta(self, dim, index, value);
  fill_slices(self, dim, index, value);
  return self;
}
Tensor& index_fill_tensor(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  ops::index_fill_tensor_meta(self, dim, index, value);
  fill_slices(self, dim, index, scalar_of(value));
  return self;
}
void index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, bool include_self,
                  const Tensor& out) {
  ops::copy_data(self, out);
  reduce_slices(out, dim, index, source, reduce, include_self);
}
Tensor& index_reduce_inplace(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                             bool include_self) {
  ops::index_reduce_meta(self, dim, index, source, reduce, include_self);
  reduce_slices(self, dim, index, source, reduce, include_self);
  return self;
}

}  // namespace cresset::cpu
