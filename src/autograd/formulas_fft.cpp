// Adjoints of the real Fourier transforms.
//
// A half spectrum stands for a whole one: c2r(X)[j] = Re X[0] + 2 Re sum_k X[k] w^jk (+ Re X[n/2] (-1)^j), so values inside of
// the half count twice and the ends once. With D that weight, r2c without it, and r2c* the adjoint over the reals:
//   r2c* g = Re sum_k g[k] w^jk = c2r(D^-1 g),   c2r* g = D r2c(g).
#include "autograd/formulas_fft.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_fft.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {
namespace {

// half * weight inside of the half of n points along dim, half itself at the ends.
Tensor weigh_inside(const Tensor& half, int64_t dim, int64_t n, double weight) {
  const int64_t inside = (n - 1) / 2;
  if (inside == 0) return half;
  const TensorOptions options = half.options().dtype(toRealValueType(half.scalar_type()));
  const Tensor ends = cresset::ones({1}, options), middle = cresset::full({inside}, weight, options);
  const Tensor weights = n % 2 == 0 ? cresset::cat({ends, middle, ends}) : cresset::cat({ends, middle});
  DimVector sizes(static_cast<std::size_t>(half.dim()), 1);
  sizes[dim] = half.size(dim);
  return half * weights.view(sizes);
}

}  // namespace

Tensor fft_r2c_backward(const Tensor& grad, IntArrayRef sizes, IntArrayRef dim, int64_t normalization, bool onesided) {
  if (!onesided) return cresset::real(cresset::_fft_c2c(grad, dim, normalization, false));
  const int64_t last = maybe_wrap_dim(dim.back(), grad.dim()), n = sizes[static_cast<std::size_t>(last)];
  return cresset::_fft_c2r(weigh_inside(grad, last, n, 0.5), dim, normalization, n);
}

Tensor fft_c2r_backward(const Tensor& grad, IntArrayRef sizes, IntArrayRef dim, int64_t normalization) {
  const int64_t last = maybe_wrap_dim(dim.back(), grad.dim()), n = grad.size(last);
  const Tensor half = weigh_inside(cresset::_fft_r2c(grad, dim, normalization, true), last, n, 2.0);
  // Values behind the half were given and not used.
  const int64_t unused = sizes[static_cast<std::size_t>(last)] - half.size(last);
  if (unused == 0) return half;
  DimVector pad(static_cast<std::size_t>(2 * (grad.dim() - last)), 0);
  pad.back() = unused;
  return cresset::constant_pad_nd(half, pad, 0);
}

}  // namespace cresset::autograd::formulas
