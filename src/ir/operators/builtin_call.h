// From typed functions to functions on the stack, for the tables of built-in functions.
#pragma once

#include <complex>
#include <utility>

#include <cresset/ir/operator.h>

#include "ir/operators/builtins.h"

namespace cresset::jit::builtin {

using Complex = std::complex<double>;
using Text = const std::string&;

template <class T>
decltype(auto) argument(IValue& v) {
  using V = std::remove_cv_t<std::remove_reference_t<T>>;
  if constexpr (std::is_same_v<V, IValue>)
    return static_cast<IValue&>(v);
  else if constexpr (std::is_same_v<V, int64_t>)
    return v.toInt();
  else if constexpr (std::is_same_v<V, double>)
    return v.toDouble();
  else if constexpr (std::is_same_v<V, bool>)
    return v.toBool();
  else if constexpr (std::is_same_v<V, Complex>)
    return v.toComplexDouble();
  else if constexpr (std::is_same_v<V, std::string>)
    return v.toStringRef();
  else if constexpr (std::is_same_v<V, Scalar>)
    return v.toScalar();
  else if constexpr (std::is_same_v<V, Tensor>)
    return v.toTensor();
  else if constexpr (std::is_same_v<V, ivalue::ListImpl>)
    return static_cast<ivalue::ListImpl&>(v.toListImpl());
  else if constexpr (std::is_same_v<V, ivalue::DictImpl>)
    return static_cast<ivalue::DictImpl&>(v.toDictImpl());
  else
    return v.to<V>();
}

template <class T>
constexpr bool is_tuple = false;
template <class... T>
constexpr bool is_tuple<std::tuple<T...>> = true;

/// The stack function of a function with typed parameters, and the one on arguments in place. Results: nothing, one value, or a tuple of
/// values.
template <auto F>
struct Typed;
template <class R, class... A, R (*F)(A...)>
struct Typed<F> {
  static constexpr Builtin builtin() {
    if constexpr (kOneResult) return {&on_stack, &in_place};
    return {&on_stack};
  }

 private:
  static constexpr bool kOneResult = !is_tuple<R>;
  static void on_stack(Stack& stack) { run_indexed(stack, std::index_sequence_for<A...>()); }
  static void in_place(const IValue* const* args, IValue& result) { run_in_place(args, result, std::index_sequence_for<A...>()); }
  template <std::size_t... I>
  static void run_in_place([[maybe_unused]] const IValue* const* args, IValue& result, std::index_sequence<I...>) {
    // Functions take containers and values by reference and do not change the value itself.
    if constexpr (std::is_void_v<R>)
      F(argument<A>(const_cast<IValue&>(*args[I]))...);
    else
      std::construct_at(&result, F(argument<A>(const_cast<IValue&>(*args[I]))...));
  }
  template <std::size_t... I>
  static void run_indexed(Stack& stack, std::index_sequence<I...>) {
    [[maybe_unused]] IValue* args = stack.data() + (stack.size() - sizeof...(A));
    if constexpr (std::is_void_v<R>) {
      F(argument<A>(args[I])...);
      stack.resize(stack.size() - sizeof...(A));
    } else {
      R result = F(argument<A>(args[I])...);
      stack.resize(stack.size() - sizeof...(A));
      push_result(stack, std::move(result));
    }
  }
  template <class T>
  static void push_result(Stack& stack, T&& v) {
    stack.emplace_back(std::forward<T>(v));
  }
  template <class... T>
  static void push_result(Stack& stack, std::tuple<T...>&& v) {
    std::apply([&](auto&&... x) { (stack.emplace_back(std::move(x)), ...); }, std::move(v));
  }
};
#define CRESSET_BUILTIN(...) (::cresset::jit::builtin::Typed<(+[] __VA_ARGS__)>::builtin())

inline IValue make_list(std::vector<IValue> elements, TypePtr type) {
  return IValue(make_intrusive<ivalue::ListImpl>(std::move(elements), std::move(type)));
}
inline IValue make_tuple(std::vector<IValue> elements) { return IValue(make_intrusive<ivalue::TupleImpl>(std::move(elements))); }

/// How scripts print values: floats as in IR text, strings bare, containers element by element.
std::string script_text(const IValue& v);

// Python's integer arithmetic; overflow wraps.
inline int64_t wrap_add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
inline int64_t wrap_sub(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
inline int64_t wrap_mul(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
[[noreturn]] void raise_division_by_zero();
// Both from 0 up and below 2^32: a division that takes a third of the time of the 64-bit one on many processors.
inline bool both_small(int64_t a, int64_t b) { return (static_cast<uint64_t>(a | b) >> 32) == 0; }
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) raise_division_by_zero();
  if (both_small(a, b)) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  if (b == -1) return wrap_sub(0, a);
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) raise_division_by_zero();
  if (both_small(a, b)) return static_cast<uint32_t>(a) % static_cast<uint32_t>(b);
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r + (r != 0 && (r < 0) != (b < 0) ? b : 0);
}
[[noreturn]] void raise_negative_shift();
inline int64_t shift_left(int64_t a, int64_t b) {
  if (b < 0) raise_negative_shift();
  return b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
inline int64_t shift_right(int64_t a, int64_t b) {
  if (b < 0) raise_negative_shift();
  return a >> std::min<int64_t>(b, 63);
}
/// As Python's int(); what does not fit is an error.
int64_t to_integer(double v);
double float_floor_div(double a, double b);
double float_mod(double a, double b);
int64_t int_pow(int64_t a, int64_t b);

/// Text compare order of sort: numbers, strings, bools, tuples element by element; objects by their __lt__ method.
bool less_than(const IValue& a, const IValue& b);
/// Elements equal as `==` means it, tensors by value (one element).
bool equal_values(const IValue& a, const IValue& b);
int64_t normal_index(int64_t i, std::size_t n);

}  // namespace cresset::jit::builtin
