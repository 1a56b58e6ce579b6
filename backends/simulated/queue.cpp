#include "queue.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faults.h"

namespace simulated {
namespace {

// An entry of a queue: work, or a condition under which the queue may go on.
struct Entry {
  Task task;
  std::function<bool()> may_go_on;  // called with the lock held
  bool is_work = true;              // what the fault `delay` makes late; not what queues do for themselves
};

struct Queue {
  std::deque<Entry> entries;
  bool running = false;
  std::shared_ptr<Failure> failure;
  int priority = 0;
  std::shared_ptr<Graph> graph;  // what it records
};

// One lock for all devices: marks go between them.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
};
World& world() {
  static auto* w = new World;
  return *w;
}

struct Device {
  std::map<uint64_t, Queue> queues{{0, {}}};
  uint64_t next = 1;
  bool started = false;  // the worker: from the first task until the process ends

  // The next thing that can be done; called with the lock held.
  Queue* ready() {
    Queue* first = nullptr;
    for (auto& [id, q] : queues) {
      while (!q.entries.empty() && q.entries.front().may_go_on && q.entries.front().may_go_on()) q.entries.pop_front();
      if (!q.entries.empty() && q.entries.front().task && (!first || q.priority < first->priority)) first = &q;
    }
    return first;
  }

  [[noreturn]] void run() {
    World& w = world();
    std::unique_lock lock(w.mutex);
    for (;;) {
      Queue* q = nullptr;
      w.changed.wait(lock, [&] { return (q = ready()) != nullptr; });
      Task task = std::move(q->entries.front().task);
      const bool is_work = q->entries.front().is_work;
      q->entries.pop_front();
      q->running = true;
      lock.unlock();
      std::string error;
      try {
        if (is_work) delay();
        task();
      } catch (const std::exception& e) {
        error = e.what();
      }
      task = nullptr;  // may free memory, which takes the lock
      lock.lock();
      q->running = false;
      if (!error.empty() && !q->failure) q->failure = std::make_shared<Failure>(Failure{error});
      w.changed.notify_all();
    }
  }
};
Device& device(int index) {
  static auto* all = new Device[kDevices];
  return all[index];
}

std::atomic<int64_t> waits{0};

bool idle(Queue& q) {
  while (!q.entries.empty() && q.entries.front().may_go_on && q.entries.front().may_go_on()) q.entries.pop_front();
  return q.entries.empty() && !q.running;
}

void raise_error(std::shared_ptr<Failure> failure) {
  if (!failure || std::exchange(failure->told, true)) return;
  throw std::runtime_error(failure->text);
}
void raise_error(Queue& q) { raise_error(std::exchange(q.failure, nullptr)); }

// With the lock held: the recording that goes on under this number, or null.
std::shared_ptr<Graph> recording_with_number(uint64_t number) {
  if (number == 0) return nullptr;
  for (int d = 0; d < kDevices; ++d)
    for (auto& [id, q] : device(d).queues)
      if (q.graph && q.graph->number == number) return q.graph;
  return nullptr;
}

void push(int index, uint64_t queue, Entry entry) {
  World& w = world();
  std::lock_guard lock(w.mutex);
  Device& d = device(index);
  d.queues[queue].entries.push_back(std::move(entry));
  if (!d.started) {
    d.started = true;
    std::thread([&d] { d.run(); }).detach();
  }
  w.changed.notify_all();
}

}  // namespace

uint64_t make_queue(int index, int priority) {
  std::lock_guard lock(world().mutex);
  Device& d = device(index);
  d.queues[d.next].priority = priority;
  return d.next++;
}
void* handle_of_queue(int index, uint64_t queue) {
  std::lock_guard lock(world().mutex);
  return &device(index).queues[queue];
}
uint64_t queue_of_handle(int index, const void* handle) {
  std::lock_guard lock(world().mutex);
  for (const auto& [id, q] : device(index).queues)
    if (&q == handle) return id;
  throw std::runtime_error("no queue of the device has this handle");
}

void submit(int index, uint64_t queue, Task task, std::string name) {
  {
    std::lock_guard lock(world().mutex);
    if (Queue& q = device(index).queues[queue]; q.graph) {
      q.graph->steps.emplace_back(std::move(name), std::move(task));
      return;
    }
  }
  push(index, queue, {std::move(task), nullptr});
}

void submit_external(int index, uint64_t queue, const std::shared_ptr<External>& work, Task start) {
  push(index, queue, {std::move(start), nullptr, false});
  push(index, queue, {nullptr, [work] { return work->finished; }});
  const auto result = [work] {
    if (!work->error.empty()) throw std::runtime_error(work->error);
  };
  push(index, queue, {result, nullptr, false});
}
void finish_external(External& work, std::string error) {
  {
    const std::lock_guard lock(world().mutex);
    work.error = std::move(error);
    work.finished = true;
  }
  world().changed.notify_all();
}
void forget_failure(int index, uint64_t queue) {
  const auto forget = [index, queue] {
    const std::lock_guard lock(world().mutex);
    device(index).queues[queue].failure = nullptr;
  };
  push(index, queue, {forget, nullptr, false});
}

