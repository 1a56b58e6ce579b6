// Indexing element by element: gather, the scatter family, take, put, masks and nonzero.
// Every index is checked before it is used, and before anything is written that the caller has.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/index_common.h"
#include "backends/cpu/walk.h"
#include "cpu/cpu_decl_index.h"
#include "ops/ops_decl_index.h"
#include "ops/shared/number_range.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

namespace {

constexpr int64_t kIndexGrain = 1 << 15;  // indices worth waking a thread for
constexpr int64_t kPiece = 1024;          // indices that stay in the first-level cache between the check and the use
constexpr int64_t kCopied = 1 << 16;      // bytes copied at once, that stay in the second-level cache until they are changed

Tensor as_int64(const Tensor& index) {
  if (index.scalar_type() == kLong) return index;
  const Indices values = read_indices(index);
  Tensor out = detail::empty_cpu(index.sizes(), kLong);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

// Is some of n values outside of [0, size)? Without a branch for each: the sign of v | (size - 1 - v) says that v is outside.
bool any_outside(const int64_t* p, int64_t n, int64_t stride, int64_t size) {
  const auto outside = [last = static_cast<uint64_t>(size) - 1](int64_t v) {
    return static_cast<uint64_t>(v) | (last - static_cast<uint64_t>(v));
  };
  uint64_t bad = 0;
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) bad |= outside(p[i]);
  else
    for (int64_t i = 0; i < n; ++i) bad |= outside(p[i * stride]);
  return static_cast<int64_t>(bad) < 0;
}

// Raises for the first value outside of [0, size), whichever thread met one.
void raise_first_outside(const Tensor& index, int64_t dim, int64_t size) {
  const int64_t* const p = index.const_data_ptr<int64_t>();
  const Walk<1> walk(index.sizes(), {index.strides()});
  walk.run([&](const std::array<int64_t, 1>& at) {
    for (int64_t i = 0; i < walk.row_size(); ++i) {
      const int64_t v = p[at[0] + i * walk.stride(0)];
      CRESSET_CHECK(v >= 0 && v < size, "index ", v, " is out of bounds for dimension ", dim, " with size ", size);
    }
  });
}

void check_index(const Tensor& index, int64_t dim, int64_t size) {
  const int64_t* const p = index.const_data_ptr<int64_t>();
  const Walk<1> walk(index.sizes(), {index.strides()});
  std::atomic<bool> bad = false;
  walk.parallel_pieces(kIndexGrain, walk.row_size(), [&](const std::array<int64_t, 1>& at, int64_t n) {
    if (any_outside(p + at[0], n, walk.stride(0), size)) bad = true;
  });
  if (bad) raise_first_outside(index, dim, size);
}

// self (without a stride along dim, which the index gives), the index, and an operand of the index's size.
struct ElementPlan {
  ElementPlan(const Tensor& self, int64_t dim_, const Tensor& index_, IntArrayRef other_strides)
      : dim(maybe_wrap_dim(dim_, self.dim())),
        size(self.dim() == 0 ? 1 : self.size(dim)),
        stride(self.dim() == 0 ? 1 : self.stride(dim)),
        index(as_int64(index_)),
        self_strides(self.strides()),
        index_strides(index.strides()),
        operand_strides(other_strides),
        sizes(index.sizes()) {
    if (self.dim() == 0) self_strides = DimVector{1};
    if (index.dim() == 0) index_strides = DimVector{1}, sizes = DimVector{1};
    if (operand_strides.empty()) operand_strides = DimVector{1};
    self_strides[dim] = 0;
  }
  Walk<3> walk() const { return part(sizes); }
  Walk<3> part(IntArrayRef of) const {
    return Walk<3>(of, {IntArrayRef(self_strides), IntArrayRef(operand_strides), IntArrayRef(index_strides)});
  }

