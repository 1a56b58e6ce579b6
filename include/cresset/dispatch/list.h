// List<T>: a typed handle of an IValue's list. Copies of a handle share the list, as in Python.
#pragma once

#include <initializer_list>
#include <iterator>

#include <cresset/dispatch/ivalue.h>

namespace cresset {

namespace impl {

/// An element in place: reads as T, and assignment changes the list. get() gives the value as it lies there.
template <class T>
class ListElementReference {
 public:
  ListElementReference(std::vector<IValue>* list, std::size_t i) : list_(list), i_(i) {}
  operator T() const { return get().template to<T>(); }
  const IValue& get() const { return (*list_)[i_]; }
  ListElementReference& operator=(const T& v) {
    (*list_)[i_] = IValue(v);
    return *this;
  }
  ListElementReference& operator=(const ListElementReference& o) {
    (*list_)[i_] = IValue(o.get());
    return *this;
  }
  friend bool operator==(const ListElementReference& a, const T& b) { return static_cast<T>(a) == b; }

 private:
  std::vector<IValue>* list_;
  std::size_t i_;
};

template <class T>
class ListIterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = ListElementReference<T>;

  ListIterator() = default;
  ListIterator(std::vector<IValue>* list, std::size_t i) : list_(list), i_(i) {}
  reference operator*() const { return {list_, i_}; }
  reference operator[](difference_type n) const { return *(*this + n); }
  ListIterator& operator+=(difference_type n) {
    i_ = static_cast<std::size_t>(static_cast<difference_type>(i_) + n);
    return *this;
  }
  ListIterator& operator-=(difference_type n) { return *this += -n; }
  ListIterator& operator++() { return *this += 1; }
  ListIterator& operator--() { return *this += -1; }
  ListIterator operator++(int) { return *this += 1, *this - 1; }
  ListIterator operator--(int) { return *this -= 1, *this + 1; }
  friend ListIterator operator+(ListIterator a, difference_type n) { return a += n; }
  friend ListIterator operator-(ListIterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(ListIterator a, ListIterator b) {
    return static_cast<difference_type>(a.i_) - static_cast<difference_type>(b.i_);
  }
  friend bool operator==(ListIterator a, ListIterator b) { return a.i_ == b.i_; }
  friend auto operator<=>(ListIterator a, ListIterator b) { return a.i_ <=> b.i_; }

 private:
  std::vector<IValue>* list_ = nullptr;
  std::size_t i_ = 0;
};

}  // namespace impl

template <class T>
class List {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using iterator = impl::ListIterator<T>;
  using internal_const_reference_type = T;

  List() : impl_(make_intrusive<ivalue::ListImpl>()) {}
  explicit List(TypePtr element) : List() { impl_->element_type = std::move(element); }
  List(std::initializer_list<T> values) : List(ArrayRef<T>(values.begin(), values.size())) {}
  explicit List(ArrayRef<T> values) : List(values.begin(), values.end()) {}
  explicit List(const std::vector<T>& values) : List(values.begin(), values.end()) {}
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  List(It first, It last) : List() {
    for (; first != last; ++first) push_back(*first);
  }
  explicit List(intrusive_ptr<ivalue::ListImpl> impl) : impl_(std::move(impl)) {}

  std::size_t size() const { return impl_->elements.size(); }
  bool empty() const { return impl_->elements.empty(); }
  T get(std::size_t i) const { return at(i).template to<T>(); }
  /// The element as it is kept.
  const IValue& get_ivalue(std::size_t i) const { return at(i); }
  T operator[](std::size_t i) const { return get(i); }
  impl::ListElementReference<T> operator[](std::size_t i) {
    at(i);
    return {&impl_->elements, i};
  }
  void set(std::size_t i, T v) const { at(i) = IValue(std::move(v)); }
  T extract(std::size_t i) const { return std::move(at(i)).template to<T>(); }
  void push_back(T v) const { impl_->elements.emplace_back(std::move(v)); }
  template <class... A>
  void emplace_back(A&&... a) const {
    push_back(T(std::forward<A>(a)...));
  }
  void append(List<T> other) const {
    impl_->elements.insert(impl_->elements.end(), other.impl_->elements.begin(), other.impl_->elements.end());
  }
  void pop_back() const { impl_->elements.pop_back(); }
  void reserve(std::size_t n) const { impl_->elements.reserve(n); }
  void clear() const { impl_->elements.clear(); }
  void resize(std::size_t n) const { resize(n, T()); }
  void resize(std::size_t n, const T& v) const { impl_->elements.resize(n, IValue(v)); }
  iterator insert(iterator at, T v) const {
    const auto i = at - begin();
    impl_->elements.insert(impl_->elements.begin() + i, IValue(std::move(v)));
    return begin() + i;
  }
  iterator erase(iterator at) const {
    const auto i = at - begin();
    impl_->elements.erase(impl_->elements.begin() + i);
    return begin() + i;
  }
  iterator begin() const { return {&impl_->elements, 0}; }
  iterator end() const { return {&impl_->elements, size()}; }
  std::vector<T> vec() const {
    std::vector<T> out;
    out.reserve(size());
    for (const IValue& v : impl_->elements) out.push_back(v.template to<T>());
    return out;
  }
  /// Another list with the same elements.
  List copy() const { return List(make_intrusive<ivalue::ListImpl>(impl_->elements, impl_->element_type)); }
  bool is(const List& o) const { return impl_ == o.impl_; }
  uint32_t use_count() const { return impl_.use_count(); }
  TypePtr elementType() const { return impl_->element_type ? impl_->element_type : basic_type(TypeKind::Any); }
  const intrusive_ptr<ivalue::ListImpl>& impl() const { return impl_; }
  friend bool operator==(const List& a, const List& b) { return a.impl_->elements == b.impl_->elements; }

 private:
  IValue& at(std::size_t i) const {
    CRESSET_CHECK_INDEX(i < size(), "List: index ", i, " is out of range for length ", size());
    return impl_->elements[i];
  }
  intrusive_ptr<ivalue::ListImpl> impl_;
};

namespace impl {
using GenericList = List<IValue>;
}

template <class T>
IValue::IValue(const List<T>& list) noexcept : IValue(list.impl()) {}
inline List<IValue> IValue::toList() const { return List<IValue>(intrusive_ptr<ivalue::ListImpl>::reclaim_copy(&toListImpl())); }
inline List<int64_t> IValue::toIntList() const { return List<int64_t>(intrusive_ptr<ivalue::ListImpl>::reclaim_copy(&toListImpl())); }
inline List<double> IValue::toDoubleList() const { return List<double>(intrusive_ptr<ivalue::ListImpl>::reclaim_copy(&toListImpl())); }
inline List<bool> IValue::toBoolList() const { return List<bool>(intrusive_ptr<ivalue::ListImpl>::reclaim_copy(&toListImpl())); }
inline List<Tensor> IValue::toTensorList() const { return List<Tensor>(intrusive_ptr<ivalue::ListImpl>::reclaim_copy(&toListImpl())); }
inline List<std::optional<Tensor>> IValue::toOptionalTensorList() const {
  return List<std::optional<Tensor>>(intrusive_ptr<ivalue::ListImpl>::reclaim_copy(&toListImpl()));
}

}  // namespace cresset
