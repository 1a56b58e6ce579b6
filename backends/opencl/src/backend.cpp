// Memory, copies of bytes, streams and events of the device.
#include "backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "faults.h"
#include "memory.h"

namespace cresset_opencl {
namespace {

// A place in a queue. `passed` is null until the event is recorded.
struct Mark {
  std::mutex mutex;
  cl_event passed = nullptr;

  ~Mark() { set(nullptr); }
  void set(cl_event e) {
    std::lock_guard lock(mutex);
    if (passed) clReleaseEvent(passed);
    passed = e;
  }
};

cl_command_queue queue_of(int index, cresset_stream stream) { return device(index).queue(stream); }

bool is_done(cl_event e) {
  cl_int state = CL_COMPLETE;
  check(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr), "clGetEventInfo");
  return state <= CL_COMPLETE;
}

cl_event enqueue_mark(cl_command_queue queue) {
  cl_event e = nullptr;
  check(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &e), "clEnqueueMarkerWithWaitList");
  check(clFlush(queue), "clFlush");
  return e;
}

void copy_between_devices(const cresset_copy& c) {
  std::vector<char> staged(c.nbytes);
  const Place from = device(c.source_device).memory().find(c.source), to = device(c.target_device).memory().find(c.target);
  check(clEnqueueReadBuffer(queue_of(c.source_device, 0), from.buffer, CL_TRUE, from.offset, c.nbytes, staged.data(), 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  check(clEnqueueWriteBuffer(queue_of(c.target_device, c.stream), to.buffer, CL_TRUE, to.offset, c.nbytes, staged.data(), 0, nullptr,
                             nullptr),
        "clEnqueueWriteBuffer");
}

}  // namespace

int OpenCl::device_count() { return cresset_opencl::device_count(); }

void* OpenCl::allocate(int index, std::size_t nbytes) { return device(index).memory().allocate(nbytes); }

void OpenCl::deallocate(int index, void* data, std::size_t) { device(index).memory().deallocate(data); }

void OpenCl::copy(const cresset_copy& c) {
  const bool to_host = c.target_device < 0, from_host = c.source_device < 0;
  if (!to_host && !from_host && c.target_device != c.source_device) return copy_between_devices(c);
  ClDevice& d = device(to_host ? c.source_device : c.target_device);
  const cl_command_queue queue = d.queue(c.stream);
  if (to_host) {
    const Place from = d.memory().find(c.source);
    check(
        clEnqueueReadBuffer(queue, from.buffer, c.non_blocking ? CL_FALSE : CL_TRUE, from.offset, c.nbytes, c.target, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
    if (!c.non_blocking) d.faults().raise(queue);
    return;
  }
  const Place to = d.memory().find(c.target);
  if (from_host) {
    check(clEnqueueWriteBuffer(queue, to.buffer, c.non_blocking ? CL_FALSE : CL_TRUE, to.offset, c.nbytes, c.source, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
    return;
  }
  const Place from = d.memory().find(c.source);
  check(clEnqueueCopyBuffer(queue, from.buffer, to.buffer, from.offset, to.offset, c.nbytes, 0, nullptr, nullptr), "clEnqueueCopyBuffer");
}

void OpenCl::fill(int index, void* data, std::size_t nbytes, uint8_t value, cresset_stream stream) {
  if (nbytes == 0) return;
  ClDevice& d = device(index);
  const Place to = d.memory().find(data);
  check(clEnqueueFillBuffer(d.queue(stream), to.buffer, &value, 1, to.offset, nbytes, 0, nullptr, nullptr), "clEnqueueFillBuffer");
}

void OpenCl::synchronize(int index) { device(index).finish(); }

void OpenCl::empty_cache() {
  for (int i = 0; i < device_count(); ++i) device(i).memory().cache().empty_cache();
}

void OpenCl::memory_stats(int index, cresset_memory_stats& out) {
  const cresset::CachingAllocatorStats s = device(index).memory().cache().stats();
  out.reserved_bytes = static_cast<uint64_t>(s.reserved_bytes);
  out.peak_reserved_bytes = static_cast<uint64_t>(s.peak_reserved_bytes);
}
void OpenCl::reset_peak_memory_stats(int index) { device(index).memory().cache().reset_peaks(); }

void OpenCl::get_properties(int index, cresset_device_properties& out) {
  const DeviceFacts& f = device(index).facts();
  std::strncpy(out.name, f.name.c_str(), sizeof out.name - 1);
  out.total_memory = f.memory_bytes;
  out.free_memory = 0;  // OpenCL 1.2 does not tell
  out.compute_units = static_cast<int32_t>(f.compute_units);
}

cresset_stream OpenCl::stream_create(int index, int) { return device(index).make_queue(); }

bool OpenCl::stream_query(int index, cresset_stream stream) {
  if (device(index).idle(stream)) return true;
  const cl_event e = enqueue_mark(device(index).queue(stream, false));
  // A queue whose work is done passes the mark at once, but on another thread: it gets a moment.
  const auto moment = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  bool done = is_done(e);
  while (!done && std::chrono::steady_clock::now() < moment) done = is_done(e);
  clReleaseEvent(e);
  return done;
}

void OpenCl::stream_synchronize(int index, cresset_stream stream) { device(index).finish(stream); }

void* OpenCl::event_create(int, int) { return new Mark; }

void OpenCl::event_destroy(int, void* event) { delete static_cast<Mark*>(event); }

void OpenCl::event_record(int index, void* event, cresset_stream stream) {
  static_cast<Mark*>(event)->set(enqueue_mark(device(index).queue(stream, false)));
}

void OpenCl::event_wait(int index, void* event, cresset_stream stream) {
  Mark& mark = *static_cast<Mark*>(event);
  std::lock_guard lock(mark.mutex);
  if (mark.passed)
    check(clEnqueueBarrierWithWaitList(device(index).queue(stream, false), 1, &mark.passed, nullptr), "clEnqueueBarrierWithWaitList");
}

bool OpenCl::event_query(void* event) {
  Mark& mark = *static_cast<Mark*>(event);
  std::lock_guard lock(mark.mutex);
  return !mark.passed || is_done(mark.passed);
}

void OpenCl::event_synchronize(void* event) {
  Mark& mark = *static_cast<Mark*>(event);
  std::lock_guard lock(mark.mutex);
  if (mark.passed) check(clWaitForEvents(1, &mark.passed), "clWaitForEvents");
}

double OpenCl::event_elapsed(void* begin, void* end) {
  const auto nanoseconds = [](void* event) {
    Mark& mark = *static_cast<Mark*>(event);
    std::lock_guard lock(mark.mutex);
    CRESSET_CHECK(mark.passed, "opencl: an event that was not recorded has no time.");
    cl_ulong time = 0;
    check(clGetEventProfilingInfo(mark.passed, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr), "clGetEventProfilingInfo");
    return time;
  };
  return (static_cast<double>(nanoseconds(end)) - static_cast<double>(nanoseconds(begin))) * 1e-6;
}

}  // namespace cresset_opencl

CRESSET_BACKEND(cresset_opencl::OpenCl);
