// Signals while the library works: the interpreter sees them only between its instructions.
//
// Ctrl-C as Python handles it by default stops everything at once: a handler in front of Python's counts it, and work that looks now and
// then (check_interrupt) needs no lock to know. Other handlers may do anything, and run where work holds no lock (check_signals).
#include <cresset/base/fork.h>
#include <cresset/base/interrupt.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "python/object.h"

namespace cresset::python {
namespace {

PyOS_sighandler_t next_handler = nullptr;
void on_interrupt(int number) {
  request_interrupt();
  next_handler(number);
}

bool find_main_thread() { return syscall(SYS_gettid) == getpid(); }
thread_local bool is_main_thread = find_main_thread();

/// Puts the handler in front, where programs have left Python's default to Ctrl-C or have gone back to it.
void watch_interrupts() {
  if (PyOS_getsig(SIGINT) == &on_interrupt) return;
  static PyObject* const signals = PyImport_ImportModule("_signal");
  static PyObject* const by_default = signals ? PyObject_GetAttrString(signals, "default_int_handler") : nullptr;
  const Ref now = Ref::steal(by_default ? PyObject_CallMethod(signals, "getsignal", "i", SIGINT) : nullptr);
  if (!now) PyErr_Clear();
  if (now && now.get() == by_default) next_handler = PyOS_setsig(SIGINT, &on_interrupt);
}

void run_handlers() {
  if (!is_main_thread || !Py_IsInitialized()) return;
  GilAcquire gil;
  watch_interrupts();
  if (PyErr_CheckSignals() < 0) throw PythonException::fetch(true);
}

}  // namespace

namespace {
[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

// Threads that work without the lock. When the interpreter is gone they come to an end at the lock; until then libraries must not be taken
// down under them.
std::atomic<int> others_at_work{0};
void let_others_end() {
  constexpr int kMostMilliseconds = 5000;
  for (int i = 0; i < kMostMilliseconds && others_at_work > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
}  // namespace

PyGILState_STATE take_lock() noexcept {
  try {
    return PyGILState_Ensure();
  } catch (...) {
    wait_for_the_end();
  }
}
void take_lock_back(PyThreadState* state) noexcept {
  if (!is_main_thread) --others_at_work;
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    wait_for_the_end();
  }
}

bool signals_come_here() {
  if (!is_main_thread) {
    ++others_at_work;
    return false;
  }
  constexpr uint32_t kSome = 64;  // asking the system takes about as long as a small operator
  static uint32_t calls = 0;
  if (++calls % kSome == 0) watch_interrupts();
  return true;
}

void set_interrupt_error() {
  if (PyErr_CheckSignals() == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);
}

void init_interrupts() {
  set_signal_handler(&run_handlers);
  call_in_forked_child([] {
    is_main_thread = true;
    others_at_work = 0;
  });
  Py_AtExit(&let_others_end);
  if (is_main_thread) watch_interrupts();
}

}  // namespace cresset::python
