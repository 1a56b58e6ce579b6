// Gradient formulas that several families use.
#include "autograd/formulas.h"

#include <algorithm>

#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {

Tensor restore_reduced_dims(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim) {
  if (keepdim || sizes.empty()) return grad;
  if (!dims.has_value() || dims->empty()) return grad;
  const auto ndim = static_cast<int64_t>(sizes.size());
  DimVector reduced;
  for (int64_t d : *dims) reduced.push_back(maybe_wrap_dim(d, ndim));
  std::sort(reduced.begin(), reduced.end());
  Tensor result = grad;
  for (int64_t d : reduced) result = cresset::unsqueeze(result, d);
  return result;
}

Tensor sum_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim) {
  return cresset::expand(restore_reduced_dims(grad, sizes, dims, keepdim), sizes);
}

Tensor conjugate(const Tensor& t) { return t.is_complex() ? cresset::conj(t) : t; }

}  // namespace cresset::autograd::formulas
