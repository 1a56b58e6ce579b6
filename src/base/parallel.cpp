// The thread pool behind parallel_for: workers spin briefly for the next region, then sleep.
#include <cresset/base/fork.h>
#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/signals.h"
#include "base/thread_state.h"

namespace cresset {
namespace {

constexpr int kMaxThreads = 256;
// A worker that found nothing to do spins for a while in wait for the next region, then looks whenever no one else wants its processor,
// then sleeps: a wake-up takes longer than many a kernel, on a busy machine milliseconds.
constexpr int kSpins = 4000;  // 0.1 ms or more
constexpr std::chrono::milliseconds kStayAwake{2};

thread_local bool inside_region = false;
thread_local int thread_number = 0;

int default_threads() {
  for (const char* name : {"CRESSET_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const char* text = std::getenv(name))
      if (const int n = std::atoi(text); n > 0) return std::min(n, kMaxThreads);
  const unsigned n = std::thread::hardware_concurrency();
  return n ? static_cast<int>(std::min<unsigned>(n, kMaxThreads)) : 1;
}
std::atomic<int>& thread_count() {
  static std::atomic<int> n{default_threads()};
  return n;
}

// Work that may be stopped runs in pieces, each long beside the cost of calling it. Functions give the same for any split.
int64_t piece_of(int64_t chunk, int64_t grain) {
  constexpr int64_t kPieces = 256, kGrains = 4;
  return detail::may_be_interrupted() ? std::max((chunk + kPieces - 1) / kPieces, std::min(grain, chunk / kGrains + 1) * kGrains) : chunk;
}

struct Region {
  Region(RangeFunction f, int64_t b, int64_t e, int64_t c, int n, int64_t p)
      : body(f), begin(b), end(e), chunk(c), piece(p), tasks(n), state(ThreadState::capture()) {}

  RangeFunction body;
  int64_t begin, end, chunk, piece;
  int tasks;
  ThreadState state;
  std::atomic<int> next{1};  // task 0 belongs to the caller
  std::atomic<int> finished{0};
  std::atomic<bool> failed{false};
  std::mutex error_mutex;
  std::exception_ptr error;

  void run(int task) {
    const int64_t b = begin + task * chunk, e = std::min(end, b + chunk);
    try {
      for (int64_t at = b; at < e && !failed.load(std::memory_order_relaxed); at += piece) {
        check_interrupt();
        body(at, std::min(at + piece, e));
      }
    } catch (...) {
      std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
      failed.store(true, std::memory_order_relaxed);
    }
  }
};

class Pool {
 public:
  // One region at a time; a second caller runs its own region serially instead of waiting.
  bool try_run(const std::shared_ptr<Region>& region) {
    std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner) return false;
    ensure_workers(region->tasks - 1);
    {
      std::lock_guard lock(mutex_);
      current_ = region;
    }
    generation_.fetch_add(1, std::memory_order_release);
    if (sleeping_.load() > 0) wake_.notify_all();
    work(*region, 0);
    // Others may take a yielded processor for milliseconds: only where a part takes long anyway.
    const auto done = [&] { return region->finished.load(std::memory_order_acquire) == region->tasks; };
    if (!spin(done))
      while (!done()) std::this_thread::yield();
    {
      std::lock_guard lock(mutex_);
      current_.reset();
    }
    return true;
  }

 private:
  static void work(Region& region, int first) {
    inside_region = true;
    for (int task = first; task < region.tasks; task = region.next.fetch_add(1)) {
      thread_number = task;
      region.run(task);
      region.finished.fetch_add(1, std::memory_order_release);
    }
    thread_number = 0;
    inside_region = false;
  }

  // Where the system starts no more threads, fewer take part, at last the caller alone.
  void ensure_workers(int n) {
    if (workers_ >= n) return;
    const SignalsBlocked inherited;
    try {
      for (; workers_ < n; ++workers_)
        std::thread([this] {
          SignalsBlocked::always();
          loop();
        }).detach();
    } catch (const std::system_error&) {
    }
  }

  // Spins for a while; whether it was long enough.
  template <class Done>
  static bool spin(const Done& done) {
    for (int i = 0; i < kSpins; ++i) {
      if (done()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    return false;
  }
  template <class Done>
  static void stay_awake(const Done& done) {
    if (spin(done)) return;
    const auto end = std::chrono::steady_clock::now() + kStayAwake;
    while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  void loop() {
    uint64_t seen = 0;
    for (;;) {
      stay_awake([&] { return generation_.load(std::memory_order_acquire) != seen; });
      std::shared_ptr<Region> region;
      {
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
        sleeping_.fetch_sub(1);
        seen = generation_.load(std::memory_order_acquire);
        region = current_;
      }
      if (!region) continue;
      const int task = region->next.fetch_add(1);
      if (task >= region->tasks) continue;
      ThreadStateGuard guard(region->state);
      work(*region, task);
    }
  }

  std::mutex owner_, mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> sleeping_{0};
  std::shared_ptr<Region> current_;
  int workers_ = 0;
};

// Never destroyed: workers may still look at it while the process exits. A forked child starts with a fresh pool.
std::atomic<Pool*> pool_instance{nullptr};
Pool& pool() {
  Pool* p = pool_instance.load(std::memory_order_acquire);
  if (p) return *p;
  static ForkSafe<std::mutex> mutex;
  std::lock_guard lock(mutex);
  if (!(p = pool_instance.load())) {
    p = new Pool;
    pool_instance.store(p);
    static const bool registered = (call_in_forked_child([] { pool_instance.store(nullptr); }), true);
    (void)registered;
  }
  return *p;
}

}  // namespace

int get_num_threads() { return thread_count().load(std::memory_order_relaxed); }
void set_num_threads(int n) { thread_count().store(std::clamp(n, 1, kMaxThreads)); }
bool in_parallel_region() { return inside_region; }
int get_thread_num() { return thread_number; }

namespace detail {

void parallel_for_impl(int64_t begin, int64_t end, int64_t grain_size, RangeFunction f) {
  const int64_t n = end - begin, grain = std::max<int64_t>(grain_size, 1);
  const int64_t tasks = std::min<int64_t>(get_num_threads(), (n + grain - 1) / grain);
  if (tasks > 1 && !inside_region) {
    const int64_t chunk = (n + tasks - 1) / tasks;
    auto region = std::make_shared<Region>(f, begin, end, chunk, static_cast<int>(tasks), piece_of(chunk, grain));
    if (pool().try_run(region)) {
      if (region->error) std::rethrow_exception(region->error);
      return;
    }
  }
  const int64_t piece = piece_of(n, grain);
  for (int64_t at = begin; at < end; at += piece) {
    check_interrupt();
    f(at, std::min(at + piece, end));
  }
}

}  // namespace detail
}  // namespace cresset
