// Event: a mark in a stream; streams and threads can wait for it, and two of them measure time.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <cresset/core/device_guard.h>
#include <cresset/core/stream.h>

namespace cresset {

/// A mark that is set by record(). Movable; destroyed with its device's destroyEvent.
struct CRESSET_API Event final {
  Event() = delete;
  explicit Event(DeviceType type, EventFlag flag = EventFlag::PYTORCH_DEFAULT) : type_(type), flag_(flag) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&& o) noexcept { swap(o); }
  Event& operator=(Event&& o) noexcept {
    swap(o);
    return *this;
  }
  ~Event();

  Device device() const noexcept { return Device(type_, index_); }
  DeviceType device_type() const noexcept { return type_; }
  DeviceIndex device_index() const noexcept { return index_; }
  EventFlag flag() const noexcept { return flag_; }
  bool was_marked_for_recording() const noexcept { return marked_; }
  /// The backend's event, null before the first record.
  void* eventId() const noexcept { return event_; }

  /// record(), unless it has been recorded already.
  void recordOnce(const Stream& stream) {
    if (!marked_) record(stream);
  }
  /// Puts the mark behind everything submitted to the stream so far. The stream must be of this event's kind of device.
  void record(const Stream& stream);
  /// Makes the stream wait for the mark. Does nothing when it was never recorded.
  void block(const Stream& stream) const;
  /// Has everything before the mark been done? True when it was never recorded.
  bool query() const;
  /// Milliseconds from this mark to `end`; both must be recorded and made with timing.
  double elapsedTime(const Event& end) const;
  /// Waits for the mark.
  void synchronize() const;

  /// Bytes by which another process finds this mark (from_handle) while it lives; it must have been made with EventFlag::INTERPROCESS.
  /// Before the first record the mark belongs to the device's current one.
  std::string handle();
  /// The mark of another process.
  static Event from_handle(Device device, std::string_view handle);

 private:
  void swap(Event& o) noexcept {
    std::swap(event_, o.event_);
    std::swap(type_, o.type_);
    std::swap(index_, o.index_);
    std::swap(flag_, o.flag_);
    std::swap(marked_, o.marked_);
  }
  void* event_ = nullptr;
  DeviceType type_ = DeviceType::CPU;
  DeviceIndex index_ = -1;
  EventFlag flag_ = EventFlag::PYTORCH_DEFAULT;
  bool marked_ = false;
};

}  // namespace cresset
