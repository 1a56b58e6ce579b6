// Backward passes that touch devices: shared queues, one thread for each device, and fresh stacks for deep reentrancy.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <cresset/base/fork.h>
#include <cresset/base/interrupt.h>

#include "autograd/graph_task.h"
#include "base/signals.h"

namespace cresset::autograd {
namespace {
EngineThreadHooks hooks;

/// Lets other threads have the interpreter lock while this one waits.
struct Waiting {
  Waiting() : state(hooks.before_wait ? hooks.before_wait() : nullptr) {}
  ~Waiting() {
    if (hooks.after_wait) hooks.after_wait(state);
  }
  void* state;
};
}  // namespace

void set_engine_thread_hooks(EngineThreadHooks h) { hooks = h; }

namespace engine {

namespace {
bool runs_later_item(const SharedQueue::Item& a, const SharedQueue::Item& b) {
  return a.depth != b.depth ? a.depth < b.depth : runs_later(a.ready, b.ready);
}

/// The queue that this thread serves when it is a device thread.
thread_local SharedQueue* own_queue = nullptr;

struct DeviceThreads {
  std::mutex mutex;
  std::map<std::pair<int, int>, SharedQueue*> queues;  // live as long as the process, as their threads do
};
// A forked child has none of the threads and starts anew.
std::atomic<DeviceThreads*> device_threads_instance{nullptr};
DeviceThreads& device_threads() {
  static const bool ready = [] {
    device_threads_instance = new DeviceThreads();
    call_in_forked_child([] { device_threads_instance = new DeviceThreads(); });
    return true;
  }();
  (void)ready;
  return *device_threads_instance.load(std::memory_order_acquire);
}

void drive(SharedQueue& queue, const GraphTask* until);

SharedQueue& queue_of_device(Device device) {
  DeviceThreads& all = device_threads();
  std::lock_guard<std::mutex> lock(all.mutex);
  SharedQueue*& queue = all.queues[{static_cast<int>(device.type()), device.index()}];
  if (!queue) {
    auto fresh = std::make_unique<SharedQueue>();
    const SignalsBlocked inherited;
    std::thread([q = fresh.get()] {
      SignalsBlocked::always();
      own_queue = q;
      drive(*q, nullptr);
    }).detach();
    queue = fresh.release();  // only with its thread
  }
  return *queue;
}

SharedQueue& queue_for(GraphTask& task, const Node& node) {
  const Device device = node.device();
  if (device.is_cpu()) return *task.owner_queue;
  return queue_of_device(device);
}

void fail(GraphTask& task, std::exception_ptr error) {
  std::lock_guard<std::mutex> lock(task.mutex);
  if (!task.failed) task.error = std::move(error);
  task.failed = true;
}

/// Marks one item of a task as finished; the last one, or an error, ends the pass.
void finish_item(GraphTask& task) {
  bool done;
  {
    std::lock_guard<std::mutex> lock(task.mutex);
    done = --task.outstanding == 0 || task.failed;
  }
  if (done && !task.complete.exchange(true)) task.owner_queue->wake();
}

void run_item(const SharedQueue::Item& item) {
  GraphTask& task = *item.task;
  bool failed;
  {
    std::lock_guard<std::mutex> lock(task.mutex);
    failed = task.failed;
  }
  if (!failed) {
    const Current saved = std::exchange(current, Current{&task, nullptr});
    const bool saved_partial = std::exchange(detail::partial_pass, task.partial);
    try {
      const ThreadStateGuard state(task.thread_state);
      task.run(item.ready, [&](Ready r) {
        // Called with the task's lock held.
        ++task.outstanding;
        queue_for(task, *task.states[r.slot].node).push({item.task, r, task.depth});
      });
    } catch (...) {
      fail(task, std::current_exception());
    }
    current = saved;
    detail::partial_pass = saved_partial;
  }
  finish_item(task);
}

void drive(SharedQueue& queue, const GraphTask* until) {
  SharedQueue::Item item;
  while (queue.pop(item, until)) {
    run_item(item);
    item.task.reset();
  }
}
}  // namespace

void SharedQueue::push(Item item) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    heap_.push_back(std::move(item));
    std::push_heap(heap_.begin(), heap_.end(), runs_later_item);
  }
  changed_.notify_one();
}

bool SharedQueue::pop(Item& item, const GraphTask* until) {
  for (;;) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (until && until->complete.load()) return false;
      if (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), runs_later_item);
        item = std::move(heap_.back());
        heap_.pop_back();
        return true;
      }
    }
    if (until) check_signals();
    const Waiting waiting;
    std::unique_lock<std::mutex> lock(mutex_);
    const auto wanted = [&] { return !heap_.empty() || (until && until->complete.load()); };
    if (until)
      changed_.wait_for(lock, std::chrono::milliseconds(50), wanted);
    else
      changed_.wait(lock, wanted);
  }
}

void SharedQueue::wake() {
  { std::lock_guard<std::mutex> lock(mutex_); }
  changed_.notify_all();
}

void SharedQueue::close() {
  std::vector<Item> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  dropped.swap(heap_);
}

void run_with_devices(const std::shared_ptr<GraphTask>& task, const std::vector<Ready>& ready) {
  if (ready.empty()) return;
  if (!own_queue) task->local_queue = std::make_unique<SharedQueue>();
  task->owner_queue = own_queue ? own_queue : task->local_queue.get();
  task->thread_state = ThreadState::capture();
  {
    std::lock_guard<std::mutex> lock(task->mutex);
    task->outstanding = static_cast<uint32_t>(ready.size());
  }
  for (const Ready& r : ready) queue_for(*task, *task->states[r.slot].node).push({task, r, task->depth});
  try {
    drive(*task->owner_queue, task.get());
  } catch (...) {  // it was told to stop; what device threads have of the pass ends with their next node
    fail(*task, std::current_exception());
  }
  if (task->local_queue) task->local_queue->close();  // after an error another thread may still want to push
  std::lock_guard<std::mutex> lock(task->mutex);
  if (task->failed) std::rethrow_exception(std::exchange(task->error, nullptr));
}

void run_on_fresh_stack(const std::function<void()>& f) {
  std::exception_ptr error;
  const ThreadState state = ThreadState::capture();
  const Current outer = current;
  std::optional<SignalsBlocked> inherited(std::in_place);
  std::thread thread([&] {
    SignalsBlocked::always();
    const ThreadStateGuard guard(state);
    current = outer;
    try {
      f();
    } catch (...) {
      error = std::current_exception();
    }
    current = {};
  });
  inherited.reset();
  {
    const Waiting waiting;
    thread.join();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace engine
}  // namespace cresset::autograd
