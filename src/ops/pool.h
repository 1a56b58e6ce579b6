// Window geometry of pooling, shared by shape rules and kernels.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// Windows over three spatial dimensions (ones in front for fewer) of a tensor seen as (planes, D, H, W).
struct PoolWindows {
  int64_t planes;
  std::array<int64_t, 3> in, out, kernel, stride, padding, dilation;
};

/// Checks the arguments of a pooling operator over the last n dimensions and works out its windows; stride [] means the kernel size.
CRESSET_API PoolWindows pool_windows(const char* op, const Tensor& self, int n, IntArrayRef kernel_size, IntArrayRef stride,
                                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode);
/// The same for adaptive pooling, where only in and out matter.
CRESSET_API PoolWindows adaptive_windows(const char* op, const Tensor& self, int n, IntArrayRef output_size);
/// First and one-past-last input position of adaptive window o.
inline int64_t adaptive_start(int64_t o, int64_t out, int64_t in) { return o * in / out; }
inline int64_t adaptive_end(int64_t o, int64_t out, int64_t in) { return ((o + 1) * in + out - 1) / out; }

}  // namespace cresset::ops
