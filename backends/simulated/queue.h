// Queues of work: one worker a device runs the tasks of all its queues; tasks of one queue run in order, a queue that waits
// for an event lets the others go on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace simulated {

using Task = std::function<void()>;

/// What a task raised. It is told once, to who waits first for one of the queues that it concerns.
struct Failure {
  std::string text;
  bool told = false;
};

/// A mark in a queue. `generation` counts its recordings, so that an older wait does not see a newer mark.
struct Mark {
  uint64_t recorded = 0, reached = 0;
  std::shared_ptr<Failure> failure;  // of its queue when it was reached: queues that wait for it have failed, too
  uint64_t graph = 0;                // the number of the recording that it is part of
  std::chrono::steady_clock::time_point time;
};

constexpr int kDevices = 2;

constexpr int kLowestPriority = 0, kHighestPriority = -2;

/// Tasks of queues with smaller numbers go first.
uint64_t make_queue(int device, int priority);
/// The queue as its driver knows it, and back; 0 for one that is none.
void* handle_of_queue(int device, uint64_t queue);
uint64_t queue_of_handle(int device, const void* handle);
/// Puts work behind everything in the queue, or into what the queue records. A task that raises leaves its text for the next wait.
void submit(int device, uint64_t queue, Task task, std::string name = "work");
/// Work that somebody else does: the queue calls start(), and goes on after finish_external(), which may come from any thread. With an
/// error it goes on as after a task that raises. Other queues go on meanwhile.
struct External {
  bool finished = false;
  std::string error;
};
void submit_external(int device, uint64_t queue, const std::shared_ptr<External>& work, Task start);
void finish_external(External& work, std::string error);
/// What fails in the queue before here concerns those queues only that waited for a mark in between.
void forget_failure(int device, uint64_t queue);
/// Calls `task` once in every queue of the device that is not idle; keeps it until the last of them has come there.
void after_all(int device, const Task& task);
/// Waits for one queue, or (all_queues) for the whole device. Raises what a task raised.
void wait_for(int device, uint64_t queue);
void wait_for_device(int device);
bool is_idle(int device, uint64_t queue);
/// How often the host has waited for a queue, a device or a mark.
int64_t host_waits();

/// Recorded work, in an order in which one worker can do it.
struct Graph {
  uint64_t number;
  std::vector<std::pair<std::string, Task>> steps;
};
/// From now on what is put into the queue is kept instead of done; so is what is put into queues that wait for marks in it.
void begin_recording(int device, uint64_t queue);
std::shared_ptr<Graph> end_recording(int device, uint64_t queue);
bool is_recording(int device, uint64_t queue);
void replay(int device, uint64_t queue, const std::shared_ptr<Graph>& graph);

std::shared_ptr<Mark> make_mark();
void record(int device, uint64_t queue, const std::shared_ptr<Mark>& mark);
/// The queue does nothing until what is recorded now has happened.
void let_wait(int device, uint64_t queue, const std::shared_ptr<Mark>& mark);
bool has_happened(const Mark& mark);
void wait_for_mark(const Mark& mark);

}  // namespace simulated
