// Field: a member of a record that is also PyTorch's function: `argument.name` and `argument.name()` are the same.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

namespace cresset {

template <class T>
concept OptionalLike = requires(const T& t) {
  t.has_value();
  typename T::value_type;
};

/// A member of class type. It has the layout of T and stands wherever a T does.
template <class T>
struct Field : T {
  Field() = default;
  // Explicit: where one side of ?: is a member and the other a T, the result is a T.
  template <class... A>
    requires std::is_constructible_v<T, A...>
  explicit Field(A&&... arguments) : T(std::forward<A>(arguments)...) {}
  Field(const Field&) = default;
  Field(Field&&) = default;
  Field& operator=(const Field&) = default;
  Field& operator=(Field&&) = default;
  template <class U, class = std::enable_if_t<std::is_assignable_v<T&, U&&>>>
  Field& operator=(U&& value) {
    static_cast<T&>(*this) = std::forward<U>(value);
    return *this;
  }
  const T& operator()() const { return *this; }
  friend bool operator==(const Field& a, const Field& b) { return static_cast<const T&>(a) == static_cast<const T&>(b); }
  // std::optional's own templates would take one side for a value.
  friend bool operator==(const Field& a, std::nullopt_t)
    requires OptionalLike<T>
  {
    return !a.has_value();
  }
  template <class V>
    requires OptionalLike<T>
  friend bool operator==(const Field& a, const std::optional<V>& b) {
    return static_cast<const std::optional<V>&>(a) == b;
  }
};

/// A member that is a number, a truth value or one of an enumeration.
template <class T>
  requires std::is_scalar_v<T>
struct Field<T> {
  constexpr Field() = default;
  constexpr explicit Field(T initial) : value(initial) {}
  constexpr Field& operator=(T other) {
    value = other;
    return *this;
  }
  constexpr operator T() const { return value; }
  constexpr T operator()() const { return value; }
  T value{};
};

}  // namespace cresset
