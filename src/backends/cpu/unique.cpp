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

#include "backends/cpu/convert.h"
#include "backends/cpu/radix_sort.h"
#include "cpu/cpu_decl_sort.h"
#include "ops/shared/shape_util.h"

namespace cresset::cpu {

namespace {

Tensor empty_indices() { return detail::empty_cpu({0}, kLong); }

// Every NaN is a value of its own, the largest.
template <class T>
bool less(T a, T b) {
  using C = opmath_type<T>;
  const C x = static_cast<C>(a), y = static_cast<C>(b);
  return x < y || (x == x && y != y);
}

// Groups of equal neighbours among n places, found and numbered by several threads: starts(i) says whether a group begins at i > 0, and
// element(i) which element is at i.
template <class Starts, class Element>
class Groups {
 public:
  Groups(int64_t n, const Starts& starts, const Element& element) : n_(n), starts_(starts), element_(element) {
    const int64_t parts = n == 0 ? 0 : std::clamp<int64_t>(n / kSortGrain, 1, get_num_threads());
    size_ = parts == 0 ? 0 : (n + parts - 1) / parts;
    before_.assign(static_cast<std::size_t>(parts) + 1, 0);
    parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k) {
        int64_t found = 0;
        for (int64_t i = k * size_; i < end_of(k); ++i) found += begins(i);
        before_[k + 1] = found;
      }
    });
    for (int64_t k = 0; k < parts; ++k) before_[k + 1] += before_[k];
  }

  // The first element of each group; how many each has, and the group of each element, where asked for.
  std::tuple<Tensor, Tensor, Tensor> results(bool inverse, IntArrayRef inverse_sizes, bool counts) const {
    const int64_t groups = before_.back();
    const Tensor first = detail::empty_cpu({groups}, kLong), number = counts ? detail::empty_cpu({groups}, kLong) : empty_indices(),
                 of = inverse ? detail::empty_cpu(inverse_sizes, kLong) : empty_indices();
    if (n_ == 0) return {first, of, number};
    auto *const to_first = first.mutable_data_ptr<int64_t>(), *const to_number = counts ? number.mutable_data_ptr<int64_t>() : nullptr,
                *const to_of = inverse ? of.mutable_data_ptr<int64_t>() : nullptr;
    parallel_for(0, static_cast<int64_t>(before_.size()) - 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        int64_t group = before_[k] - 1;
        for (int64_t i = k * size_; i < end_of(k); ++i) {
          if (begins(i)) {
            to_first[++group] = element_(i);
            if (counts) to_number[group] = i;
          }
          if (inverse) to_of[element_(i)] = group;
        }
      }
    });
    if (counts)
      for (int64_t g = 0; g < groups; ++g) to_number[g] = (g + 1 < groups ? to_number[g + 1] : n_) - to_number[g];
    return {first, of, number};
  }

 private:
  bool begins(int64_t i) const { return i == 0 || starts_(i); }
  int64_t end_of(int64_t part) const { return std::min(n_, (part + 1) * size_); }

  int64_t n_, size_;
  const Starts& starts_;
  const Element& element_;
  std::vector<int64_t> before_;  // groups that begin before each part
};

// How often each of the keys low, low + 1, … occurs among integers; no counts where the keys do not lie close together.
template <class K>
struct KeyCounts {
  K low;
  std::vector<int64_t> counts;
};

// Of n > 0 integers at p; the bits in `turn` make keys of them. Each thread looks for the bounds of one part, and counts there while it is
// at it if they are so close that the counters stay in a cache.
template <class K>
KeyCounts<K> count_keys(const K* p, int64_t n, K turn) {
  struct Part {
    K low, high;
    std::vector<int64_t> counts;
  };
  const int64_t parts = std::clamp<int64_t>(n / kSortGrain, 1, get_num_threads()), size = (n + parts - 1) / parts;
  // By value: a counter might alias what a reference stands for.
  const auto count = [p, turn](int64_t begin, int64_t end, K low, std::vector<int64_t>& counts) {
    int64_t* const counter = counts.data();
    const K flip = turn;
    const K* const from = p;
    for (int64_t i = begin; i < end; ++i) ++counter[static_cast<K>((from[i] ^ flip) - low)];
  };
  std::vector<Part> found(static_cast<std::size_t>(parts));
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      const int64_t begin = k * size, end = std::min(n, begin + size);
      K low = p[begin] ^ turn, high = low;
      for (int64_t i = begin; i < end; ++i) {
        const K key = p[i] ^ turn;
        low = std::min(low, key);
        high = std::max(high, key);
      }
      found[k] = {low, high, {}};
      const uint64_t span = static_cast<K>(high - low);
      if (span < static_cast<uint64_t>(std::min(n, kSortGrain))) {
        found[k].counts.assign(span + 1, 0);
        count(begin, end, low, found[k].counts);
      }
    }
  });
  K low = found[0].low, high = found[0].high;
  for (const Part& part : found) {
    low = std::min(low, part.low);
    high = std::max(high, part.high);
  }
  const uint64_t span = static_cast<K>(high - low);
  if (span >= static_cast<uint64_t>(n)) return {low, {}};
  KeyCounts<K> all{low, std::vector<int64_t>(span + 1, 0)};
  for (int64_t k = 0; k < parts; ++k) {
    const Part& part = found[k];
    if (part.counts.empty()) count(k * size, std::min(n, (k + 1) * size), low, all.counts);
    for (std::size_t v = 0; v < part.counts.size(); ++v) all.counts[static_cast<K>(part.low - low) + v] += part.counts[v];
  }
  return all;
}

