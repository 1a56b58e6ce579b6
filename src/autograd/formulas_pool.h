// Derivatives of max pooling, which moves values from the places its indices name.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// Values of t at the positions `indices` (flat over the last n dimensions), shaped like indices.
Tensor max_pool_gather(const Tensor& t, const Tensor& indices, int64_t n);
/// The last n sizes of t.
DimVector trailing_sizes(const Tensor& t, int64_t n);
/// Tangent of the maxima.
Tensor max_pool_jvp(const Tensor& self_t, const Tensor& indices, int64_t n);

}  // namespace cresset::autograd::formulas
