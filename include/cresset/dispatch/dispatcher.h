// The dispatcher: every operator, its kernels by dispatch key, and calls.
//
// A call computes the key set of its arguments, loads one table entry and jumps. Table entries are immutable and
// swapped atomically, so calls take no lock and may run while other threads register or remove kernels.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cresset/dispatch/function_schema.h>
#include <cresset/dispatch/kernel_function.h>

namespace cresset {

class Dispatcher;
class OperatorHandle;
namespace tables {
struct SchemaTable;
struct KernelTable;
struct SignatureCode;
}  // namespace tables
template <class F>
class TypedOperatorHandle;

/// Undoes a registration when destroyed.
class RegistrationHandleRAII {
 public:
  RegistrationHandleRAII() = default;
  explicit RegistrationHandleRAII(std::function<void()> undo) : undo_(std::move(undo)) {}
  RegistrationHandleRAII(RegistrationHandleRAII&& o) noexcept : undo_(std::exchange(o.undo_, nullptr)) {}
  RegistrationHandleRAII& operator=(RegistrationHandleRAII&& o) noexcept {
    std::swap(undo_, o.undo_);
    return *this;
  }
  ~RegistrationHandleRAII() {
    if (undo_) undo_();
  }

 private:
  std::function<void()> undo_;
};

namespace impl {

/// A kernel with where it came from.
struct AnnotatedKernel {
  KernelFunction kernel;
  std::unique_ptr<FunctionSchema> inferred;
  std::optional<CppSignature> signature;
  std::string debug;
};

struct AnnotatedSchema {
  FunctionSchema schema;
  std::string debug;
  std::vector<std::string> tags;
  std::string python_module;  // registers more kernels when imported (Library::set_python_module); may be empty
};

/// Everything about one operator. Changed only under the dispatcher's lock; `table` and `masks` are read without it.
struct CRESSET_API OperatorEntry {
  explicit OperatorEntry(OperatorName n);

  const KernelFunction& lookup(DispatchKeySet ks) const {
    const uint64_t mask = masks[static_cast<std::size_t>(ks.highestBackendIndex())].load(std::memory_order_relaxed);
    const auto index = static_cast<std::size_t>((ks & DispatchKeySet::from_raw_repr(mask)).runtime_index());
    return *table[index].load(std::memory_order_acquire);
  }

  OperatorName name;
  std::optional<AnnotatedSchema> schema;
  std::map<DispatchKey, std::list<AnnotatedKernel>> kernels;             // front is active
  std::optional<std::pair<CppSignature, std::string>> handle_signature;  // of typed handles and kernels seen so far
  std::size_t def_count = 0, impl_count = 0;
  const tables::SignatureCode* signature_code = nullptr;  // of operators that tools/opgen wrote

  std::array<std::atomic<const KernelFunction*>, kRuntimeKeyCount> table;
  std::array<std::atomic<uint64_t>, kBackendCount> masks;  // key sets without this operator's fallthrough keys, by backend
};

}  // namespace impl

/// A reference to an operator; stays valid for ever (calls fail once the operator is gone).
class CRESSET_API OperatorHandle {
 public:
  explicit OperatorHandle(impl::OperatorEntry* entry) : entry_(entry) {}
  const OperatorName& operator_name() const { return entry_->name; }
  bool hasSchema() const { return entry_->schema.has_value(); }
  /// The schema; raises when the operator was never defined.
  const FunctionSchema& schema() const;
  const std::string& debug() const { return entry_->schema->debug; }
  const std::vector<std::string>& getTags() const;
  bool hasTag(std::string_view tag) const;
  /// One of tags.h.
  template <class T>
    requires std::is_enum_v<T>
  bool hasTag(T tag) const {
    return hasTag(tag_name(tag));
  }
  /// Checks the signature against earlier handles and kernels, then gives a handle that can be called with C++ arguments.
  template <class F>
  TypedOperatorHandle<F> typed() const {
    assert_signature(CppSignature::make<F>());
    return TypedOperatorHandle<F>(entry_);
  }
  /// Takes the arguments off the stack and leaves the results.
  void callBoxed(Stack* stack) const;
  void callBoxed(Stack& stack) const { callBoxed(&stack); }
  void redispatchBoxed(DispatchKeySet ks, Stack* stack) const { entry_->lookup(ks).callBoxed(*this, ks, stack); }
  void callBoxedForDispatchKey(DispatchKey k, Stack& stack) const;
  bool hasKernelForDispatchKey(DispatchKey k) const;
  bool hasKernelForAnyDispatchKey(DispatchKeySet ks) const;
  bool hasComputedKernelForDispatchKey(DispatchKey k) const;
  bool isKernelFallthroughKernel(DispatchKey k) const;
  /// "name: …, schema: …, debug: …, alias analysis kind: …, CPU: …": the registrations.
  std::string dumpState() const;
  /// One line for each runtime key that has an entry: "CPU: registered at … [kernel]".
  std::string dumpComputedTable() const;
  std::string checkInvariants() const;
  /// Key set of arguments on a stack, thread-local sets included.
  DispatchKeySet computeKeySet(const Stack& stack) const;
  impl::OperatorEntry* entry() const { return entry_; }
  friend bool operator==(const OperatorHandle& a, const OperatorHandle& b) { return a.entry_ == b.entry_; }

