// Unique values, searching in sorted sequences and counting: the rest of the sort family.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_sort.h>

#include "backends/cpu/radix_sort.h"
#include "cpu/cpu_decl_sort.h"
#include "ops/shape_util.h"

namespace cresset::cpu {

namespace {

Tensor empty_indices() { return detail::empty_cpu({0}, kLong); }

// Groups of equal neighbours in an order of positions; same(a, b) compares two positions.
struct Groups {
  std::vector<int64_t> first;  // a position of each group
  std::vector<int64_t> counts;
  std::vector<int64_t> group;  // of each position, when asked for
};
template <class Same>
Groups group(const std::vector<int64_t>& order, bool inverse, const Same& same) {
  Groups g;
  if (inverse) g.group.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !same(order[i - 1], order[i])) {
      g.first.push_back(order[i]);
      g.counts.push_back(0);
    }
    ++g.counts.back();
    if (inverse) g.group[order[i]] = static_cast<int64_t>(g.first.size()) - 1;
  }
  return g;
}

Tensor tensor_of(const std::vector<int64_t>& values, IntArrayRef sizes) {
  Tensor out = detail::empty_cpu(sizes, kLong);
  std::copy(values.begin(), values.end(), static_cast<int64_t*>(out.mutable_data_ptr()));
  return out;
}

std::tuple<Tensor, Tensor, Tensor> results(const Tensor& values, const Groups& g, bool inverse, IntArrayRef inverse_sizes, bool counts) {
  return {values, inverse ? tensor_of(g.group, inverse_sizes) : empty_indices(),
          counts ? tensor_of(g.counts, {static_cast<int64_t>(g.counts.size())}) : empty_indices()};
}

std::vector<int64_t> positions(int64_t n) {
  std::vector<int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Every NaN is a value of its own, the largest.
template <class T>
bool less(T a, T b) {
  using C = opmath_type<T>;
  const C x = static_cast<C>(a), y = static_cast<C>(b);
  return x < y || (x == x && y != y);
}

template <class T>
std::vector<int64_t> sorted_positions(const T* p, int64_t n) {
  std::vector<int64_t> order(static_cast<std::size_t>(n));
  LineSorter<T>().sort(p, n, 1, false, [&](int64_t rank, int64_t index) { order[rank] = index; });
  return order;
}

// How often each of the values low, low + 1, … occurs among n integers, `values` of them.
template <class T>
std::vector<int64_t> count_values(const T* p, int64_t n, T low, int64_t values) {
  // Few values are counted by each thread for itself.
  const int64_t parts = values <= kSortGrain ? std::clamp<int64_t>(n / kSortGrain, 1, get_num_threads()) : 1,
                size = (n + parts - 1) / parts;
  std::vector<int64_t> counts(static_cast<std::size_t>(parts * values), 0);
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      for (int64_t i = k * size; i < std::min(n, (k + 1) * size); ++i)
        ++counts[k * values + (static_cast<uint64_t>(p[i]) - static_cast<uint64_t>(low))];
  });
  for (int64_t k = 1; k < parts; ++k)
    for (int64_t v = 0; v < values; ++v) counts[v] += counts[k * values + v];
  counts.resize(static_cast<std::size_t>(values));
  return counts;
}

// Unique values of integers that lie close together need no sorting, only a counter for each value between them.
template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_by_counting(const Tensor& flat, T low, int64_t values, bool inverse, IntArrayRef sizes,
                                                      bool counts) {
  const T* const p = flat.const_data_ptr<T>();
  std::vector<int64_t> counted = count_values(p, flat.numel(), low, values);
  const auto found = static_cast<int64_t>(values - std::count(counted.begin(), counted.end(), 0));
  const Tensor unique = detail::empty_cpu({found}, flat.scalar_type()),
               number = counts ? detail::empty_cpu({found}, kLong) : empty_indices();
  T* const to = unique.mutable_data_ptr<T>();
  int64_t* const to_number = counts ? number.mutable_data_ptr<int64_t>() : nullptr;
  int64_t rank = 0;
  for (int64_t v = 0; v < values; ++v) {
    if (counted[v] == 0) continue;
    to[rank] = static_cast<T>(static_cast<uint64_t>(low) + static_cast<uint64_t>(v));
    if (counts) to_number[rank] = counted[v];
    counted[v] = rank++;  // where the inverse looks for it
  }
  if (!inverse) return {unique, empty_indices(), number};
  const Tensor ranks = detail::empty_cpu(sizes, kLong);
  int64_t* const to_rank = ranks.mutable_data_ptr<int64_t>();
  parallel_for(0, flat.numel(), kSortGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to_rank[i] = counted[static_cast<uint64_t>(p[i]) - static_cast<uint64_t>(low)];
  });
  return {unique, ranks, number};
}

