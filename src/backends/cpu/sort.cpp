// Sorting and selecting by rank along a dimension. Lines are copied out, handled contiguously, and written back.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_sort.h>

#include "backends/cpu/lines.h"
#include "cpu/cpu_decl_sort.h"

namespace cresset::cpu {

namespace {

// Unsigned keys in the order of the values; NaN is the largest, and -0 and 0 are equal.
template <class T>
auto sort_key(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<uint8_t>(v);
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<U>(static_cast<U>(v) ^ (std::is_signed_v<T> ? U(1) << (sizeof(T) * 8 - 1) : U(0)));
  } else if constexpr (is_reduced_floating_point_v<T>) {
    const float f = static_cast<float>(v);
    const uint16_t bits = f != f ? uint16_t{0x7fff} : f == 0 ? uint16_t{0} : v.x;
    return static_cast<uint16_t>(bits & 0x8000 ? ~bits : bits | 0x8000);
  } else {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr U sign = U(1) << (sizeof(T) * 8 - 1);
    U bits;
    const T plain = v == 0 ? T(0) : v;
    std::memcpy(&bits, &plain, sizeof(T));
    if (v != v) bits = ~sign;
    return static_cast<U>(bits & sign ? ~bits : bits | sign);
  }
}

template <class K>
struct Item {
  K key;
  int32_t index;
};
template <>
struct Item<uint64_t> {
  uint64_t key;
  int64_t index;
};

// Items of a line, keys turned round for descending order so that sorting stays stable.
template <class T, class I>
void load_items(const T* p, int64_t n, int64_t stride, bool descending, std::vector<I>& items) {
  items.resize(static_cast<std::size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const auto key = sort_key(p[i * stride]);
    items[i].key = descending ? static_cast<decltype(key)>(~key) : key;
    items[i].index = static_cast<decltype(items[i].index)>(i);
  }
}

// Least significant byte first; passes in which all keys share the byte are left out.
template <class I>
void radix_sort(std::vector<I>& items, std::vector<I>& other) {
  using K = decltype(I::key);
  const std::size_t n = items.size();
  other.resize(n);
  std::vector<std::size_t> counts(256 * sizeof(K), 0);
  for (const I& item : items)
    for (std::size_t b = 0; b < sizeof(K); ++b) ++counts[b * 256 + ((item.key >> (8 * b)) & 255)];
  for (std::size_t b = 0; b < sizeof(K); ++b) {
    std::size_t* const c = &counts[b * 256];
    if (c[(items[0].key >> (8 * b)) & 255] == n) continue;
    std::size_t start = 0;
    for (int k = 0; k < 256; ++k) {
      const std::size_t size = c[k];
      c[k] = start;
      start += size;
    }
    for (const I& item : items) other[c[(item.key >> (8 * b)) & 255]++] = item;
    items.swap(other);
  }
}

template <class I>
void sort_items(std::vector<I>& items, std::vector<I>& other) {
  if (items.size() > 512) return radix_sort(items, other);
  std::sort(items.begin(), items.end(), [](const I& a, const I& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; });
}

template <class I>
struct Buffers {
  std::vector<I> items, other;
};
template <class T>
using ItemOf = Item<decltype(sort_key(T()))>;

}  // namespace

void sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending, const Tensor& values, const Tensor& indices) {
  if (self.numel() == 0) return;
  CRESSET_DISPATCH(self.scalar_type(), "sort", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    using I = ItemOf<scalar_t>;
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const to = values.mutable_data_ptr<scalar_t>();
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    for_each_line_with<Buffers<I>, 3>(
        dim, self.sizes(), {self.strides(), values.strides(), indices.strides()},
        [&](const LineAt<3>& l, Buffers<I>& buffers) {
          auto& [items, other] = buffers;
          load_items(from + l.offset[0], l.size, l.stride[0], descending, items);
          sort_items(items, other);
          for (int64_t i = 0; i < l.size; ++i) {
            to[l.offset[1] + i * l.stride[1]] = from[l.offset[0] + items[i].index * l.stride[0]];
            to_index[l.offset[2] + i * l.stride[2]] = items[i].index;
          }
        },
        16);
  });
}

void topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  CRESSET_DISPATCH(self.scalar_type(), "topk", CRESSET_REAL_TYPES, [&] {
    using I = ItemOf<scalar_t>;
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const to = values.mutable_data_ptr<scalar_t>();
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    const int64_t d = maybe_wrap_dim(dim, self.dim()), step = self.dim() == 0 ? 1 : values.stride(d),
                  index_step = self.dim() == 0 ? 1 : indices.stride(d);
    // Lines of self and of the results have the same numbers; only their lengths differ.
    for_each_line_with<std::vector<I>, 3>(
        dim, self.sizes(), {self.strides(), values.strides(), indices.strides()},
        [&](const LineAt<3>& l, std::vector<I>& items) {
          load_items(from + l.offset[0], l.size, l.stride[0], largest, items);
          // Which of equal elements comes first is the library's choice, as in PyTorch.
          const auto less = [](const I& a, const I& b) { return a.key < b.key; };
          const auto last = items.begin() + (k - 1);
          if (k * 64 <= l.size) {
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
  CRESSET_DISPATCH(self.scalar_type(), "kthvalue_cpu", CRESSET_REAL_TYPES, [&] {
    using I = ItemOf<scalar_t>;
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const to = values.mutable_data_ptr<scalar_t>();
    int64_t* const to_index = indices.mutable_data_ptr<int64_t>();
    for_each_line_with<std::vector<I>, 1>(
        dim, self.sizes(), {self.strides()},
        [&](const LineAt<1>& l, std::vector<I>& items) {
          load_items(from + l.offset[0], l.size, l.stride[0], false, items);
          const auto at = items.begin() + (k - 1);
          std::nth_element(items.begin(), at, items.end(),
                           [](const I& a, const I& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; });
          to[l.number] = from[l.offset[0] + at->index * l.stride[0]];
          to_index[l.number] = at->index;
        },
        8);
  });
}

}  // namespace cresset::cpu