 protected:
  void assert_signature(CppSignature s) const;
  impl::OperatorEntry* entry_;
};

namespace impl {
/// Adds what every call shares to the keys of its arguments.
CRESSET_ALWAYS_INLINE DispatchKeySet with_local_keys(DispatchKeySet ks) {
  return DispatchKeySet::from_raw_repr((ks.raw_repr() | detail::local_keys.included) & ~detail::local_keys.excluded);
}
}  // namespace impl

/// A handle with a C++ signature.
template <class R, class... A>
class TypedOperatorHandle<R(A...)> : public OperatorHandle {
 public:
  explicit TypedOperatorHandle(impl::OperatorEntry* entry) : OperatorHandle(entry) {}
  CRESSET_ALWAYS_INLINE R call(A... args) const {
    DispatchKeySet ks;
    ((ks |= impl::arg_of<A>::keys(args)), ...);
    return dispatch(impl::with_local_keys(ks), std::forward<A>(args)...);
  }
  /// Calls with exactly these keys; used by kernels to go to the next layer.
  CRESSET_ALWAYS_INLINE R redispatch(DispatchKeySet ks, A... args) const { return dispatch(ks, std::forward<A>(args)...); }

 private:
  CRESSET_ALWAYS_INLINE R dispatch(DispatchKeySet ks, A... args) const {
    if constexpr (std::is_same_v<R, const Tensor&>)
      return call_in_place(ks, std::forward<A>(args)...);
    else
      return entry_->lookup(ks).template call<impl::canonical_result_t<R>, impl::canonical_t<A>...>(*this, ks, std::forward<A>(args)...);
  }
  // `const Tensor& (const Tensor&, …)`: the first argument is the one that is written.
  template <class... Rest>
  const Tensor& call_in_place(DispatchKeySet ks, const Tensor& self, Rest&&... rest) const {
    return entry_->lookup(ks).template call<Tensor&, Tensor&, impl::canonical_t<Rest>...>(*this, ks, const_cast<Tensor&>(self),
                                                                                          std::forward<Rest>(rest)...);
  }
};

/// Hears of definitions and removals.
struct CRESSET_API OpRegistrationListener {
  virtual ~OpRegistrationListener() = default;
  virtual void onOperatorRegistered(const OperatorHandle& op) = 0;
  virtual void onOperatorDeregistered(const OperatorHandle& op) = 0;
};

class CRESSET_API Dispatcher {
 public:
  static Dispatcher& singleton();

  std::optional<OperatorHandle> findSchema(const OperatorName& name) const;
  /// The operator with a schema; raises with near misses.
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const;
  /// Also operators that have kernels but no schema yet.
  std::optional<OperatorHandle> findOp(const OperatorName& name) const;
  OperatorHandle findOpOrThrow(const char* name, const char* overload) const { return findSchemaOrThrow(name, overload); }
  std::vector<OperatorName> getAllOpNames() const;
  /// Defined names without overloads, "aten::add" …
  std::vector<OperatorHandle> overloadsOf(const std::string& name) const;

  RegistrationHandleRAII registerLibrary(std::string ns, std::string debug);
  RegistrationHandleRAII registerDef(FunctionSchema schema, std::string debug, std::vector<std::string> tags = {},
                                     std::string python_module = {});
  RegistrationHandleRAII registerImpl(OperatorName name, std::optional<DispatchKey> key, KernelFunction kernel,
                                      std::optional<CppSignature> signature, std::unique_ptr<FunctionSchema> inferred, std::string debug);
  RegistrationHandleRAII registerFallback(DispatchKey key, KernelFunction kernel, std::string debug);
  RegistrationHandleRAII addRegistrationListener(std::unique_ptr<OpRegistrationListener> listener);

  bool hasBackendFallbackForDispatchKey(DispatchKey k) const;
  /// Operators that have kernels but were never defined.
  std::vector<OperatorHandle> findDanglingImpls() const;
  std::vector<OperatorName> getRegistrationsForDispatchKey(std::optional<DispatchKey> k) const;
  /// Raises when a table does not follow from the registrations.
  void checkInvariants() const;
  /// Why and where a call with these keys goes: one line a layer, the kernel's place of registration, and what decided.
  std::string explain(const OperatorHandle& op, const Stack& arguments) const;

 private:
  friend class OperatorHandle;
  friend struct tables::SchemaTable;
  friend struct tables::KernelTable;
  Dispatcher();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cresset
