// What tools/opgen writes for autocast: the policies of the operator table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cresset::autocast {

enum class Policy : uint8_t {
  LowerPrecision,  // floating-point arguments in the device's autocast type
  Float32,         // in float32
  Promote,         // in the widest type among them
};

struct PolicyRow {
  const char* name;  // "aten::conv2d.padding"
  Policy policy;
};

extern const PolicyRow policy_rows[];
extern const std::size_t policy_row_count;

}  // namespace cresset::autocast
