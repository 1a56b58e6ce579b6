#include "autograd/formulas_scale.h"

#include <cresset/ops/functions_arith.h>

namespace cresset::autograd::formulas {

Tensor scaled(const Tensor& t, const Scalar& factor) { return !factor.isComplex() && factor.toDouble() == 1 ? t : cresset::mul(t, factor); }

}  // namespace cresset::autograd::formulas
