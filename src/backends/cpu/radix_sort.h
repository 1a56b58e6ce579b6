// Stable sorting of positions by value: values become unsigned keys, keys are sorted by radix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <cresset/base/half.h>

namespace cresset::cpu {

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

template <class T>
using ItemOf = Item<decltype(sort_key(T()))>;

// Sorts lines one after the other in memory of its own.
template <class T>
class LineSorter {
 public:
  // f(rank, index) for the n elements at p, in ascending or descending order; equal elements keep their order.
  template <class F>
  void sort(const T* p, int64_t n, int64_t stride, bool descending, const F& f) {
    if constexpr (std::is_same_v<T, int64_t>) {
      // Half the memory moves when the values lie close together.
      int64_t low = 0;
      if (n > 512 && n < int64_t{1} << 31 && is_narrow(p, n, stride, low)) {
        narrow_.resize(static_cast<std::size_t>(n));
        for (int64_t i = 0; i < n; ++i) {
          const auto key = static_cast<uint32_t>(static_cast<uint64_t>(p[i * stride]) - static_cast<uint64_t>(low));
          narrow_[i] = {descending ? ~key : key, static_cast<int32_t>(i)};
        }
        return sorted(narrow_, narrow_other_, f);
      }
    }
    load_items(p, n, stride, descending, items_);
    sorted(items_, other_, f);
  }

 private:
  static bool is_narrow(const T* p, int64_t n, int64_t stride, int64_t& low) {
    int64_t high = low = p[0];
    for (int64_t i = 1; i < n; ++i) {
      low = std::min<int64_t>(low, p[i * stride]);
      high = std::max<int64_t>(high, p[i * stride]);
    }
    return static_cast<uint64_t>(high) - static_cast<uint64_t>(low) <= UINT32_MAX;
  }
  template <class I, class F>
  static void sorted(std::vector<I>& items, std::vector<I>& other, const F& f) {
    if (items.empty()) return;
    sort_items(items, other);
    for (std::size_t i = 0; i < items.size(); ++i) f(static_cast<int64_t>(i), static_cast<int64_t>(items[i].index));
  }

  std::vector<ItemOf<T>> items_, other_;
  std::vector<Item<uint32_t>> narrow_, narrow_other_;
};

}  // namespace cresset::cpu
