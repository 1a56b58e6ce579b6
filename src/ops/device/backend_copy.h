// The copy operator of backends with a table.
#pragma once

#include <cresset/core/scalar.h>
#include <cresset/core/tensor.h>

namespace cresset::ops {

/// `_copy_from` for any sizes, strides and element types. Inside of a device it is work in the current stream, which nobody waits for: one
/// transfer of bytes when both sides have one layout, the backend's copy_strided and copy_cast, transfers of rows where there are few. What
/// is left goes through the host and is counted as a round trip.
Tensor backend_copy_from(const Tensor& self, const Tensor& dst, bool non_blocking);

/// `fill_` and `zero_`: the backend's fill_pattern or fill, else copies of one element of the device; a strided tensor is filled by a copy
/// of an expanded one.
Tensor& backend_fill(Tensor& self, const Scalar& value);
Tensor& backend_zero(Tensor& self);

}  // namespace cresset::ops
