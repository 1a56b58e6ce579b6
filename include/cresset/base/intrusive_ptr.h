// Intrusive reference counting with weak references.
//
// Ownership: an object starts with no owners; make_intrusive gives the first. Strong owners together hold one
// weak count. When the last strong owner goes, release_resources() runs; when the last weak count goes, memory is freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <cresset/base/macros.h>

namespace cresset {

// `Null` stands for PyTorch's parameter that describes the null object. It has no meaning here, and pointers that differ in
// it convert into each other.
template <class T, class Null = void>
class intrusive_ptr;
template <class T, class Null = void>
class weak_intrusive_ptr;

/// Base of reference-counted objects. Not copyable in its counts: a copy starts without owners.
class CRESSET_API intrusive_ptr_target {
 public:
  uint32_t use_count() const noexcept { return strong_.load(std::memory_order_relaxed); }
  uint32_t weak_use_count() const noexcept { return weak_.load(std::memory_order_relaxed) - (use_count() != 0 ? 1 : 0); }

 protected:
  intrusive_ptr_target() noexcept = default;
  intrusive_ptr_target(const intrusive_ptr_target&) noexcept {}
  intrusive_ptr_target(intrusive_ptr_target&&) noexcept {}
  intrusive_ptr_target& operator=(const intrusive_ptr_target&) noexcept { return *this; }
  intrusive_ptr_target& operator=(intrusive_ptr_target&&) noexcept { return *this; }
  virtual ~intrusive_ptr_target() = default;
  /// Runs when the last strong owner goes while weak references remain: drop what is expensive.
  virtual void release_resources() {}

 private:
  template <class T, class Null>
  friend class intrusive_ptr;
  template <class T, class Null>
  friend class weak_intrusive_ptr;
  friend struct intrusive_ops;

