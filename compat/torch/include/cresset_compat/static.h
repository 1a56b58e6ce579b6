// torch/detail/static.h: what can be asked of a module's class while it is compiled.
#pragma once

#include <type_traits>

#include <cresset_compat/nn.h>

namespace torch {
namespace detail {

template <class M>
using is_module = std::is_base_of<nn::Module, std::decay_t<M>>;
template <class M, class T = void>
using enable_if_module_t = std::enable_if_t<is_module<M>::value, T>;
template <class M, class T = void>
using disable_if_module_t = std::enable_if_t<!is_module<M>::value, T>;

template <class M>
concept has_forward_member = requires { &M::forward; };
template <class M>
using has_forward = std::bool_constant<has_forward_member<M>>;

/// What forward() gives for these arguments; void where it cannot be called with them.
template <class M, class... A>
struct return_type_of_forward {
  using type = void;
};
template <class M, class... A>
  requires requires(M& m, A... arguments) { m.forward(static_cast<A>(arguments)...); }
struct return_type_of_forward<M, A...> {
  using type = decltype(std::declval<M&>().forward(std::declval<A>()...));
};
template <class M, class... A>
using return_type_of_forward_t = typename return_type_of_forward<M, A...>::type;

template <class... A>
constexpr bool check_not_lvalue_references() {
  return (!(std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>) && ...);
}

}  // namespace detail

}  // namespace torch
