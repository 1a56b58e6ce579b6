// Dict<K, V>: a typed handle of an IValue's dict, in order of insertion. Copies of a handle share the dict.
#pragma once

#include <iterator>
#include <utility>

#include <cresset/dispatch/ivalue.h>

namespace cresset {

namespace impl {

template <class K, class V>
class DictEntryRef {
 public:
  DictEntryRef() = default;
  explicit DictEntryRef(ivalue::DictItems::value_type* item) : item_(item) {}
  K key() const { return item_->first.template to<K>(); }
  V value() const { return item_->second.template to<V>(); }
  void setValue(V v) const { item_->second = IValue(std::move(v)); }

 private:
  ivalue::DictItems::value_type* item_ = nullptr;
};

// The entry that an iterator stands at is part of it: `for (auto& entry : dict)` has a name to bind to.
template <class K, class V>
class DictIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = DictEntryRef<K, V>;
  using difference_type = std::ptrdiff_t;
  using pointer = const value_type*;
  using reference = const value_type&;

  DictIterator() = default;
  explicit DictIterator(ivalue::DictItems::iterator item) : item_(item) {}
  reference operator*() const { return entry_ = value_type(&*item_); }
  pointer operator->() const { return &**this; }
  DictIterator& operator++() {
    ++item_;
    return *this;
  }
  DictIterator operator++(int) { return DictIterator(item_++); }
  friend bool operator==(DictIterator a, DictIterator b) { return a.item_ == b.item_; }
  ivalue::DictItems::iterator item() const { return item_; }

 private:
  ivalue::DictItems::iterator item_;
  mutable value_type entry_;
};

}  // namespace impl

template <class K, class V>
class Dict {
 public:
  using key_type = K;
  using mapped_type = V;
  using size_type = std::size_t;
  using iterator = impl::DictIterator<K, V>;

  Dict() : impl_(make_intrusive<ivalue::DictImpl>()) {}
  Dict(TypePtr key, TypePtr value) : Dict() {
    impl_->key_type = std::move(key);
    impl_->value_type = std::move(value);
  }
  explicit Dict(intrusive_ptr<ivalue::DictImpl> impl) : impl_(std::move(impl)) {}

  std::size_t size() const { return impl_->items.size(); }
  bool empty() const { return impl_->items.empty(); }
  iterator begin() const { return iterator(impl_->items.begin()); }
  iterator end() const { return iterator(impl_->items.end()); }
  iterator find(const K& key) const { return iterator(impl_->items.find(IValue(key))); }
  bool contains(const K& key) const { return impl_->find(IValue(key)) != nullptr; }
  std::size_t count(const K& key) const { return contains(key); }
  /// The value; std::out_of_range (IndexError in Python) when there is none.
  V at(const K& key) const {
    IValue* v = impl_->find(IValue(key));
    CRESSET_CHECK_INDEX(v, "Argument passed to at() was not in the map.");
    return v->template to<V>();
  }
  /// Leaves an entry that exists alone.
  std::pair<iterator, bool> insert(K key, V value) const {
    const auto [at, inserted] = impl_->items.try_emplace(IValue(std::move(key)), IValue(std::move(value)));
    return {iterator(at), inserted};
  }
  std::pair<iterator, bool> insert_or_assign(K key, V value) const {
    if (iterator it = find(key); it != end()) {
      it->setValue(std::move(value));
      return {it, false};
    }
    return insert(std::move(key), std::move(value));
  }
  /// What only an explicit constructor makes a key or a value of, such as a std::string_view.
  template <class A, class B>
    requires(std::is_constructible_v<K, A &&> && std::is_constructible_v<V, B &&> &&
             !(std::is_convertible_v<A &&, K> && std::is_convertible_v<B &&, V>))
  std::pair<iterator, bool> insert(A&& key, B&& value) const {
    return insert(K(std::forward<A>(key)), V(std::forward<B>(value)));
  }
  template <class A, class B>
    requires(std::is_constructible_v<K, A &&> && std::is_constructible_v<V, B &&> &&
             !(std::is_convertible_v<A &&, K> && std::is_convertible_v<B &&, V>))
  std::pair<iterator, bool> insert_or_assign(A&& key, B&& value) const {
    return insert_or_assign(K(std::forward<A>(key)), V(std::forward<B>(value)));
  }
  std::size_t erase(const K& key) const {
    const iterator it = find(key);
    if (it == end()) return 0;
    erase(it);
    return 1;
  }
  void erase(iterator it) const { impl_->items.erase(it.item()); }
  void clear() const { impl_->items.clear(); }
  void reserve(std::size_t n) const { impl_->items.reserve(n); }
  /// Another dict with the same entries.
  Dict copy() const {
    Dict out(impl_->key_type, impl_->value_type);
    out.impl_->items = impl_->items;
    return out;
  }
  bool is(const Dict& o) const { return impl_ == o.impl_; }
  TypePtr keyType() const { return impl_->key_type ? impl_->key_type : basic_type(TypeKind::Any); }
  TypePtr valueType() const { return impl_->value_type ? impl_->value_type : basic_type(TypeKind::Any); }
  const intrusive_ptr<ivalue::DictImpl>& impl() const { return impl_; }

 private:
  intrusive_ptr<ivalue::DictImpl> impl_;
};

namespace impl {
using GenericDict = Dict<IValue, IValue>;
}

template <class K, class V>
IValue::IValue(const Dict<K, V>& dict) noexcept : IValue(dict.impl()) {}
inline Dict<IValue, IValue> IValue::toGenericDict() const {
  return Dict<IValue, IValue>(intrusive_ptr<ivalue::DictImpl>::reclaim_copy(&toDictImpl()));
}

}  // namespace cresset
