#include "runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "faults.h"
#include "memory.h"
#include "programs.h"

namespace cresset_opencl {
namespace {

std::string text_of(cl_device_id id, cl_device_info what) {
  std::size_t n = 0;
  if (clGetDeviceInfo(id, what, 0, nullptr, &n) != CL_SUCCESS || n == 0) return "";
  std::string text(n, '\0');
  clGetDeviceInfo(id, what, n, text.data(), nullptr);
  text.resize(std::strlen(text.c_str()));
  return text;
}

template <class T>
T value_of(cl_device_id id, cl_device_info what) {
  T value{};
  check(clGetDeviceInfo(id, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

bool runs_kernels_for_processors(cl_device_id id) {
  const char* wish = std::getenv("CRESSET_OPENCL_KERNELS");
  if (!wish || !*wish) return value_of<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
  const std::string_view kind = wish;
  CRESSET_CHECK(kind == "cpu" || kind == "gpu", "opencl: CRESSET_OPENCL_KERNELS: \"cpu\" or \"gpu\" was required; it is \"", kind, "\".");
  return kind == "cpu";
}

DeviceFacts facts_of(cl_device_id id, cl_platform_id platform) {
  DeviceFacts f;
  f.name = text_of(id, CL_DEVICE_NAME);
  char version[256] = "";
  clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version - 1, version, nullptr);
  f.identity = f.name + "|" + text_of(id, CL_DEVICE_VERSION) + "|" + text_of(id, CL_DRIVER_VERSION) + "|" + version;
  f.is_cpu = runs_kernels_for_processors(id);
  f.compiles_late = std::strstr(version, "PoCL") || std::strstr(version, "pocl");
  f.has_fp64 = value_of<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  f.max_group = value_of<std::size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  f.compute_units = value_of<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  f.memory_bytes = value_of<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  f.largest_block = value_of<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  return f;
}

struct Found {
  cl_device_id id;
  cl_platform_id platform;
  int rank;  // graphics processors first
};

bool wanted(cl_device_id id) {
  const char* only = std::getenv("CRESSET_OPENCL_DEVICES");
  if (!only || !*only) return true;
  const auto type = value_of<cl_device_type>(id, CL_DEVICE_TYPE);
  if (std::strcmp(only, "cpu") == 0) return type & CL_DEVICE_TYPE_CPU;
  if (std::strcmp(only, "gpu") == 0) return type & CL_DEVICE_TYPE_GPU;
  return text_of(id, CL_DEVICE_NAME).find(only) != std::string::npos;
}

std::vector<Found> find_devices() {
  std::vector<Found> found;
  cl_uint n = 0;
  if (clGetPlatformIDs(0, nullptr, &n) != CL_SUCCESS || n == 0) return found;  // no driver installed
  std::vector<cl_platform_id> platforms(n);
  check(clGetPlatformIDs(n, platforms.data(), nullptr), "clGetPlatformIDs");
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    std::vector<cl_device_id> ids(count);
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr), "clGetDeviceIDs");
    for (cl_device_id id : ids) {
      if (!wanted(id) || !value_of<cl_bool>(id, CL_DEVICE_AVAILABLE) || !value_of<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE)) continue;
      const auto type = value_of<cl_device_type>(id, CL_DEVICE_TYPE);
      found.push_back({id, platform, type & CL_DEVICE_TYPE_GPU ? 0 : type & CL_DEVICE_TYPE_CPU ? 2 : 1});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.rank < b.rank; });
  return found;
}

// Contexts are made when a device is first used. Everything lives as long as the process: tensors may be freed at its very end.
struct Devices {
  std::vector<Found> found = find_devices();
  std::mutex mutex;
  std::vector<ClDevice*> open = std::vector<ClDevice*>(found.size(), nullptr);
};
Devices& devices() {
  static auto* d = new Devices;
  return *d;
}

}  // namespace

