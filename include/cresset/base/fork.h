// Locks and pools in forked children. A child has only the thread that forked: a lock that another thread held would never be released
// there. So all locks that live long are taken before the fork, and are new in the child; pools of threads start afresh.
#pragma once

#include <new>

#include <cresset/base/macros.h>

namespace cresset {
namespace detail {

struct ForkLock {
  void* mutex;
  bool (*try_lock)(void*);
  void (*unlock)(void*);
  void (*renew)(void*);
};
CRESSET_API void add_fork_lock(const ForkLock& lock);
CRESSET_API void remove_fork_lock(void* mutex) noexcept;

template <class Mutex>
ForkLock fork_lock(Mutex& m) {
  return {&m, [](void* p) { return static_cast<Mutex*>(p)->try_lock(); }, [](void* p) { static_cast<Mutex*>(p)->unlock(); },
          [](void* p) { new (p) Mutex; }};
}

}  // namespace detail

/// A mutex, as std::mutex or its relatives, for what a forked child uses too.
template <class Mutex>
class ForkSafe : public Mutex {
 public:
  ForkSafe() { detail::add_fork_lock(detail::fork_lock(static_cast<Mutex&>(*this))); }
  ~ForkSafe() { detail::remove_fork_lock(static_cast<Mutex*>(this)); }
};

/// The same for a mutex that has its class already and is never destroyed.
template <class Mutex>
void keep_across_fork(Mutex& mutex) {
  detail::add_fork_lock(detail::fork_lock(mutex));
}

/// Calls f in each child, after the locks were made new; for what belongs to threads that the child does not have.
CRESSET_API void call_in_forked_child(void (*f)());

}  // namespace cresset
