// torch/csrc/utils/schema_info.h: schemas with values.
#pragma once

#include <cresset_compat/script.h>

#include <cresset/dispatch/schema_info.h>

namespace c10 {
using cresset::SchemaArgType;
using cresset::SchemaArgument;
}  // namespace c10
namespace torch::utils {
using cresset::SchemaInfo;
}  // namespace torch::utils
