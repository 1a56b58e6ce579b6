// InlineVector: a vector of movable elements that keeps the first N inside itself; nodes use it so that a graph of
// small operators needs one allocation for each node.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>

namespace cresset::autograd {

/// Like std::vector<T> for nothrow-movable T; no heap use up to N elements. Not copyable when T is not.
template <class T, uint32_t N>
class InlineVector {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() noexcept {}
  InlineVector(std::initializer_list<T> l) { append(l.begin(), l.end()); }
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  InlineVector(It first, It last) {
    append(first, last);
  }
  InlineVector(const InlineVector& o) { append(o.begin(), o.end()); }
  InlineVector(InlineVector&& o) noexcept { steal(o); }
  InlineVector& operator=(const InlineVector& o) {
    if (this != &o) {
      clear();
      append(o.begin(), o.end());
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& o) noexcept {
    if (this != &o) {
      free_all();
      steal(o);
    }
    return *this;
  }
  ~InlineVector() { free_all(); }

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
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t n) {
    if (n > capacity_) grow(static_cast<uint32_t>(n));
  }
  template <class... A>
  T& emplace_back(A&&... a) {
    if (size_ == capacity_) {
      T fresh(std::forward<A>(a)...);
      grow(capacity_ * 2);
      return *new (data_ + size_++) T(std::move(fresh));
    }
    return *new (data_ + size_++) T(std::forward<A>(a)...);
  }
  void push_back(const T& v) { emplace_back(v); }
  void push_back(T&& v) { emplace_back(std::move(v)); }
  void clear() {
    while (size_ > 0) data_[--size_].~T();
  }
  void resize(std::size_t n) {
    while (size_ > n) data_[--size_].~T();
    reserve(n);
    while (size_ < n) new (data_ + size_++) T();
  }
  template <class It>
  void append(It first, It last) {
    for (; first != last; ++first) emplace_back(*first);
  }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void grow(uint32_t n) {
    T* fresh = static_cast<T*>(::operator new(n * sizeof(T)));
    for (uint32_t i = 0; i < size_; ++i) {
      new (fresh + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (data_ != inline_data()) ::operator delete(data_);
    data_ = fresh;
    capacity_ = n;
  }
  void free_all() {
    clear();
    if (data_ != inline_data()) ::operator delete(data_);
    data_ = inline_data();
    capacity_ = N;
  }
  void steal(InlineVector& o) noexcept {
    if (o.data_ == o.inline_data()) {
      for (uint32_t i = 0; i < o.size_; ++i) new (data_ + i) T(std::move(o.data_[i]));
      size_ = o.size_;
      o.clear();
    } else {
      data_ = std::exchange(o.data_, o.inline_data());
      capacity_ = std::exchange(o.capacity_, N);
      size_ = std::exchange(o.size_, 0);
    }
  }

  T* data_ = inline_data();
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

}  // namespace cresset::autograd