  mutable std::atomic<uint32_t> strong_{0};
  mutable std::atomic<uint32_t> weak_{0};
};

/// Raw count operations, for handles kept outside of intrusive_ptr (IValue, Python objects).
struct intrusive_ops {
  static void incref(intrusive_ptr_target* p) noexcept { p->strong_.fetch_add(1, std::memory_order_relaxed); }
  static void decref(intrusive_ptr_target* p) noexcept {
    // A sole owner needs no read-modify-write: nobody else can reach the count.
    if (p->strong_.load(std::memory_order_acquire) == 1) {
      if (CRESSET_UNLIKELY(p->weak_.load(std::memory_order_acquire) != 1)) return last_strong_slow(p);
      p->strong_.store(0, std::memory_order_relaxed);
      delete p;
    } else if (p->strong_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      p->release_resources();
      decref_weak(p);
    }
  }
  static void incref_weak(intrusive_ptr_target* p) noexcept { p->weak_.fetch_add(1, std::memory_order_relaxed); }
  static void decref_weak(intrusive_ptr_target* p) noexcept {
    if (p->weak_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p;
  }
  /// The first owner of a new object.
  static void init(intrusive_ptr_target* p) noexcept {
    p->strong_.store(1, std::memory_order_relaxed);
    p->weak_.store(1, std::memory_order_relaxed);
  }
  static bool try_lock(intrusive_ptr_target* p) noexcept {
    uint32_t n = p->strong_.load(std::memory_order_relaxed);
    while (n != 0)
      if (p->strong_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

 private:
  // The object's own strong count is still 1; a weak owner may lock it at any moment until it is 0.
  CRESSET_NOINLINE static void last_strong_slow(intrusive_ptr_target* p) noexcept {
    if (p->strong_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    p->release_resources();
    decref_weak(p);
  }
};

/// Strong owner of a T derived from intrusive_ptr_target.
template <class T, class Null>
class intrusive_ptr {
 public:
  using element_type = T;
  intrusive_ptr() noexcept = default;
  intrusive_ptr(std::nullptr_t) noexcept {}
  intrusive_ptr(const intrusive_ptr& o) noexcept : p_(o.p_) { retain(); }
  intrusive_ptr(intrusive_ptr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  /// Takes over an object that nobody counts yet.
  explicit intrusive_ptr(std::unique_ptr<T> object) noexcept : p_(object.release()) {
    if (p_) intrusive_ops::init(p_);
  }
  template <class U, class N, class = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  intrusive_ptr(const intrusive_ptr<U, N>& o) noexcept : p_(o.get()) {
    retain();
  }
  template <class U, class N, class = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  intrusive_ptr(intrusive_ptr<U, N>&& o) noexcept : p_(o.release()) {}
  intrusive_ptr& operator=(intrusive_ptr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~intrusive_ptr() { reset(); }

  void reset() noexcept {
    if (p_) intrusive_ops::decref(const_cast<intrusive_ptr_target*>(static_cast<const intrusive_ptr_target*>(std::exchange(p_, nullptr))));
  }
  void swap(intrusive_ptr& o) noexcept { std::swap(p_, o.p_); }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  bool defined() const noexcept { return p_ != nullptr; }
  uint32_t use_count() const noexcept { return p_ ? p_->use_count() : 0; }
  bool unique() const noexcept { return use_count() == 1; }
  /// Gives up ownership without releasing: the caller owns one reference.
  T* release() noexcept { return std::exchange(p_, nullptr); }
  /// Takes over a reference made by release().
  static intrusive_ptr reclaim(T* p) noexcept {
    intrusive_ptr r;
    r.p_ = p;
    return r;
  }
  static intrusive_ptr unsafe_steal_from_new(T* p) noexcept { return intrusive_ptr(std::unique_ptr<T>(p)); }
  /// A new owner of an object that already has owners, which a pointer beside them leads to.
  static intrusive_ptr unsafe_reclaim_from_nonowning(T* p) noexcept { return reclaim_copy(p); }
  /// A new owner of an object that already has owners.
  static intrusive_ptr reclaim_copy(T* p) noexcept {
    intrusive_ptr r;
    r.p_ = p;
    r.retain();
    return r;
  }
  template <class... Args>
  static intrusive_ptr make(Args&&... args) {
    T* p = new T(std::forward<Args>(args)...);
    intrusive_ops::init(p);
    return reclaim(p);
  }

 private:
  template <class U, class N>
  friend class weak_intrusive_ptr;
  void retain() noexcept {
    if (p_) intrusive_ops::incref(const_cast<intrusive_ptr_target*>(static_cast<const intrusive_ptr_target*>(p_)));
  }
  T* p_ = nullptr;
};

// Templates, so that a comparison of the holders that a program writes for its own class comes first.
template <class T, class N, class U, class M>
bool operator==(const intrusive_ptr<T, N>& a, const intrusive_ptr<U, M>& b) noexcept {
  return a.get() == b.get();
}
template <class T, class N, class U, class M>
bool operator<(const intrusive_ptr<T, N>& a, const intrusive_ptr<U, M>& b) noexcept {
  return a.get() < b.get();
}
template <class T, class N>
bool operator==(const intrusive_ptr<T, N>& a, std::nullptr_t) noexcept {
  return a.get() == nullptr;
}

template <class T, class Null = void, class... Args>
intrusive_ptr<T, Null> make_intrusive(Args&&... args) {
  return intrusive_ptr<T, Null>::make(std::forward<Args>(args)...);
}
template <class T, class U>
intrusive_ptr<T> static_intrusive_pointer_cast(const intrusive_ptr<U>& p) {
  return intrusive_ptr<T>::reclaim_copy(static_cast<T*>(p.get()));
}
template <class T, class U>
intrusive_ptr<T> dynamic_intrusive_pointer_cast(const intrusive_ptr<U>& p) {
  T* q = dynamic_cast<T*>(p.get());
  return q ? intrusive_ptr<T>::reclaim_copy(q) : intrusive_ptr<T>();
}

/// Reference that does not keep the object alive; lock() gives a strong owner or null.
template <class T, class Null>
class weak_intrusive_ptr {
 public:
  weak_intrusive_ptr() noexcept = default;
  explicit weak_intrusive_ptr(const intrusive_ptr<T, Null>& s) noexcept : p_(s.get()) { retain(); }
  weak_intrusive_ptr(const weak_intrusive_ptr& o) noexcept : p_(o.p_) { retain(); }
  weak_intrusive_ptr(weak_intrusive_ptr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  weak_intrusive_ptr& operator=(weak_intrusive_ptr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~weak_intrusive_ptr() { reset(); }
  void reset() noexcept {
    if (p_) intrusive_ops::decref_weak(std::exchange(p_, nullptr));
  }
  intrusive_ptr<T, Null> lock() const noexcept {
    return p_ && intrusive_ops::try_lock(p_) ? intrusive_ptr<T, Null>::reclaim(p_) : intrusive_ptr<T, Null>();
  }
  bool expired() const noexcept { return !p_ || p_->use_count() == 0; }
  uint32_t use_count() const noexcept { return p_ ? p_->use_count() : 0; }
  T* unsafe_get() const noexcept { return p_; }

 private:
  void retain() noexcept {
    if (p_) intrusive_ops::incref_weak(p_);
  }
  T* p_ = nullptr;
};

}  // namespace cresset

template <class T, class Null>
struct std::hash<cresset::intrusive_ptr<T, Null>> {
  std::size_t operator()(const cresset::intrusive_ptr<T, Null>& p) const noexcept { return std::hash<T*>()(p.get()); }
};
