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
  template <class List, class Element>
  class Place {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Use;
    using difference_type = std::ptrdiff_t;
    using pointer = Element*;
    using reference = Element&;
    Place() = default;
    Place(List* list, std::size_t at) : list_(list), at_(at) {}
    Element& operator*() const { return list_->uses_[at_]; }
    Element* operator->() const { return &list_->uses_[at_]; }
    Place& operator++() {
      ++at_;
      return *this;
    }
    Place operator++(int) {
      Place old = *this;
      ++*this;
      return old;
    }
    std::size_t index() const { return at_; }

   private:
    List* list_ = nullptr;
    std::size_t at_ = 0;
  };
  template <class A, class B, class C, class D>
  friend std::ptrdiff_t operator-(const Place<A, B>& a, const Place<C, D>& b) {
    return static_cast<std::ptrdiff_t>(a.index()) - static_cast<std::ptrdiff_t>(b.index());
  }
  template <class A, class B, class C, class D>
  friend bool operator==(const Place<A, B>& a, const Place<C, D>& b) {
    return a.index() == b.index();
  }
  /// Who keeps a list of its own may write its elements, which changes nothing else.
  using iterator = Place<UseList, Use>;
  using const_iterator = Place<const UseList, const Use>;
  /// Slots without user are left out.
  explicit UseList(const std::vector<Use>& slots) {
    for (const Use& use : slots)
      if (use.user) uses_.push_back(use);
  }
  iterator begin() { return {this, 0}; }
  iterator end() { return {this, uses_.size()}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, uses_.size()}; }
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
