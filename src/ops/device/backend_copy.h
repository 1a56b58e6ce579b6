// The copy operator of backends with a table.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// `_copy_from` for any sizes, strides and element types; one transfer of bytes when both sides have one layout, and by
/// way of the host otherwise.
Tensor backend_copy_from(const Tensor& self, const Tensor& dst, bool non_blocking);

}  // namespace cresset::ops
