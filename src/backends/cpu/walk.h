// Walks several strided operands of one size together, row by row: neighbouring dimensions that lie behind one
// another in every operand are merged, so contiguous operands become one row.
#pragma once

#include <cresset/base/parallel.h>
#include <cresset/core/limits.h>
#include <cresset/core/tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace cresset::cpu {

// N operands; strides and offsets count elements. The last dimension is the row.
template <int N>
class Walk {
 public:
  using Offsets = std::array<int64_t, N>;

  Walk(IntArrayRef sizes, const std::array<IntArrayRef, N>& strides, bool sort_by_first = false) {
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) continue;
      Offsets s;
      for (int k = 0; k < N; ++k) s[k] = strides[k][d];
      push(sizes[d], s);
    }
    if (sort_by_first) sort();
    merge();
    if (count_ == 0) push(1, Offsets{});
    rows_ = 1;
    for (int d = 0; d + 1 < count_; ++d) rows_ *= sizes_[d];
    if (sizes_[count_ - 1] == 0) rows_ = 0;
  }

  int64_t rows() const { return rows_; }
  int64_t row_size() const { return sizes_[count_ - 1]; }
  int64_t numel() const { return rows_ * row_size(); }
  // Stride of operand k inside a row.
  int64_t stride(int k) const { return strides_[count_ - 1][k]; }
  // Is operand k one run of elements without gaps?
  bool dense(int k) const { return count_ == 1 && (stride(k) == 1 || row_size() == 1); }

  // f(offsets of the row's first element) for rows [begin, end), in order.
  template <class F>
  void run(int64_t begin, int64_t end, const F& f) const {
    if (begin >= end) return;
    int64_t at[kMaxDims];
    Offsets offsets{};
    int64_t rest = begin;
    for (int d = count_ - 2; d >= 0; --d) {
      at[d] = rest % sizes_[d];
      rest /= sizes_[d];
      for (int k = 0; k < N; ++k) offsets[k] += at[d] * strides_[d][k];
    }
    for (int64_t row = begin;;) {
      f(offsets);
      if (++row == end) return;
      for (int d = count_ - 2; d >= 0; --d) {
        for (int k = 0; k < N; ++k) offsets[k] += strides_[d][k];
        if (++at[d] < sizes_[d]) break;
        for (int k = 0; k < N; ++k) offsets[k] -= at[d] * strides_[d][k];
        at[d] = 0;
      }
    }
  }
  template <class F>
  void run(const F& f) const {
    run(0, rows_, f);
  }
  // f(offsets, n) for elements [begin, end) in order: pieces of rows, at most `piece` elements each.
  template <class F>
  void run_pieces(int64_t begin, int64_t end, int64_t piece, const F& f) const {
    if (begin >= end) return;
    const int64_t size = row_size();
    int64_t first = begin % size, left = end - begin;
    run(begin / size, (end + size - 1) / size, [&](const Offsets& row) {
      const int64_t last = std::min(size, first + left);
      left -= last - first;
      for (int64_t i = first; i < last; i += piece) {
        Offsets at = row;
        for (int k = 0; k < N; ++k) at[k] += i * stride(k);
        f(at, std::min(piece, last - i));
      }
      first = 0;
    });
  }
  // Elements split among threads, at least `grain` for each, in pieces of rows.
  template <class F>
  void parallel_pieces(int64_t grain, int64_t piece, const F& f) const {
    parallel_for(0, numel(), grain, [&](int64_t begin, int64_t end) { run_pieces(begin, end, piece, f); });
  }
  // Rows split among threads, about `work` elements at least for each.
  template <class F>
  void parallel(int64_t work, const F& f) const {
    parallel_for(0, rows_, std::max<int64_t>(1, work / std::max<int64_t>(1, row_size())), [&](int64_t b, int64_t e) { run(b, e, f); });
  }

 private:
  void push(int64_t size, const Offsets& strides) {
    sizes_[count_] = size;
    strides_[count_++] = strides;
  }
  void merge() {
    int last = 0;
    for (int d = 1; d < count_; ++d) {
      bool fits = true;
      for (int k = 0; k < N; ++k) fits &= strides_[last][k] == sizes_[d] * strides_[d][k];
      if (fits) {
        sizes_[last] *= sizes_[d];
        strides_[last] = strides_[d];
      } else {
        ++last;
        sizes_[last] = sizes_[d];
        strides_[last] = strides_[d];
      }
    }
    if (count_ > 0) count_ = last + 1;
  }
  void sort() {
    for (int i = 1; i < count_; ++i)
      for (int j = i; j > 0 && std::abs(strides_[j - 1][0]) < std::abs(strides_[j][0]); --j) {
        std::swap(sizes_[j - 1], sizes_[j]);
        std::swap(strides_[j - 1], strides_[j]);
      }
  }

  int64_t sizes_[kMaxDims];
  Offsets strides_[kMaxDims];
  int count_ = 0;
  int64_t rows_ = 0;
};