  int64_t dim, size, stride;
  Tensor index;
  DimVector self_strides, index_strides, operand_strides, sizes;
};

// The largest dimension but `dim`, or -1: parts of the index along it write apart from each other.
int64_t split_dimension(const ElementPlan& plan) {
  int64_t best = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(plan.sizes.size()); ++d)
    if (d != plan.dim && plan.sizes[d] > (best < 0 ? 1 : plan.sizes[best])) best = d;
  return best;
}

// A run of indices: row, from and where point to the elements of the first; the steps count elements, `along` those of the indexed
// dimension.
struct ScatterRun {
  void* row;
  const void* from;
  const int64_t* where;
  int64_t n, row_step, from_step, where_step, along;
};
using ScatterLoop = void (*)(const ScatterRun& run);

// combine(place, element) for each index of a run.
template <class T, class F>
void scatter_run(const ScatterRun& run) {
  const F combine{};
  T* const row = static_cast<T*>(run.row);
  const T* const from = static_cast<const T*>(run.from);
  const int64_t* const where = run.where;
  const int64_t n = run.n, s0 = run.row_step, s1 = run.from_step, s2 = run.where_step, along = run.along;
  if (s0 == 0 && s1 == 1 && s2 == 1 && along == 1) {
    for (int64_t i = 0; i < n; ++i) combine(row[where[i]], from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) combine(row[i * s0 + where[i * s2] * along], from[i * s1]);
  }
}
template <class T, class F>
ScatterLoop scatter_loop(const F&) {
  return scatter_run<T, F>;
}

ScatterLoop assigning_loop(std::size_t itemsize) {
  ScatterLoop loop = nullptr;
  with_element_bits(itemsize, [&](auto bits) {
    using U = decltype(bits);
    loop = scatter_loop<U>([](U& place, const U& v) { place = v; });
  });
  return loop;
}

ScatterLoop adding_loop(ScalarType type) {
  return CRESSET_DISPATCH(type, "scatter_add_", CRESSET_ALL_TYPES,
                          [&] { return scatter_loop<scalar_t>([](scalar_t& place, scalar_t v) { place = reduce_add(place, v); }); });
}

ScatterLoop reducing_loop(ScalarType type, Reduction how) {
  ScatterLoop loop = nullptr;
  CRESSET_DISPATCH(type, "scatter_reduce", CRESSET_ALL_TYPES,
                   [&] { with_reduction<scalar_t>(how, [&](auto combine) { loop = scatter_loop<scalar_t>(combine); }); });
  return loop;
}

