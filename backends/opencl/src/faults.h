// What kernels tell of wrong values that only the device sees: an index out of range, an integer divisor of zero. A kernel cannot raise, so
// it writes the first fault down, and whoever next waits for its queue gets the error. A queue without such kernels costs nothing.
#pragma once

#include <mutex>
#include <set>

#include "runtime.h"

namespace cresset_opencl {

/// The faults of one device.
class Faults {
 public:
  explicit Faults(ClDevice& device) : device_(device) {}

  /// The memory for a kernel's argument `global long *faults`, which is about to be launched in a queue.
  cl_mem expected_in(cl_command_queue queue);
  /// Raises what a kernel of the queue wrote down. Only after everything in the queue is done.
  void raise(cl_command_queue queue);
  void raise_all();

 private:
  void read_and_raise(cl_command_queue queue);

  ClDevice& device_;
  std::mutex mutex_;
  cl_mem memory_ = nullptr;
  std::set<cl_command_queue> expecting_;
};

}  // namespace cresset_opencl