std::tuple<Tensor, Tensor, Tensor> unique_elements(const Tensor& self, bool inverse, bool counts, bool sort) {
  const Tensor flat = self.contiguous();
  const int64_t n = flat.numel();
  return CRESSET_DISPATCH(self.scalar_type(), "unique", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t* const p = n ? flat.const_data_ptr<scalar_t>() : nullptr;
    if constexpr (std::is_integral_v<scalar_t>) {
      if (sort && n > 0) {
        const auto [low, high] = bounds_of(p, n, 1);
        const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
        if (span < static_cast<uint64_t>(n))
          return unique_by_counting(flat, low, static_cast<int64_t>(span) + 1, inverse, self.sizes(), counts);
      }
    }
    std::vector<int64_t> order = sort ? sorted_positions(p, n) : positions(n);
    const Groups g = group(order, inverse, [&](int64_t a, int64_t b) { return static_cast<C>(p[a]) == static_cast<C>(p[b]); });
    Tensor values = detail::empty_cpu({static_cast<int64_t>(g.first.size())}, self.scalar_type());
    scalar_t* const to = static_cast<scalar_t*>(values.mutable_data_ptr());
    for (std::size_t i = 0; i < g.first.size(); ++i) to[i] = p[g.first[i]];
    return results(values, g, inverse, self.sizes(), counts);
  });
}

std::tuple<Tensor, Tensor, Tensor> unique_slices(const Tensor& self, int64_t dim, bool inverse, bool counts, bool sort) {
  const int64_t d = maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false), n = self.size(d);
  bool zero = false;
  for (int64_t i = 0; i < self.dim(); ++i) zero |= i != d && self.size(i) == 0;
  CRESSET_CHECK(n == 0 || !zero, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const Tensor rows = self.movedim(d, 0).contiguous();
  const int64_t width = n == 0 ? 0 : rows.numel() / n;
  return CRESSET_DISPATCH(self.scalar_type(), "unique_dim", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t* const p = n ? rows.const_data_ptr<scalar_t>() : nullptr;
    std::vector<int64_t> order = positions(n);
    if (sort)
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(p + a * width, p + (a + 1) * width, p + b * width, p + (b + 1) * width, less<scalar_t>);
      });
    const Groups g = group(order, inverse, [&](int64_t a, int64_t b) {
      return std::equal(p + a * width, p + (a + 1) * width, p + b * width,
                        [](scalar_t x, scalar_t y) { return static_cast<C>(x) == static_cast<C>(y); });
    });
    // In memory the slices lie one after the other, as in PyTorch.
    const Tensor values = rows.index_select(0, tensor_of(g.first, {static_cast<int64_t>(g.first.size())})).movedim(0, d);
    return results(values, g, inverse, {n}, counts);
  });
}

}  // namespace

std::tuple<Tensor, Tensor> unique_two(const Tensor& self, bool, bool return_inverse) {
  auto [values, inverse, counts] = unique_elements(self, return_inverse, false, true);
  return {values, inverse};
}
std::tuple<Tensor, Tensor, Tensor> unique_three(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  return unique_elements(self, return_inverse, return_counts, true);
}
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return unique_slices(self, dim, true, true, true);  // PyTorch returns all three whatever was asked
}
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                                                      std::optional<int64_t> dim) {
  return dim ? unique_slices(self, *dim, return_inverse, return_counts, false)
             : unique_elements(self, return_inverse, return_counts, false);
}

