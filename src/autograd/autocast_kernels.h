// The policies of autocast that tools/opgen writes down for the operators of the table, and their kernels.
#pragma once

#include <cstdint>
#include <span>

#include "dispatch/operator_tables.h"

namespace cresset::autocast {

enum class Policy : uint8_t {
  LowerPrecision,  // floating-point arguments in the device's autocast type
  Float32,         // in float32
  Promote,         // in the widest type among them
};

struct PolicyRow {
  const char* name;  // with overload
  Policy policy;
};
/// Every operator of the table that has a policy.
std::span<const PolicyRow> policies();

KernelFunction make_kernel(Policy policy, DeviceType device);

template <Policy P>
KernelFunction cpu_kernel() {
  return make_kernel(P, kCPU);
}

/// Gives a device other than the CPU its kernels: by the lists of its backend, else by the policies of the table. Kernels that are
/// there already stay. Called when autocast is first switched on for the device.
void install_policies(DeviceType device);
/// What a backend says that the lower precision is, if it says so.
std::optional<ScalarType> default_dtype_of_backend(DeviceType device);

}  // namespace cresset::autocast
