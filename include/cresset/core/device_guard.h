// Current devices and streams: the interface a device kind implements, and the guards that change them for a scope.
//
// The current device and the current streams belong to a thread. A guard puts back what it found, also when an exception
// passes through its scope. Backends described by a table (cresset/backend.h) get an implementation of this interface
// from the core; others register one with CRESSET_REGISTER_GUARD_IMPL.
#pragma once

#include <atomic>
#include <bitset>
#include <optional>
#include <vector>

#include <cresset/base/array_ref.h>
#include <cresset/base/error.h>
#include <cresset/core/allocator.h>
#include <cresset/core/stream.h>

namespace cresset {

/// INTERPROCESS: other processes can wait for the mark; it has no time.
enum class EventFlag { PYTORCH_DEFAULT, BACKEND_DEFAULT, INVALID, INTERPROCESS };

/// What a device can do. At the start: everything.
struct DeviceCapability {
  std::bitset<64> dtypes = std::bitset<64>().set();  // by the number of the ScalarType
  bool is_known = true;                              // by the device kind's implementation
};

namespace impl {

/// What the core asks of a device kind. Only the first seven have no default; the others answer for a device on which
/// every call has finished when it returns.
struct CRESSET_API DeviceGuardImplInterface {
  DeviceGuardImplInterface() = default;
  DeviceGuardImplInterface(const DeviceGuardImplInterface&) = default;
  DeviceGuardImplInterface& operator=(const DeviceGuardImplInterface&) = default;
  virtual ~DeviceGuardImplInterface() = default;

  virtual DeviceType type() const = 0;
  /// Makes `d` current and returns what was current.
  virtual Device exchangeDevice(Device d) const = 0;
  virtual Device getDevice() const = 0;
  virtual void setDevice(Device d) const = 0;
  /// setDevice for destructors: an error is swallowed.
  virtual void uncheckedSetDevice(Device d) const noexcept = 0;
  /// The current stream of device d.
  virtual Stream getStream(Device d) const = 0;
  /// 0 when there is no device or the driver does not answer.
  virtual DeviceIndex deviceCount() const noexcept = 0;

  virtual DeviceCapability getDeviceCapability(Device /*d*/) const { return {{}, false}; }
  virtual Stream getDefaultStream(Device d) const { return Stream(Stream::DEFAULT, d); }
  /// A stream of the backend's pool.
  virtual Stream getStreamFromGlobalPool(Device d, bool /*is_high_priority*/ = false) const { return getDefaultStream(d); }
  /// A stream; priorities below zero are higher.
  virtual Stream getNewStream(Device d, int /*priority*/ = 0) const { return getStreamFromGlobalPool(d); }
  /// Makes `s` the current stream of its device and returns what was current there; the current device stays.
  virtual Stream exchangeStream(Stream s) const { return s; }

  virtual void destroyEvent(void* /*event*/, DeviceIndex /*index*/) const noexcept {}
  /// Makes the event when *event is null, and records it.
  virtual void record(void** /*event*/, const Stream& /*stream*/, DeviceIndex /*index*/, EventFlag /*flag*/) const {
    CRESSET_THROW(NotImplementedError, DeviceTypeName(type()), ": this backend does not have events.");
  }
  virtual void block(void* /*event*/, const Stream& /*stream*/) const {}
  virtual bool queryEvent(void* /*event*/) const { return true; }
  virtual void synchronizeEvent(void* /*event*/) const {}
  virtual double elapsedTime(void* /*begin*/, void* /*end*/, DeviceIndex /*index*/) const {
    CRESSET_THROW(NotImplementedError, DeviceTypeName(type()), ": this backend does not measure time with events.");
  }

  /// Are there events of several processes: marks with EventFlag::INTERPROCESS, exportEvent and importEvent?
  virtual bool sharesEvents() const { return false; }
  /// Bytes that lead another process to the event, as long as it lives; makes the event when *event is null.
  virtual std::string exportEvent(void** /*event*/, DeviceIndex /*index*/) const {
    CRESSET_THROW(NotImplementedError, DeviceTypeName(type()), ": this backend has no events of several processes.");
  }
  /// Another process' event, to be used and destroyed as one of this process.
  virtual void* importEvent(std::string_view /*handle*/, DeviceIndex /*index*/) const {
    CRESSET_THROW(NotImplementedError, DeviceTypeName(type()), ": this backend has no events of several processes.");
  }

