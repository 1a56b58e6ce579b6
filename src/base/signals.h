// Threads that must not be given a signal.
#pragma once

#include <csignal>

#include <cresset/base/macros.h>

namespace cresset {

/// While it lives, no signal but those of faults comes to this thread, nor to threads that it starts, ever.
///
/// Handlers are for the threads of the program, and the code that oneDNN makes for products of floats uses the stack pointer for something
/// else for a while: a handler then writes over whatever that points to.
class CRESSET_API SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  /// Says that this thread was started by one that blocked them: nothing is to be done then.
  static void always();

 private:
  sigset_t saved_;
  bool changed_;
};

}  // namespace cresset
