// Which arguments an operator writes, for layers that give it copies.
#pragma once

#include <cresset/dispatch/function_schema.h>

namespace cresset::ops {

/// Written by its schema, or without the schema saying so: batch normalisation updates its running statistics.
inline bool is_written(const FunctionSchema& schema, const Argument& a) {
  if (a.is_mutable()) return true;
  return (a.name == "running_mean" || a.name == "running_var") && schema.name() == "aten::native_batch_norm";
}
inline bool writes_arguments(const FunctionSchema& schema) { return schema.is_mutable() || schema.name() == "aten::native_batch_norm"; }

}  // namespace cresset::ops