// Unique values of integers that lie close together need no sorting, only a counter for each value between them.
template <class K>
std::tuple<Tensor, Tensor, Tensor> unique_by_counting(const Tensor& flat, K turn, KeyCounts<K>& keys, bool inverse, IntArrayRef sizes,
                                                      bool counts) {
  const K* const p = static_cast<const K*>(flat.const_data_ptr());
  const K low = keys.low;
  std::vector<int64_t>& counted = keys.counts;
  const auto values = static_cast<int64_t>(counted.size());
  const auto found = static_cast<int64_t>(values - std::count(counted.begin(), counted.end(), 0));
  const Tensor unique = detail::empty_cpu({found}, flat.scalar_type()),
               number = counts ? detail::empty_cpu({found}, kLong) : empty_indices();
  K* const to = static_cast<K*>(unique.mutable_data_ptr());
  int64_t* const to_number = counts ? number.mutable_data_ptr<int64_t>() : nullptr;
  int64_t rank = 0;
  for (int64_t v = 0; v < values; ++v) {
    if (counted[v] == 0) continue;
    to[rank] = static_cast<K>(low + static_cast<K>(v)) ^ turn;
    if (counts) to_number[rank] = counted[v];
    counted[v] = rank++;  // where the inverse looks for it
  }
  if (!inverse) return {unique, empty_indices(), number};
  const Tensor ranks = detail::empty_cpu(sizes, kLong);
  int64_t* const to_rank = ranks.mutable_data_ptr<int64_t>();
  parallel_for(0, flat.numel(), kSortGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to_rank[i] = counted[static_cast<K>((p[i] ^ turn) - low)];
  });
  return {unique, ranks, number};
}

std::tuple<Tensor, Tensor, Tensor> unique_elements(const Tensor& self, bool inverse, bool counts, bool sort) {
  const Tensor flat = standard_bools(self.contiguous()).view({-1});
  const int64_t n = flat.numel();
  return with_keys(self.scalar_type(), "unique", [&]<class K>(const KeysOf<K>& keys) {
    const K* const p = n ? static_cast<const K*>(flat.const_data_ptr()) : nullptr;
    if (sort && n > 0 && !keys.has_nan) {
      const K zero = 0;
      K turn;  // bits that the keys of integers turn, which are the key of zero
      keys.load(&zero, 1, 1, &turn, 1);
      if (KeyCounts<K> found = count_keys(p, n, turn); !found.counts.empty())
        return unique_by_counting(flat, turn, found, inverse, self.sizes(), counts);
    }
    Items<Item<K>> items;
    load_items(keys, p, n, 1, false, items);
    if (sort && n > 0) {
      Items<Item<K>> other;
      sort_items(items, other);
    }
    const auto starts = [&](int64_t i) { return items[i].key != items[i - 1].key || keys.is_nan(items[i].key); };
    const auto element = [&](int64_t i) { return static_cast<int64_t>(items[i].index); };
    const auto [first, of, number] = Groups(n, starts, element).results(inverse, self.sizes(), counts);
    return std::tuple(flat.index_select(0, first), of, number);
  });
}

// PyTorch gives all three, whatever was asked.
std::tuple<Tensor, Tensor, Tensor> unique_slices(const Tensor& self, int64_t dim, bool sort) {
  const int64_t d = maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false), n = self.size(d);
  bool zero = false;
  for (int64_t i = 0; i < self.dim(); ++i) zero |= i != d && self.size(i) == 0;
  CRESSET_CHECK(n == 0 || !zero, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const Tensor rows = standard_bools(self.movedim(d, 0).contiguous());
  const int64_t width = n == 0 ? 0 : rows.numel() / n;
  return with_keys(self.scalar_type(), "unique_dim", [&]<class K>(const KeysOf<K>& keys) {
    std::vector<K> key(static_cast<std::size_t>(n * width));
    if (!key.empty()) keys.load(rows.const_data_ptr(), 1, n * width, key.data(), 1);
    std::vector<int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const auto row = [&](int64_t i) { return key.data() + i * width; };
    if (sort)
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return std::lexicographical_compare(row(a), row(a) + width, row(b), row(b) + width); });
    const auto starts = [&](int64_t i) {
      return !std::equal(row(order[i - 1]), row(order[i - 1]) + width, row(order[i]), [&](K x, K y) { return x == y && !keys.is_nan(x); });
    };
    const auto [first, of, number] = Groups(n, starts, [&](int64_t i) { return order[i]; }).results(true, {n}, true);
    // In memory the slices lie one after the other, as in PyTorch.
    return std::tuple(rows.index_select(0, first).movedim(0, d), of, number);
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
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool, bool, bool) { return unique_slices(self, dim, true); }
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                                                      std::optional<int64_t> dim) {
  return dim ? unique_slices(self, *dim, false) : unique_elements(self, return_inverse, return_counts, false);
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
  if (places.defined()) {
    const int64_t *const first = places.const_data_ptr<int64_t>(), *const last = first + places.numel();
    CRESSET_CHECK(std::all_of(first, last, [n](int64_t at) { return at >= 0 && at < n; }),
                  "torch.searchsorted(): sorter index out of range");
  }
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
  CRESSET_CHECK_NOT_IMPLEMENTED(isIntegralType(self.scalar_type(), false) && !isBarebonesUnsignedType(self.scalar_type()),
                                "\"bincount_cpu\" not implemented for '", self.scalar_type(), "'");
  CRESSET_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  const Tensor in = self.to(kLong).contiguous();
  const int64_t n = in.numel();
  const bool weighted = weights && weights->defined() && n > 0;
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
