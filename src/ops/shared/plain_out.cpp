#include "ops/shared/plain_out.h"

#include "ops/shared/structured.h"

namespace cresset::ops {

void prepare_plain_out(const TensorSpec& spec, const Tensor& out, bool overlaps_input) {
  if (!overlaps_input) prepare_out({spec.sizes, spec.dtype, spec.device, std::nullopt}, out);
}

void prepare_plain_out(const PointwiseOp& op, const PointwiseCall& call, const Tensor& out) {
  const DimVector before(out.sizes());
  pointwise_prepare_out(op, call, out, false);
  if (out.sizes() == IntArrayRef(before) || !out.has_storage()) return;
  const DimVector sizes(out.sizes());
  out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, contiguous_strides(sizes));
}

}  // namespace cresset::ops