// Runs the loop over the whole index, elements of src beside it. Each place sees its values in the order of the index, whatever the
// number of threads: they share another dimension than the indexed one. self begins as a copy of `original`, if that is given; then it
// is a result that nobody has yet, and the index is checked where it is used.
void scatter_elements(const Tensor& self, int64_t dim, const Tensor& index, const void* src, IntArrayRef src_strides,
                      const Tensor* original, ScatterLoop loop) {
  if (index.numel() == 0) {
    if (original) ops::copy_data(*original, self);
    return;
  }
  const bool checked = !original;
  const ElementPlan plan(self, dim, index, src_strides);
  const int64_t d = split_dimension(plan), item = static_cast<int64_t>(self.itemsize());
  // Threads copy the rows that they are about to change.
  const bool by_rows = !checked && d == 0 && self.size(0) == plan.sizes[0] && self.is_contiguous() && original->is_contiguous();
  if (original && !by_rows) ops::copy_data(*original, self);
  if (checked) check_index(plan.index, plan.dim, plan.size);
  std::atomic<bool> bad = false;
  char* const to = static_cast<char*>(self.mutable_data_ptr());
  const char* const from = static_cast<const char*>(src);
  const int64_t* const where = plan.index.const_data_ptr<int64_t>();
  const auto run = [&](const Walk<3>& walk, const std::array<int64_t, 3>& start) {
    walk.run_pieces(0, walk.numel(), kPiece, [&](const std::array<int64_t, 3>& at, int64_t n) {
      const ScatterRun piece{to + (start[0] + at[0]) * item,
                             from + (start[1] + at[1]) * item,
                             where + start[2] + at[2],
                             n,
                             walk.stride(0),
                             walk.stride(1),
                             walk.stride(2),
                             plan.stride};
      if (!checked && any_outside(piece.where, n, piece.where_step, plan.size))
        bad = true;
      else
        loop(piece);
    });
  };
  if (d < 0) {
    run(plan.walk(), {});
    if (bad) raise_first_outside(plan.index, plan.dim, plan.size);
    return;
  }
  parallel_for(0, plan.sizes[d], std::max<int64_t>(1, kIndexGrain / (plan.index.numel() / plan.sizes[d])), [&](int64_t begin, int64_t end) {
    const int64_t row = by_rows ? self.numel() / self.size(0) * item : 0;
    const int64_t step = by_rows ? std::max<int64_t>(1, kCopied / std::max<int64_t>(1, row)) : end - begin;
    for (int64_t at = begin, some; at < end; at += some) {
      some = std::min(step, end - at);
      if (by_rows)
        std::memcpy(to + at * row, static_cast<const char*>(original->const_data_ptr()) + at * row, static_cast<std::size_t>(some * row));
      DimVector sizes(plan.sizes);
      sizes[d] = some;
      run(plan.part(sizes), {at * plan.self_strides[d], at * plan.operand_strides[d], at * plan.index_strides[d]});
    }
  });
  if (bad) raise_first_outside(plan.index, plan.dim, plan.size);
}

// The same with one element, at `value`, for every index.
void scatter_one(const Tensor& self, int64_t dim, const Tensor& index, const void* value, ScatterLoop loop) {
  scatter_elements(self, dim, index, value, DimVector(std::max<int64_t>(index.dim(), 1), 0), nullptr, loop);
}

Tensor apart_from(const Tensor& self, const Tensor& src) { return src.is_alias_of(self) ? src.clone() : src; }

void scatter_values(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor* original) {
  scatter_elements(self, dim, index, src.const_data_ptr(), src.strides(), original, assigning_loop(self.itemsize()));
}
void scatter_number(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, ScatterLoop loop) {
  ops::check_number(value, self.scalar_type());
  CRESSET_DISPATCH(self.scalar_type(), "scatter_", CRESSET_ALL_TYPES, [&] {
    const scalar_t v = value.to<scalar_t>();
    scatter_one(self, dim, index, &v, loop);
  });
}
void scatter_sum(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor* original) {
  scatter_elements(self, dim, index, src.const_data_ptr(), src.strides(), original, adding_loop(self.scalar_type()));
}
void scatter_combine_number(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) {
  scatter_number(self, dim, index, value, reducing_loop(self.scalar_type(), reduction_named(reduce)));
}
void scatter_combine(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include_self) {
  const Reduction how = reduction_named(reduce);
  const bool ordered = how != Reduction::Sum && how != Reduction::Prod && how != Reduction::Mean;
  CRESSET_CHECK_NOT_IMPLEMENTED(!(self.is_complex() && ordered) && !(self.scalar_type() == kBool && how == Reduction::Mean),
                                "\"scatter_gather_tensor_cpu_reduce_", reduce, "\" not implemented for '", self.scalar_type(), "'");
  Tensor counts;
  if (how == Reduction::Mean) {
    counts = detail::empty_cpu(self.sizes(), kLong);
    std::fill_n(counts.mutable_data_ptr<int64_t>(), counts.numel(), include_self ? 1 : 0);
    const int64_t one = 1;
    scatter_one(counts, dim, index, &one, adding_loop(kLong));
  }
  if (!include_self) {
    CRESSET_DISPATCH(self.scalar_type(), "scatter_reduce", CRESSET_ALL_TYPES, [&] {
      const scalar_t start = reduction_start<scalar_t>(how);
      scatter_one(self, dim, index, &start, assigning_loop(sizeof(scalar_t)));
    });
  }
  scatter_elements(self, dim, index, src.const_data_ptr(), src.strides(), nullptr, reducing_loop(self.scalar_type(), how));
  if (how != Reduction::Mean) return;
  const Walk<2> walk(self.sizes(), {self.strides(), counts.strides()});
  const int64_t* const n = counts.const_data_ptr<int64_t>();
  CRESSET_DISPATCH(self.scalar_type(), "scatter_reduce", CRESSET_ALL_TYPES, [&] {
    scalar_t* const to = self.mutable_data_ptr<scalar_t>();
    walk.run([&](const std::array<int64_t, 2>& at) {
      for (int64_t i = 0; i < walk.row_size(); ++i) {
        scalar_t& place = to[at[0] + i * walk.stride(0)];
        place = divide_mean(place, n[at[1] + i * walk.stride(1)]);
      }
    });
  });
}

