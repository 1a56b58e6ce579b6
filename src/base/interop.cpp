// The inter-op pool.
#include <cresset/base/fork.h>
#include <cresset/base/interop.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <cresset/base/error.h>

#include "base/processors.h"
#include "base/signals.h"
#include "base/thread_state.h"

namespace cresset {
namespace {

int default_interop_threads() {
  if (const char* text = std::getenv("CRESSET_NUM_INTEROP_THREADS"))
    if (const int n = std::atoi(text); n > 0) return n;
  return usable_processors();
}

struct Task {
  std::function<void()> function;
  ThreadState state = ThreadState::capture();
};

void run(const Task& task) noexcept {
  const ThreadStateGuard guard(task.state);
  try {
    task.function();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "Exception in a task of the inter-op pool: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "Exception in a task of the inter-op pool.\n");
  }
}

// Threads live as long as the process: tasks may still run while statics are destroyed.
class InteropPool {
 public:
  void add(std::function<void()> function) {
    Task task{std::move(function)};
    std::unique_lock lock(mutex_);
    if (!start_for_one_more()) {
      lock.unlock();
      return run(task);
    }
    tasks_.push_back(std::move(task));
    lock.unlock();
    changed_.notify_one();
  }
  int size() {
    const std::lock_guard lock(mutex_);
    return limit();
  }
  void resize(int n) {
    CRESSET_CHECK(n > 0, "Expected positive number of threads");
    const std::lock_guard lock(mutex_);
    CRESSET_CHECK(size_ == 0 && threads_ == 0,
                  "Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads called");
    size_ = n;
  }

 private:
  // Another thread when the waiting ones have enough to do. False when the system starts none and there is none yet. Under the lock.
  bool start_for_one_more() {
    if (idle_ > tasks_.size() || threads_ >= limit()) return true;
    const SignalsBlocked inherited;
    try {
      std::thread([this] {
        SignalsBlocked::always();
        work();
      }).detach();
      ++threads_;
    } catch (const std::system_error&) {
    }
    return threads_ > 0;
  }
  int limit() const {
    static const int standard = default_interop_threads();
    return size_ ? size_ : standard;
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      --idle_;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      run(task);
      task.function = nullptr;  // what it holds may be the last reference to much
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::size_t idle_ = 0;
  int threads_ = 0, size_ = 0;  // size_: 0 until it is set
};

// Never destroyed. A forked child has none of the threads and starts with a fresh pool.
std::atomic<InteropPool*> interop_instance{nullptr};
InteropPool& interop_pool() {
  static ForkSafe<std::mutex> mutex;
  InteropPool* p = interop_instance.load(std::memory_order_acquire);
  if (p) return *p;
  const std::lock_guard lock(mutex);
  if (!(p = interop_instance.load())) {
    p = new InteropPool;
    interop_instance.store(p);
    static const bool registered = (call_in_forked_child([] { interop_instance.store(nullptr); }), true);
    (void)registered;
  }
  return *p;
}

}  // namespace

void launch(std::function<void()> task) {
  CRESSET_CHECK(task, "launch: a function was required; an empty one was given.");
  interop_pool().add(std::move(task));
}
int get_num_interop_threads() { return interop_pool().size(); }
void set_num_interop_threads(int n) { interop_pool().resize(n); }

}  // namespace cresset
