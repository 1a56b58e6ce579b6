// Tables of schemas and kernels that generated code announces. They do what CRESSET_LIBRARY blocks do, in less code, memory
// and start-up time: a kernel's signature follows from the schema by construction, so nothing is inferred and compared; the
// place of registration is the row; registrations last as long as the process; and an operator is put together (schema
// parsed, kernels wrapped, dispatch table computed) only when somebody first asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <cresset/dispatch/kernel_function.h>

namespace cresset::tables {

/// One schema with its namespace, its tags separated by spaces, and the line of its row.
struct SchemaRow {
  const char* schema;
  const char* tags;
  uint32_t line;
};
/// The operators of one table file. A static object: it stays for as long as the process.
struct CRESSET_API SchemaTable {
  SchemaTable(const char* file, const SchemaRow* rows, std::size_t count);
  const char* file;
  const SchemaRow* rows;
  std::size_t count;
};

struct KernelParts {
  KernelFunction kernel;
  std::optional<CppSignature> signature;
};
/// One kernel: operator name with namespace and overload, what makes it, and the line of the operator's row.
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

/// The kernels of one table file for a dispatch key. A static object, as above.
struct CRESSET_API KernelTable {
  KernelTable(DispatchKey key, const char* file, const KernelRow* rows, std::size_t count);
  DispatchKey key;
  const char* file;
  const KernelRow* rows;
  std::size_t count;
};

/// "registered at src/ops/view.toml:12".
std::string place(const char* file, uint32_t line);

/// Rows of the announced tables by operator. Used under the dispatcher's lock.
class Index {
 public:
  struct Kernel {
    const KernelTable* table;
    const KernelRow* row;
  };
  struct Operator {
    const SchemaTable* table = nullptr;
    const SchemaRow* schema = nullptr;
    std::vector<Kernel> kernels;
  };
  void add(const SchemaTable& table);
  void add(const KernelTable& table);
  bool has(const std::string& name_with_overload) const { return operators_.count(name_with_overload) > 0; }
  /// Takes out the rows of "aten::add.out"; nothing when there are none (any more).
  std::optional<Operator> take(const std::string& name_with_overload);
  /// Names with overload of the operators called `name`, or of all, that have not been taken out.
  std::vector<std::string> names_of(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  std::unordered_map<std::string_view, Operator> operators_;                       // views into the tables' text
  std::unordered_map<std::string_view, std::vector<std::string_view>> overloads_;  // by name without overload
};

}  // namespace cresset::tables
