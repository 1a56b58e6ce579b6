// Gradient formulas that several families use.
#include "autograd/formulas.h"

#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {

Tensor restore_reduced_dims(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim) {
  if (keepdim || sizes.empty()) return grad;
  const auto ndim = static_cast<int64_t>(sizes.size());
  DimVector shape(sizes);
  if (!dims.has_value() || dims->empty())
    for (int64_t& s : shape) s = 1;
  else
    for (int64_t d : *dims) shape[static_cast<std::size_t>(maybe_wrap_dim(d, ndim))] = 1;
  return cresset::reshape(grad, shape);
}

Tensor sum_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim) {
  return cresset::expand(restore_reduced_dims(grad, sizes, dims, keepdim), sizes);
}

Tensor conjugate(const Tensor& t) { return t.is_complex() ? cresset::conj(t) : t; }

}  // namespace cresset::autograd::formulas
