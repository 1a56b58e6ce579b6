// Tasks of prim::fork on the inter-op pool.
#include <cresset/base/fork.h>
#include <cresset/base/interop.h>
#include <cresset/ir/script_effects.h>

#include <mutex>
#include <unordered_map>

#include "base/thread_state.h"
#include "ir/run/delay.h"

namespace cresset::jit {
namespace {

thread_local const TaskLauncher* task_launcher = nullptr;  // null: the pool

struct Task {
  std::function<IValue()> function;
  intrusive_ptr<ivalue::Future> future;
  ThreadState state = ThreadState::capture();  // of the thread that forked; any thread may run the task
};

void run(const Task& t) {
  const ThreadStateGuard guard(t.state);
  IValue result;
  try {
    result = t.function();
  } catch (...) {
    t.future->set_error(std::current_exception());
    return;
  }
  t.future->mark_completed(std::move(result));
}

// Tasks that nobody has begun. Never destroyed: scripts may still run while statics are destroyed.
class Waiting {
 public:
  static Waiting& get() {
    static Waiting* waiting = new Waiting;
    return *waiting;
  }
  void add(std::unique_ptr<Task> t) {
    const std::lock_guard lock(mutex_);
    ivalue::Future* key = t->future.get();
    tasks_.emplace(key, std::move(t));
  }
  /// Null when somebody else has begun it.
  std::unique_ptr<Task> take(ivalue::Future* key) {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(key);
    if (found == tasks_.end()) return nullptr;
    auto t = std::move(found->second);
    tasks_.erase(found);
    return t;
  }

 private:
  ForkSafe<std::mutex> mutex_;
  std::unordered_map<ivalue::Future*, std::unique_ptr<Task>> tasks_;
};

// Functions that run when somebody asks. Each belongs to its future, which keeps it among its callbacks.
class Delayed {
 public:
  struct Work {
    ~Work() { Delayed::get().forget(key); }
    Task task;
    ivalue::Future* key;
  };
  static Delayed& get() {
    static Delayed* delayed = new Delayed;
    return *delayed;
  }
  void add(const std::shared_ptr<Work>& work) {
    const std::lock_guard lock(mutex_);
    work_[work->key] = work;
  }
  /// Null when somebody else has begun it.
  std::shared_ptr<Work> take(ivalue::Future* key) {
    const std::lock_guard lock(mutex_);
    const auto found = work_.find(key);
    if (found == work_.end()) return nullptr;
    auto work = found->second.lock();
    work_.erase(found);
    return work;
  }

 private:
  void forget(ivalue::Future* key) {
    const std::lock_guard lock(mutex_);
    const auto found = work_.find(key);
    if (found != work_.end() && found->second.expired()) work_.erase(found);
  }
  ForkSafe<std::mutex> mutex_;
  std::unordered_map<ivalue::Future*, std::weak_ptr<Work>> work_;
};

}  // namespace

intrusive_ptr<ivalue::Future> delay(std::function<IValue()> function, TypePtr element) {
  auto future = make_intrusive<ivalue::Future>(std::move(element));
  auto work = std::make_shared<Delayed::Work>();
  work->task.function = std::move(function);
  work->key = future.get();
  Delayed::get().add(work);
  future->then([work](ivalue::Future&) {});
  return future;
}

intrusive_ptr<ivalue::Future> launch(std::function<IValue()> function, TypePtr element) {
  auto future = make_intrusive<ivalue::Future>(std::move(element));
  Waiting::get().add(std::make_unique<Task>(Task{std::move(function), future}));
  // The future is held until a thread has looked for its task: its address is the task's name.
  const auto begin = [future] {
    if (auto t = Waiting::get().take(future.get())) run(*t);
  };
  if (task_launcher)
    (*task_launcher)(begin);
  else
    cresset::launch(begin);
  return future;
}

WithTaskLauncher::WithTaskLauncher(const TaskLauncher& launcher)
    : old_(std::exchange(task_launcher, launcher ? &launcher : task_launcher)) {}
WithTaskLauncher::~WithTaskLauncher() { task_launcher = old_; }

intrusive_ptr<ivalue::Future> run_as_future(const std::function<IValue()>& function, const TaskLauncher& launcher) {
  auto future = make_intrusive<ivalue::Future>(basic_type(TypeKind::Any));
  const WithTaskLauncher with(launcher);
  try {
    future->mark_completed(function());
  } catch (...) {
    future->set_error(std::current_exception());
  }
  return future;
}

IValue wait(const intrusive_ptr<ivalue::Future>& future) {
  if (!future->completed()) {
    if (auto t = Waiting::get().take(future.get())) run(*t);
    if (auto delayed = Delayed::get().take(future.get())) {
      Task task = std::move(delayed->task);
      task.future = future;
      run(task);
    }
  }
  return future->wait();
}

}  // namespace cresset::jit
