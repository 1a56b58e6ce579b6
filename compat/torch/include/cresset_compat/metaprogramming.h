// c10::guts: types of functions and lists of types.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <cresset_compat/namespaces.h>

#include <cresset/base/macros.h>

namespace c10::guts {
namespace typelist {
template <class... T>
struct typelist final {
  typelist() = delete;
};
template <class L>
struct size;
template <class... T>
struct size<typelist<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <class L>
struct to_tuple;
template <class... T>
struct to_tuple<typelist<T...>> {
  using type = std::tuple<T...>;
};
template <class L>
using to_tuple_t = typename to_tuple<L>::type;
template <class Tuple>
struct from_tuple;
template <class... T>
struct from_tuple<std::tuple<T...>> {
  using type = typelist<T...>;
};
template <class Tuple>
using from_tuple_t = typename from_tuple<Tuple>::type;
template <class... L>
struct concat;
template <>
struct concat<> {
  using type = typelist<>;
};
template <class... T>
struct concat<typelist<T...>> {
  using type = typelist<T...>;
};
template <class... A, class... B, class... Rest>
struct concat<typelist<A...>, typelist<B...>, Rest...> : concat<typelist<A..., B...>, Rest...> {};
template <class... L>
using concat_t = typename concat<L...>::type;
template <template <class> class F, class L>
struct map;
template <template <class> class F, class... T>
struct map<F, typelist<T...>> {
  using type = typelist<F<T>...>;
};
template <template <class> class F, class L>
using map_t = typename map<F, L>::type;
template <template <class> class Condition, class L>
struct filter;
template <template <class> class Condition, class... T>
struct filter<Condition, typelist<T...>> : concat<std::conditional_t<Condition<T>::value, typelist<T>, typelist<>>...> {};
template <template <class> class Condition, class L>
using filter_t = typename filter<Condition, L>::type;
template <template <class> class Condition, class L>
struct all;
template <template <class> class Condition, class... T>
struct all<Condition, typelist<T...>> : std::conjunction<Condition<T>...> {};
template <template <class> class Condition, class L>
struct true_for_each_type : all<Condition, L> {};
template <class L>
struct head;
template <class T, class... Rest>
struct head<typelist<T, Rest...>> {
  using type = T;
};
template <class L>
using head_t = typename head<L>::type;
template <std::size_t I, class L>
struct element;
template <std::size_t I, class... T>
struct element<I, typelist<T...>> {
  using type = std::tuple_element_t<I, std::tuple<T...>>;
};
template <std::size_t I, class L>
using element_t = typename element<I, L>::type;
template <class L, class T>
struct contains;
template <class... T, class U>
struct contains<typelist<T...>, U> : std::disjunction<std::is_same<T, U>...> {};
}  // namespace typelist

template <class F>
struct function_traits {
  static_assert(!std::is_same_v<F, F>, "In function_traits<Func>, Func must be a plain function type.");
};
template <class R, class... A>
struct function_traits<R(A...)> {
  using func_type = R(A...);
  using return_type = R;
  using parameter_types = typelist::typelist<A...>;
  static constexpr auto number_of_parameters = sizeof...(A);
};
template <class F>
struct infer_function_traits : infer_function_traits<decltype(&std::remove_reference_t<F>::operator())> {};
template <class R, class... A>
struct infer_function_traits<R(A...)> {
  using type = function_traits<R(A...)>;
};
template <class R, class... A>
struct infer_function_traits<R (*)(A...)> {
  using type = function_traits<R(A...)>;
};
template <class C, class R, class... A>
struct infer_function_traits<R (C::*)(A...)> {
  using type = function_traits<R(A...)>;
};
template <class C, class R, class... A>
struct infer_function_traits<R (C::*)(A...) const> {
  using type = function_traits<R(A...)>;
};
template <class F>
using infer_function_traits_t = typename infer_function_traits<std::remove_cv_t<std::remove_reference_t<F>>>::type;

template <template <class...> class Template, class T>
struct is_instantiation_of : std::false_type {};
template <template <class...> class Template, class... A>
struct is_instantiation_of<Template, Template<A...>> : std::true_type {};
template <class F>
struct is_function_type : std::is_function<F> {};
template <class F>
using is_function_type_t = typename is_function_type<F>::type;

template <class F, class Tuple>
auto tuple_map(Tuple&& tuple, const F& f) {
  return std::apply(
      [&](auto&&... v) { return std::tuple<decltype(f(std::forward<decltype(v)>(v)))...>(f(std::forward<decltype(v)>(v))...); },
      std::forward<Tuple>(tuple));
}
template <class F, class Tuple>
decltype(auto) apply(F&& f, Tuple&& tuple) {
  return std::apply(std::forward<F>(f), std::forward<Tuple>(tuple));
}
template <bool condition, class Then, class Else>
decltype(auto) if_constexpr(Then&& then, Else&& otherwise) {
  if constexpr (condition)
    return then([](auto&& v) -> decltype(auto) { return std::forward<decltype(v)>(v); });
  else
    return otherwise([](auto&& v) -> decltype(auto) { return std::forward<decltype(v)>(v); });
}
using std::conjunction;
using std::disjunction;
using std::negation;
using std::void_t;
}  // namespace c10::guts

namespace c10 {
/// ForcedUnroll<n>{}(f, a...): f(std::integral_constant<int, 0>(), a...) and so on, below n.
template <int n>
struct ForcedUnroll {
  template <class F, class... A>
  CRESSET_ALWAYS_INLINE void operator()(const F& f, A... arguments) const {
    [&]<int... i>(std::integer_sequence<int, i...>) {
      (f(std::integral_constant<int, i>(), arguments...), ...);
    }(std::make_integer_sequence<int, n>());
  }
};
/// A function pointer as a type: TORCH_FN(f).
template <class Function, Function* function>
struct CompileTimeFunctionPointer final {
  using FuncType = Function;
  static constexpr Function* func_ptr() { return function; }
};
}  // namespace c10
