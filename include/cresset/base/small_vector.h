// SmallVector: a vector of trivially copyable elements that keeps the first N inline.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>

#include <cresset/base/array_ref.h>

namespace cresset {

/// Like std::vector<T> for trivially copyable T; no heap use up to N elements.
template <class T, std::size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(std::size_t n, const T& value = T()) { resize(n, value); }
  SmallVector(std::initializer_list<T> l) { assign(l.begin(), l.end()); }
  SmallVector(ArrayRef<T> a) { assign(a.begin(), a.end()); }
  template <class It, class = std::enable_if_t<!std::is_integral_v<It>>>
  SmallVector(It first, It last) {
    assign(first, last);
  }
  SmallVector(const SmallVector& o) { assign(o.begin(), o.end()); }
  SmallVector(SmallVector&& o) noexcept { steal(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) assign(o.begin(), o.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      release();
      steal(o);
    }
    return *this;
  }
  SmallVector& operator=(ArrayRef<T> a) {
    assign(a.begin(), a.end());
    return *this;
  }
  ~SmallVector() { release(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

  void clear() { size_ = 0; }
  void reserve(std::size_t n) {
    if (n > capacity_) grow(n);
  }
  void resize(std::size_t n, const T& value = T()) {
    reserve(n);
    for (std::size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  void push_back(const T& value) {
    const T copy = value;
    if (size_ == capacity_) grow(size_ * 2);
    data_[size_++] = copy;
  }
  template <class... A>
  void emplace_back(A&&... a) {
    push_back(T(std::forward<A>(a)...));
  }
  void pop_back() { --size_; }
  template <class It>
  void append(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  template <class It>
  void assign(It first, It last) {
    const std::size_t n = static_cast<std::size_t>(last - first);
    reserve(n);
    for (std::size_t i = 0; i < n; ++i, ++first) data_[i] = *first;
    size_ = n;
  }
  void assign(std::size_t n, const T& value) {
    clear();
    resize(n, value);
  }
  T* insert(T* pos, const T& value) {
    const std::size_t at = static_cast<std::size_t>(pos - data_);
    const T copy = value;
    push_back(copy);
    std::memmove(static_cast<void*>(data_ + at + 1), data_ + at, (size_ - 1 - at) * sizeof(T));
    data_[at] = copy;
    return data_ + at;
  }
  T* erase(T* pos) {
    std::memmove(static_cast<void*>(pos), pos + 1, static_cast<std::size_t>(end() - pos - 1) * sizeof(T));
    --size_;
    return pos;
  }
  operator ArrayRef<T>() const { return {data_, size_}; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) { return ArrayRef<T>(a) == ArrayRef<T>(b); }

 private:
  void grow(std::size_t n) {
    T* fresh = static_cast<T*>(::operator new(n * sizeof(T)));
    std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    release();
    data_ = fresh;
    capacity_ = n;
  }
  void release() {
    if (data_ != inline_) ::operator delete(data_);
    data_ = inline_;
    capacity_ = N;
  }
  void steal(SmallVector& o) {
    size_ = o.size_;
    if (o.data_ == o.inline_) {
      std::memcpy(static_cast<void*>(inline_), o.inline_, size_ * sizeof(T));
      data_ = inline_;
      capacity_ = N;
    } else {
      data_ = o.data_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_;
      o.capacity_ = N;
    }
    o.size_ = 0;
  }

  T* data_ = inline_;
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
  T inline_[N];
};

/// Sizes or strides: inline up to five dimensions.
using DimVector = SmallVector<int64_t, 5>;
inline std::string to_string(const DimVector& v) { return to_string(IntArrayRef(v)); }

}  // namespace cresset
