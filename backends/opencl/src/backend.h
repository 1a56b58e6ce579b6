// The device `opencl` as Cresset sees it. Kernels are registered with CRESSET_BACKEND_IMPL(OpenCl, aten, m) in the file of their family.
#pragma once

#include <cresset/backend.h>

#include "runtime.h"

namespace cresset_opencl {

struct OpenCl {
  static constexpr const char* kName = "opencl";
  static constexpr const char* kDescription = "GPUs and processors through OpenCL 1.2 and later";

  int device_count();
  void* allocate(int device, std::size_t nbytes);
  void deallocate(int device, void* data, std::size_t nbytes);
  void copy(const cresset_copy& c);
  void fill(int device, void* data, std::size_t nbytes, uint8_t value, cresset_stream stream);
  void synchronize(int device);
  void empty_cache();
  void memory_stats(int device, cresset_memory_stats& out);
  void reset_peak_memory_stats(int device);
  void get_properties(int device, cresset_device_properties& out);

  cresset_stream stream_create(int device, int priority);
  bool stream_query(int device, cresset_stream stream);
  void stream_synchronize(int device, cresset_stream stream);

  void* event_create(int device, int flags);
  void event_destroy(int device, void* event);
  void event_record(int device, void* event, cresset_stream stream);
  void event_wait(int device, void* event, cresset_stream stream);
  bool event_query(void* event);
  void event_synchronize(void* event);
  double event_elapsed(void* begin, void* end);
};

}  // namespace cresset_opencl
