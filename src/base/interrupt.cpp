// Requests to stop, limits, and who they concern: thread-local words that travel to the threads that work for others.
#include <cresset/base/interrupt.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/thread_state.h"

namespace cresset {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<uint32_t> requests{0};
std::atomic<void (*)()> signal_handler{nullptr};

// Thread-local words are few and small: those of all libraries share 512 bytes (tests/extensions/test_library.py).
constexpr uint32_t kOn = uint32_t{1} << 31;    // beside the number of requests that were there before
thread_local constinit uint64_t deadline = 0;  // on the clock, in nanoseconds; 0: none
thread_local constinit uint32_t watched = 0;   // 0: not to be interrupted
thread_local constinit uint32_t ceiling = 0;   // of the process's memory, in pages; 0: none
std::atomic<uint64_t> next_look{0};            // on the clock; one thread has handlers to run
std::atomic<uint64_t> next_measure{0};
constexpr uint64_t kLookEvery = 50'000'000;  // ns

[[maybe_unused]] const bool registered = [] {
  register_thread_state([] { return uint64_t{watched}; }, [](uint64_t w) { watched = static_cast<uint32_t>(w); });
  register_thread_state([] { return deadline; }, [](uint64_t w) { deadline = w; });
  register_thread_state([] { return uint64_t{ceiling}; }, [](uint64_t w) { ceiling = static_cast<uint32_t>(w); });
  return true;
}();

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

uint64_t page_size() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

/// What the process has in memory. Without allocations: it is asked where there may be no memory left.
uint64_t resident_pages() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[128];
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  if (n <= 0) return 0;
  text[n] = 0;
  char* rest = text;
  std::strtoull(text, &rest, 10);  // the size of the address space comes first
  return std::strtoull(rest, nullptr, 10);
}

CRESSET_NOINLINE void check_limits() {
  const uint64_t t = now();
  CRESSET_CHECK(!deadline || t < deadline, "the limit of time was reached.");
  if (!ceiling) return;
  if (t < next_measure.load(std::memory_order_relaxed)) return;
  next_measure.store(t + kLookEvery / 5, std::memory_order_relaxed);
  check_memory_limit(0);
}

}  // namespace

Interrupted::~Interrupted() = default;

void request_interrupt() noexcept { requests.fetch_add(1, std::memory_order_relaxed); }

void check_interrupt() {
  if (CRESSET_UNLIKELY(watched) && CRESSET_UNLIKELY((watched & (kOn - 1)) != (requests.load(std::memory_order_relaxed) & (kOn - 1))))
    CRESSET_THROW(Interrupted, "interrupted");
  if (CRESSET_UNLIKELY(deadline | ceiling)) check_limits();
}

void check_signals() {
  check_interrupt();
  const auto handler = signal_handler.load(std::memory_order_relaxed);
  if (!handler || !watched) return;
  const uint64_t t = now();
  if (t < next_look.load(std::memory_order_relaxed)) return;
  next_look.store(t + kLookEvery, std::memory_order_relaxed);
  handler();
}

void set_signal_handler(void (*handler)()) { signal_handler.store(handler); }

InterruptScope::InterruptScope(bool on) noexcept : saved_(watched) {
  if (on) watched = kOn | (requests.load(std::memory_order_relaxed) & (kOn - 1));
}
InterruptScope::~InterruptScope() { watched = saved_; }

LimitScope::LimitScope(double seconds, int64_t bytes) : time_(deadline), memory_(ceiling) {
  CRESSET_CHECK_VALUE(seconds >= 0 && bytes >= 0, "limits: numbers from 0 up were required (0 is no limit); ", seconds, " seconds and ",
                      bytes, " bytes were given.");
  const auto lower = [](uint64_t outer, uint64_t inner) { return outer ? std::min(outer, inner) : inner; };
  if (seconds > 0) deadline = lower(deadline, now() + static_cast<uint64_t>(std::min(seconds, 1e9) * 1e9));
  if (bytes > 0) {
    const uint64_t pages = resident_pages() + (static_cast<uint64_t>(bytes) + page_size() - 1) / page_size();
    ceiling = static_cast<uint32_t>(std::min(lower(ceiling, pages), uint64_t{UINT32_MAX}));
  }
}
LimitScope::~LimitScope() {
  deadline = time_;
  ceiling = static_cast<uint32_t>(memory_);
}

void check_memory_limit(int64_t bytes) {
  if (CRESSET_LIKELY(!ceiling)) return;
  const uint64_t there = resident_pages();
  CRESSET_CHECK_AS(OutOfMemoryError, there <= ceiling && static_cast<uint64_t>(bytes) / page_size() <= ceiling - there,
                   "the limit of memory was reached: ", bytes, " bytes more were asked for.");
}

bool memory_is_limited() { return ceiling != 0; }

namespace detail {
bool may_be_interrupted() { return (watched | deadline | ceiling) != 0; }
}  // namespace detail

}  // namespace cresset
