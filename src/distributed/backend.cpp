// Backends refuse what they do not override; a process group hands each call to the backend of its tensors' device.
#include <cresset/distributed/backend.h>

#include "distributed/host_staging.h"

namespace cresset::distributed {

Collectives::~Collectives() = default;
Backend::~Backend() = default;
Backend::Options::~Options() = default;
ProcessGroup::~ProcessGroup() = default;

namespace {
template <class... Args>
void unused(const Args&...) {}
[[noreturn]] void refuse(const std::string& who, const char* what) { CRESSET_THROW(Error, who, " does not support ", what); }
}  // namespace

#define CRESSET_REFUSE(name, parameters, arguments)  \
  intrusive_ptr<Work> Collectives::name parameters { \
    unused arguments;                                \
    refuse(title(), #name);                          \
  }
CRESSET_COLLECTIVES(CRESSET_REFUSE)
#undef CRESSET_REFUSE
void Collectives::monitoredBarrier(const BarrierOptions&, bool) {
  CRESSET_THROW(Error, title(), " does not support monitoredBarrier, only GLOO supports monitored barrier.");
}
void Collectives::setSequenceNumberForGroup() { refuse(title(), "sequence numbers"); }
uint64_t Collectives::getSequenceNumberForGroup() { refuse(title(), "sequence numbers"); }
void Collectives::startCoalescing() { refuse(title(), "startCoalescing"); }
intrusive_ptr<Work> Collectives::endCoalescing() { refuse(title(), "endCoalescing"); }
void Collectives::setTimeout(std::chrono::milliseconds) { refuse(title(), "setting timeout"); }
void Collectives::shutdown() {}
void Collectives::abort() { shutdown(); }

intrusive_ptr<Backend::Options> Backend::getBackendOptions() { refuse(title(), "getBackendOptions"); }
const std::string Backend::getBackendName() const { CRESSET_THROW(Error, "getBackendName is not implemented."); }

// --- process groups

namespace {

// The device of the first tensor among the arguments.
std::optional<Device> device_of(const Tensor& t) { return t.defined() ? std::optional(t.device()) : std::nullopt; }
template <class T>
std::optional<Device> device_of(const std::vector<T>& list) {
  for (const T& t : list)
    if (const auto device = device_of(t)) return device;
  return std::nullopt;
}
std::optional<Device> device_of(const std::vector<int64_t>&) { return std::nullopt; }
std::optional<Device> device_of(int) { return std::nullopt; }
std::optional<Device> device_of(const CollectiveOptions&) { return std::nullopt; }
std::optional<Device> device_of(const BarrierOptions& o) { return o.device; }
template <class... Args>
std::optional<Device> first_device(const Args&... args) {
  std::optional<Device> found;
  ((found = found ? found : device_of(args)), ...);
  return found;
}
intrusive_ptr<Backend> backend_for(const ProcessGroup& group, std::optional<Device> device) {
  return device ? group.getBackend(device->type()) : group.getDefaultBackend();
}

}  // namespace

#define CRESSET_FORWARD(name, parameters, arguments) \
  intrusive_ptr<Work> ProcessGroup::name parameters { return backend_for(*this, first_device arguments)->name arguments; }
CRESSET_COLLECTIVES(CRESSET_FORWARD)
#undef CRESSET_FORWARD
void ProcessGroup::monitoredBarrier(const BarrierOptions& opts, bool wait_all_ranks) {
  backend_for(*this, opts.device)->monitoredBarrier(opts, wait_all_ranks);
}
void ProcessGroup::setSequenceNumberForGroup() { getDefaultBackend()->setSequenceNumberForGroup(); }
uint64_t ProcessGroup::getSequenceNumberForGroup() { return getDefaultBackend()->getSequenceNumberForGroup(); }
void ProcessGroup::startCoalescing() { getDefaultBackend()->startCoalescing(); }
intrusive_ptr<Work> ProcessGroup::endCoalescing() { return getDefaultBackend()->endCoalescing(); }
void ProcessGroup::setTimeout(std::chrono::milliseconds timeout) {
  for (const auto& [device, entry] : backends_) entry.backend->setTimeout(timeout);
}
void ProcessGroup::shutdown() {
  for (const auto& [device, entry] : backends_) entry.backend->shutdown();
}
void ProcessGroup::abort() {
  for (const auto& [device, entry] : backends_) entry.backend->abort();
}

const std::string ProcessGroup::getBackendName() const { return backends_.empty() ? "undefined" : getDefaultBackend()->getBackendName(); }
void ProcessGroup::setBackend(DeviceType device, BackendType type, const intrusive_ptr<Backend>& backend) {
  backends_[device] = {type, backend};
  if (device == DeviceType::CPU) staged_.clear();
}
intrusive_ptr<Backend> ProcessGroup::getBackend(DeviceType device) const {
  if (const auto it = backends_.find(device); it != backends_.end()) return it->second.backend;
  const auto host = backends_.find(DeviceType::CPU);
  CRESSET_CHECK(host != backends_.end() && device != DeviceType::Meta, "No backend type associated with device type ",
                DeviceTypeName(device));
  const std::lock_guard lock(mutex_);
  auto& staged = staged_[device];
  if (!staged) staged = make_intrusive<HostStaging>(host->second.backend);
  return staged;
}
intrusive_ptr<Backend> ProcessGroup::getDefaultBackend() const {
  for (const auto& [device, entry] : backends_)
    if (entry.type == default_type_) return entry.backend;
  CRESSET_CHECK(!backends_.empty(), "ProcessGroup: a backend was required; none is registered.");
  return backends_.begin()->second.backend;
}
std::vector<DeviceType> ProcessGroup::getDeviceTypes() const {
  std::vector<DeviceType> out;
  for (const auto& [device, entry] : backends_) out.push_back(device);
  return out;
}

}  // namespace cresset::distributed
