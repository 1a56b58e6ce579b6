#include "base/signals.h"

#include <pthread.h>

#include <initializer_list>

namespace cresset {
namespace {
// Not zero at the start: among the initialised words there is room (src/base/interrupt.cpp).
thread_local constinit bool open = true;
}  // namespace

SignalsBlocked::SignalsBlocked() : changed_(open) {
  if (!changed_) return;
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
  open = pthread_sigmask(SIG_SETMASK, &all, &saved_) != 0;
}
SignalsBlocked::~SignalsBlocked() {
  if (!changed_ || open) return;
  open = true;
  pthread_sigmask(SIG_SETMASK, &saved_, nullptr);
}
void SignalsBlocked::always() { open = false; }

}  // namespace cresset
