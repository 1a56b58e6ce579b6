// Tables of schemas and kernels that generated code registers. They do what CRESSET_LIBRARY blocks do, in less code and
// memory: a kernel's signature follows from the schema by construction, so nothing is inferred and compared; the place
// of registration is the row; and registrations last as long as the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <cresset/dispatch/kernel_function.h>

namespace cresset::ops {

/// One schema with its namespace, its tags separated by spaces, and the line of its row.
struct SchemaRow {
  const char* schema;
  const char* tags;
  uint32_t line;
};
/// Defines the operators of one table file.
struct CRESSET_API SchemaTable {
  SchemaTable(const char* file, const SchemaRow* rows, std::size_t count);
};

struct KernelParts {
  KernelFunction kernel;
  std::optional<CppSignature> signature;
};
/// One kernel: operator name with overload, what makes it, and the line of the operator's row.
struct KernelRow {
  const char* name;
  KernelParts (*parts)();
  uint32_t line;
};
template <auto* F>
KernelParts kernel() {
  return {KernelFunction::makeFromUnboxedFunction(FunctionConstant<F>()), CppSignature::make<std::remove_pointer_t<decltype(F)>>()};
}
inline KernelParts fallthrough() { return {KernelFunction::makeFallthrough(), std::nullopt}; }

/// Gives operators of one namespace and table file their kernels for a dispatch key.
struct CRESSET_API KernelTable {
  KernelTable(const char* ns, DispatchKey key, const char* file, const KernelRow* rows, std::size_t count);
};

}  // namespace cresset::ops
