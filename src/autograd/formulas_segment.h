// Derivatives of reductions of runs, written with differentiable operators.
#pragma once

#include <cresset/core/tensor.h>

#include <optional>
#include <string_view>

namespace cresset::autograd::formulas {

Tensor segment_reduce_jvp(const Tensor& data_t, const Tensor& data, const Tensor& result, std::string_view reduce,
                          const std::optional<Tensor>& lengths, const std::optional<Tensor>& offsets, int64_t axis,
                          const std::optional<Scalar>& initial);

}  // namespace cresset::autograd::formulas
