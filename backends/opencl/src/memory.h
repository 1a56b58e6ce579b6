// Device memory behind addresses.
//
// An OpenCL buffer is a handle, but views want addresses that can be added to. So every buffer gets a range of addresses of its own, in
// a region of the process that is reserved and can be neither read nor written: a host that follows one by mistake gets a fault, and
// a kernel's argument is found from an address by looking up its range.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "runtime.h"

namespace cresset_opencl {

/// Where an address lies: the buffer and the distance from its start in bytes.
struct Place {
  cl_mem buffer = nullptr;
  std::size_t offset = 0;
};

/// The buffers of one device. Freed ones are kept for later requests of about the same size.
class Memory {
 public:
  explicit Memory(ClDevice& device) : device_(device) {}

  void* allocate(std::size_t nbytes);
  void deallocate(void* address);
  Place find(const void* address);
  /// Gives buffers that nobody uses back to the driver.
  void empty_cache();

 private:
  struct Block {
    cl_mem buffer;
    std::size_t nbytes;
  };
  struct Pending {
    char* address;
    std::vector<cl_event> passed;  // one a queue
  };
  char* reuse(std::size_t nbytes);
  cl_mem make_buffer(std::size_t nbytes, cl_int* status);
  void collect_pending(bool wait);
  void empty_cache_locked();

  ClDevice& device_;
  std::mutex mutex_;
  std::map<char*, Block> blocks_;           // all, by their first address
  std::multimap<std::size_t, char*> free_;  // unused ones, by size
  std::vector<Pending> pending_;            // freed while several queues exist: unused when these events have come
};

}  // namespace cresset_opencl
