// Stable sorting of positions by value: values become unsigned keys, keys are sorted by radix.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <cresset/base/half.h>
#include <cresset/base/parallel.h>
#include <cresset/core/tensor.h>

namespace cresset::cpu {

inline constexpr int64_t kSortGrain = 1 << 15;  // items worth waking a thread for

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

// A sequence in memory of the CPU allocator, which keeps big blocks. New elements hold anything.
template <class I>
class Items {
 public:
  void resize(int64_t n) {
    if (n > capacity_) {
      memory_ = detail::empty_cpu({n * static_cast<int64_t>(sizeof(I))}, kByte);
      first_ = static_cast<I*>(memory_.data_ptr());
      capacity_ = n;
    }
    size_ = n;
  }
  int64_t size() const { return size_; }
  I* begin() { return first_; }
  I* end() { return first_ + size_; }
  I& operator[](int64_t i) { return first_[i]; }

 private:
  Tensor memory_;
  I* first_ = nullptr;
  int64_t size_ = 0, capacity_ = 0;
};

template <class T>
using ItemOf = Item<decltype(sort_key(T()))>;

// Items of a line, keys turned round for descending order so that sorting stays stable.
template <class T, class I>
void load_items(const T* p, int64_t n, int64_t stride, bool descending, Items<I>& items) {
  items.resize(n);
  parallel_for(0, n, kSortGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto key = sort_key(p[i * stride]);
      items[i].key = descending ? static_cast<decltype(key)>(~key) : key;
      items[i].index = static_cast<decltype(items[i].index)>(i);
    }
  });
}

// The bits in which keys differ.
template <class I>
auto varying_bits(Items<I>& items) {
  using K = decltype(I::key);
  std::atomic<K> all = 0;
  parallel_for(0, items.size(), kSortGrain, [&](int64_t begin, int64_t end) {
    K bits = 0;
    for (int64_t i = begin; i < end; ++i) bits |= static_cast<K>(items[i].key ^ items[0].key);
    all |= bits;
  });
  return all.load();
}

// Stable, least significant digit first, on several threads when that pays: each counts and moves the items of one part, and what parts
// hold of a digit lies in their order, so the result does not depend on their number.
template <class I>
void radix_sort(Items<I>& items, Items<I>& other) {
  constexpr int kDigit = 10;  // bits at most: counters, and where each digit's items go, stay in the caches
  const int64_t n = items.size();
  other.resize(items.size());
  const auto varying = varying_bits(items);
  if (varying == 0) return;
  const int low = std::countr_zero(varying), bits = std::bit_width(varying) - low;
  const int passes = (bits + kDigit - 1) / kDigit, width = (bits + passes - 1) / passes;
  const int64_t digits = int64_t{1} << width, parts = in_parallel_region() ? 1 : std::clamp<int64_t>(n / kSortGrain, 1, get_num_threads());
  const int64_t size = (n + parts - 1) / parts;
  std::vector<int64_t> counts(static_cast<std::size_t>(parts * digits));
  // f(items of a part, its number of them, its counter of each digit)
  const auto for_parts = [&](const auto& f) {
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) f(&items[k * size], std::min(size, n - k * size), &counts[k * digits]);
    });
  };
  for (int shift = low; shift < low + bits; shift += width) {
    const auto digit = [shift, mask = static_cast<uint64_t>(digits - 1)](const I& item) { return item.key >> shift & mask; };
    for_parts([&](const I* part, int64_t count, int64_t* counter) {
      std::fill_n(counter, digits, 0);
      for (int64_t i = 0; i < count; ++i) ++counter[digit(part[i])];
    });
    int64_t start = 0;
    for (int64_t d = 0; d < digits; ++d)
      for (int64_t k = 0; k < parts; ++k) start += std::exchange(counts[k * digits + d], start);
    for_parts([&](const I* part, int64_t count, int64_t* counter) {
      I* const to = other.begin();
      for (int64_t i = 0; i < count; ++i) to[counter[digit(part[i])]++] = part[i];
    });
    std::swap(items, other);
  }
}

template <class I>
void sort_items(Items<I>& items, Items<I>& other) {
  if (items.size() > 512) return radix_sort(items, other);
  std::sort(items.begin(), items.end(), [](const I& a, const I& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; });
}

// The smallest and the largest of n > 0 integers.
template <class T>
std::pair<T, T> bounds_of(const T* p, int64_t n, int64_t stride) {
  std::mutex mutex;
  std::pair<T, T> all{p[0], p[0]};
  parallel_for(0, n, kSortGrain, [&](int64_t begin, int64_t end) {
    T low = p[begin * stride], high = low;
    for (int64_t i = begin; i < end; ++i) {
      low = std::min(low, p[i * stride]);
      high = std::max(high, p[i * stride]);
    }
    const std::lock_guard lock(mutex);
    all = {std::min(all.first, low), std::max(all.second, high)};
  });
  return all;
}

// Sorts lines one after the other in memory of its own.
template <class T>
class LineSorter {
 public:
  // f(rank, index) for the n elements at p, in ascending or descending order; equal elements keep their order. Calls of f may run on
  // several threads.
  template <class F>
  void sort(const T* p, int64_t n, int64_t stride, bool descending, const F& f) {
    if constexpr (std::is_same_v<T, int64_t>) {
      // Half the memory moves when the values lie close together.
      if (n > 512 && n < int64_t{1} << 31) {
        const auto [low, high] = bounds_of(p, n, stride);
        if (static_cast<uint64_t>(high) - static_cast<uint64_t>(low) <= UINT32_MAX) {
          load_narrow(p, n, stride, low, descending);
          return sorted(narrow_, narrow_other_, f);
        }
      }
    }
    load_items(p, n, stride, descending, items_);
    sorted(items_, other_, f);
  }

 private:
  void load_narrow(const T* p, int64_t n, int64_t stride, T low, bool descending) {
    narrow_.resize(n);
    parallel_for(0, n, kSortGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto key = static_cast<uint32_t>(static_cast<uint64_t>(p[i * stride]) - static_cast<uint64_t>(low));
        narrow_[i] = {descending ? ~key : key, static_cast<int32_t>(i)};
      }
    });
  }
  template <class I, class F>
  static void sorted(Items<I>& items, Items<I>& other, const F& f) {
    if (items.size() == 0) return;
    sort_items(items, other);
    parallel_for(0, items.size(), kSortGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i, static_cast<int64_t>(items[i].index));
    });
  }

  Items<ItemOf<T>> items_, other_;
  Items<Item<uint32_t>> narrow_, narrow_other_;
};

}  // namespace cresset::cpu
