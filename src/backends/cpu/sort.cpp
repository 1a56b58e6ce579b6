// Sorting and selecting by rank along a dimension. Lines are copied out, handled contiguously, and written back.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_sort.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/lines.h"
#include "backends/cpu/radix_sort.h"
#include "cpu/cpu_decl_sort.h"

namespace cresset::cpu {

void sort_stable(const Tensor& given, std::optional<bool>, int64_t dim, bool descending, const Tensor& values, const Tensor& indices) {
  if (given.numel() == 0) return;
  const Tensor self = standard_bools(given);
  with_keys(self.scalar_type(), "sort", [&]<class K>(const KeysOf<K>& keys) {
    // Elements move as bits; they are as wide as their keys.
    const K* const from = static_cast<const K*>(self.const_data_ptr());
    K* const to = static_cast<K*>(values.mutable_data_ptr());
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    for_each_line_with<LineSorter<K>, 3>(
        dim, self.sizes(), {self.strides(), values.strides(), indices.strides()},
        [&](const LineAt<3>& l, LineSorter<K>& sorter) {
          sorter.sort(keys, from + l.offset[0], l.size, l.stride[0], descending, [&](int64_t rank, int64_t index) {
            to[l.offset[1] + rank * l.stride[1]] = from[l.offset[0] + index * l.stride[0]];
            to_index[l.offset[2] + rank * l.stride[2]] = index;
          });
        },
        16);
  });
}

namespace {

// The items of a line that may be among its k lowest, in their order: those up to the k-th lowest of some first ones, and what is below it
// behind them.
template <class K>
void load_candidates(const KeysOf<K>& keys, const K* p, int64_t n, int64_t stride, bool descending, int64_t k, Items<Item<K>>& items) {
  constexpr int64_t kBlock = 1024, kFewest = 64;
  // So many items give a bound that about as many of the others are below.
  const int64_t sample = std::max({kFewest, 4 * k, static_cast<int64_t>(std::sqrt(static_cast<double>(n) * static_cast<double>(k)))});
  if (2 * sample > n) return load_items(keys, p, n, stride, descending, items);
  items.resize(n);  // room for all
  load_items(keys, p, sample, stride, descending, items);
  std::vector<K> lowest(static_cast<std::size_t>(sample));
  for (int64_t i = 0; i < sample; ++i) lowest[static_cast<std::size_t>(i)] = items[i].key;
  std::nth_element(lowest.begin(), lowest.begin() + (k - 1), lowest.end());
  const K bound = lowest[static_cast<std::size_t>(k - 1)], turn = descending ? static_cast<K>(~K{}) : K{};
  Item<K>* next = items.begin();
  for (int64_t i = 0; i < sample; ++i) {
    *next = items[i];
    next += items[i].key <= bound;
  }

  K block[kBlock];
  for (int64_t at = sample; at < n; at += kBlock) {
    const int64_t size = std::min(n - at, kBlock);
    keys.load(p + at * stride, stride, size, block, 1);
    for (int64_t i = 0; i < size; ++i) {
      const K key = block[i] ^ turn;
      *next = {key, static_cast<decltype(Item<K>::index)>(at + i)};
      next += key < bound;
    }
  }
  items.resize(next - items.begin());
}

}  // namespace

void topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  check_not_bool("topk", self);
  if (self.dim() == 0) {  // of one number without a dimension it is that one, also for k = 0
    values.copy_(self);
    indices.zero_();
    return;
  }
  with_keys(self.scalar_type(), "topk", [&]<class K>(const KeysOf<K>& keys) {
    using I = Item<K>;
    const K* const from = static_cast<const K*>(self.const_data_ptr());
    K* const to = static_cast<K*>(values.mutable_data_ptr());
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    const int64_t d = maybe_wrap_dim(dim, self.dim()), step = self.dim() == 0 ? 1 : values.stride(d),
                  index_step = self.dim() == 0 ? 1 : indices.stride(d);
    // Lines of self and of the results have the same numbers; only their lengths differ.
    for_each_line_with<Items<I>, 3>(
        dim, self.sizes(), {self.strides(), values.strides(), indices.strides()},
        [&](const LineAt<3>& l, Items<I>& items) {
          // Which of equal elements comes first is the library's choice, as in PyTorch.
          const auto less = [](const I& a, const I& b) { return a.key < b.key; };
          const bool few = k * 64 <= l.size;
          if (few)
            load_candidates(keys, from + l.offset[0], l.size, l.stride[0], largest, k, items);
          else
            load_items(keys, from + l.offset[0], l.size, l.stride[0], largest, items);
          const auto last = items.begin() + (k - 1);
          if (few) {
            std::partial_sort(items.begin(), last + 1, items.end(), less);
          } else {
            std::nth_element(items.begin(), last, items.end(), less);
            if (sorted) std::sort(items.begin(), last, less);
          }
          for (int64_t i = 0; i < k; ++i) {
            to[l.offset[1] + i * step] = from[l.offset[0] + items[i].index * l.stride[0]];
            to_index[l.offset[2] + i * index_step] = items[i].index;
          }
        },
        4);
  });
}

void kthvalue(const Tensor& self, int64_t k, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  check_not_bool("kthvalue_cpu", self);
  with_keys(self.scalar_type(), "kthvalue_cpu", [&]<class K>(const KeysOf<K>& keys) {
    using I = Item<K>;
    const K* const from = static_cast<const K*>(self.const_data_ptr());
    K* const to = static_cast<K*>(values.mutable_data_ptr());
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    for_each_line_with<Items<I>, 1>(
        dim, self.sizes(), {self.strides()},
        [&](const LineAt<1>& l, Items<I>& items) {
          load_items(keys, from + l.offset[0], l.size, l.stride[0], false, items);
          const auto at = items.begin() + (k - 1);
          std::nth_element(items.begin(), at, items.end(), by_key_and_index<K>);
          to[l.number] = from[l.offset[0] + at->index * l.stride[0]];
          to_index[l.number] = at->index;
        },
        8);
  });
}

}  // namespace cresset::cpu
