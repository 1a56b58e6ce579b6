// Stopping long work from outside: Ctrl-C, and limits on time and memory.
//
// Long work calls check_interrupt() every few microseconds or more. It throws where the thread may be interrupted and has been, and it
// takes no lock, so that it may be called from anywhere that may throw. Threads of the pools share the fate of the thread whose work they
// do.
#pragma once

#include <cstdint>

#include <cresset/base/error.h>

namespace cresset {

/// Long work was interrupted. Python sees what the handler of the signal raises, KeyboardInterrupt for Ctrl-C.
class CRESSET_API Interrupted final : public Error {
 public:
  using Error::Error;
  ~Interrupted() override;
  Interrupted(const Interrupted&) = default;
};

/// Throws Interrupted after request_interrupt(), and Error when the time or the memory of a LimitScope is used up.
CRESSET_API void check_interrupt();

/// check_interrupt() for places that hold no lock: other signals' handlers run, too (set_signal_handler). It reads the clock, so that loops
/// with short rounds call it in one of some.
CRESSET_API void check_signals();

/// Stops all work that is in an InterruptScope now. May be called by a signal's handler.
CRESSET_API void request_interrupt() noexcept;

/// Work of this thread that may be interrupted, by requests from now on. Not `on`: as it was.
class CRESSET_API InterruptScope {
 public:
  explicit InterruptScope(bool on = true) noexcept;
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  uint32_t saved_;
};

/// Work of this thread, and of others for it, that may take so long and so much memory; 0 is no limit. Inner scopes cannot raise a limit.
class CRESSET_API LimitScope {
 public:
  /// `seconds` from now; `bytes` above what the process has in memory now. Raises ValueError for negative limits.
  LimitScope(double seconds, int64_t bytes);
  ~LimitScope();
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  uint64_t time_, memory_;
};

/// Throws OutOfMemoryError when so many bytes more are beyond the limit of this thread. For big blocks, before they are made.
CRESSET_API void check_memory_limit(int64_t bytes);

/// Is there a limit of memory for this thread?
CRESSET_API bool memory_is_limited();

/// What check_signals() calls every 50 ms in an InterruptScope; it may take locks, and throws what the handler of a signal raised.
CRESSET_API void set_signal_handler(void (*handler)());

namespace detail {
/// May this thread's work be stopped?
CRESSET_API bool may_be_interrupted();
}  // namespace detail

}  // namespace cresset
