// Waiting that signals can stop: in slices, between which the handlers of Python run.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <cresset/base/interrupt.h>

namespace cresset::distributed {

inline constexpr std::chrono::milliseconds kSlice{50};

/// The end of a wait that begins now; a timeout of 0 or less is no limit.
inline std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds timeout) {
  const auto now = std::chrono::steady_clock::now();
  constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365 * 10);
  return now + (timeout.count() > 0 ? std::min(timeout, kForever) : kForever);
}

/// Waits until done() or the timeout (0 or less: none); the last answer of done(). Holds the lock while done() runs, not while handlers do.
template <class F>
bool wait_in_slices(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, std::chrono::milliseconds timeout, F done) {
  const auto deadline = deadline_after(timeout);
  while (!done()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    changed.wait_until(lock, std::min(deadline, now + kSlice));
    if (done()) return true;
    lock.unlock();
    check_signals();
    lock.lock();
  }
  return true;
}

}  // namespace cresset::distributed
