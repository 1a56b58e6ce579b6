// Derivatives of max pooling.
#include "autograd/formulas_pool.h"

namespace cresset::autograd::formulas {

Tensor max_pool_gather(const Tensor& t, const Tensor& indices, int64_t n) {
  const int64_t keep = t.dim() - n;
  const Tensor flat = t.flatten(keep, -1), at = indices.flatten(keep, -1);
  const int64_t places = flat.size(-1);
  if (places == 0 || at.numel() == 0) return flat.new_zeros(indices.sizes());
  // A window that holds padding only has an index outside, and no derivative.
  const Tensor outside = at.ge(places);
  return flat.gather(-1, at.clamp_max(places - 1)).masked_fill(outside, 0).reshape(indices.sizes());
}

DimVector trailing_sizes(const Tensor& t, int64_t n) { return DimVector(t.sizes().slice(static_cast<std::size_t>(t.dim() - n))); }

Tensor max_pool_jvp(const Tensor& self_t, const Tensor& indices, int64_t n) { return max_pool_gather(self_t, indices, n); }

}  // namespace cresset::autograd::formulas
