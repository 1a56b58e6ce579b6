#include "memory.h"

#include <sys/mman.h>

namespace cresset_opencl {
namespace {

// The reserved region, shared by all devices. Ranges that come back are handed out again by their exact size.
class AddressSpace {
 public:
  AddressSpace() {
    for (size_ = std::size_t{1} << 44; size_ >= std::size_t{1} << 34; size_ >>= 2) {
      void* p = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p != MAP_FAILED) {
        next_ = static_cast<char*>(p);
        end_ = next_ + size_;
        return;
      }
    }
    CRESSET_THROW(OutOfMemoryError, "opencl: no range of 16 GiB of addresses could be reserved; raise the limit of virtual memory.");
  }
  char* take(std::size_t nbytes) {
    std::lock_guard lock(mutex_);
    if (const auto at = returned_.find(nbytes); at != returned_.end()) {
      char* p = at->second;
      returned_.erase(at);
      return p;
    }
    if (static_cast<std::size_t>(end_ - next_) < nbytes) return nullptr;
    char* p = next_;
    next_ += nbytes;
    return p;
  }
  void give(char* p, std::size_t nbytes) {
    std::lock_guard lock(mutex_);
    returned_.emplace(nbytes, p);
  }

 private:
  std::mutex mutex_;
  std::size_t size_ = 0;
  char* next_ = nullptr;
  char* end_ = nullptr;
  std::multimap<std::size_t, char*> returned_;
};
AddressSpace& addresses() {
  static auto* a = new AddressSpace;
  return *a;
}

}  // namespace

void* Memory::allocate(std::size_t nbytes) { return nbytes > device_.facts().memory_bytes ? nullptr : cache_.allocate(nbytes); }

void* Memory::take(std::size_t nbytes) {
  cl_int status = CL_SUCCESS;
  const cl_mem buffer = clCreateBuffer(device_.context(), CL_MEM_READ_WRITE, nbytes, nullptr, &status);
  if (status != CL_SUCCESS) return nullptr;
  char* address = addresses().take(nbytes);
  if (!address) {
    clReleaseMemObject(buffer);
    return nullptr;
  }
  std::lock_guard lock(mutex_);
  blocks_.emplace(address, Block{buffer, nbytes});
  return address;
}

void Memory::give(void* data, std::size_t nbytes) {
  char* address = static_cast<char*>(data);
  std::lock_guard lock(mutex_);
  const auto at = blocks_.find(address);
  clReleaseMemObject(at->second.buffer);  // the driver keeps it until queued kernels are done with it
  blocks_.erase(at);
  addresses().give(address, nbytes);
}

std::vector<void*> Memory::marks() {
  std::vector<void*> out;
  const std::size_t queues = device_.queue_count();
  for (uint64_t q = 0; queues > 1 && q < queues; ++q) {
    cl_event event = nullptr;
    const cl_command_queue queue = device_.queue(q, false);
    if (clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event) != CL_SUCCESS) continue;
    out.push_back(event);
    clFlush(queue);
  }
  return out;
}

bool Memory::passed(void* mark, bool wait) {
  cl_event event = static_cast<cl_event>(mark);
  if (wait) return clWaitForEvents(1, &event), true;
  cl_int state = CL_COMPLETE;
  clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
  return state <= CL_COMPLETE;
}

void Memory::drop(void* mark) { clReleaseEvent(static_cast<cl_event>(mark)); }

Place Memory::find(const void* data) {
  char* address = static_cast<char*>(const_cast<void*>(data));
  std::lock_guard lock(mutex_);
  auto at = blocks_.upper_bound(address);
  CRESSET_CHECK(at != blocks_.begin(), "opencl: an address that is not this device's memory reached a kernel.");
  --at;
  const auto offset = static_cast<std::size_t>(address - at->first);
  CRESSET_CHECK(offset <= at->second.nbytes, "opencl: an address that is not this device's memory reached a kernel.");
  return {at->second.buffer, offset};
}

}  // namespace cresset_opencl
