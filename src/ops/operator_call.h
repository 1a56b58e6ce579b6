// How the generated functions call their operators. An operator's function is a jump to the code of its signature: some 680
// signatures, not 4,650 functions, hold the code of a call.
#pragma once

#include <atomic>

#include <cresset/dispatch/dispatcher.h>

namespace cresset::ops {

/// An operator by its name, looked up at the first call. Initialised as a constant: functions may be called while the static
/// objects of a program are made.
class LazyOperator {
 public:
  constexpr LazyOperator(const char* name, const char* overload) : name_(name), overload_(overload) {}

  template <class Sig>
  CRESSET_ALWAYS_INLINE TypedOperatorHandle<Sig> handle() {
    impl::OperatorEntry* entry = entry_.load(std::memory_order_acquire);
    if (CRESSET_UNLIKELY(entry == nullptr)) entry = find<Sig>();
    return TypedOperatorHandle<Sig>(entry);
  }

 private:
  // Raises when the operator does not exist or has another signature; the next call asks again.
  template <class Sig>
  CRESSET_NOINLINE impl::OperatorEntry* find() {
    impl::OperatorEntry* entry = Dispatcher::singleton().findSchemaOrThrow(name_, overload_).typed<Sig>().entry();
    entry_.store(entry, std::memory_order_release);
    return entry;
  }

  const char* name_;
  const char* overload_;
  std::atomic<impl::OperatorEntry*> entry_{nullptr};
};

/// An undefined tensor given for an optional argument stands for none.
inline const std::optional<Tensor>& without_undefined(const std::optional<Tensor>& t) {
  static const std::optional<Tensor> none;
  return t && !t->defined() ? none : t;
}
template <class A, class T>
decltype(auto) as_given(T& argument) {
  if constexpr (std::is_same_v<A, const std::optional<Tensor>&>)
    return without_undefined(argument);
  else
    return std::forward<A>(argument);
}

/// The code of a call; the operator comes last, so that the arguments stay in their registers.
template <class Sig>
struct OperatorCall;
template <class R, class... A>
struct OperatorCall<R(A...)> {
  static CRESSET_NOINLINE R call(A... args, LazyOperator& op) { return op.handle<R(A...)>().call(as_given<A>(args)...); }
  static CRESSET_NOINLINE R redispatch(DispatchKeySet ks, A... args, LazyOperator& op) {
    return op.handle<R(A...)>().redispatch(ks, std::forward<A>(args)...);
  }
};

/// What a function that makes a leaf does with options.requires_grad(), which kernels never see.
inline Tensor as_leaf(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_();
  return t;
}

}  // namespace cresset::ops
