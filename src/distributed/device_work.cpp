#include <cresset/distributed/device_work.h>

#include "distributed/wait_slices.h"

namespace cresset::distributed {

namespace {
Stream current_stream(const Device& device) { return impl::getDeviceGuardImpl(device.type())->getStream(device); }
}  // namespace

DeviceWork::DeviceWork(OpType op, const Stream& stream, std::vector<Tensor> outputs)
    : Work(-1, op), stream_(stream), outputs_(std::move(outputs)), end_(stream.device_type()) {}
DeviceWork::~DeviceWork() = default;

void DeviceWork::begin(const std::vector<Tensor>& used) {
  Event ready(stream_.device_type());
  ready.record(current_stream(stream_.device()));
  ready.block(stream_);
  const auto* device = impl::getDeviceGuardImpl(stream_.device_type());
  for (const Tensor& t : used) device->recordDataPtrOnStream(t.storage().data_ptr(), stream_);
}
void DeviceWork::end() { end_.record(stream_); }

void DeviceWork::finished(std::exception_ptr error) { finish_with_future(std::move(error), outputs_); }

bool DeviceWork::isCompleted() { return exception() || end_.query(); }
bool DeviceWork::isSuccess() const { return !exception() && end_.query(); }

void DeviceWork::synchronize() {
  if (const auto error = exception()) std::rethrow_exception(error);
  end_.block(current_stream(stream_.device()));
}

bool DeviceWork::wait(std::chrono::milliseconds timeout) {
  if (timeout > kNoTimeout) {
    // An event tells nobody that it has happened: it is asked every millisecond.
    std::unique_lock lock(mutex_);
    const auto deadline = deadline_after(timeout);
    const auto over = [this] { return exception_ || end_.query(); };
    while (!over()) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= deadline) CRESSET_THROW(DistBackendError, op_name(retrieveOpType()), ": Operation timed out! It goes on in its stream.");
      changed_.wait_until(lock, std::min(deadline, now + std::chrono::milliseconds(1)));
      lock.unlock();
      check_signals();
      lock.lock();
    }
  }
  synchronize();
  return true;
}

intrusive_ptr<ivalue::Future> DeviceWork::getFuture() { return future_of(outputs_); }

}  // namespace cresset::distributed
