// Kernels for the keys Autograd and ADInplaceOrView of operators that write into arguments and need nothing of their own there:
// one for each signature, not for each operator.
#pragma once

#include "autograd/generated_support.h"
#include "dispatch/operator_tables.h"

namespace cresset::autograd {

namespace detail {

/// What an operator may have to record: its tensors, or those of them that it writes. Other arguments count as none.
template <class A>
inline constexpr bool is_tensors = std::is_same_v<A, const Tensor&> || std::is_same_v<A, Tensor&> || std::is_same_v<A, TensorList> ||
                                   std::is_same_v<A, const std::optional<Tensor>&> || std::is_same_v<A, OptionalTensorList>;
template <class A>
inline constexpr bool is_written = std::is_same_v<A, Tensor&>;

template <class A>
bool requires_grad_if(std::true_type, A& a) {
  return any_requires(a);
}
template <class A>
bool requires_grad_if(std::false_type, A&) {
  return false;
}
template <class A>
bool has_tangent_if(std::true_type, A& a) {
  return any_fw(a);
}
template <class A>
bool has_tangent_if(std::false_type, A&) {
  return false;
}

/// Raises that functions with out=… record nothing; `op` is the operator's name with namespace.
[[noreturn]] CRESSET_API void refuse_out(const char* op, bool requires_grad);

}  // namespace detail

/// Entries of kernels (tables::Entry::OfOperator). Written arguments are those of type Tensor&.
template <class Sig>
struct Writing;
template <class R, class... A>
struct Writing<R(A...)> {
  /// ADInplaceOrView: the operator, then a new version of each tensor that it wrote.
  static R bump_versions(OperatorKernel* k, DispatchKeySet ks, A... args) {
    const auto call = [&]() -> R {
      const AutoDispatchBelowADInplaceOrView guard;
      return static_cast<tables::OperatorKernelOf*>(k)->template redispatch<R, A...>(ks & after_ADInplaceOrView_keyset, args...);
    };
    (check(args), ...);
    if constexpr (std::is_void_v<R>) {
      call();
      (bump(args), ...);
    } else {
      R result = call();
      (bump(args), ...);
      return result;
    }
  }

  /// Autograd of out forms: refused when any tensor is recorded, …
  static R refuse_recorded_tensors(OperatorKernel* k, DispatchKeySet ks, A... args) {
    return refuse<std::bool_constant<detail::is_tensors<A>>...>(k, ks, args...);
  }
  /// … or, for operators without derivative, when an out tensor is.
  static R refuse_recorded_outs(OperatorKernel* k, DispatchKeySet ks, A... args) {
    return refuse<std::bool_constant<detail::is_written<A>>...>(k, ks, args...);
  }

 private:
  template <class T>
  static void check(T& argument) {
    if constexpr (std::is_same_v<T, Tensor>) check_write(argument);
  }
  template <class T>
  static void bump(T& argument) {
    if constexpr (std::is_same_v<T, Tensor>) increment_version(argument);
  }
  template <class... Checked>
  static CRESSET_ALWAYS_INLINE R refuse(OperatorKernel* k, DispatchKeySet ks, std::remove_reference_t<A>&... args) {
    auto& op = *static_cast<tables::OperatorKernelOf*>(k);
    if (GradMode::is_enabled() && (detail::requires_grad_if(Checked(), args) || ...)) detail::refuse_out(op.op.name(), true);
    if (CRESSET_UNLIKELY(forward_mode_is_on()) && (detail::has_tangent_if(Checked(), args) || ...)) detail::refuse_out(op.op.name(), false);
    return op.template redispatch<R, A...>(ks & after_autograd_keyset, args...);
  }
};

}  // namespace cresset::autograd
