// The pool of prim::fork.
#include <cresset/core/grad_mode.h>
#include <cresset/ir/interpreter.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace cresset::jit {
namespace {

struct Task {
  std::function<IValue()> function;
  intrusive_ptr<ivalue::Future> future;
  cresset::detail::GradModeState grad_mode = cresset::detail::grad_mode_state;
  cresset::detail::LocalDispatchKeyState keys = cresset::detail::local_keys;
};

// Carries the state of the thread that forked over to the one that runs.
class StateGuard {
 public:
  explicit StateGuard(const Task& t) : grad_mode_(cresset::detail::grad_mode_state), keys_(cresset::detail::local_keys) {
    cresset::detail::grad_mode_state = t.grad_mode;
    cresset::detail::local_keys = t.keys;
  }
  ~StateGuard() {
    cresset::detail::grad_mode_state = grad_mode_;
    cresset::detail::local_keys = keys_;
  }

 private:
  cresset::detail::GradModeState grad_mode_;
  cresset::detail::LocalDispatchKeyState keys_;
};

void run(Task& t) {
  const StateGuard guard(t);
  IValue result;
  try {
    result = t.function();
  } catch (...) {
    t.future->set_error(std::current_exception());
    return;
  }
  t.future->mark_completed(std::move(result));
}

// Threads start with the first fork and live as long as the process: scripts may still run while statics are destroyed.
class Pool {
 public:
  static Pool& get() {
    static Pool* pool = new Pool;
    return *pool;
  }
  void add(std::unique_ptr<Task> t) {
    {
      const std::lock_guard lock(mutex_);
      ivalue::Future* key = t->future.get();
      waiting_.emplace(key, std::move(t));
      order_.push_back(key);
      if (threads_ < std::max(2u, std::thread::hardware_concurrency()) && threads_ - idle_ == threads_) {
        std::thread([this] { work(); }).detach();
        ++threads_;
      }
    }
    changed_.notify_one();
  }
  /// Takes a task that has not begun out of the queue.
  std::unique_ptr<Task> claim(ivalue::Future* key) {
    const std::lock_guard lock(mutex_);
    return take(key);
  }

 private:
  std::unique_ptr<Task> take(ivalue::Future* key) {
    const auto found = waiting_.find(key);
    if (found == waiting_.end()) return nullptr;
    auto t = std::move(found->second);
    waiting_.erase(found);
    return t;
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [&] { return !order_.empty(); });
      --idle_;
      ivalue::Future* key = order_.front();
      order_.pop_front();
      auto t = take(key);  // null: somebody who waited ran it
      if (!t) continue;
      lock.unlock();
      run(*t);
      t.reset();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<ivalue::Future*, std::unique_ptr<Task>> waiting_;
  std::deque<ivalue::Future*> order_;
  unsigned threads_ = 0, idle_ = 0;
};

}  // namespace

intrusive_ptr<ivalue::Future> launch(std::function<IValue()> function, TypePtr element) {
  auto t = std::make_unique<Task>();
  t->function = std::move(function);
  t->future = make_intrusive<ivalue::Future>(std::move(element));
  auto future = t->future;
  Pool::get().add(std::move(t));
  return future;
}

IValue wait(const intrusive_ptr<ivalue::Future>& future) {
  if (!future->completed())
    if (auto t = Pool::get().claim(future.get())) run(*t);
  return future->wait();
}

}  // namespace cresset::jit
