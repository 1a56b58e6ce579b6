// The thread pool behind parallel_for. Regions lie open in a list; threads without work join them and take what no other has taken.
#include <cresset/base/fork.h>
#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>

#include <time.h>

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
#include <utility>
#include <vector>

#include "base/processors.h"
#include "base/signals.h"
#include "base/thread_state.h"

namespace cresset {
namespace {

constexpr int kMaxThreads = 256;
constexpr int64_t kPieces = 16;  // of a chunk: what a thread that is held up leaves to the others
// A thread that waits spins first: a wake-up takes longer than many a kernel. A worker then looks whenever no one else wants its processor.
constexpr int kSpins = 1000;  // 15 to 40 us
constexpr std::chrono::microseconds kStayAwake{500};
constexpr std::chrono::microseconds kHeldUp{100};   // a thread that gave its processor away for so long was held up
constexpr std::chrono::milliseconds kAgain{20};     // what happens again within so long has a cause that stays: a neighbour
constexpr std::chrono::milliseconds kCrowded{100};  // for so long nobody spins then, and small regions are run alone
constexpr int64_t kCrowdedGrains = 4;
constexpr int64_t kRefrain = 16;                  // times as long as help held up the caller it asks for none
constexpr int64_t kLongestRefrain = 200'000'000;  // ns

thread_local bool inside_region = false;
thread_local int thread_number = 0;

int default_threads() {
  for (const char* name : {"CRESSET_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const char* text = std::getenv(name))
      if (const int n = std::atoi(text); n > 0) return std::min(n, kMaxThreads);
  return std::min(usable_processors(), kMaxThreads);
}
std::atomic<int>& thread_count() {
  static std::atomic<int> n{default_threads()};
  return n;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct InsideRegion {
  explicit InsideRegion(bool inside) : outer(std::exchange(inside_region, inside)) {}
  ~InsideRegion() { inside_region = outer; }
  bool outer;
};

int64_t clock_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// Processor time of this thread: a call of the system, ten times as long as clock_now().
int64_t processor_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Work that may be stopped runs in pieces, each long beside the cost of calling it. Functions give the same for any split.
int64_t piece_of(int64_t chunk, int64_t grain) {
  constexpr int64_t kStops = 256, kGrains = 4;
  return detail::may_be_interrupted() ? std::max((chunk + kStops - 1) / kStops, std::min(grain, chunk / kGrains + 1) * kGrains) : chunk;
}

// A range in chunks, one for each thread that may take part, of several pieces each. A thread works on its own chunk first, so that it
// finds in its cache what it wrote there in the region before, then on what is left of the others'.
struct Region {
  Region(RangeFunction f, int64_t b, int64_t e, int64_t c, int n, int64_t p)
      : body(f), begin(b), end(e), chunk(c), piece(p), tasks(n), state(ThreadState::capture()), chunks(static_cast<std::size_t>(n)) {}

  struct alignas(64) Chunk {
    std::atomic<int64_t> taken{0};
  };

  RangeFunction body;
  int64_t begin, end, chunk, piece;
  int tasks;
  bool listed = false;  // under the pool's lock
  ThreadState state;
  std::vector<Chunk> chunks;
  std::atomic<int> threads{1};  // that took part; the caller is the first
  std::atomic<int64_t> finished{0};
  std::atomic<int64_t> helped{0};  // ns of processor time of others
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable last;
  std::exception_ptr error;

  bool done() const { return finished.load(std::memory_order_acquire) == end - begin; }

  void run_piece(int64_t b, int64_t e) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      check_interrupt();
      body(b, e);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      failed.store(true, std::memory_order_relaxed);
    }
  }

  // All that can be had: how many elements that were.
  int64_t run(int number) {
    const bool outer_inside = std::exchange(inside_region, true);
    const int outer_number = std::exchange(thread_number, number);
    int64_t count = 0;
    for (int i = 0; i < tasks; ++i) {
      const int c = number + i < tasks ? number + i : number + i - tasks;
      const int64_t from = begin + c * chunk, size = std::min(chunk, end - from);
      std::atomic<int64_t>& taken = chunks[static_cast<std::size_t>(c)].taken;
      while (taken.load(std::memory_order_relaxed) < size) {
        const int64_t at = taken.fetch_add(piece, std::memory_order_relaxed);
        if (at >= size) break;
        const int64_t n = std::min(piece, size - at);
        run_piece(from + at, from + at + n);
        count += n;
      }
    }
    inside_region = outer_inside;
    thread_number = outer_number;
    return count;
  }
};

class Pool {
 public:
  // Whether others are asked for help with a region of so many grains for each thread; when not, the caller runs it alone. Beside
  // neighbours all workers sleep, and waking them takes as long as a small region.
  bool wants_help(int64_t grains, bool small_grains) const {
    if (inside_region && idle_.load(std::memory_order_relaxed) == 0) return false;
    const int64_t refrain = refrain_until_.load(std::memory_order_relaxed);
    if (refrain != 0 && clock_now() < refrain) return false;
    return !small_grains || grains >= kCrowdedGrains || !crowded();
  }

  void run(const std::shared_ptr<Region>& region) {
    const bool nested = inside_region;
    if (!nested) busy_.fetch_add(1);
    {
      std::lock_guard lock(mutex_);
      ensure_workers(get_num_threads() - 1);
      list(region);
    }
    wake(region->tasks - 1);
    const int64_t all = region->end - region->begin, count = region->run(0);
    {
      std::lock_guard lock(mutex_);
      unlist(*region);
    }
    // What others took is theirs to finish; meanwhile this thread is none of those that work.
    const bool alone = region->finished.fetch_add(count, std::memory_order_acq_rel) + count == all;
    if (!nested || !alone) leave();
    if (!alone) wait(*region);
    if (nested && !alone) busy_.fetch_add(1);
  }

 private:
  void list(const std::shared_ptr<Region>& region) {
    region->listed = true;
    open_.push_back(region);
    openings_.store(static_cast<int>(open_.size()));
  }
  void unlist(Region& region) {
    if (!std::exchange(region.listed, false)) return;
    std::erase_if(open_, [&](const std::shared_ptr<Region>& r) { return r.get() == &region; });
    openings_.store(static_cast<int>(open_.size()));
  }

  bool work_for_one_more() const { return openings_.load() > 0 && busy_.load() < get_num_threads(); }
  void wake(int most) {
    if (sleeping_.load() == 0) return;
    std::lock_guard lock(mutex_);
    for (int i = std::min(most, sleeping_.load()); i > 0; --i) wake_.notify_one();
  }
  // One thread less works: another may take its place.
  void leave() {
    busy_.fetch_sub(1);
    if (openings_.load() > 0) wake(1);
  }

  // Did it happen shortly before `begin`, or was it just given another chance? It lasts to `end` now.
  static bool again(std::atomic<int64_t>& last, const std::atomic<int64_t>& until, int64_t begin, int64_t end) {
    const int64_t before = std::max(last.exchange(end, std::memory_order_relaxed), until.load(std::memory_order_relaxed));
    return begin - before < std::chrono::nanoseconds(kAgain).count();
  }
  bool crowded() const {
    const int64_t until = crowded_until_.load(std::memory_order_relaxed);
    return until != 0 && clock_now() < until;
  }

  // Sleeps unless the others are about to finish: a processor that has nothing to run takes a thread from one that has too many. Help
  // that holds up its caller for longer than it worked, more than once, is not asked for again for a while.
  void wait(Region& region) {
    if (spin([&] { return region.done(); })) return;
    const int64_t start = clock_now();
    {
      std::unique_lock lock(region.mutex);
      region.last.wait(lock, [&] { return region.done(); });
    }
    const int64_t end = clock_now(), lost = end - start - region.helped.load(std::memory_order_relaxed);
    if (lost > 0 && again(lost_, refrain_until_, start, end))
      refrain_until_.store(end + std::min(lost * kRefrain, kLongestRefrain), std::memory_order_relaxed);
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
      pause();
    }
    return false;
  }
  template <class Done>
  void stay_awake(const Done& done) {
    if (crowded() || spin(done)) return;
    const int64_t end = clock_now() + std::chrono::nanoseconds(kStayAwake).count();
    for (int64_t before = clock_now(); before < end && !done();) {
      std::this_thread::yield();
      const int64_t after = clock_now();
      if (after - before > std::chrono::nanoseconds(kHeldUp).count()) {
        if (again(held_up_, crowded_until_, before, after))
          crowded_until_.store(after + std::chrono::nanoseconds(kCrowded).count(), std::memory_order_relaxed);
        return;
      }
      before = after;
    }
  }

  // A region to help with, and the number of this thread in it. The newest first: others may wait for a region inside of their own.
  std::shared_ptr<Region> join(int& number) {
    std::lock_guard lock(mutex_);
    if (open_.empty() || busy_.load() >= get_num_threads()) return nullptr;
    std::shared_ptr<Region> region = open_.back();
    number = region->threads.fetch_add(1);
    if (number + 1 >= region->tasks) unlist(*region);
    busy_.fetch_add(1);
    idle_.fetch_sub(1);
    return region;
  }

  void loop() {
    idle_.fetch_add(1);
    int64_t idle_since = clock_now(), used = processor_time();
    bool slept = false;
    for (;;) {
      const auto wanted = [&] { return work_for_one_more(); };
      stay_awake(wanted);
      if (!wanted()) {
        slept = true;
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, wanted);
        sleeping_.fetch_sub(1);
      }
      int number = 0;
      const std::shared_ptr<Region> region = join(number);
      if (!region) continue;
      const int64_t start = clock_now(), used_before = slept ? processor_time() : used + (start - idle_since);
      help(*region, number, start, used_before);
      idle_since = clock_now();
      used = processor_time();
      slept = false;
    }
  }

