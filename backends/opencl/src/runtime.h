// OpenCL itself: devices with their contexts and queues, and errors.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cresset/base/error.h>

namespace cresset_opencl {

class Faults;
class Memory;
class Programs;

/// "CL_OUT_OF_RESOURCES" for -5; the number for codes of extensions.
std::string error_name(cl_int status);
[[noreturn]] void raise_error(cl_int status, const char* what);
/// Raises a DeviceError (an OutOfMemoryError where it is one) that names the call and the code.
inline void check(cl_int status, const char* what) {
  if (status != CL_SUCCESS) raise_error(status, what);
}

/// What never changes about a device.
struct DeviceFacts {
  std::string name;
  std::string identity;  // device, driver and platform with their versions: what compiled programs depend on
  bool is_cpu = false;   // gets the kernels for processors; CRESSET_OPENCL_KERNELS=cpu or gpu wins over the driver's word
  bool has_fp64 = false;
  // A build only parses: a kernel becomes machine code when it first runs, and the driver keeps both on disk. Asking for the binary
  // would compile every kernel of the program. This is so with PoCL.
  bool compiles_late = false;
  std::size_t max_group = 1;
  cl_uint compute_units = 1;
  cl_ulong memory_bytes = 0;
  cl_ulong largest_block = 0;
};

/// A device with its own context. Everything a context owns (memory, programs, queues) belongs to exactly one device.
class ClDevice {
 public:
  ClDevice(cl_device_id id, cl_platform_id platform);
  ~ClDevice();
  ClDevice(const ClDevice&) = delete;
  ClDevice& operator=(const ClDevice&) = delete;

  const DeviceFacts& facts() const { return facts_; }
  cl_device_id id() const { return id_; }
  cl_context context() const { return context_; }
  Memory& memory() { return *memory_; }
  Programs& programs() { return *programs_; }
  Faults& faults() { return *faults_; }

  /// Queue of a stream; number 0 is the default stream. All queues run in order. Who only puts a mark into it does not give it `work`.
  cl_command_queue queue(uint64_t stream, bool work = true);
  uint64_t make_queue();
  std::size_t queue_count();
  /// Waits for a stream or for all of them, and raises what their kernels met.
  void finish(uint64_t stream);
  void finish();
  /// Was there no work since somebody waited for the stream?
  bool idle(uint64_t stream);

  /// Held while the arguments of a kernel are set and it is put into a queue: kernel objects are shared by all threads.
  std::mutex& launch_mutex() { return launch_mutex_; }

 private:
  cl_device_id id_;
  cl_context context_ = nullptr;
  DeviceFacts facts_;
  std::mutex mutex_;  // of queues_
  struct Queue {
    cl_command_queue handle;
    uint64_t given = 0, done = 0;  // how often it was given work; at most so much of it is waiting
  };
  std::vector<Queue> queues_;
  std::mutex launch_mutex_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Programs> programs_;
  std::unique_ptr<Faults> faults_;
};

/// Devices of all platforms: graphics processors first, then accelerators, then processors. CRESSET_OPENCL_DEVICES = "cpu", "gpu" or
/// a part of a device's name keeps only those.
int device_count();
ClDevice& device(int index);

}  // namespace cresset_opencl
