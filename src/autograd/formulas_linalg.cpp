// With P the pseudo-inverse of A: dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P. Products are ordered so that
// no matrix is larger than A.
#include "autograd/formulas_linalg.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {
namespace {

Tensor conjugate_transpose(const Tensor& t) { return t.mH(); }
Tensor times(const Tensor& a, const Tensor& b) { return cresset::matmul(a, b); }

}  // namespace

Tensor pinv_jvp(const Tensor& a, const Tensor& pinv, const Tensor& a_t) {
  const Tensor dh = conjugate_transpose(a_t), ph = conjugate_transpose(pinv);
  const Tensor first = times(times(pinv, a_t), pinv);
  const Tensor right = times(pinv, times(ph, dh)), left = times(times(dh, ph), pinv);
  return cresset::sub(cresset::add(cresset::sub(right, times(times(right, a), pinv)), cresset::sub(left, times(pinv, times(a, left)))),
                      first);
}

Tensor pinv_backward(const Tensor& grad, const Tensor& pinv, const Tensor& a) {
  const Tensor gh = conjugate_transpose(grad), ph = conjugate_transpose(pinv);
  const Tensor first = times(times(ph, grad), ph);
  const Tensor left = times(times(gh, pinv), ph), right = times(ph, times(pinv, gh));
  return cresset::sub(cresset::add(cresset::sub(left, times(a, times(pinv, left))), cresset::sub(right, times(times(right, pinv), a))),
                      first);
}

}  // namespace cresset::autograd::formulas
