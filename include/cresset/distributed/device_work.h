// DeviceWork: a collective in a queue of the device, for backends that communicate there.
//
//   const auto work = make_intrusive<DeviceWork>(OpType::ALLREDUCE, stream, tensors);   // stream: the group's own
//   work->begin(tensors);                  // the stream waits for what the caller has put into its current stream
//   my_runtime_all_reduce(..., stream);    // returns at once
//   work->end();                           // here the work ends
//   return work;                           // and later, from the runtime's callback: work->finished(error)
#pragma once

#include <cresset/core/event.h>
#include <cresset/distributed/work.h>

namespace cresset::distributed {

/// Work whose end is an event in a stream of the device. wait() makes the caller's current stream wait for it, not the host; with a time it
/// blocks the host, and raises DistBackendError after it.
class CRESSET_API DeviceWork : public Work {
 public:
  /// `outputs`: the tensors that it writes, of `stream`'s device.
  DeviceWork(OpType op, const Stream& stream, std::vector<Tensor> outputs);
  ~DeviceWork() override;

  /// The stream waits for all that is in the current stream of its device, and the memory of `used` is not used again before the stream has
  /// come to what is put into it until the tensors are freed.
  void begin(const std::vector<Tensor>& used);
  /// What the stream does from begin() to here is the work.
  void end();
  /// From any thread, once: the host knows that the work is over, with or without an error. The queue's own end may be before or after.
  void finished(std::exception_ptr error = nullptr);

  /// Asks the event; true, too, once the host knows of an error.
  bool isCompleted() override;
  bool isSuccess() const override;
  std::vector<Tensor> result() override { return outputs_; }
  /// The current stream of the work's device waits for the end. Raises the error that is known by now; one that comes later is the device's
  /// to tell, at the next wait for a stream that waited for this.
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  /// Completed by finished(), when the tensors may be read in any stream.
  intrusive_ptr<ivalue::Future> getFuture() override;
  const Stream& stream() const { return stream_; }

 private:
  const Stream stream_;
  const std::vector<Tensor> outputs_;
  Event end_;
};

}  // namespace cresset::distributed
