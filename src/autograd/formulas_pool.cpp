// Derivatives of max pooling.
#include "autograd/formulas_pool.h"

namespace cresset::autograd::formulas {

Tensor max_pool_gather(const Tensor& t, const Tensor& indices, int64_t n) {
  const int64_t keep = t.dim() - n;
  return t.flatten(keep, -1).gather(-1, indices.flatten(keep, -1)).view(indices.sizes());
}

DimVector trailing_sizes(const Tensor& t, int64_t n) { return DimVector(t.sizes().slice(static_cast<std::size_t>(t.dim() - n))); }

Tensor max_pool_jvp(const Tensor& self_t, const Tensor& indices, int64_t n) { return max_pool_gather(self_t, indices, n); }

}  // namespace cresset::autograd::formulas
