// Names of layouts and memory formats, and strides for a format.
#include <cresset/core/layout.h>

namespace cresset {

// The numbers without a name are layouts that only tensor types of Python have.
std::string to_string(Layout layout) {
  switch (layout) {
    case Layout::Strided: return "strided";
    case Layout::Sparse: return "sparse_coo";
    case Layout::SparseCsr: return "sparse_csr";
    case Layout::Mkldnn: return "_mkldnn";
    case Layout::SparseCsc: return "sparse_csc";
    case Layout::SparseBsr: return "sparse_bsr";
    case Layout::SparseBsc: return "sparse_bsc";
    case Layout::Jagged: return "jagged";
    default: return "custom";
  }
}

std::string to_string(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous: return "contiguous_format";
    case MemoryFormat::Preserve: return "preserve_format";
    case MemoryFormat::ChannelsLast: return "channels_last";
    default: return "channels_last_3d";
  }
}

namespace {
bool channels_innermost(IntArrayRef sizes, IntArrayRef strides) {
  if (strides[1] == 0) return false;
  int64_t least = 0;
  const auto outside = [&](std::size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    least = strides[d] * sizes[d];
    return true;
  };
  if (!outside(1)) return false;
  for (std::size_t d = sizes.size(); d-- > 2;)
    if (!outside(d)) return false;
  return least != strides[1] && outside(0);
}
}  // namespace
bool is_channels_last_strides_2d(IntArrayRef sizes, IntArrayRef strides) { return sizes.size() == 4 && channels_innermost(sizes, strides); }
bool is_channels_last_strides_3d(IntArrayRef sizes, IntArrayRef strides) { return sizes.size() == 5 && channels_innermost(sizes, strides); }

DimVector strides_for(IntArrayRef sizes, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return contiguous_strides(sizes);
  const std::size_t n = format == MemoryFormat::ChannelsLast ? 4 : 5;
  CRESSET_CHECK(sizes.size() == n, "required rank ", n, " tensor to use ", to_string(format), " format; the sizes are ", sizes, ".");
  DimVector strides(n);
  int64_t s = 1;
  const auto put = [&](std::size_t d) {
    strides[d] = s;
    s = stride_before(s, sizes[d]);
  };
  put(1);
  for (std::size_t d = n; d-- > 2;) put(d);
  put(0);
  return strides;
}

}  // namespace cresset
