// Tables of schemas and kernels that generated code announces. They do what CRESSET_LIBRARY blocks do, in less code, memory
// and start-up time: a kernel's signature follows from the schema by construction, so nothing is inferred and compared, and
// what depends on the signature alone stands once, in the schema's row; the place of registration is the row; registrations last as long as
// the process; and an operator is put together (schema parsed, kernels wrapped, dispatch table computed) only when somebody first asks for
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include "dispatch/lazy_operator.h"

namespace cresset::tables {

/// What all operators of one C++ signature share.
struct SignatureCode {
  KernelFunction::BoxedEntry boxed;  // for kernels with this signature
  const std::type_info* function;    // canonical
  const void* redispatch;            // R (*)(DispatchKeySet, A..., LazyOperator&)
};

/// One schema with its namespace, its tags separated by spaces, the line of its row, and its signature.
struct SchemaRow {
  const char* schema;
  const char* tags;
  uint32_t line;
  const SignatureCode* code;
};
/// The operators of one table file. A static object: it stays for as long as the process.
struct CRESSET_API SchemaTable {
  SchemaTable(const char* file, const SchemaRow* rows, std::size_t count);
  const char* file;
  const SchemaRow* rows;
  std::size_t count;
};

/// What a row's `entry` is.
enum class Entry : uint8_t {
  Function,    // R (*)(OperatorKernel*, DispatchKeySet, A...): the kernel; its first argument is null
  OfOperator,  // the same for several operators: its first argument is an OperatorKernelOf
  Maker,       // KernelFunction (*)()
  Fallthrough  // nothing
};
/// One kernel: operator name with namespace and overload, and the line of the operator's row.
struct KernelRow {
  const char* name;
  const void* entry;
  uint32_t line;
  Entry kind;  // no default: with one, g++ 12 fills some tables at start-up instead of at compile time
};
/// The first argument of kernels that serve several operators.
struct OperatorKernelOf final : OperatorKernel {
  OperatorKernelOf(const char* name, impl::OperatorEntry* entry, const SignatureCode& c) : op(name, "", entry), code(c) {}
  LazyOperator op;
  const SignatureCode& code;
  /// Calls the operator below the given keys.
  template <class R, class... A>
  R redispatch(DispatchKeySet ks, A... args) {
    return reinterpret_cast<R (*)(DispatchKeySet, A..., LazyOperator&)>(const_cast<void*>(code.redispatch))(ks, std::forward<A>(args)...,
                                                                                                            op);
  }
};

/// The kernels of one table file for a dispatch key. A static object, as above.
struct CRESSET_API KernelTable {
  KernelTable(DispatchKey key, const char* file, const KernelRow* rows, std::size_t count);
  DispatchKey key;
  const char* file;
  const KernelRow* rows;
  std::size_t count;
};

/// The kernel of a row; the operator's signature must be known.
KernelFunction kernel_of(impl::OperatorEntry& op, const KernelRow& row);

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
  /// Takes out the rows of "aten::add.out"; nothing when there are none (any more), or only kernels of a signature that nobody knows yet.
  std::optional<Operator> take(const std::string& name_with_overload, bool signature_is_known);
  /// Names with overload of the operators called `name`, or of all, that have not been taken out.
  std::vector<std::string> names_of(const std::string& name) const;
  /// The place of "aten::add.out" among the overloads of "aten::add" in the tables, also after it was taken out; behind all for others.
  std::size_t place_of(const std::string& name, const std::string& name_with_overload) const;
  std::vector<std::string> names() const;

 private:
  std::unordered_map<std::string_view, Operator> operators_;                       // views into the tables' text
  std::unordered_map<std::string_view, std::vector<std::string_view>> overloads_;  // by name without overload
};

}  // namespace cresset::tables
