// A map that keeps the order of insertion, with PyTorch's names.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cresset/base/error.h>

namespace cresset::nn {

/// An entry; its key never changes. `auto& [key, value]` works too.
template <class Key, class Value>
class OrderedDictItem {
 public:
  OrderedDictItem(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
  const Key& key() const { return pair_.first; }
  Value& value() { return pair_.second; }
  const Value& value() const { return pair_.second; }
  Value& operator*() { return pair_.second; }
  const Value& operator*() const { return pair_.second; }
  Value* operator->() { return &pair_.second; }
  const Value* operator->() const { return &pair_.second; }
  const std::pair<Key, Value>& pair() const { return pair_; }
  template <std::size_t I>
  auto& get() {
    if constexpr (I == 0)
      return key();
    else
      return value();
  }
  template <std::size_t I>
  const auto& get() const {
    return std::get<I>(pair_);
  }

 private:
  std::pair<Key, Value> pair_;
};

template <class Key, class Value>
class OrderedDict {
 public:
  using Item = OrderedDictItem<Key, Value>;
  using key_type = Key;
  using value_type = Value;
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  /// `what` names the keys in errors.
  explicit OrderedDict(std::string what = "Key") : what_(std::move(what)) {}
  OrderedDict(std::initializer_list<Item> items) : what_("Key") {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  const std::string& key_description() const { return what_; }
  std::size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  bool contains(const Key& key) const { return index_.count(key) != 0; }
  Item& front() {
    CRESSET_CHECK(!is_empty(), "Called front() on an empty OrderedDict");
    return items_.front();
  }
  const Item& front() const { return const_cast<OrderedDict&>(*this).front(); }
  Item& back() {
    CRESSET_CHECK(!is_empty(), "Called back() on an empty OrderedDict");
    return items_.back();
  }
  const Item& back() const { return const_cast<OrderedDict&>(*this).back(); }
  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator begin() const { return items_.begin(); }
  ConstIterator end() const { return items_.end(); }

  Value* find(const Key& key) {
    const auto it = index_.find(key);
    return it == index_.end() ? nullptr : &items_[it->second].value();
  }
  const Value* find(const Key& key) const { return const_cast<OrderedDict*>(this)->find(key); }
  Value& operator[](const Key& key) {
    Value* found = find(key);
    CRESSET_CHECK_AS(KeyError, found, what_, " '", key, "' is not defined");
    return *found;
  }
  const Value& operator[](const Key& key) const { return const_cast<OrderedDict&>(*this)[key]; }
  Item& operator[](std::size_t i) {
    CRESSET_CHECK_INDEX(i < items_.size(), "Index ", i, " is out of bounds");
    return items_[i];
  }
  const Item& operator[](std::size_t i) const { return const_cast<OrderedDict&>(*this)[i]; }

  template <class K, class V>
  Value& insert(K&& key, V&& value) {
    CRESSET_CHECK_AS(KeyError, index_.count(key) == 0, what_, " '", key, "' already defined");
    items_.emplace_back(Key(std::forward<K>(key)), Value(std::forward<V>(value)));
    index_.emplace(items_.back().key(), items_.size() - 1);
    return items_.back().value();
  }
  Value& insert(Key key, Value&& value) { return insert<Key, Value>(std::move(key), std::move(value)); }
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  void erase(const Key& key) {
    const auto it = index_.find(key);
    CRESSET_CHECK_AS(KeyError, it != index_.end(), "Key '", key, "' doesn't exist");
    const std::size_t at = it->second;
    index_.erase(it);
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
    for (auto& entry : index_)
      if (entry.second > at) --entry.second;
  }
  void clear() {
    index_.clear();
    items_.clear();
  }
  void reserve(std::size_t n) { items_.reserve(n); }

  std::vector<Key> keys() const {
    std::vector<Key> out;
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    for (const Item& item : items_) out.push_back(item.pair());
    return out;
  }
  const std::vector<Item>& items() const { return items_; }

 private:
  std::string what_;
  std::vector<Item> items_;
  std::unordered_map<Key, std::size_t> index_;
};

}  // namespace cresset::nn

template <class K, class V>
struct std::tuple_size<cresset::nn::OrderedDictItem<K, V>> : std::integral_constant<std::size_t, 2> {};
template <class K, class V>
struct std::tuple_element<0, cresset::nn::OrderedDictItem<K, V>> {
  using type = const K;
};
template <class K, class V>
struct std::tuple_element<1, cresset::nn::OrderedDictItem<K, V>> {
  using type = V;
};