  virtual bool queryStream(const Stream& /*stream*/) const { return true; }
  virtual void synchronizeStream(const Stream& /*stream*/) const {}
  virtual void synchronizeDevice(DeviceIndex /*index*/) const {}
  /// Memory that this stream still uses must not be given out again before the stream has come this far.
  virtual void recordDataPtrOnStream(const DataPtr& /*data*/, const Stream& /*stream*/) const {}
};

/// A device kind with one device and nothing to do: the CPU, Meta.
struct CRESSET_API NoOpDeviceGuardImpl final : DeviceGuardImplInterface {
  explicit NoOpDeviceGuardImpl(DeviceType t) : type_(t) {}
  DeviceType type() const override { return type_; }
  Device exchangeDevice(Device) const override { return Device(type_, -1); }
  Device getDevice() const override { return Device(type_, -1); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return Stream(Stream::DEFAULT, Device(type_, -1)); }
  DeviceIndex deviceCount() const noexcept override { return 1; }

 private:
  DeviceType type_;
};

/// One implementation a device kind; it must live as long as the process.
CRESSET_API void registerDeviceGuardImpl(DeviceType type, const DeviceGuardImplInterface* impl);
/// Raises with the way to get one when the kind has none.
CRESSET_API const DeviceGuardImplInterface* getDeviceGuardImpl(DeviceType type);
CRESSET_API bool hasDeviceGuardImpl(DeviceType type);
/// Puts a stream back while a scope ends: what the backend raises is dropped.
CRESSET_API void restore_stream(const DeviceGuardImplInterface* impl, const Stream& stream) noexcept;

class CRESSET_API DeviceGuardImplRegistrar {
 public:
  DeviceGuardImplRegistrar(DeviceType type, const DeviceGuardImplInterface* impl) { registerDeviceGuardImpl(type, impl); }
};

/// The registered implementation behind one pointer (c10's name for it).
class CRESSET_API VirtualGuardImpl final {
 public:
  explicit VirtualGuardImpl(DeviceType type) : impl_(getDeviceGuardImpl(type)) {}
  explicit VirtualGuardImpl(const DeviceGuardImplInterface* impl) : impl_(impl) {}
  DeviceType type() const { return impl_->type(); }
  Device exchangeDevice(Device d) const { return impl_->exchangeDevice(d); }
  Device getDevice() const { return impl_->getDevice(); }
  void setDevice(Device d) const { impl_->setDevice(d); }
  void uncheckedSetDevice(Device d) const noexcept { impl_->uncheckedSetDevice(d); }
  Stream getStream(Device d) const { return impl_->getStream(d); }
  Stream getDefaultStream(Device d) const { return impl_->getDefaultStream(d); }
  Stream getNewStream(Device d, int priority = 0) const { return impl_->getNewStream(d, priority); }
  Stream getStreamFromGlobalPool(Device d, bool high = false) const { return impl_->getStreamFromGlobalPool(d, high); }
  Stream exchangeStream(Stream s) const { return impl_->exchangeStream(s); }
  DeviceIndex deviceCount() const noexcept { return impl_->deviceCount(); }
  void record(void** event, const Stream& stream, DeviceIndex index, EventFlag flag) const { impl_->record(event, stream, index, flag); }
  void block(void* event, const Stream& stream) const { impl_->block(event, stream); }
  bool queryEvent(void* event) const { return impl_->queryEvent(event); }
  void destroyEvent(void* event, DeviceIndex index) const noexcept { impl_->destroyEvent(event, index); }
  void synchronizeEvent(void* event) const { impl_->synchronizeEvent(event); }
  double elapsedTime(void* begin, void* end, DeviceIndex index) const { return impl_->elapsedTime(begin, end, index); }
  bool queryStream(const Stream& s) const { return impl_->queryStream(s); }
  void synchronizeStream(const Stream& s) const { impl_->synchronizeStream(s); }
  void synchronizeDevice(DeviceIndex index) const { impl_->synchronizeDevice(index); }
  void recordDataPtrOnStream(const DataPtr& d, const Stream& s) const { impl_->recordDataPtrOnStream(d, s); }

