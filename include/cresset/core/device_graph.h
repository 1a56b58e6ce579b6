// Work of a device that is recorded once and done again, as a whole, without the host: PyTorch's torch.accelerator.Graph.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <cresset/core/device_memory.h>
#include <cresset/core/stream.h>

namespace cresset {

/// What is refused while a graph is being recorded, beside calls that wait for the recorded stream: calls that wait for the device in the
/// recording thread (Default, ThreadLocal), in every thread (Global), nothing (Relaxed).
enum class CaptureMode { Default, Global, ThreadLocal, Relaxed };
/// "default", "global", "thread_local", "relaxed"; raises for other texts.
CRESSET_API CaptureMode capture_mode_from_name(const std::string& name);

/// One graph. What is put into the current stream between capture_begin and capture_end is recorded, and not done; replay() puts all of it
/// into the current stream. Recorded work reads and writes the same memory each time: tensors that were made while recording keep their
/// place in the graph's pool, inputs are changed in place (copy_) before a replay. One thread at a time.
class CRESSET_API DeviceGraph final {
 public:
  /// `pool` (0, 0): one of its own.
  explicit DeviceGraph(DeviceType type, MemoryPoolId pool = {}, CaptureMode mode = CaptureMode::Default);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  /// Of the current stream of the current device; Error for backends that cannot record.
  void capture_begin();
  /// In the thread and with the stream of capture_begin.
  void capture_end();
  /// Into the current stream of the graph's device.
  void replay();
  /// Forgets what was recorded; ends a recording. Afterwards the graph can record again.
  void reset();
  /// Writes a picture of what was recorded for Graphviz.
  void dump(const std::string& path) const;
  bool is_recorded() const;
  /// Of the recording, or the one that was given; (0, 0) before the first recording.
  MemoryPoolId pool() const;
  /// For the next recording.
  void set_pool(MemoryPoolId pool);
  void set_mode(CaptureMode mode);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {
/// Raises when a call that waits would wait for what is being recorded, or is refused by the mode of a recording. `what` names the call.
CRESSET_API void check_may_wait(const Stream& stream, std::string_view what);
CRESSET_API void check_may_wait(Device device, std::string_view what);
/// Is there a recording in this process? Without one, check_may_wait has nothing to find.
CRESSET_API bool is_anything_recorded();
/// Does the thread record work of this device?
CRESSET_API bool is_capturing_in_this_thread(Device device);
}  // namespace detail

}  // namespace cresset
