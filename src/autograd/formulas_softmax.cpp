// Derivatives of softmax and its logarithm.
#include "autograd/formulas_softmax.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>

namespace cresset::autograd::formulas {

namespace {
Tensor sum_along(const Tensor& t, int64_t dim) { return t.dim() == 0 ? t : cresset::sum(t, dim, true); }
}  // namespace

Tensor softmax_jvp(const Tensor& self_t, const Tensor& result, int64_t dim) {
  return cresset::mul(result, cresset::sub(self_t, sum_along(cresset::mul(result, self_t), dim)));
}
Tensor log_softmax_jvp(const Tensor& self_t, const Tensor& result, int64_t dim) {
  return cresset::sub(self_t, sum_along(cresset::mul(cresset::exp(result), self_t), dim));
}
Tensor softmax_backward_jvp(const Tensor& grad, const Tensor& grad_t, const Tensor& output, const Tensor& output_t, int64_t dim) {
  // The gradient is output * (grad - sum(output * grad)).
  const Tensor through = cresset::sub(grad, sum_along(cresset::mul(output, grad), dim));
  const Tensor inner = cresset::add(cresset::mul(output, grad_t), cresset::mul(output_t, grad));
  return cresset::add(cresset::mul(output_t, through), cresset::mul(output, cresset::sub(grad_t, sum_along(inner, dim))));
}
Tensor log_softmax_backward_jvp(const Tensor& grad, const Tensor& grad_t, const Tensor& output, const Tensor& output_t, int64_t dim) {
  // The gradient is grad - exp(output) * sum(grad).
  const Tensor moved = cresset::add(cresset::mul(output_t, sum_along(grad, dim)), sum_along(grad_t, dim));
  return cresset::sub(grad_t, cresset::mul(cresset::exp(output), moved));
}
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, int64_t dim, const Tensor& output) {
  const Tensor inner = sum_along(cresset::mul(output, grad_output), dim), outer = sum_along(cresset::mul(output, grad), dim);
  return cresset::sub(cresset::sub(cresset::mul(grad_output, grad), cresset::mul(inner, grad)), cresset::mul(grad_output, outer));
}
Tensor log_softmax_grad_backward(const Tensor& grad, const Tensor& output, int64_t dim) {
  return cresset::sub(grad, sum_along(cresset::mul(grad, cresset::exp(output)), dim));
}
Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output, int64_t dim, const Tensor& output) {
  return cresset::neg(cresset::mul(cresset::mul(cresset::exp(output), sum_along(grad_output, dim)), grad));
}

}  // namespace cresset::autograd::formulas
