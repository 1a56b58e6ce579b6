// Stream: an ordered queue of work on one device. Event: a mark in a stream that others can wait for.
//
// Both are thin: the work is done by the device's DeviceGuardImplInterface (core/device_guard.h). A device kind without
// streams has one default stream a device, on which everything has happened by the time a call returns.
#pragma once

#include <cstdint>
#include <string>

#include <cresset/base/macros.h>
#include <cresset/core/device.h>

namespace cresset {

using StreamId = int64_t;
struct Event;

/// Three numbers that travel through interfaces without C++ types (pack3 and unpack3).
struct StreamData3 {
  StreamId stream_id;
  DeviceIndex device_index;
  DeviceType device_type;
};

/// A queue of one device. Cheap to copy; owns nothing: streams of a backend live as long as the process.
class CRESSET_API Stream final {
 public:
  enum Unsafe { UNSAFE };
  enum Default { DEFAULT };
  /// For backends: the id means what the backend wants it to mean.
  Stream(Unsafe, Device device, StreamId id) : device_(device), id_(id) {}
  /// The default stream of a device.
  Stream(Default, Device device) : device_(device), id_(0) {}

  Device device() const noexcept { return device_; }
  DeviceType device_type() const noexcept { return device_.type(); }
  DeviceIndex device_index() const noexcept { return device_.index(); }
  StreamId id() const noexcept { return id_; }

  /// Work submitted to this stream from now on waits until the event has happened.
  template <class E>
  void wait(const E& event) const {
    event.block(*this);
  }
  /// Has all submitted work been done?
  bool query() const;
  /// Waits until all submitted work has been done.
  void synchronize() const;
  /// Is work that is submitted now recorded by a DeviceGraph, instead of done?
  bool is_capturing() const;

  uint64_t hash() const noexcept {
    return static_cast<uint64_t>(static_cast<uint8_t>(device_type())) << 56 |
           static_cast<uint64_t>(static_cast<uint8_t>(device_index())) << 48 | (static_cast<uint64_t>(id_) & ((uint64_t{1} << 48) - 1));
  }
  StreamData3 pack3() const { return {id_, device_index(), device_type()}; }
  static Stream unpack3(StreamId id, DeviceIndex index, DeviceType type) { return Stream(UNSAFE, Device(type, index), id); }

  friend bool operator==(const Stream& a, const Stream& b) noexcept { return a.device_ == b.device_ && a.id_ == b.id_; }

 private:
  Device device_;
  StreamId id_;
};

/// "stream 3 on device mychip:0".
CRESSET_API std::string to_string(const Stream& s);

}  // namespace cresset

template <>
struct std::hash<cresset::Stream> {
  std::size_t operator()(cresset::Stream s) const noexcept { return static_cast<std::size_t>(s.hash()); }
};
