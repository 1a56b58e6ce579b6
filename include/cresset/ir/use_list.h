// The lists that nodes and values give: Sequence and UseList.
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

#include <cresset/base/array_ref.h>
#include <cresset/base/small_vector.h>

namespace cresset::jit {

using cresset::ArrayRef;
class Node;

/// One use of a value: input number `offset` of `user`.
struct Use {
  Node* user;
  std::size_t offset;
  friend bool operator==(const Use&, const Use&) = default;
};

/// What a node or block has of something, in order: a vector with the functions of an ArrayRef.
template <class T>
struct Sequence : std::vector<T> {
  using std::vector<T>::vector;
  Sequence(std::vector<T> elements) : std::vector<T>(std::move(elements)) {}
  // Pointers, as those of an ArrayRef, to who may only read.
  const T* begin() const { return this->data(); }
  const T* end() const { return this->data() + this->size(); }
  auto begin() { return std::vector<T>::begin(); }
  auto end() { return std::vector<T>::end(); }
  /// Valid until the node changes.
  ArrayRef<T> slice(std::size_t start, std::size_t n) const { return ArrayRef<T>(this->data(), this->size()).slice(start, n); }
  ArrayRef<T> slice(std::size_t start) const { return ArrayRef<T>(this->data(), this->size()).slice(start); }
  std::vector<T> vec() const { return *this; }
  bool equals(ArrayRef<T> other) const { return ArrayRef<T>(this->data(), this->size()) == other; }
};

/// The uses of a value as they were when it was asked, in the order in which they were made: replacing them meanwhile does no harm.
class UseList {
 public:
  /// A place in the list. Those of two lists of one value compare, as long as the value does not change between them.
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Use;
    using difference_type = std::ptrdiff_t;
    using pointer = const Use*;
    using reference = const Use&;
    iterator() = default;
    iterator(const UseList* list, std::size_t at) : list_(list), at_(at) {}
    const Use& operator*() const { return (*list_)[at_]; }
    const Use* operator->() const { return &(*list_)[at_]; }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    friend difference_type operator-(const iterator& a, const iterator& b) {
      return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.at_ == b.at_; }

   private:
    const UseList* list_ = nullptr;
    std::size_t at_ = 0;
  };
  using const_iterator = iterator;
  /// Slots without user are left out.
  explicit UseList(const std::vector<Use>& slots) {
    for (const Use& use : slots)
      if (use.user) uses_.push_back(use);
  }
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, uses_.size()}; }
  std::size_t size() const { return uses_.size(); }
  bool empty() const { return uses_.empty(); }
  const Use& front() const { return uses_[0]; }
  const Use& back() const { return uses_[uses_.size() - 1]; }
  const Use& operator[](std::size_t i) const { return uses_[i]; }
  const Use& at(std::size_t i) const {
    CRESSET_CHECK_INDEX(i < uses_.size(), "uses: a place below ", uses_.size(), " was required; ", i, " was given.");
    return uses_[i];
  }
  operator std::vector<Use>() const { return {uses_.begin(), uses_.end()}; }

 private:
  SmallVector<Use, 4> uses_;
};

}  // namespace cresset::jit