void begin_recording(int index, uint64_t queue) {
  static uint64_t next = 1;
  std::lock_guard lock(world().mutex);
  Queue& q = device(index).queues[queue];
  if (q.graph) throw std::runtime_error("the queue is being recorded");
  q.graph = std::make_shared<Graph>(Graph{next++, {}});
}
std::shared_ptr<Graph> end_recording(int index, uint64_t queue) {
  std::lock_guard lock(world().mutex);
  const std::shared_ptr<Graph> graph = device(index).queues[queue].graph;
  for (int d = 0; d < kDevices; ++d)
    for (auto& [id, q] : device(d).queues)
      if (q.graph == graph) q.graph.reset();
  return graph;
}
bool is_recording(int index, uint64_t queue) {
  std::lock_guard lock(world().mutex);
  return device(index).queues[queue].graph != nullptr;
}
void replay(int index, uint64_t queue, const std::shared_ptr<Graph>& graph) {
  submit(
      index, queue,
      [graph] {
        for (const auto& [name, task] : graph->steps) {
          delay();
          task();
        }
      },
      "replay");
}

void after_all(int index, const Task& task) {
  std::vector<uint64_t> busy;
  {
    std::lock_guard lock(world().mutex);
    for (auto& [id, q] : device(index).queues)
      if (!idle(q)) busy.push_back(id);
  }
  for (uint64_t queue : busy) push(index, queue, {task, nullptr, false});
}

int64_t host_waits() { return waits.load(); }

void wait_for(int index, uint64_t queue) {
  ++waits;
  World& w = world();
  std::unique_lock lock(w.mutex);
  Queue& q = device(index).queues[queue];
  if (q.graph) throw std::runtime_error("what a queue records is not done, and cannot be waited for");
  w.changed.wait(lock, [&] { return idle(q); });
  raise_error(q);
}

void wait_for_device(int index) {
  ++waits;
  World& w = world();
  std::unique_lock lock(w.mutex);
  Device& d = device(index);
  w.changed.wait(lock, [&] {
    for (auto& [id, q] : d.queues)
      if (!idle(q)) return false;
    return true;
  });
  for (auto& [id, q] : d.queues) raise_error(q);
}

bool is_idle(int index, uint64_t queue) {
  std::lock_guard lock(world().mutex);
  return idle(device(index).queues[queue]);
}

std::shared_ptr<Mark> make_mark() { return std::make_shared<Mark>(); }

void record(int index, uint64_t queue, const std::shared_ptr<Mark>& mark) {
  uint64_t generation;
  {
    std::lock_guard lock(world().mutex);
    if (const auto& graph = device(index).queues[queue].graph) {
      mark->graph = graph->number;
      return;
    }
    mark->graph = 0;
    generation = ++mark->recorded;
  }
  submit(index, queue, [mark, generation, index, queue] {
    std::lock_guard lock(world().mutex);
    mark->reached = std::max(mark->reached, generation);
    mark->failure = device(index).queues[queue].failure;
    mark->time = std::chrono::steady_clock::now();
  });
}

void let_wait(int index, uint64_t queue, const std::shared_ptr<Mark>& mark) {
  uint64_t generation;
  {
    std::lock_guard lock(world().mutex);
    generation = mark->recorded;
    Queue& q = device(index).queues[queue];
    if (const auto graph = recording_with_number(mark->graph)) {
      if (q.graph && q.graph != graph) throw std::runtime_error("a queue cannot take part in two recordings");
      q.graph = graph;
      return;
    }
    if (q.graph) {
      if (mark->reached >= generation) return;
      throw std::runtime_error("what is recorded cannot wait for work that is not");
    }
  }
  const auto passed = [mark, generation, index, queue] {
    if (mark->reached < generation) return false;
    auto& failure = device(index).queues[queue].failure;
    if (mark->failure && !failure) failure = mark->failure;
    return true;
  };
  push(index, queue, {nullptr, passed});
}

bool has_happened(const Mark& mark) {
  std::lock_guard lock(world().mutex);
  return mark.reached >= mark.recorded;
}

void wait_for_mark(const Mark& mark) {
  ++waits;
  World& w = world();
  std::unique_lock lock(w.mutex);
  const uint64_t generation = mark.recorded;
  w.changed.wait(lock, [&] { return mark.reached >= generation; });
  raise_error(mark.failure);
}

}  // namespace simulated
