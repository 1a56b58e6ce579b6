// The registry of profiler stubs.
#include <cresset/dispatch/profiler_stubs.h>

#include <array>
#include <atomic>

namespace cresset::profiler {
namespace {
std::array<std::atomic<const ProfilerStubs*>, kDeviceTypeCount>& all_stubs() {
  static std::array<std::atomic<const ProfilerStubs*>, kDeviceTypeCount> all{};
  return all;
}
}  // namespace

void set_profiler_stubs(DeviceType type, const ProfilerStubs* stubs) { all_stubs().at(static_cast<std::size_t>(type)).store(stubs); }
const ProfilerStubs* profiler_stubs(DeviceType type) {
  return type >= DeviceType::HIP ? nullptr : all_stubs().at(static_cast<std::size_t>(type)).load();
}

}  // namespace cresset::profiler
