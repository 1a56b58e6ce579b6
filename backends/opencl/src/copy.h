// Copies between tensors of equal sizes on this kind of device and the host.
#pragma once

#include "launch.h"

namespace cresset_opencl {

/// Writes `from` into `to` on one device, converting. False when there is no kernel for the types or the layout.
bool copy_on_device(const Tensor& from, const Tensor& to);
/// Sets all elements. False as above.
bool fill_on_device(const Tensor& to, const cresset::Scalar& value);
/// `t` itself, or a contiguous copy on the device.
Tensor dense(const Tensor& t);

}  // namespace cresset_opencl
