// The kernels for autocast that tools/opgen announces for the operators with a policy.
#pragma once

#include <cstdint>

#include "dispatch/operator_tables.h"

namespace cresset::autocast {

enum class Policy : uint8_t {
  LowerPrecision,  // floating-point arguments in the device's autocast type
  Float32,         // in float32
  Promote,         // in the widest type among them
};

tables::KernelParts make_kernel(Policy policy, DeviceType device);

template <Policy P, DeviceType D>
tables::KernelParts kernel() {
  return make_kernel(P, D);
}

}  // namespace cresset::autocast
