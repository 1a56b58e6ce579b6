#include "faults.h"

namespace cresset_opencl {
namespace {

// Codes of kernels/faults.cl.
constexpr cl_long kIndex = 1, kTarget = 2, kZeroDivision = 3;

struct Record {
  cl_long code, value, size;
};

[[noreturn]] void raise_fault(const Record& r) {
  if (r.code == kIndex)
    CRESSET_THROW(DeviceError, "index ", r.value, " is out of bounds for a dimension with size ", r.size,
                  " (met by a kernel that ran before)");
  if (r.code == kTarget)
    CRESSET_THROW(DeviceError, "Target ", r.value, " is out of bounds: there are ", r.size, " classes (met by a kernel that ran before)");
  CRESSET_INTERNAL_ASSERT(r.code == kZeroDivision);
  CRESSET_THROW(DeviceError, "ZeroDivisionError (met by a kernel that ran before)");
}

}  // namespace

cl_mem Faults::expected_in(cl_command_queue queue) {
  std::lock_guard lock(mutex_);
  if (!memory_) {
    Record none{0, 0, 0};
    cl_int status = CL_SUCCESS;
    memory_ = clCreateBuffer(device_.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof none, &none, &status);
    check(status, "clCreateBuffer");
  }
  expecting_.insert(queue);
  return memory_;
}

void Faults::raise(cl_command_queue queue) {
  std::lock_guard lock(mutex_);
  if (expecting_.erase(queue) > 0) read_and_raise(queue);
}

void Faults::raise_all() {
  std::lock_guard lock(mutex_);
  if (expecting_.empty()) return;
  const cl_command_queue queue = *expecting_.begin();
  expecting_.clear();
  read_and_raise(queue);
}

void Faults::read_and_raise(cl_command_queue queue) {
  Record r{};
  check(clEnqueueReadBuffer(queue, memory_, CL_TRUE, 0, sizeof r, &r, 0, nullptr, nullptr), "clEnqueueReadBuffer");
  if (r.code == 0) return;
  const Record none{0, 0, 0};
  check(clEnqueueWriteBuffer(queue, memory_, CL_TRUE, 0, sizeof none, &none, 0, nullptr, nullptr), "clEnqueueWriteBuffer");
  raise_fault(r);
}

}  // namespace cresset_opencl
