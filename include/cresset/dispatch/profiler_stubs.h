// A device's own ranges for the profiler, by PyTorch's interface; backends with a table have profile_push and profile_pop instead.
#pragma once

#include <functional>
#include <memory>

#include <cresset/core/device.h>

namespace cresset::profiler {

using ProfilerVoidEventStub = std::shared_ptr<void>;

/// What a device does for the profiler. Named ranges (record_function) reach rangePush and rangePop while enabled() says so; device times
/// are measured by the events of its guard.
struct CRESSET_API ProfilerStubs {
  virtual ~ProfilerStubs() = default;
  virtual void record(DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const = 0;
  /// Microseconds.
  virtual float elapsed(const ProfilerVoidEventStub* event, const ProfilerVoidEventStub* later) const = 0;
  virtual void mark(const char* name) const = 0;
  virtual void rangePush(const char* name) const = 0;
  virtual void rangePop() const = 0;
  virtual bool enabled() const { return false; }
  virtual void onEachDevice(std::function<void(int)> op) const = 0;
  virtual void synchronize() const = 0;
};

/// The stubs of a device kind; they must live as long as the process.
CRESSET_API void set_profiler_stubs(DeviceType type, const ProfilerStubs* stubs);
/// Null when there are none.
CRESSET_API const ProfilerStubs* profiler_stubs(DeviceType type);

}  // namespace cresset::profiler
