// Names of CUDA that sources mention outside of their CUDA parts. There is no CUDA device here: whatever needs one raises.
#pragma once

#include <cresset_compat/aten.h>

struct CUstream_st;  // what CUDA's cudaStream_t points to
struct CUgraph_st;   // and cudaGraph_t

namespace c10::cuda {
[[noreturn]] inline void raise_no_cuda() { CRESSET_THROW(Error, "No CUDA device is available: Cresset has no CUDA backend."); }
class CUDAStream {
 public:
  explicit CUDAStream(Stream s) : stream_(s) {}
  operator CUstream_st*() const { return nullptr; }
  CUstream_st* stream() const { return nullptr; }
  Device device() const { return stream_.device(); }
  DeviceIndex device_index() const { return stream_.device_index(); }
  StreamId id() const { return stream_.id(); }
  void synchronize() const { raise_no_cuda(); }
  Stream unwrap() const { return stream_; }
  operator Stream() const { return stream_; }

 private:
  Stream stream_;
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) { raise_no_cuda(); }
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { raise_no_cuda(); }
inline CUDAStream getStreamFromPool(bool = false, DeviceIndex = -1) { raise_no_cuda(); }
inline void setCurrentCUDAStream(CUDAStream) { raise_no_cuda(); }
inline DeviceIndex device_count() noexcept { return 0; }
inline DeviceIndex current_device() { raise_no_cuda(); }
inline void set_device(DeviceIndex) { raise_no_cuda(); }
inline void device_synchronize() { raise_no_cuda(); }
namespace CUDACachingAllocator {
inline void recordStream(const DataPtr&, CUDAStream) { raise_no_cuda(); }
inline void emptyCache() {}  // nothing was taken
}  // namespace CUDACachingAllocator
struct CUDAGuard {
  explicit CUDAGuard(DeviceIndex) { raise_no_cuda(); }
  explicit CUDAGuard(Device) { raise_no_cuda(); }
};
struct OptionalCUDAGuard {
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> d) {
    if (d) raise_no_cuda();
  }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> d) {
    if (d) raise_no_cuda();
  }
};
struct CUDAStreamGuard {
  explicit CUDAStreamGuard(Stream) { raise_no_cuda(); }
};
}  // namespace c10::cuda
namespace at::cuda {
using namespace c10::cuda;
inline bool is_available() { return false; }
inline void* getCurrentCUDABlasHandle() { c10::cuda::raise_no_cuda(); }
class CUDAGraph {
 public:
  CUDAGraph(bool /*keep_graph*/ = false) {}
  void capture_begin() { raise_no_cuda(); }
  void capture_end() { raise_no_cuda(); }
  void instantiate() { raise_no_cuda(); }
  void enable_debug_mode() { raise_no_cuda(); }
  CUgraph_st* raw_cuda_graph() { raise_no_cuda(); }
  void replay() { raise_no_cuda(); }
  void reset() {}  // nothing was captured
};
/// An event that was never recorded: all that stood in front of it is done.
class CUDAEvent {
 public:
  CUDAEvent() = default;
  CUDAEvent(unsigned /*flags*/) {}
  bool isCreated() const { return false; }
  bool query() const { return true; }
  void synchronize() const {}
  void block(const CUDAStream&) {}
  void record() { raise_no_cuda(); }
  void record(const CUDAStream&) { raise_no_cuda(); }
  void recordOnce(const CUDAStream&) { raise_no_cuda(); }
  std::optional<Device> device() const { return std::nullopt; }
  float elapsed_time(const CUDAEvent&) const { raise_no_cuda(); }
};
struct DeviceProperties {
  int major = 0, minor = 0, multiProcessorCount = 0;
};
inline DeviceProperties* getCurrentDeviceProperties() { c10::cuda::raise_no_cuda(); }
}  // namespace at::cuda