// Unsigned types that stand for elements of 1, 2, 4, 8 and 16 bytes where only their bits move.
struct alignas(8) Bits128 {
  uint64_t low, high;
};
template <class F>
void with_element_bits(std::size_t itemsize, const F& f) {
  switch (itemsize) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bits128{});
  }
}

inline constexpr int64_t kCopyGrain = 1 << 16;

// memcpy in steps of a cache line where it would use the processor's string instruction, which takes ten times as long between places
// that lie differently in their lines (Zen 4).
inline void copy_bytes(char* to, const char* from, std::size_t n) {
  constexpr std::size_t kLine = 64, kString = 2048;
  const bool alike = ((reinterpret_cast<uintptr_t>(to) ^ reinterpret_cast<uintptr_t>(from)) & (kLine - 1)) == 0;
  if (n >= kString && !alike)
    for (; n >= kLine; n -= kLine, to += kLine, from += kLine) std::memcpy(to, from, kLine);
  if (n > 0) std::memcpy(to, from, n);
}

// from[0], from[-1], …
template <class U>
inline void copy_reversed(U* to, const U* from, int64_t n) {
  int64_t i = 0;
  if constexpr (sizeof(U) == 4) {
    using Four [[gnu::vector_size(16)]] = U;
    for (; i + 4 <= n; i += 4) {
      Four block;
      std::memcpy(&block, from - i - 3, sizeof(block));
      block = __builtin_shufflevector(block, block, 3, 2, 1, 0);
      std::memcpy(to + i, &block, sizeof(block));
    }
  } else if constexpr (sizeof(U) < 4) {
    constexpr int64_t kWord = 8 / sizeof(U);
    for (; i + kWord <= n; i += kWord) {
      uint64_t word;
      std::memcpy(&word, from - i - (kWord - 1), sizeof(word));
      word = __builtin_bswap64(word);
      if (sizeof(U) == 2) word = (word & 0x00ff00ff00ff00ff) << 8 | (word >> 8 & 0x00ff00ff00ff00ff);
      std::memcpy(to + i, &word, sizeof(word));
    }
  }
  for (; i < n; ++i) to[i] = from[-i];
}

template <class U>
inline void copy_row(U* to, int64_t to_stride, const U* from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1)
    return copy_bytes(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from), static_cast<std::size_t>(n) * sizeof(U));
  if (to_stride == 1 && from_stride == -1) return copy_reversed(to, from, n);
  for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
}

// Copies elements of one size between strided places that do not overlap.
template <class U>
void copy_strided(U* to, IntArrayRef to_strides, const U* from, IntArrayRef from_strides, IntArrayRef sizes) {
  const Walk<2> walk(sizes, {to_strides, from_strides}, true);
  walk.parallel_pieces(kCopyGrain, walk.row_size(), [&](const std::array<int64_t, 2>& at, int64_t n) {
    copy_row(to + at[0], walk.stride(0), from + at[1], walk.stride(1), n);
  });
}

}  // namespace cresset::cpu
