// The registry of allocators that tell what they do.
#include <cresset/core/device_allocator.h>

#include <array>
#include <mutex>

#include <cresset/base/fork.h>

namespace cresset {
namespace {

struct HostAllocators {
  ForkSafe<std::mutex> mutex;
  std::array<std::pair<HostAllocator*, uint8_t>, kDeviceTypeCount> of{};
};
HostAllocators& host_allocators() {
  static auto* all = new HostAllocators;
  return *all;
}

}  // namespace

std::pair<std::size_t, std::size_t> DeviceAllocator::getMemoryInfo(DeviceIndex) {
  CRESSET_THROW(NotImplementedError, "getMemoryInfo: this allocator does not tell how much memory there is.");
}

DeviceAllocator* getDeviceAllocator(DeviceType type) {
  DeviceAllocator* a = find_device_allocator(type);
  CRESSET_CHECK(a, "getDeviceAllocator: a DeviceAllocator for ", type, " was required; register one with REGISTER_ALLOCATOR.");
  return a;
}

void setHostAllocator(DeviceType type, HostAllocator* allocator, uint8_t priority) {
  HostAllocators& all = host_allocators();
  const std::lock_guard lock(all.mutex);
  auto& [present, its_priority] = all.of.at(static_cast<std::size_t>(type));
  if (present && priority < its_priority) return;
  present = allocator;
  its_priority = priority;
}
HostAllocator* getHostAllocator(DeviceType type) {
  HostAllocators& all = host_allocators();
  const std::lock_guard lock(all.mutex);
  HostAllocator* const a = all.of.at(static_cast<std::size_t>(type)).first;
  CRESSET_CHECK(a, "getHostAllocator: no allocator of host memory is registered for ", type, "; use REGISTER_HOST_ALLOCATOR.");
  return a;
}

}  // namespace cresset
