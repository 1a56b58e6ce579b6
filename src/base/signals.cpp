#include "base/signals.h"

#include <pthread.h>

#include <initializer_list>

namespace cresset {
namespace {
thread_local constinit bool blocked = false;
}  // namespace

SignalsBlocked::SignalsBlocked() : changed_(!blocked) {
  if (!changed_) return;
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
  blocked = pthread_sigmask(SIG_SETMASK, &all, &saved_) == 0;
}
SignalsBlocked::~SignalsBlocked() {
  if (!changed_ || !blocked) return;
  blocked = false;
  pthread_sigmask(SIG_SETMASK, &saved_, nullptr);
}
void SignalsBlocked::always() { blocked = true; }

}  // namespace cresset