std::string error_name(cl_int status) {
  switch (status) {
#define CRESSET_OPENCL_NAME(code) \
  case code: return #code;
    CRESSET_OPENCL_NAME(CL_DEVICE_NOT_FOUND)
    CRESSET_OPENCL_NAME(CL_DEVICE_NOT_AVAILABLE)
    CRESSET_OPENCL_NAME(CL_COMPILER_NOT_AVAILABLE)
    CRESSET_OPENCL_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    CRESSET_OPENCL_NAME(CL_OUT_OF_RESOURCES)
    CRESSET_OPENCL_NAME(CL_OUT_OF_HOST_MEMORY)
    CRESSET_OPENCL_NAME(CL_BUILD_PROGRAM_FAILURE)
    CRESSET_OPENCL_NAME(CL_INVALID_VALUE)
    CRESSET_OPENCL_NAME(CL_INVALID_MEM_OBJECT)
    CRESSET_OPENCL_NAME(CL_INVALID_BINARY)
    CRESSET_OPENCL_NAME(CL_INVALID_KERNEL_NAME)
    CRESSET_OPENCL_NAME(CL_INVALID_ARG_INDEX)
    CRESSET_OPENCL_NAME(CL_INVALID_ARG_VALUE)
    CRESSET_OPENCL_NAME(CL_INVALID_ARG_SIZE)
    CRESSET_OPENCL_NAME(CL_INVALID_KERNEL_ARGS)
    CRESSET_OPENCL_NAME(CL_INVALID_WORK_GROUP_SIZE)
    CRESSET_OPENCL_NAME(CL_INVALID_WORK_ITEM_SIZE)
    CRESSET_OPENCL_NAME(CL_INVALID_EVENT)
    CRESSET_OPENCL_NAME(CL_INVALID_BUFFER_SIZE)
#undef CRESSET_OPENCL_NAME
    default: return "OpenCL error " + std::to_string(status);
  }
}

void raise_error(cl_int status, const char* what) {
  if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY)
    CRESSET_THROW(OutOfMemoryError, "opencl: out of memory in ", what, " (", error_name(status), ").");
  CRESSET_THROW(DeviceError, "opencl: ", what, " failed: ", error_name(status), ".");
}

ClDevice::ClDevice(cl_device_id id, cl_platform_id platform) : id_(id), facts_(facts_of(id, platform)) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int status = CL_SUCCESS;
  context_ = clCreateContext(properties, 1, &id_, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  make_queue();
  memory_ = std::make_unique<Memory>(*this);
  programs_ = std::make_unique<Programs>(*this);
  faults_ = std::make_unique<Faults>(*this);
}

ClDevice::~ClDevice() = default;

uint64_t ClDevice::make_queue() {
  cl_int status = CL_SUCCESS;
  const cl_command_queue queue = clCreateCommandQueue(context_, id_, CL_QUEUE_PROFILING_ENABLE, &status);
  check(status, "clCreateCommandQueue");
  std::lock_guard lock(mutex_);
  queues_.push_back({queue});
  return queues_.size() - 1;
}

cl_command_queue ClDevice::queue(uint64_t stream, bool work) {
  std::lock_guard lock(mutex_);
  CRESSET_CHECK(stream < queues_.size(), "opencl: stream ", stream, " was not made by this device.");
  queues_[stream].given += work;
  return queues_[stream].handle;
}

bool ClDevice::idle(uint64_t stream) {
  std::lock_guard lock(mutex_);
  return queues_.at(stream).given == queues_.at(stream).done;
}

std::size_t ClDevice::queue_count() {
  std::lock_guard lock(mutex_);
  return queues_.size();
}

void ClDevice::finish(uint64_t stream) {
  const cl_command_queue handle = queue(stream, false);
  uint64_t given = 0;
  {
    std::lock_guard lock(mutex_);
    given = queues_[stream].given;
  }
  check(clFinish(handle), "clFinish");
  {
    std::lock_guard lock(mutex_);
    queues_[stream].done = std::max(queues_[stream].done, given);
  }
  faults_->raise(handle);
}

void ClDevice::finish() {
  for (uint64_t i = 0; i < queue_count(); ++i) check(clFinish(queue(i, false)), "clFinish");
  faults_->raise_all();
}

int device_count() { return static_cast<int>(devices().found.size()); }

ClDevice& device(int index) {
  Devices& all = devices();
  CRESSET_CHECK(index >= 0 && index < static_cast<int>(all.found.size()), "opencl: there is no device ", index, "; ", all.found.size(),
                " were found. `clinfo` lists the drivers that are installed.");
  std::lock_guard lock(all.mutex);
  ClDevice*& d = all.open[static_cast<std::size_t>(index)];
  if (!d) d = new ClDevice(all.found[static_cast<std::size_t>(index)].id, all.found[static_cast<std::size_t>(index)].platform);
  return *d;
}

}  // namespace cresset_opencl
