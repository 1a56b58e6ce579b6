#include "faults.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "memory.h"

namespace simulated {
namespace {

std::atomic<int64_t> fail_allocation{0}, fail_task{0}, delay_us{0}, host_delay_us{0}, transfer_delay_us{0}, poison{0}, wrong_queue{0},
    with_lock{0};
std::mutex wrong_mutex;
std::string wrong_op;

// Counts down to zero; true for the one that arrives there.
bool hit(std::atomic<int64_t>& count) {
  int64_t n = count.load();
  while (n > 0)
    if (count.compare_exchange_weak(n, n - 1)) return n == 1;
  return false;
}

}  // namespace

bool next_allocation_fails() { return hit(fail_allocation); }
bool poisons() { return poison.load() != 0; }
void delay() {
  if (const int64_t us = delay_us.load()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}
void delay_transfer() {
  if (const int64_t us = transfer_delay_us.load()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}
void enter() {
  // There need not be an interpreter in the process.
  static const auto has_lock = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  static const auto is_running = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  if (has_lock && is_running && is_running() && has_lock()) ++with_lock;
  if (const int64_t us = host_delay_us.load()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}
int64_t calls_with_lock() { return with_lock.load(); }
void maybe_fail_task() {
  if (hit(fail_task)) throw std::runtime_error("simulated fault in a kernel");
}
bool in_wrong_queue() { return wrong_queue.load() != 0; }
bool is_wrong(const char* op) {
  const std::lock_guard lock(wrong_mutex);
  return wrong_op == op;
}

}  // namespace simulated

extern "C" int simulated_set_fault(const char* name, int64_t value) {
  using namespace simulated;
  if (std::strcmp(name, "fail_allocation") == 0)
    fail_allocation = value;
  else if (std::strcmp(name, "fail_task") == 0)
    fail_task = value;
  else if (std::strcmp(name, "delay") == 0)
    delay_us = value;
  else if (std::strcmp(name, "host_delay") == 0)
    host_delay_us = value;
  else if (std::strcmp(name, "transfer_delay") == 0)
    transfer_delay_us = value;
  else if (std::strcmp(name, "poison") == 0)
    poison = value;
  else if (std::strcmp(name, "wrong_queue") == 0)
    wrong_queue = value;
  else
    return -1;
  return 0;
}
extern "C" void simulated_set_wrong(const char* op) {
  const std::lock_guard lock(simulated::wrong_mutex);
  simulated::wrong_op = op;
}
extern "C" int64_t simulated_live_blocks(void) { return static_cast<int64_t>(simulated::live_blocks()); }
