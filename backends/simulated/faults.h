// Faults on demand: what a real device does once a year, a test can have now.
#pragma once

#include <cstdint>

namespace simulated {

/// True when this allocation shall fail.
bool next_allocation_fails();
/// True when fresh memory shall be filled with NaN (all bits set).
bool poisons();
/// Sleeps in front of a task when that is asked for.
void delay();
/// The same in front of a transfer between processes (transfer_delay).
void delay_transfer();
/// At the start of every function that the host calls to make or do something: sleeps when that is asked for (host_delay), and counts
/// calls of threads that hold Python's lock. Freeing memory is not one: it does not wait.
void enter();
int64_t calls_with_lock();
/// Raises when this task shall fail.
void maybe_fail_task();
/// True when kernels shall go to the default queue, whatever the current one is.
bool in_wrong_queue();
/// True when this kernel shall give a wrong number.
bool is_wrong(const char* op);

}  // namespace simulated

extern "C" {
/// fail_allocation: the n-th allocation from now; fail_task: the n-th kernel from now; delay: microseconds in front of each
/// task; host_delay: microseconds in each call of the host; transfer_delay: microseconds in front of each transfer of a process group;
/// poison, wrong_queue: 0 or 1. Gives -1 for another name.
__attribute__((visibility("default"))) int simulated_set_fault(const char* name, int64_t value);
/// The kernel of this operator gives a wrong number; "" for none.
__attribute__((visibility("default"))) void simulated_set_wrong(const char* op);
/// Blocks of device memory that are alive.
__attribute__((visibility("default"))) int64_t simulated_live_blocks(void);
/// Calls of hooks so far: "set_device", "optimizer_step", "profile_push", "kernel", "with_lock" (by a thread that held
/// the lock of a Python interpreter), "host_wait" (the host waited for a queue, an event or the device).
__attribute__((visibility("default"))) int64_t simulated_calls(const char* hook);
}