// ---- searching -------------------------------------------------------------------------------------------------------

void searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool, bool right, std::optional<std::string_view> side,
                  const std::optional<Tensor>& sorter, const Tensor& out) {
  if (out.numel() == 0) return;
  right |= side && *side == "right";
  const ScalarType type = promote_types(sorted_sequence.scalar_type(), self.scalar_type());
  const Tensor sequence = sorted_sequence.to(type).contiguous(), values = self.to(type).contiguous();
  const Tensor places = sorter && sorter->defined() ? sorter->contiguous() : Tensor();
  const int64_t n = sequence.size(-1), per_row = sequence.dim() == 1 ? values.numel() : values.size(-1);
  CRESSET_DISPATCH(type, "searchsorted_out_cpu", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    const scalar_t* const base = n ? sequence.const_data_ptr<scalar_t>() : nullptr;
    const scalar_t* const v = values.const_data_ptr<scalar_t>();
    const int64_t* const sort = places.defined() ? places.const_data_ptr<int64_t>() : nullptr;
    const auto find = [&](int64_t i) {
      const int64_t row = i / per_row * n;
      // The first place whose element is not less than (or, to the right, greater than) the value.
      int64_t low = 0, high = n;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const scalar_t e = base[row + (sort ? sort[row + middle] : middle)];
        if (right ? !less(v[i], e) : less(e, v[i]))
          low = middle + 1;
        else
          high = middle;
      }
      return low;
    };
    const bool small = out.scalar_type() == kInt;
    void* const to = out.mutable_data_ptr();
    parallel_for(0, values.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (small)
          static_cast<int32_t*>(to)[i] = static_cast<int32_t>(find(i));
        else
          static_cast<int64_t*>(to)[i] = find(i);
      }
    });
  });
}
void bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right, const Tensor& out) {
  searchsorted(boundaries, self, out_int32, right, std::nullopt, std::nullopt, out);
}

// ---- counting --------------------------------------------------------------------------------------------------------

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  CRESSET_CHECK(minlength >= 0, "minlength should be >= 0");
  CRESSET_CHECK_NOT_IMPLEMENTED(isIntegralType(self.scalar_type(), false), "\"bincount_cpu\" not implemented for '", self.scalar_type(),
                                "'");
  CRESSET_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  const Tensor in = self.to(kLong).contiguous();
  const int64_t n = in.numel();
  const bool weighted = weights && weights->defined();
  CRESSET_CHECK(!weighted || (weights->dim() == 1 && weights->size(0) == n), "weights should be 1-d and have the same length as input");
  const int64_t* const p = n ? in.const_data_ptr<int64_t>() : nullptr;
  int64_t bins = minlength;
  for (int64_t i = 0; i < n; ++i) {
    CRESSET_CHECK(p[i] >= 0, "bincount only supports 1-d non-negative integral inputs.");
    bins = std::max(bins, p[i] + 1);
  }
  if (!weighted) {
    Tensor out = detail::empty_cpu({bins}, kLong);
    int64_t* const to = static_cast<int64_t*>(out.mutable_data_ptr());
    std::fill_n(to, bins, 0);
    for (int64_t i = 0; i < n; ++i) ++to[p[i]];
    return out;
  }
  const ScalarType type = weights->scalar_type() == kFloat ? kFloat : kDouble;
  const Tensor w = weights->to(type).contiguous();
  Tensor out = detail::empty_cpu({bins}, type);
  CRESSET_DISPATCH(type, "bincount_cpu", CRESSET_FLOATING_TYPES, [&] {
    scalar_t* const to = static_cast<scalar_t*>(out.mutable_data_ptr());
    const scalar_t* const add = static_cast<const scalar_t*>(w.const_data_ptr());
    std::fill_n(to, bins, scalar_t(0));
    for (int64_t i = 0; i < n; ++i) to[p[i]] += add[i];
  });
  return out;
}

}  // namespace cresset::cpu