  void help(Region& region, int number, int64_t start, int64_t used_before) {
    int64_t count;
    {
      const ThreadStateGuard guard(region.state);
      count = region.run(number);
    }
    if (region.threads.load(std::memory_order_relaxed) < region.tasks) {  // nothing is left for more threads
      std::lock_guard lock(mutex_);
      unlist(region);
    }
    idle_.fetch_add(1);
    if (count > 0) {
      constexpr int64_t kShort = 200'000;  // ns: whoever was held up in between was so for less
      const int64_t passed = clock_now() - start;
      region.helped.fetch_add(passed < kShort ? passed : std::max<int64_t>(processor_time() - used_before, 0), std::memory_order_relaxed);
      if (region.finished.fetch_add(count, std::memory_order_acq_rel) + count == region.end - region.begin) {
        {
          std::lock_guard lock(region.mutex);
        }  // whoever is about to wait has looked or waits
        region.last.notify_one();
      }
    }
    leave();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Region>> open_;                       // regions that more threads may join
  std::atomic<int> openings_{0}, busy_{0}, idle_{0}, sleeping_{0};  // size of open_; threads that work; workers that do not, that sleep
  std::atomic<int64_t> held_up_{0}, lost_{0};                       // when a worker was held up, and held up its caller, for the last time
  std::atomic<int64_t> crowded_until_{0}, refrain_until_{0};
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
  if (tasks > 1 && pool().wants_help(n / grain / tasks, grain > 1)) {
    const int64_t chunk = (n + tasks - 1) / tasks,
                  piece = std::min(piece_of(chunk, grain), std::max(grain, (chunk + kPieces - 1) / kPieces));
    const auto region = std::make_shared<Region>(f, begin, end, chunk, static_cast<int>((n + chunk - 1) / chunk), piece);
    pool().run(region);
    if (region->error) std::rethrow_exception(region->error);
    return;
  }
  // Alone for want of help it is a region all the same: how products in it are cut must not depend on who has time.
  const InsideRegion inside(inside_region || tasks > 1);
  const int64_t piece = piece_of(n, grain);
  for (int64_t at = begin; at < end; at += piece) {
    check_interrupt();
    f(at, std::min(at + piece, end));
  }
}

}  // namespace detail
}  // namespace cresset
