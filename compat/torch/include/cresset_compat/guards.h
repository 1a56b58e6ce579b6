// Guards that call a device's implementation by its type, not through the registry.
#pragma once

#include <cresset_compat/names.h>

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace c10::impl {
using cresset::impl::DeviceGuardImplInterface;
using cresset::impl::VirtualGuardImpl;

/// Makes a device current for a scope. T is the device's implementation, or VirtualGuardImpl for a kind known at run time.
template <class T>
class InlineDeviceGuard {
 public:
  InlineDeviceGuard() = delete;
  explicit InlineDeviceGuard(Device device) : InlineDeviceGuard(device, T(device.type())) {}
  template <std::same_as<DeviceIndex> I>
    requires(!std::same_as<T, VirtualGuardImpl>)
  explicit InlineDeviceGuard(I index) : InlineDeviceGuard(Device(T::static_type, index)) {}
  InlineDeviceGuard(Device device, const DeviceGuardImplInterface* impl)
    requires std::same_as<T, VirtualGuardImpl>
      : InlineDeviceGuard(device, impl ? VirtualGuardImpl(impl) : VirtualGuardImpl(device.type())) {}
  ~InlineDeviceGuard() { impl_.uncheckedSetDevice(original_); }
  InlineDeviceGuard(const InlineDeviceGuard&) = delete;
  InlineDeviceGuard& operator=(const InlineDeviceGuard&) = delete;

  /// Another device of the same kind.
  void set_device(Device device)
    requires(!std::same_as<T, VirtualGuardImpl>)
  {
    CRESSET_CHECK(device.type() == T::static_type, "InlineDeviceGuard: expected a device of type ", T::static_type, ", but got ", device);
    set_index(device.index());
  }
  /// Another device; T's kind unless T is VirtualGuardImpl, which puts back the first kind's device at once.
  void reset_device(Device device, const DeviceGuardImplInterface* impl = nullptr) {
    if constexpr (std::same_as<T, VirtualGuardImpl>) {
      if (device.type() == original_.type()) return set_index(device.index());
      impl_.uncheckedSetDevice(original_);
      impl_ = impl ? VirtualGuardImpl(impl) : VirtualGuardImpl(device.type());
      original_ = current_ = impl_.getDevice();
      set_index(device.index());
    } else {
      set_device(device);
    }
  }
  void set_index(DeviceIndex index) {
    if (index == -1) return;
    current_ = Device(original_.type(), index);
    impl_.setDevice(current_);
  }
  Device original_device() const { return original_; }
  Device current_device() const { return current_; }

 private:
  InlineDeviceGuard(Device device, T impl)
      : impl_(std::move(impl)),
        original_(device.has_index() ? impl_.exchangeDevice(device) : impl_.getDevice()),
        current_(device.has_index() ? device : original_) {}

  T impl_;
  Device original_;
  Device current_;
};

/// An InlineDeviceGuard that may do nothing.
template <class T>
class InlineOptionalDeviceGuard {
 public:
  InlineOptionalDeviceGuard() = default;
  explicit InlineOptionalDeviceGuard(Device device) { guard_.emplace(device); }
  explicit InlineOptionalDeviceGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  template <std::same_as<DeviceIndex> I>
    requires(!std::same_as<T, VirtualGuardImpl>)
  explicit InlineOptionalDeviceGuard(I index) {
    guard_.emplace(index);
  }
  template <std::same_as<DeviceIndex> I>
    requires(!std::same_as<T, VirtualGuardImpl>)
  explicit InlineOptionalDeviceGuard(std::optional<I> index) {
    if (index) guard_.emplace(*index);
  }
  InlineOptionalDeviceGuard(const InlineOptionalDeviceGuard&) = delete;
  InlineOptionalDeviceGuard& operator=(const InlineOptionalDeviceGuard&) = delete;

  void set_device(Device device)
    requires(!std::same_as<T, VirtualGuardImpl>)
  {
    guard_ ? guard_->set_device(device) : void(guard_.emplace(device));
  }
  void reset_device(Device device) { guard_ ? guard_->reset_device(device) : void(guard_.emplace(device)); }
  void set_index(DeviceIndex index)
    requires(!std::same_as<T, VirtualGuardImpl>)
  {
    guard_ ? guard_->set_index(index) : void(guard_.emplace(index));
  }
  std::optional<Device> original_device() const { return guard_ ? std::optional(guard_->original_device()) : std::nullopt; }
  std::optional<Device> current_device() const { return guard_ ? std::optional(guard_->current_device()) : std::nullopt; }
  /// Ends the guard: the original device is current again.
  void reset() { guard_.reset(); }

 private:
  std::optional<InlineDeviceGuard<T>> guard_;
};

/// Makes a stream current, and its device, for a scope; puts back both.
template <class T>
class InlineStreamGuard {
 public:
  InlineStreamGuard() = delete;
  explicit InlineStreamGuard(Stream stream)
      : impl_(stream.device_type()),
        guard_(stream.device()),
        original_of_original_(impl_.getStream(guard_.original_device())),
        original_of_current_(impl_.exchangeStream(stream)),
        current_(stream) {}
  ~InlineStreamGuard() {
    try {
      impl_.exchangeStream(original_of_current_);
    } catch (...) {  // there is nothing to go back to
    }
  }
  InlineStreamGuard(const InlineStreamGuard&) = delete;
  InlineStreamGuard& operator=(const InlineStreamGuard&) = delete;

  /// Another stream instead; the one before is put back first.
  void reset_stream(Stream stream) {
    impl_.exchangeStream(original_of_current_);
    guard_.reset_device(stream.device());
    if constexpr (std::same_as<T, VirtualGuardImpl>) {
      impl_ = VirtualGuardImpl(stream.device_type());
      original_of_original_ = impl_.getStream(guard_.original_device());
    }
    original_of_current_ = impl_.exchangeStream(stream);
    current_ = stream;
  }
  Stream original_stream() const { return original_of_original_; }
  Stream current_stream() const { return current_; }
  Device current_device() const { return guard_.current_device(); }
  Device original_device() const { return guard_.original_device(); }

 private:
  T impl_;
  InlineDeviceGuard<T> guard_;
  Stream original_of_original_;
  Stream original_of_current_;
  Stream current_;
};

/// An InlineStreamGuard that may do nothing.
template <class T>
class InlineOptionalStreamGuard {
 public:
  InlineOptionalStreamGuard() = default;
  explicit InlineOptionalStreamGuard(Stream stream) { guard_.emplace(stream); }
  explicit InlineOptionalStreamGuard(std::optional<Stream> stream) {
    if (stream) guard_.emplace(*stream);
  }
  InlineOptionalStreamGuard(const InlineOptionalStreamGuard&) = delete;
  InlineOptionalStreamGuard& operator=(const InlineOptionalStreamGuard&) = delete;

  void reset_stream(Stream stream) { guard_ ? guard_->reset_stream(stream) : void(guard_.emplace(stream)); }
  std::optional<Stream> original_stream() const { return guard_ ? std::optional(guard_->original_stream()) : std::nullopt; }
  std::optional<Stream> current_stream() const { return guard_ ? std::optional(guard_->current_stream()) : std::nullopt; }
  /// Ends the guard: the original device and stream are current again.
  void reset() { guard_.reset(); }

 private:
  std::optional<InlineStreamGuard<T>> guard_;
};

/// Makes several streams current, at most one of each device; the device stays.
template <class T>
class InlineMultiStreamGuard {
 public:
  explicit InlineMultiStreamGuard(ArrayRef<Stream> streams) {
    for (const Stream& stream : streams) {
      CRESSET_CHECK(stream.device_type() == streams[0].device_type(), "Streams have a mix of device types: stream 0 is on ",
                    streams[0].device(), " but another stream is on device ", stream.device());
      before_.push_back(T(stream.device_type()).exchangeStream(stream));
    }
  }
  ~InlineMultiStreamGuard() {
    try {
      for (const Stream& stream : before_) T(stream.device_type()).exchangeStream(stream);
    } catch (...) {  // there is nothing to go back to
    }
  }
  InlineMultiStreamGuard(const InlineMultiStreamGuard&) = delete;
  InlineMultiStreamGuard& operator=(const InlineMultiStreamGuard&) = delete;
  ArrayRef<Stream> original_streams() const { return before_; }

 private:
  std::vector<Stream> before_;
};

}  // namespace c10::impl
