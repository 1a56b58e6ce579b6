// Tables of schemas and kernels that generated code registers with a loop: one small entry for each instead of one call.
#pragma once

#include <cstddef>

#include <cresset/dispatch/library.h>

namespace cresset::ops {

/// One schema with its tags, separated by spaces.
struct SchemaRow {
  const char* schema;
  const char* tags;
};
CRESSET_API void define(Library& library, const SchemaRow* rows, std::size_t count);

/// One kernel: operator name with overload, and what makes it.
struct KernelRow {
  const char* name;
  CppFunction (*make)();
};
template <auto* F>
CppFunction kernel() {
  return CppFunction(FunctionConstant<F>());
}
inline CppFunction fallthrough() { return CppFunction::makeFallthrough(); }
CRESSET_API void implement(Library& library, const KernelRow* rows, std::size_t count);

}  // namespace cresset::ops
