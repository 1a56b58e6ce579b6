// Allocators of devices and of the host memory that devices reach, what they tell, and what a device can do.
#pragma once

#include <cresset_compat/names.h>

#include <cresset/core/device_allocator.h>
#include <cresset/core/device_guard.h>

namespace c10 {
namespace CachingAllocator = cresset::device_stats;
namespace CachingDeviceAllocator = cresset::device_stats;
using cresset::CaptureId_t;
using cresset::DeviceAllocator;
using cresset::DeviceCapability;
using cresset::getDeviceAllocator;
using cresset::MempoolId_t;
}  // namespace c10
namespace at {
using c10::CaptureId_t;
using c10::DeviceAllocator;
using c10::getDeviceAllocator;
using c10::MempoolId_t;
using cresset::getHostAllocator;
using cresset::HostAllocator;
using cresset::HostStats;
using cresset::setHostAllocator;
}  // namespace at

#define REGISTER_HOST_ALLOCATOR(device_type, allocator)                         \
  namespace {                                                                   \
  [[maybe_unused]] const bool CRESSET_UNIQUE(registered_host_allocator_) = [] { \
    ::cresset::setHostAllocator(device_type, allocator);                        \
    return true;                                                                \
  }();                                                                          \
  }
