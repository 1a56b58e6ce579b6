// ArrayRef: a non-owning view of a contiguous sequence, as in LLVM and c10.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <cresset/base/error.h>

namespace cresset {

/// May an ArrayRef<From> be read as an ArrayRef<To>? For types that wrap another one without changing its bytes (SymInt).
template <class To, class From>
inline constexpr bool has_layout_of = false;

/// A pointer and a length; never owns. Valid only while the sequence lives.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = std::size_t;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<std::size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {
    static_assert(!std::is_same_v<T, bool>, "ArrayRef<bool> cannot be made from std::vector<bool>");
  }
  template <std::size_t N>
  constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {}
  template <std::size_t N>
  constexpr ArrayRef(const T (&a)[N]) : data_(a), size_(N) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // a view by design: the caller's list outlives the call
  constexpr ArrayRef(const std::initializer_list<T>& l) : data_(l.begin() == l.end() ? nullptr : l.begin()), size_(l.size()) {}
#pragma GCC diagnostic pop
  /// Any container with data() and size(), such as SmallVector.
  template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<const C&>().data()), const T*> &&
                                              std::is_convertible_v<decltype(std::declval<const C&>().size()), std::size_t>>>
  ArrayRef(const C& c) : data_(c.data()), size_(c.size()) {}
  template <class U, class = void, class = std::enable_if_t<has_layout_of<T, U>>>
  ArrayRef(ArrayRef<U> o) : data_(reinterpret_cast<const T*>(o.data())), size_(o.size()) {}

  constexpr const T* begin() const { return data_; }
  constexpr const T* cbegin() const { return data_; }
  constexpr const T* cend() const { return data_ + size_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr auto rbegin() const { return std::make_reverse_iterator(end()); }
  constexpr auto rend() const { return std::make_reverse_iterator(begin()); }
  constexpr const T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  const T& at(std::size_t i) const {
    CRESSET_CHECK_INDEX(i < size_, "ArrayRef: index ", i, " is out of range for length ", size_);
    return data_[i];
  }
  ArrayRef slice(std::size_t start, std::size_t n) const {
    CRESSET_CHECK(start + n <= size_, "ArrayRef: slice [", start, ", ", start + n, ") is out of range for length ", size_);
    return {data_ + start, n};
  }
  ArrayRef slice(std::size_t start) const { return slice(start, size_ - start); }
  bool equals(ArrayRef other) const { return *this == other; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  friend bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;

/// std::optional<ArrayRef<T>> that also converts from what ArrayRef converts from.
template <class T>
class OptionalArrayRef {
 public:
  constexpr OptionalArrayRef() = default;
  constexpr OptionalArrayRef(std::nullopt_t) {}
  constexpr OptionalArrayRef(ArrayRef<T> a) : value_(a) {}
  /// One element: `x.sum(0)`. A converted argument lives until the end of the caller's expression.
  constexpr OptionalArrayRef(const T& one) : value_(ArrayRef<T>(one)) {}
  OptionalArrayRef(const std::optional<ArrayRef<T>>& a) : value_(a) {}
  OptionalArrayRef(const std::optional<std::vector<T>>& a) {
    if (a) value_ = ArrayRef<T>(*a);
  }
  OptionalArrayRef(const std::initializer_list<T>& l) : value_(ArrayRef<T>(l)) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<const U&, ArrayRef<T>> && !std::is_same_v<U, ArrayRef<T>> &&
                                              !std::is_arithmetic_v<U>>>
  OptionalArrayRef(const U& u) : value_(ArrayRef<T>(u)) {}

  constexpr bool has_value() const { return value_.has_value(); }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr const ArrayRef<T>& value() const { return value_.value(); }
  constexpr const ArrayRef<T>& operator*() const { return *value_; }
  constexpr const ArrayRef<T>* operator->() const { return &*value_; }
  ArrayRef<T> value_or(ArrayRef<T> other) const { return value_.value_or(other); }
  operator std::optional<ArrayRef<T>>() const { return value_; }

 private:
  std::optional<ArrayRef<T>> value_;
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

/// "[2, 3]".
CRESSET_API std::string to_string(IntArrayRef values);
inline std::string to_string(const std::vector<int64_t>& values) { return to_string(IntArrayRef(values)); }

}  // namespace cresset