// result[i] = row[i][where[i]]; false where an index is none below size.
template <class U>
bool gather_run(const U* row, int64_t row_step, U* result, int64_t result_step, const int64_t* where, int64_t where_step, int64_t n,
                int64_t along, uint64_t size) {
  if (row_step == 0 && result_step == 1 && where_step == 1 && along == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<uint64_t>(where[i]);
      if (at >= size) return false;
      result[i] = row[at];
    }
    return true;
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<uint64_t>(where[i * where_step]);
    if (at >= size) return false;
    result[i * result_step] = row[i * row_step + static_cast<int64_t>(at) * along];
  }
  return true;
}

}  // namespace

void gather(const Tensor& self, int64_t dim, const Tensor& index, bool, const Tensor& out) {
  if (index.numel() == 0) return;
  const ElementPlan plan(self, dim, index, out.strides());
  const Walk<3> walk = plan.walk();
  const int64_t* const at_index = plan.index.const_data_ptr<int64_t>();
  std::atomic<bool> bad = false;
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    const U* const from = static_cast<const U*>(self.const_data_ptr());
    U* const to = static_cast<U*>(out.mutable_data_ptr());
    walk.parallel_pieces(kIndexGrain, kPiece, [&](const std::array<int64_t, 3>& at, int64_t n) {
      const int64_t s0 = walk.stride(0), s1 = walk.stride(1), s2 = walk.stride(2);
      const U* const row = from + at[0];
      U* const result = to + at[1];
      const int64_t* const where = at_index + at[2];
      if (!gather_run(row, s0, result, s1, where, s2, n, plan.stride, static_cast<uint64_t>(plan.size))) bad = true;
    });
  });
  if (bad) raise_first_outside(plan.index, plan.dim, plan.size);
}

void scatter_src(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  scatter_values(out, dim, index, src, &self);
}
Tensor& scatter_src_inplace(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  ops::scatter_src_meta(self, dim, index, src);
  scatter_values(self, dim, index, apart_from(self, src), nullptr);
  return self;
}
void scatter_value(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, const Tensor& out) {
  ops::copy_data(self, out);
  scatter_number(out, dim, index, value, assigning_loop(out.itemsize()));
}
Tensor& scatter_value_inplace(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  ops::scatter_value_meta(self, dim, index, value);
  scatter_number(self, dim, index, value, assigning_loop(self.itemsize()));
  return self;
}
void scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  scatter_sum(out, dim, index, src, &self);
}
Tensor& scatter_add_inplace(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  ops::scatter_add_meta(self, dim, index, src);
  scatter_sum(self, dim, index, apart_from(self, src), nullptr);
  return self;
}
void scatter_reduce_old(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                        const Tensor& out) {
  ops::copy_data(self, out);
  scatter_combine(out, dim, index, src, reduce, true);
}
Tensor& scatter_reduce_old_inplace(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  ops::scatter_reduce_old_meta(self, dim, index, src, reduce);
  scatter_combine(self, dim, index, apart_from(self, src), reduce, true);
  return self;
}
void scatter_value_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce,
                          const Tensor& out) {
  ops::copy_data(self, out);
  scatter_combine_number(out, dim, index, value, reduce);
}
Tensor& scatter_value_reduce_inplace(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) {
  ops::scatter_value_reduce_meta(self, dim, index, value, reduce);
  scatter_combine_number(self, dim, index, value, reduce);
  return self;
}
void scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include_self,
                    const Tensor& out) {
  ops::copy_data(self, out);
  scatter_combine(out, dim, index, src, reduce, include_self);
}
Tensor& scatter_reduce_inplace(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self) {
  ops::scatter_reduce_meta(self, dim, index, src, reduce, include_self);
  scatter_combine(self, dim, index, apart_from(self, src), reduce, include_self);
  return self;
}

