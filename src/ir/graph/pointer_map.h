// A hash table by address, in one piece of memory: for tables with an entry for each value or node of a large graph, where one allocation
// an entry would cost more than the work. Entries are never removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cresset::jit {

template <class T>
class PointerMap {
 public:
  void reserve(std::size_t count) {
    std::size_t size = 16;
    while (size < 2 * count) size *= 2;
    if (size > slots_.size()) rehash(size);
  }

  /// Null when there is none. Valid until the next insertion.
  const T* find(const void* key) const {
    if (slots_.empty()) return nullptr;
    const Slot& s = slots_[place(key)];
    return s.key ? &s.value : nullptr;
  }
  bool contains(const void* key) const { return find(key) != nullptr; }

  /// The entry and whether it is new; the value of an old one stays.
  std::pair<T*, bool> insert(const void* key, T value = {}) {
    if (2 * (count_ + 1) > slots_.size()) rehash(slots_.empty() ? 16 : 2 * slots_.size());
    Slot& s = slots_[place(key)];
    const bool fresh = !s.key;
    if (fresh) {
      s = {key, std::move(value)};
      ++count_;
    }
    return {&s.value, fresh};
  }

  template <class F>
  void each(F&& f) const {
    for (const Slot& s : slots_)
      if (s.key) f(s.key, s.value);
  }

 private:
  struct Slot {
    const void* key = nullptr;
    [[no_unique_address]] T value{};
  };

  // Of the key, or of the free slot that it would take.
  std::size_t place(const void* key) const {
    // Neighbours (nodes and values of a graph, at multiples of 128 bytes) get neighbouring slots, so that a walk over them runs through the
    // table as well; pages are scattered: the upper half of a product depends on all bits.
    const auto address = reinterpret_cast<uintptr_t>(key);
    const uint64_t page = (address >> 12) * 0x9e3779b97f4a7c15u;
    std::size_t i = ((page >> 32) + ((address >> 7) & 31)) & (slots_.size() - 1);
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  void rehash(std::size_t size) {
    std::vector<Slot> old(size);
    old.swap(slots_);
    for (Slot& s : old)
      if (s.key) slots_[place(s.key)] = std::move(s);
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t count_ = 0;
};

struct Nothing {};
using PointerSet = PointerMap<Nothing>;

}  // namespace cresset::jit
