// Products with the factors alpha and beta of operators, which are 1 in most calls.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// t * factor; t itself where the factor is a real 1.
Tensor scaled(const Tensor& t, const Scalar& factor);

}  // namespace cresset::autograd::formulas
