// A linear layer that is packed for products that come often, for other packed operators.
#pragma once

#include <functional>
#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::cpu {

/// (..., inputs) of float32 to (..., outputs) of float32, with weight (outputs, inputs) and bias (outputs) of float32. `computes_in`:
/// float32 or bfloat16. Any number of threads may call it.
std::function<Tensor(const Tensor&)> packed_linear(const Tensor& weight, const std::optional<Tensor>& bias, ScalarType computes_in);

}  // namespace cresset::cpu
