// The code that operators of one signature share. Only the generated signatures_*.cpp include this: each signature has its code in one
// of them, chosen by its text, so that a new operator compiles at most one of them again.
#pragma once

#include "ops/shared/operator_call.h"

namespace cresset::ops {

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

template <class R, class... A>
R OperatorCall<R(A...)>::call(A... args, LazyOperator& op) {
  return op.handle<R(A...)>().call(as_given<A>(args)...);
}
template <class R, class... A>
R OperatorCall<R(A...)>::redispatch(DispatchKeySet ks, A... args, LazyOperator& op) {
  return op.handle<R(A...)>().redispatch(ks, std::forward<A>(args)...);
}

template <class Sig>
struct BoxedCallOf;
template <class R, class... A>
struct BoxedCallOf<R(A...)> : impl::BoxedCall<R, A...> {
  static_assert(std::is_same_v<typename impl::Signature<R, A...>::canonical_function, R(A...)>);
};
template <class Sig>
const tables::SignatureCode SignatureCodeOf<Sig>::value = {&BoxedCallOf<Sig>::run, &typeid(Sig),
                                                           reinterpret_cast<const void*>(&OperatorCall<Sig>::redispatch)};

}  // namespace cresset::ops

/// Defines the code of one signature; in namespace cresset.
#define CRESSET_SIGNATURE(...)                    \
  template struct ops::OperatorCall<__VA_ARGS__>; \
  template struct ops::SignatureCodeOf<__VA_ARGS__>;
