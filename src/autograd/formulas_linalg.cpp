// With P the pseudo-inverse of A: dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P. Products are ordered so that
// no matrix is larger than A.
#include "autograd/formulas_linalg.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {
namespace {

Tensor conjugate_transpose(const Tensor& t) { return t.mH(); }

bool is_transposed(IntArrayRef sizes, IntArrayRef strides) {
  return sizes.size() == 2 && strides.size() == 2 && strides[0] == 1 && strides[1] == sizes[0] && sizes[0] != 1;
}

}  // namespace

Tensor left_factor_gradient(const Tensor& grad, const Tensor& b, IntArrayRef sizes, IntArrayRef strides) {
  if (is_transposed(sizes, strides)) return b.conj().mm(grad.t()).t();
  return grad.mm(b.t().conj());
}

Tensor right_factor_gradient(const Tensor& grad, const Tensor& a, IntArrayRef sizes, IntArrayRef strides) {
  if (is_transposed(sizes, strides)) return grad.t().mm(a.conj()).t();
  return a.t().conj().mm(grad);
}

Tensor pinv_jvp(const Tensor& a, const Tensor& pinv, const Tensor& a_t) {
  const Tensor dh = conjugate_transpose(a_t), ph = conjugate_transpose(pinv);
  const Tensor first = matmul(matmul(pinv, a_t), pinv);
  const Tensor right = matmul(pinv, matmul(ph, dh)), left = matmul(matmul(dh, ph), pinv);
  return cresset::sub(cresset::add(cresset::sub(right, matmul(matmul(right, a), pinv)), cresset::sub(left, matmul(pinv, matmul(a, left)))),
                      first);
}

Tensor pinv_backward(const Tensor& grad, const Tensor& pinv, const Tensor& a) {
  const Tensor gh = conjugate_transpose(grad), ph = conjugate_transpose(pinv);
  const Tensor first = matmul(matmul(ph, grad), ph);
  const Tensor left = matmul(matmul(gh, pinv), ph), right = matmul(ph, matmul(pinv, gh));
  return cresset::sub(cresset::add(cresset::sub(left, matmul(a, matmul(pinv, left))), cresset::sub(right, matmul(matmul(right, pinv), a))),
                      first);
}

}  // namespace cresset::autograd::formulas
