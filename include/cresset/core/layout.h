// Layout and MemoryFormat.
#pragma once

#include <cstdint>
#include <string>

#include <cresset/base/error.h>
#include <cresset/base/small_vector.h>

namespace cresset {

/// Strided is built in; the others are names that out-of-tree and Python's tensor types may carry. The numbers are PyTorch's.
enum class Layout : int8_t {
  Strided = 0,
  Sparse = 1,
  SparseCsr = 2,
  Mkldnn = 3,
  SparseCsc = 4,
  SparseBsr = 5,
  SparseBsc = 6,
  Jagged = 7,
  Custom = 8
};
inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse, kSparseCsr = Layout::SparseCsr, kMkldnn = Layout::Mkldnn;
inline constexpr Layout kSparseCsc = Layout::SparseCsc, kSparseBsr = Layout::SparseBsr, kSparseBsc = Layout::SparseBsc;
inline constexpr Layout kJagged = Layout::Jagged;
CRESSET_API std::string to_string(Layout layout);

/// Order of dimensions in memory. Preserve is only a request.
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };
CRESSET_API std::string to_string(MemoryFormat format);

/// Strides of a dense tensor in the given format; ChannelsLast needs 4 dimensions, ChannelsLast3d 5.
CRESSET_API DimVector strides_for(IntArrayRef sizes, MemoryFormat format);
/// Do the strides of a tensor of four (five) dimensions say channels innermost, then the last dimension to the first and the batch outside?
/// Gaps between elements do not matter, and strides of dimensions with one element count too; where they say nothing, for one channel and
/// one place, the answer is no.
CRESSET_API bool is_channels_last_strides_2d(IntArrayRef sizes, IntArrayRef strides);
CRESSET_API bool is_channels_last_strides_3d(IntArrayRef sizes, IntArrayRef strides);
/// The stride of the dimension in front of one with this size and stride. It wraps only where a tensor has no elements, and is not used
/// there: sizes with more elements than there are numbers are refused before.
inline int64_t stride_before(int64_t stride, int64_t size) {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(size > 1 ? size : 1));
}
inline DimVector contiguous_strides(IntArrayRef sizes) {
  DimVector strides(sizes.size());
  int64_t s = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = s;
    s = stride_before(s, sizes[i]);
  }
  return strides;
}

}  // namespace cresset
