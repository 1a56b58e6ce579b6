// Stable sorting of positions by value: values become unsigned keys, keys are sorted by radix.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <cresset/base/half.h>
#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
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

template <class K>
bool by_key_and_index(const Item<K>& a, const Item<K>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

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

// How the elements of a type become keys, without the type: what comes after is compiled once for each width.
template <class K>
struct KeysOf {
  void (*load)(const void* from, int64_t stride, int64_t n, K* to, int64_t step);  // n keys, `step` apart
  K nan;                                                                           // the key of every NaN, for types that have it
  bool has_nan;
  bool is_nan(K key) const { return has_nan && key == nan; }
};
template <class T, class K>
void load_keys(const void* from, int64_t stride, int64_t n, K* to, int64_t step) {
  const T* const p = static_cast<const T*>(from);
  constexpr int64_t kTogether = 64;  // a fixed number, which compilers turn into vectors
  int64_t i = 0;
  if (stride == 1 && step == 1)
    for (; i + kTogether <= n; i += kTogether)
      for (int64_t k = 0; k < kTogether; ++k) to[i + k] = sort_key(p[i + k]);
  for (; i < n; ++i) to[i * step] = sort_key(p[i * stride]);
}

#define CRESSET_SORTED_TYPES(...) CRESSET_REAL_AND_BOOL_TYPES(__VA_ARGS__) CRESSET_CASES_WIDE_UNSIGNED(__VA_ARGS__)

// Calls f(KeysOf<K>) for a real type, wide unsigned ones among them, or bool.
template <class F>
auto with_keys(ScalarType type, const char* name, const F& f) {
  return CRESSET_DISPATCH(type, name, CRESSET_SORTED_TYPES, [&] {
    using K = decltype(sort_key(scalar_t()));
    using L = std::numeric_limits<opmath_type<scalar_t>>;
    return f(KeysOf<K>{load_keys<scalar_t, K>, sort_key(static_cast<scalar_t>(L::quiet_NaN())), L::has_quiet_NaN});
  });
}

// What orders numbers only refuses bool.
inline void check_not_bool(const char* name, const Tensor& self) {
  if (self.scalar_type() == kBool) detail::raise_dtype_not_implemented(name, kBool);
}

// Items of a line, keys turned round for descending order so that sorting stays stable.
template <class K>
void load_items(const KeysOf<K>& keys, const void* p, int64_t n, int64_t stride, bool descending, Items<Item<K>>& items) {
  using I = Item<K>;
  constexpr int64_t kBlock = 1024;  // stays in the first-level cache between the two steps
  items.resize(n);
  const K turn = descending ? static_cast<K>(~K{}) : K{};
  parallel_for(0, n, kSortGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t last = std::min(end, at + kBlock);
      keys.load(static_cast<const char*>(p) + at * stride * int64_t{sizeof(K)}, stride, last - at, &items[at].key, sizeof(I) / sizeof(K));
      for (int64_t i = at; i < last; ++i) {
        items[i].key ^= turn;
        items[i].index = static_cast<decltype(I::index)>(i);
      }
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

// One step of a stable radix sort: how many items of each digit a part has, and then moving them to where the counters say.
template <class I>
struct Digit {
  int shift;
  int64_t count;  // a power of two
  int64_t of(const I& item) const {
    return static_cast<int64_t>(static_cast<uint64_t>(item.key) >> shift & static_cast<uint64_t>(count - 1));
  }
  void count_into(const I* from, int64_t n, int64_t* counter) const {
    std::fill_n(counter, count, 0);
    for (int64_t i = 0; i < n; ++i) ++counter[of(from[i])];
  }
  void move(const I* from, int64_t n, I* to, int64_t* counter) const {
    for (int64_t i = 0; i < n; ++i) to[counter[of(from[i])]++] = from[i];
  }
};

// Sorts n items at `from` by the lowest bits above `low`, `width` at a time in `passes` passes; they end at `other` if that is odd.
template <class I>
void radix_sort_low(I* from, I* other, int64_t n, int low, int width, int passes, int64_t* counter) {
  for (int pass = 0; pass < passes; ++pass) {
    const Digit<I> digit{low + pass * width, int64_t{1} << width};
    digit.count_into(from, n, counter);
    int64_t start = 0;
    for (int64_t d = 0; d < digit.count; ++d) start += std::exchange(counter[d], start);
    digit.move(from, n, other, counter);
    std::swap(from, other);
  }
}

// Stable, on several threads when that pays; the result does not depend on their number. Many items are first moved to a bucket for
// each value of the highest digit, and buckets, which mostly fit into a cache, are sorted one by one. Where a bucket is a large
// part of all, and for few items, digits are taken from the lowest one on. Threads count and move the items of one part each, and what
// parts hold of a digit lies in their order.
template <class I>
void radix_sort(Items<I>& items, Items<I>& other) {
  constexpr int kDigit = 11;               // bits at most: counters, and where each digit's items go, stay in the caches
  constexpr int64_t kManyItems = 1 << 17;  // a megabyte and more
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
  const auto count = [&](const Digit<I>& digit) {
    for_parts([&](const I* part, int64_t some, int64_t* counter) { digit.count_into(part, some, counter); });
  };
  // Where each part's items of each digit go; the most items that a digit has.
  const auto place = [&] {
    int64_t start = 0, most = 0;
    for (int64_t d = 0; d < digits; ++d) {
      const int64_t first = start;
      for (int64_t k = 0; k < parts; ++k) start += std::exchange(counts[k * digits + d], start);
      most = std::max(most, start - first);
    }
    return most;
  };
  const auto move = [&](const Digit<I>& digit) {
    for_parts([&](const I* part, int64_t some, int64_t* counter) { digit.move(part, some, other.begin(), counter); });
    std::swap(items, other);
  };
  if (n >= kManyItems && passes > 1) {
    // It may overlap the digit below it: items of a bucket are alike there.
    const Digit<I> highest{low + bits - width, digits};
    count(highest);
    if (place() <= n / 8) {
      move(highest);
      // The last part's counters are now at the ends of the buckets.
      const int64_t* const ends = &counts[(parts - 1) * digits];
      std::atomic<int64_t> next = 0;
      parallel_for(0, parts, 1, [&](int64_t, int64_t) {
        std::vector<int64_t> counter(static_cast<std::size_t>(digits));
        for (int64_t d; (d = next++) < digits;) {
          const int64_t begin = d == 0 ? 0 : ends[d - 1];
          radix_sort_low(&items[begin], &other[begin], ends[d] - begin, low, width, passes - 1, counter.data());
        }
      });
      if (passes % 2 == 0) std::swap(items, other);
      return;
    }
  }
  for (int pass = 0; pass < passes; ++pass) {
    const Digit<I> digit{low + pass * width, digits};
    count(digit);
    place();
    move(digit);
  }
}

template <class I>
void sort_items(Items<I>& items, Items<I>& other) {
  if (items.size() > 512) return radix_sort(items, other);
  std::sort(items.begin(), items.end(), by_key_and_index<decltype(I::key)>);
}

// The smallest and the largest of the keys of n > 0 integers: their bits, of which signed ones have the first one turned.
template <class K>
std::pair<K, K> bounds_of(const K* p, int64_t n, int64_t stride, K turn) {
  std::mutex mutex;
  const K first = p[0] ^ turn;
  std::pair<K, K> all{first, first};
  parallel_for(0, n, kSortGrain, [&](int64_t begin, int64_t end) {
    K low = first, high = first;
    for (int64_t i = begin; i < end; ++i) {
      const K key = p[i * stride] ^ turn;
      low = std::min(low, key);
      high = std::max(high, key);
    }
    const std::lock_guard lock(mutex);
    all = {std::min(all.first, low), std::max(all.second, high)};
  });
  return all;
}

// Sorts lines one after the other in memory of its own.
template <class K>
class LineSorter {
 public:
  // f(rank, index) for the n elements at p, in ascending or descending order; equal elements keep their order. Calls of f may run on
  // several threads.
  template <class F>
  void sort(const KeysOf<K>& keys, const void* p, int64_t n, int64_t stride, bool descending, const F& f) {
    if constexpr (std::is_same_v<K, uint64_t>) {
      // Half the memory moves when integers lie close together.
      if (!keys.has_nan && n > 512 && n < int64_t{1} << 31) {
        constexpr uint64_t kTurn = uint64_t{1} << 63;
        const auto* const bits = static_cast<const uint64_t*>(p);
        const auto [low, high] = bounds_of(bits, n, stride, kTurn);
        if (high - low <= UINT32_MAX) {
          load_narrow(bits, n, stride, low ^ kTurn, descending);
          return sorted(narrow_, narrow_other_, f);
        }
      }
    }
    load_items(keys, p, n, stride, descending, items_);
    sorted(items_, other_, f);
  }

 private:
  void load_narrow(const uint64_t* p, int64_t n, int64_t stride, uint64_t low, bool descending) {
    narrow_.resize(n);
    parallel_for(0, n, kSortGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto key = static_cast<uint32_t>(p[i * stride] - low);
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

  Items<Item<K>> items_, other_;
  Items<Item<uint32_t>> narrow_, narrow_other_;
};

}  // namespace cresset::cpu
