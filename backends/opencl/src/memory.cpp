#include "memory.h"

#include <sys/mman.h>

#include <algorithm>

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

constexpr std::size_t kSmall = std::size_t{1} << 20;

std::size_t rounded(std::size_t nbytes) {
  const std::size_t step = nbytes <= kSmall ? 512 : std::size_t{128} << 10;
  return (nbytes + step - 1) / step * step;
}
// The largest block that may serve a request.
std::size_t acceptable(std::size_t nbytes) { return nbytes <= kSmall ? 2 * nbytes : nbytes + nbytes / 4; }

}  // namespace

cl_mem Memory::make_buffer(std::size_t nbytes, cl_int* status) {
  return clCreateBuffer(device_.context(), CL_MEM_READ_WRITE, nbytes, nullptr, status);
}

char* Memory::reuse(std::size_t nbytes) {
  const auto at = free_.lower_bound(nbytes);
  if (at == free_.end() || at->first > acceptable(nbytes)) return nullptr;
  char* address = at->second;
  free_.erase(at);
  return address;
}

void* Memory::allocate(std::size_t requested) {
  if (requested > device_.facts().memory_bytes) return nullptr;
  const std::size_t nbytes = rounded(requested);
  std::lock_guard lock(mutex_);
  collect_pending(false);
  if (char* address = reuse(nbytes)) return address;
  cl_int status = CL_SUCCESS;
  cl_mem buffer = make_buffer(nbytes, &status);
  if (status != CL_SUCCESS) {
    collect_pending(true);
    empty_cache_locked();
    buffer = make_buffer(nbytes, &status);
    if (status != CL_SUCCESS) return nullptr;
  }
  char* address = addresses().take(nbytes);
  if (!address) {
    clReleaseMemObject(buffer);
    return nullptr;
  }
  blocks_.emplace(address, Block{buffer, nbytes});
  return address;
}

void Memory::deallocate(void* data) {
  std::lock_guard lock(mutex_);
  char* address = static_cast<char*>(data);
  const auto at = blocks_.find(address);
  if (at == blocks_.end()) return;
  // One queue runs in order, so whoever gets the block next comes later. With several queues each must have passed this point.
  if (const std::size_t queues = device_.queue_count(); queues > 1) {
    Pending p{address, {}};
    for (uint64_t q = 0; q < queues; ++q) {
      cl_event event = nullptr;
      const cl_command_queue queue = device_.queue(q, false);
      if (clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event) == CL_SUCCESS) {
        p.passed.push_back(event);
        clFlush(queue);
      }
    }
    pending_.push_back(std::move(p));
    return;
  }
  free_.emplace(at->second.nbytes, address);
}

void Memory::collect_pending(bool wait) {
  std::erase_if(pending_, [&](Pending& p) {
    for (cl_event event : p.passed) {
      cl_int state = CL_COMPLETE;
      if (wait)
        clWaitForEvents(1, &event);
      else
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
      if (state > CL_COMPLETE) return false;
    }
    for (cl_event event : p.passed) clReleaseEvent(event);
    free_.emplace(blocks_.at(p.address).nbytes, p.address);
    return true;
  });
}

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

void Memory::empty_cache() {
  std::lock_guard lock(mutex_);
  collect_pending(false);
  empty_cache_locked();
}

void Memory::empty_cache_locked() {
  for (const auto& [size, address] : free_) {
    clReleaseMemObject(blocks_.at(address).buffer);  // the driver keeps it until queued kernels are done with it
    blocks_.erase(address);
    addresses().give(address, size);
  }
  free_.clear();
}

}  // namespace cresset_opencl
