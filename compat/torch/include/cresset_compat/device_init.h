// torch/csrc/utils/device_lazy_init.h: devices are ready when they are first used, so all there is to know is whether a process that was
// forked from one that had used a device may go on with it. It may not.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>

#include <cresset_compat/c10.h>

namespace torch::utils {

namespace detail {
struct DeviceInit {
  std::atomic<bool> watched{false}, initialized{false}, in_bad_fork{false};
};
/// By number of the device type.
inline std::array<DeviceInit, 64> device_inits;
inline DeviceInit& init_of(c10::DeviceType type) { return device_inits.at(static_cast<std::size_t>(type)); }
inline void mark_forked() {
  for (DeviceInit& device : device_inits)
    if (device.watched) {
      device.in_bad_fork = true;
      device.initialized = false;
    }
}
}  // namespace detail

inline bool is_device_in_bad_fork(c10::DeviceType type) { return detail::init_of(type).in_bad_fork; }
inline void set_device_in_bad_fork(c10::DeviceType type, bool value) { detail::init_of(type).in_bad_fork = value; }
inline bool is_device_initialized(c10::DeviceType type) { return detail::init_of(type).initialized; }
inline void set_requires_device_init(c10::DeviceType type, bool value) { detail::init_of(type).initialized = !value; }
/// Children that are forked from now on must not use the device.
inline void register_fork_handler_for_device_init(c10::DeviceType type) {
  static const int registered = pthread_atfork(nullptr, nullptr, &detail::mark_forked);
  TORCH_CHECK(registered == 0, "pthread_atfork failed with ", registered);
  detail::init_of(type).watched = true;
}
inline void device_lazy_init(c10::DeviceType type) {
  TORCH_CHECK(!is_device_in_bad_fork(type), "Cannot re-initialize ", c10::DeviceTypeName(type), " in forked subprocess. To use ",
              c10::DeviceTypeName(type), " with multiprocessing, you must use the 'spawn' start method");
  detail::init_of(type).initialized = true;
}
inline void maybe_initialize_device(c10::Device device) {
  if (device.type() == c10::kPrivateUse1) device_lazy_init(device.type());
}

}  // namespace torch::utils
