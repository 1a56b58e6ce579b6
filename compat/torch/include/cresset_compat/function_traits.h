// ATen/detail/FunctionTraits.h: types of a callable's arguments and result, without a namespace there too.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

template <class F>
struct function_traits : function_traits<decltype(&std::remove_reference_t<F>::operator())> {};
template <class F>
struct function_traits<F&> : function_traits<F> {};
template <class F>
struct function_traits<F*> : function_traits<F> {};
template <class C, class R, class... A>
struct function_traits<R (C::*)(A...)> : function_traits<R(A...)> {};
template <class C, class R, class... A>
struct function_traits<R (C::*)(A...) const> : function_traits<R(A...)> {};
template <class R, class... A>
struct function_traits<R(A...)> {
  enum { arity = sizeof...(A) };
  using ArgsTuple = std::tuple<A...>;
  using result_type = R;
  template <std::size_t i>
  struct arg {
    using type = std::tuple_element_t<i, ArgsTuple>;
  };
};

template <class F>
struct nullary_function_traits {
  using traits = function_traits<F>;
  using result_type = typename traits::result_type;
};
template <class F>
struct unary_function_traits : nullary_function_traits<F> {
  using arg1_t = typename function_traits<F>::template arg<0>::type;
};
template <class F>
struct binary_function_traits : unary_function_traits<F> {
  using arg2_t = typename function_traits<F>::template arg<1>::type;
};
