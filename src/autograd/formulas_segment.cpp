#include "autograd/formulas_segment.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_segment.h>

namespace cresset::autograd::formulas {

Tensor segment_reduce_jvp(const Tensor& data_t, const Tensor& data, const Tensor& result, std::string_view reduce,
                          const std::optional<Tensor>& lengths, const std::optional<Tensor>& offsets, int64_t axis,
                          const std::optional<Scalar>& initial) {
  // Each result depends on its own run alone: the reverse derivative of ones is that of every result by its elements.
  const Tensor slopes =
      cresset::_segment_reduce_backward(cresset::ones_like(result), result, data, reduce, lengths, offsets, axis, initial);
  return cresset::segment_reduce(cresset::mul(slopes, data_t), "sum", lengths, std::nullopt, offsets, axis, /*unsafe=*/true);
}

}  // namespace cresset::autograd::formulas
