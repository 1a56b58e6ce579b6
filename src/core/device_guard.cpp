// The registry of guard implementations; guards, streams and events on top of it.
#include <cresset/core/device_guard.h>

#include <array>

#include <cresset/core/backend.h>
#include <cresset/core/event.h>

namespace cresset {
namespace impl {
namespace {

// CPU and Meta have one device and no queues.
const NoOpDeviceGuardImpl cpu_guard(kCPU), meta_guard(kMeta);

std::array<std::atomic<const DeviceGuardImplInterface*>, kDeviceTypeCount>& guard_impls() {
  static std::array<std::atomic<const DeviceGuardImplInterface*>, kDeviceTypeCount> impls{};
  return impls;
}

}  // namespace

void registerDeviceGuardImpl(DeviceType type, const DeviceGuardImplInterface* impl) {
  guard_impls().at(static_cast<std::size_t>(type)).store(impl, std::memory_order_release);
}

bool hasDeviceGuardImpl(DeviceType type) {
  if (type >= DeviceType::HIP) return false;
  return type == kCPU || type == kMeta || guard_impls().at(static_cast<std::size_t>(type)).load(std::memory_order_acquire) != nullptr;
}

const DeviceGuardImplInterface* getDeviceGuardImpl(DeviceType type) {
  if (hasDeviceGuardImpl(type))
    if (const auto* impl = guard_impls().at(static_cast<std::size_t>(type)).load(std::memory_order_acquire)) return impl;
  if (type == kCPU) return &cpu_guard;
  if (type == kMeta) return &meta_guard;
  CRESSET_THROW(Error, "PyTorch is not linked with support for ", DeviceTypeName(type),
                " devices: no guard is registered for this kind. Register its backend, or use CRESSET_REGISTER_GUARD_IMPL.");
}

void restore_stream(const DeviceGuardImplInterface* impl, const Stream& stream) noexcept {
  try {
    impl->exchangeStream(stream);
  } catch (...) {
  }
}

}  // namespace impl

void DeviceGuard::reset_device(Device device) {
  reset_device(device, device.type() == current_.type() ? impl_ : impl::getDeviceGuardImpl(device.type()));
}

void DeviceGuard::reset_device(Device device, const impl::DeviceGuardImplInterface* impl) {
  const Device target = device.has_index() ? device : impl->getDevice();
  if (impl->type() == impl_->type()) {
    impl->setDevice(target);
    current_ = target;
    return;
  }
  const Device original = impl->exchangeDevice(target);
  impl_->setDevice(original_);
  impl_ = impl;
  original_ = original;
  current_ = target;
}

void StreamGuard::reset_stream(Stream stream) {
  CRESSET_CHECK(stream.device_type() == current_.device_type(), "StreamGuard: a stream of ", DeviceTypeName(current_.device_type()),
                " was required; a stream of ", DeviceTypeName(stream.device_type()), " was given.");
  impl_->exchangeStream(original_of_current_);
  guard_.reset_device(stream.device(), impl_);
  original_of_current_ = impl_->exchangeStream(stream);
  current_ = stream;
}

MultiStreamGuard::MultiStreamGuard(ArrayRef<Stream> streams) {
  originals_.reserve(streams.size());
  for (const Stream& s : streams) originals_.push_back(impl::getDeviceGuardImpl(s.device_type())->exchangeStream(s));
}

MultiStreamGuard::~MultiStreamGuard() {
  for (const Stream& s : originals_)
    if (impl::hasDeviceGuardImpl(s.device_type())) impl::restore_stream(impl::getDeviceGuardImpl(s.device_type()), s);
}

// ---- streams and events

bool Stream::query() const { return impl::getDeviceGuardImpl(device_type())->queryStream(*this); }
void Stream::synchronize() const { impl::getDeviceGuardImpl(device_type())->synchronizeStream(*this); }
std::string to_string(const Stream& s) { return str("stream ", s.id(), " on device ", s.device()); }

Event::~Event() {
  if (event_) impl::getDeviceGuardImpl(type_)->destroyEvent(event_, index_);
}

void Event::record(const Stream& stream) {
  CRESSET_CHECK(stream.device_type() == type_, "Event device type ", DeviceTypeName(type_),
                " does not match recording stream's device type ", DeviceTypeName(stream.device_type()), ".");
  impl::getDeviceGuardImpl(type_)->record(&event_, stream, index_, flag_);
  index_ = stream.device_index();
  marked_ = true;
}

void Event::block(const Stream& stream) const {
  if (!marked_) return;
  CRESSET_CHECK(stream.device_type() == type_, "Event device type ", DeviceTypeName(type_),
                " does not match blocking stream's device type ", DeviceTypeName(stream.device_type()), ".");
  impl::getDeviceGuardImpl(type_)->block(event_, stream);
}

bool Event::query() const { return !marked_ || impl::getDeviceGuardImpl(type_)->queryEvent(event_); }

double Event::elapsedTime(const Event& end) const {
  CRESSET_CHECK(end.device_type() == type_, "Event device type ", DeviceTypeName(type_), " does not match other's device type ",
                DeviceTypeName(end.device_type()), ".");
  CRESSET_CHECK_VALUE(flag_ == EventFlag::BACKEND_DEFAULT && end.flag_ == EventFlag::BACKEND_DEFAULT,
                      "Both events must be created with argument 'enable_timing=True'.");
  CRESSET_CHECK_VALUE(marked_ && end.marked_, "Both events must be recorded before calculating elapsed time.");
  CRESSET_CHECK(query() && end.query(), "Both events must be completed before calculating elapsed time.");
  return impl::getDeviceGuardImpl(type_)->elapsedTime(event_, end.event_, index_);
}

std::string Event::handle() {
  CRESSET_CHECK(flag_ == EventFlag::INTERPROCESS, "Event: only events made with interprocess=True have a handle.");
  const auto* guard = impl::getDeviceGuardImpl(type_);
  if (index_ < 0) index_ = guard->getDevice().index();
  return guard->exportEvent(&event_, index_);
}

Event Event::from_handle(Device device, std::string_view handle) {
  Event e(device.type(), EventFlag::INTERPROCESS);
  const auto* guard = impl::getDeviceGuardImpl(device.type());
  e.index_ = device.has_index() ? device.index() : guard->getDevice().index();
  e.event_ = guard->importEvent(handle, e.index_);
  e.marked_ = true;
  return e;
}

void Event::synchronize() const {
  if (marked_) impl::getDeviceGuardImpl(type_)->synchronizeEvent(event_);
}

}  // namespace cresset
