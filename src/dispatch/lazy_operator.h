// An operator by its name, for generated code: looked up at the first call.
#pragma once

#include <atomic>

#include <cresset/dispatch/dispatcher.h>

namespace cresset {

/// Initialised as a constant: functions may be called while the static objects of a program are made. The signature of its callers
/// follows from the schema by construction and is not compared.
class LazyOperator {
 public:
  constexpr LazyOperator(const char* name, const char* overload) : name_(name), overload_(overload) {}
  LazyOperator(const char* name, const char* overload, impl::OperatorEntry* entry) : name_(name), overload_(overload), entry_(entry) {}

  template <class Sig>
  CRESSET_ALWAYS_INLINE TypedOperatorHandle<Sig> handle() {
    impl::OperatorEntry* entry = entry_.load(std::memory_order_acquire);
    if (CRESSET_UNLIKELY(entry == nullptr)) entry = find();
    return TypedOperatorHandle<Sig>(entry);
  }
  /// With namespace, without overload: "aten::add".
  const char* name() const { return name_; }

 private:
  // Raises when the operator does not exist; the next call asks again.
  CRESSET_API impl::OperatorEntry* find();

  const char* name_;
  const char* overload_;
  std::atomic<impl::OperatorEntry*> entry_{nullptr};
};

}  // namespace cresset
