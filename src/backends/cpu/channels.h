// Channels of images as normalisations see them, in memory planes (one for each channel of an image) or rows of neighbouring channels (two
// dimensions, or channels last), and half types, which loops get as floats, some thousand elements at a time. Both are cut by their sizes
// alone, so that a result does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/core/tensor.h>

#include "backends/cpu/convert.h"

namespace cresset::cpu {

inline constexpr int64_t kNormGrain = 32768;  // elements a thread should have

/// `rows` rows of n neighbouring elements that begin `pitch` elements apart; as a part of such rows, the row and column where it begins.
struct ChannelPart {
  int64_t rows, n, pitch, row = 0, column = 0;
  int64_t least_rows = 1;  // that a part of half types should have: sums of columns are kept for each part
};
inline ChannelPart columns_of(int64_t rows, int64_t n, int64_t pitch) { return {rows, n, pitch, 0, 0, 32}; }

/// Parts of rows of T with a result in `to` (or null): f(part, result, x...), all in the compute type of T and laid out as `part` says.
template <class T, class F, class... From>
void map_parts(const ChannelPart& whole, T* to, const F& f, const From*... from) {
  if (whole.rows == 0 || whole.n == 0) return;
  if constexpr (!is_reduced_floating_point_v<T>) {
    f(whole, to, from...);
  } else {
    constexpr int64_t kPart = 2048;  // elements, which the first cache holds for two operands and a result
    constexpr ScalarType type = CppTypeToScalarType<T>::value;
    constexpr auto bytes = static_cast<int64_t>(sizeof(T));
    const LoadFunction load = load_function(type, ComputeType::Float);
    const StoreFunction store = store_function(ComputeType::Float, type);
    const auto rows_at = [&](const T* p, const ChannelPart& part) {
      return Rows{reinterpret_cast<char*>(const_cast<T*>(p + part.row * whole.pitch + part.column)), bytes, whole.pitch * bytes};
    };
    alignas(64) float result[kPart], operands[sizeof...(From)][kPart];
    const int64_t width = std::min(whole.n, kPart / std::min(whole.rows, whole.least_rows)), height = std::max<int64_t>(1, kPart / width);
    for (int64_t row = 0; row < whole.rows; row += height)
      for (int64_t column = 0; column < whole.n; column += width) {
        const int64_t rows = std::min(height, whole.rows - row), n = std::min(width, whole.n - column);
        const ChannelPart part{rows, n, n, row, column};
        [&]<std::size_t... k>(std::index_sequence<k...>) {
          (load(operands[k], rows_at(from, part), n, rows), ...);
          f(part, result, static_cast<const float*>(operands[k])...);
        }(std::index_sequence_for<From...>());
        if (to) store(rows_at(to, part), result, n, rows);
      }
  }
}
/// The same without a result: f(part, x...).
template <class T, class F, class... From>
void read_parts(const ChannelPart& whole, const F& f, const From*... from) {
  map_parts(whole, static_cast<T*>(nullptr), [&](const ChannelPart& part, auto*, auto*... x) { f(part, x...); }, from...);
}

/// Rows of n neighbouring channels.
template <class A>
class ChannelRows {
 public:
  ChannelRows(int64_t rows, int64_t n) : rows_(rows), n_(n) {}

  /// For each of `count` quantities the sums over all rows, which add(from, rows, first channel, channels, sums of each quantity) adds up.
  template <class F>
  std::vector<std::vector<A>> sums(std::size_t count, const F& add) const {
    const int64_t blocks = (rows_ + kRows - 1) / kRows, strips = (n_ + kChannels - 1) / kChannels;
    std::vector<double> parts(count * static_cast<std::size_t>(blocks * n_));
    const auto part = [&](std::size_t k, int64_t block) { return parts.data() + (static_cast<int64_t>(k) * blocks + block) * n_; };
    const int64_t elements = kRows * std::min(n_, kChannels);
    parallel_for(0, blocks * strips, std::max<int64_t>(1, kNormGrain / std::max<int64_t>(elements, 1)), [&](int64_t begin, int64_t end) {
      std::vector<double*> to(count);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / strips, first = i % strips * kChannels;
        for (std::size_t k = 0; k < count; ++k) to[k] = part(k, block) + first;
        add(block * kRows, std::min(kRows, rows_ - block * kRows), first, std::min(kChannels, n_ - first), to.data());
      }
    });
    std::vector<std::vector<A>> out(count, std::vector<A>(static_cast<std::size_t>(n_)));
    for (std::size_t k = 0; k < count; ++k)
      for (int64_t c = 0; c < n_; ++c) {
        double total = 0;
        for (int64_t block = 0; block < blocks; ++block) total += part(k, block)[c];
        out[k][static_cast<std::size_t>(c)] = static_cast<A>(total);
      }
    return out;
  }
  /// f(first row, rows) for all of them.
  template <class F>
  void each(const F& f) const {
    parallel_for(0, rows_, std::max<int64_t>(1, kNormGrain / std::max<int64_t>(n_, 1)),
                 [&](int64_t begin, int64_t end) { f(begin, end - begin); });
  }

 private:
  static constexpr int64_t kRows = 256, kChannels = 256;
  int64_t rows_, n_;
};

/// The format in which channels are neighbours in memory, here and in a result; Contiguous where they are not.
inline MemoryFormat channels_last_of(const Tensor& t) {
  MemoryFormat format = t.suggest_memory_format();
  if (format == MemoryFormat::Contiguous && !t.is_contiguous()) {  // strides of dimensions of one element say nothing
    if (t.dim() == 4) format = MemoryFormat::ChannelsLast;
    if (t.dim() == 5) format = MemoryFormat::ChannelsLast3d;
  }
  return format != MemoryFormat::Contiguous && t.is_contiguous(format) ? format : MemoryFormat::Contiguous;
}

inline Tensor dense(const std::optional<Tensor>& t, ScalarType type) { return t && t->defined() ? t->to(type).contiguous() : Tensor(); }
template <class A>
const A* pointer(const Tensor& t) {
  return t.defined() ? t.const_data_ptr<A>() : nullptr;
}

}  // namespace cresset::cpu
