// Storage for objects of one type in large pieces, each object on cache lines of its own. Objects made one after the other are neighbours:
// a walk in the order of making runs through memory, so that a graph larger than the caches costs bandwidth, not a wait for each object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace cresset::jit {

template <class T>
class ObjectPool {
 public:
  ObjectPool() = default;
  ObjectPool(const ObjectPool&) = delete;

  /// Room for one object, which the caller makes there.
  void* take() {
    if (!free_) {
      if (used_ == capacity_) add_piece();
      return &pieces_.back()[used_++];
    }
    Slot* s = free_;
    free_ = s->next;
    return s;
  }
  /// Room of an object that the caller has destroyed. What is never given back goes with the pool.
  void give(void* room) {
    Slot* s = static_cast<Slot*>(room);
    s->next = free_;
    free_ = s;
  }

 private:
  static constexpr std::size_t kCacheLine = 64;
  union alignas(std::max(kCacheLine, alignof(T))) Slot {
    Slot* next;
    std::byte object[sizeof(T)];
  };
  void add_piece() {
    constexpr std::size_t kFirst = 8, kLargest = 1024;  // most graphs are small
    capacity_ = std::clamp(2 * capacity_, kFirst, kLargest);
    pieces_.emplace_back(new Slot[capacity_]);
    used_ = 0;
  }

  std::vector<std::unique_ptr<Slot[]>> pieces_;
  std::size_t used_ = 0, capacity_ = 0;  // of the last piece
  Slot* free_ = nullptr;
};

}  // namespace cresset::jit
