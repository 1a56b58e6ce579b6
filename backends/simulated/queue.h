// Queues of work: one worker a device runs the tasks of all its queues; tasks of one queue run in order, a queue that waits
// for an event lets the others go on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace simulated {

using Task = std::function<void()>;

/// A mark in a queue. `generation` counts its recordings, so that an older wait does not see a newer mark.
struct Mark {
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point time;
};

constexpr int kDevices = 2;

uint64_t make_queue(int device);
/// Puts work behind everything in the queue. A task that raises leaves its text for the next wait.
void submit(int device, uint64_t queue, Task task);
/// Calls `task` once in every queue of the device that is not idle; keeps it until the last of them has come there.
void after_all(int device, const Task& task);
/// Waits for one queue, or (all_queues) for the whole device. Raises what a task raised.
void wait_for(int device, uint64_t queue);
void wait_for_device(int device);
bool is_idle(int device, uint64_t queue);
/// How often the host has waited for a queue, a device or a mark.
int64_t host_waits();

std::shared_ptr<Mark> make_mark();
void record(int device, uint64_t queue, const std::shared_ptr<Mark>& mark);
/// The queue does nothing until what is recorded now has happened.
void let_wait(int device, uint64_t queue, const std::shared_ptr<Mark>& mark);
bool has_happened(const Mark& mark);
void wait_for_mark(const Mark& mark);

}  // namespace simulated