 private:
  const DeviceGuardImplInterface* impl_;
};

}  // namespace impl

/// Makes a device current for a scope. A device without index means the one that is current already.
class CRESSET_API DeviceGuard {
 public:
  explicit DeviceGuard(Device device) : DeviceGuard(device, impl::getDeviceGuardImpl(device.type())) {}
  DeviceGuard(Device device, const impl::DeviceGuardImplInterface* impl)
      : impl_(impl),
        original_(device.has_index() ? impl->exchangeDevice(device) : impl->getDevice()),
        current_(device.has_index() ? device : original_) {}
  ~DeviceGuard() { impl_->uncheckedSetDevice(original_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  /// Another device of the same kind, or of another: then the first kind's device is put back at once.
  void reset_device(Device device);
  void reset_device(Device device, const impl::DeviceGuardImplInterface* impl);
  /// Another device of the same kind.
  void set_index(DeviceIndex index) { reset_device(Device(current_.type(), index)); }
  Device original_device() const { return original_; }
  Device current_device() const { return current_; }

 private:
  const impl::DeviceGuardImplInterface* impl_;
  Device original_;
  Device current_;
};

/// A DeviceGuard that may do nothing.
class CRESSET_API OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(Device device) { guard_.emplace(device); }
  explicit OptionalDeviceGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  OptionalDeviceGuard(const OptionalDeviceGuard&) = delete;
  OptionalDeviceGuard& operator=(const OptionalDeviceGuard&) = delete;

  void reset_device(Device device) {
    if (guard_)
      guard_->reset_device(device);
    else
      guard_.emplace(device);
  }
  std::optional<Device> original_device() const { return guard_ ? std::optional(guard_->original_device()) : std::nullopt; }
  std::optional<Device> current_device() const { return guard_ ? std::optional(guard_->current_device()) : std::nullopt; }
  void reset() { guard_.reset(); }

 private:
  std::optional<DeviceGuard> guard_;
};

/// Makes a stream current, and its device, for a scope; puts back both.
class CRESSET_API StreamGuard {
 public:
  explicit StreamGuard(Stream stream)
      : impl_(impl::getDeviceGuardImpl(stream.device_type())),
        guard_(stream.device(), impl_),
        original_of_original_(impl_->getStream(guard_.original_device())),
        original_of_current_(impl_->exchangeStream(stream)),
        current_(stream) {}
  ~StreamGuard() { impl::restore_stream(impl_, original_of_current_); }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

  /// Another stream instead; the one before is put back first.
  void reset_stream(Stream stream);
  /// The stream that was current on the device that was current.
  Stream original_stream() const { return original_of_original_; }
  Stream current_stream() const { return current_; }
  Device current_device() const { return guard_.current_device(); }
  Device original_device() const { return guard_.original_device(); }

 private:
  const impl::DeviceGuardImplInterface* impl_;
  DeviceGuard guard_;
  Stream original_of_original_;
  Stream original_of_current_;
  Stream current_;
};

/// A StreamGuard that may do nothing.
class CRESSET_API OptionalStreamGuard {
 public:
  OptionalStreamGuard() = default;
  explicit OptionalStreamGuard(Stream stream) { guard_.emplace(stream); }
  explicit OptionalStreamGuard(std::optional<Stream> stream) {
    if (stream) guard_.emplace(*stream);
  }
  OptionalStreamGuard(const OptionalStreamGuard&) = delete;
  OptionalStreamGuard& operator=(const OptionalStreamGuard&) = delete;

  void reset_stream(Stream stream) {
    if (guard_)
      guard_->reset_stream(stream);
    else
      guard_.emplace(stream);
  }
  std::optional<Stream> original_stream() const { return guard_ ? std::optional(guard_->original_stream()) : std::nullopt; }
  std::optional<Stream> current_stream() const { return guard_ ? std::optional(guard_->current_stream()) : std::nullopt; }
  void reset() { guard_.reset(); }

 private:
  std::optional<StreamGuard> guard_;
};

/// Makes several streams current, at most one a device, and puts the old ones back; the current device stays.
class CRESSET_API MultiStreamGuard {
 public:
  explicit MultiStreamGuard(ArrayRef<Stream> streams);
  ~MultiStreamGuard();
  MultiStreamGuard(const MultiStreamGuard&) = delete;
  MultiStreamGuard& operator=(const MultiStreamGuard&) = delete;

 private:
  std::vector<Stream> originals_;
};

}  // namespace cresset

/// Gives a device kind its implementation while the library is loaded: CRESSET_REGISTER_GUARD_IMPL(PrivateUse1, MyGuard).
#define CRESSET_REGISTER_GUARD_IMPL(DevType, GuardImpl)                                                                             \
  static const ::cresset::impl::DeviceGuardImplRegistrar CRESSET_UNIQUE(cresset_device_guard_impl_)(::cresset::DeviceType::DevType, \
                                                                                                    new GuardImpl())