// ---- positions in the flattened tensor ---------------------------------------------------------------------------

namespace {

// Offsets in self of positions in its logical order.
Indices linear_offsets(const Tensor& self, const Tensor& index) {
  Indices out = read_indices(index);
  const int64_t n = self.numel();
  const bool dense = self.is_contiguous();
  for (int64_t& i : out) {
    CRESSET_CHECK_INDEX(i >= -n && i < n, "out of range: tried to access index ", i, " on a tensor of ", n, " elements.");
    if (i < 0) i += n;
    if (dense) continue;
    int64_t rest = i, at = 0;
    for (int64_t d = self.dim() - 1; d >= 0; --d) {
      at += rest % self.size(d) * self.stride(d);
      rest /= self.size(d);
    }
    i = at;
  }
  return out;
}

}  // namespace

void take(const Tensor& self, const Tensor& index, const Tensor& out) {
  const Indices offsets = linear_offsets(self, index);
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    const U* const from = static_cast<const U*>(self.const_data_ptr());
    U* const to = static_cast<U*>(out.mutable_data_ptr());
    for (std::size_t i = 0; i < offsets.size(); ++i) to[i] = from[offsets[i]];
  });
}

Tensor& put_inplace(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  ops::put_meta(self, index, source, accumulate);
  const Indices offsets = linear_offsets(self, index);
  const Tensor values = source.is_alias_of(self) ? source.clone(MemoryFormat::Contiguous) : source.contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "put_", CRESSET_ALL_TYPES, [&] {
    scalar_t* const to = self.mutable_data_ptr<scalar_t>();
    const scalar_t* const from = values.const_data_ptr<scalar_t>();
    for (std::size_t i = 0; i < offsets.size(); ++i) to[offsets[i]] = accumulate ? reduce_add(to[offsets[i]], from[i]) : from[i];
  });
  return self;
}

// ---- masks -------------------------------------------------------------------------------------------------------

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  CRESSET_CHECK(mask.scalar_type() == kBool, "masked_select: expected BoolTensor for mask");
  ops::check_same_device("masked_select", self, mask, "mask");
  const DimVector sizes = ops::infer_broadcast(self.sizes(), mask.sizes());
  const Tensor from = self.expand(sizes), where = mask.expand(sizes);
  const Walk<2> walk(sizes, {from.strides(), where.strides()});
  const Flags keep(where);
  int64_t count = 0;
  walk.run([&](const std::array<int64_t, 2>& at) {
    const int64_t n = walk.row_size(), s = walk.stride(1);
    for (int64_t i = 0; i < n; ++i) count += keep[at[1] + i * s];
  });
  Tensor out = detail::empty_cpu({count}, self.scalar_type());
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    const U* const source = static_cast<const U*>(from.const_data_ptr());
    U* to = static_cast<U*>(out.mutable_data_ptr());
    const U* const last = to + count;
    walk.run([&](const std::array<int64_t, 2>& at) {
      // Every element is written where the next kept one belongs: a mask is rarely predictable.
      const int64_t n = walk.row_size(), s0 = walk.stride(0), s1 = walk.stride(1);
      for (int64_t i = 0; i < n && to != last; ++i) {
        *to = source[at[0] + i * s0];
        to += keep[at[1] + i * s1];
      }
    });
  });
  return out;
}

