// TensorSpec: what a shape function says about one result, before anything is allocated.
#pragma once

#include <optional>

#include <cresset/core/device.h>
#include <cresset/core/layout.h>
#include <cresset/core/scalar_type.h>

namespace cresset {

/// Sizes, strides (contiguous when unset), dtype and device of a result.
struct TensorSpec {
  DimVector sizes;
  ScalarType dtype = ScalarType::Undefined;
  Device device{kCPU};
  std::optional<DimVector> strides;
};

}  // namespace cresset
