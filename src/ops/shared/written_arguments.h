// Which arguments an operator writes, for layers that give it copies.
#pragma once

#include <algorithm>

#include <cresset/base/array_ref.h>
#include <cresset/dispatch/function_schema.h>

namespace cresset::ops {

/// The row key `writes`: batch normalisation updates its running statistics, which its schema (PyTorch's) does not mark.
struct UnmarkedWrite {
  std::string_view op, argument;
};
ArrayRef<UnmarkedWrite> unmarked_writes();

inline bool is_written(const FunctionSchema& schema, const Argument& a) {
  const auto writes = unmarked_writes();
  return a.is_mutable() || std::any_of(writes.begin(), writes.end(), [&](const UnmarkedWrite& w) {
           return w.argument == a.name && w.op == schema.operator_name().str();
         });
}
inline bool writes_arguments(const FunctionSchema& schema) {
  const auto& all = schema.arguments();
  return std::any_of(all.begin(), all.end(), [&](const Argument& a) { return is_written(schema, a); });
}

}  // namespace cresset::ops
