// The one place with handlers of fork().
#include <cresset/base/fork.h>

#include <pthread.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace cresset {
namespace {

struct Kept {
  std::mutex mutex;
  std::unordered_map<void*, detail::ForkLock> locks;
  std::vector<void (*)()> in_child;
};
void before();
void in_parent();
void in_child();

Kept& kept() {
  static Kept* all = [] {
    pthread_atfork(&before, &in_parent, &in_child);
    return new Kept;  // never destroyed: locks of static objects still leave it
  }();
  return *all;
}

std::vector<const detail::ForkLock*>& taken() {
  static auto& locks = *new std::vector<const detail::ForkLock*>;
  return locks;
}

// All or none: locks have orders of their own, which a thread that waits for one while it has another could break.
bool take_all() {
  for (const auto& [mutex, lock] : kept().locks) {
    if (!lock.try_lock(mutex)) {
      for (const detail::ForkLock* l : taken()) l->unlock(l->mutex);
      taken().clear();
      return false;
    }
    taken().push_back(&lock);
  }
  return true;
}

// A thread that works under a lock for longer than this, or this very thread, keeps its lock: the child gets a new one all the same.
constexpr std::chrono::milliseconds kPatience{500};

void before() {
  kept().mutex.lock();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!take_all() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(200));
}
void in_parent() {
  for (const detail::ForkLock* l : taken()) l->unlock(l->mutex);
  taken().clear();
  kept().mutex.unlock();
}
void in_child() {
  taken().clear();
  new (&kept().mutex) std::mutex;
  for (const auto& [mutex, lock] : kept().locks) lock.renew(mutex);
  for (const auto f : kept().in_child) f();
}

}  // namespace

namespace detail {
void add_fork_lock(const ForkLock& lock) {
  const std::lock_guard guard(kept().mutex);
  kept().locks.insert_or_assign(lock.mutex, lock);
}
void remove_fork_lock(void* mutex) noexcept {
  const std::lock_guard guard(kept().mutex);
  kept().locks.erase(mutex);
}
}  // namespace detail

void call_in_forked_child(void (*f)()) {
  const std::lock_guard guard(kept().mutex);
  kept().in_child.push_back(f);
}

}  // namespace cresset