Tensor& masked_scatter_inplace(Tensor& self, const Tensor& mask, const Tensor& source) {
  ops::masked_scatter_meta(self, mask, source);
  const Tensor where = mask.expand(self.sizes());
  const Tensor values = source.is_alias_of(self) ? source.clone(MemoryFormat::Contiguous) : source.contiguous();
  const Walk<2> walk(self.sizes(), {self.strides(), where.strides()});
  const Flags keep(where);
  int64_t count = 0;
  walk.run([&](const std::array<int64_t, 2>& at) {
    for (int64_t i = 0; i < walk.row_size(); ++i) count += keep[at[1] + i * walk.stride(1)];
  });
  CRESSET_CHECK(count <= values.numel(), "masked_scatter: Number of elements of source < number of ones in mask (", values.numel(), " < ",
                count, ")");
  with_element_bits(self.itemsize(), [&](auto bits) {
    using U = decltype(bits);
    const U* from = static_cast<const U*>(values.const_data_ptr());
    U* const to = static_cast<U*>(self.mutable_data_ptr());
    walk.run([&](const std::array<int64_t, 2>& at) {
      for (int64_t i = 0; i < walk.row_size(); ++i)
        if (keep[at[1] + i * walk.stride(1)]) to[at[0] + i * walk.stride(0)] = *from++;
    });
  });
  return self;
}

Tensor nonzero(const Tensor& self) {
  const Tensor from = self.contiguous();
  const int64_t n = from.numel(), dims = from.dim();
  return CRESSET_DISPATCH(self.scalar_type(), "nonzero", CRESSET_ALL_TYPES, [&] {
    using element = std::conditional_t<std::is_same_v<scalar_t, bool>, uint8_t, scalar_t>;  // Flags says why
    const auto* const p = static_cast<const element*>(from.const_data_ptr());
    const auto is_nonzero = [](element v) { return static_cast<opmath_type<element>>(v) != opmath_type<element>(0); };
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += is_nonzero(p[i]);
    // One run of memory for each dimension, as PyTorch lays it out.
    const Tensor columns = detail::empty_cpu({dims, count}, kLong);
    int64_t* const out = columns.numel() ? columns.mutable_data_ptr<int64_t>() : nullptr;
    if (out) {
      const int64_t row_size = from.size(-1), rows = n / row_size;
      int64_t* const inner = out + (dims - 1) * count;
      int64_t found = 0;
      DimVector at(dims, 0);  // position of the current row
      for (int64_t row = 0; row < rows && found < count; ++row) {
        // Every position is written where the next one found belongs: what is zero is rarely predictable.
        const element* const values = p + row * row_size;
        const int64_t first = found;
        for (int64_t i = 0; i < row_size && found < count; ++i) {
          inner[found] = i;
          found += is_nonzero(values[i]);
        }
        for (int64_t d = 0; d < dims - 1; ++d) std::fill(out + d * count + first, out + d * count + found, at[d]);
        for (int64_t d = dims - 2; d >= 0 && ++at[d] == from.size(d); --d) at[d] = 0;
      }
    }
    return ops::make_view(columns, {count, dims}, {1, std::max<int64_t>(count, 1)}, 0);
  });
}

void nonzero_static(const Tensor& self, int64_t size, int64_t fill_value, const Tensor& out) {
  const Tensor found = cpu::nonzero(self);
  const int64_t n = std::min(size, found.size(0));
  Tensor(out).fill_(fill_value);
  cresset::slice(out, 0, 0, n, 1).copy_(cresset::slice(found, 0, 0, n, 1));
}

}  // namespace cresset::cpu
