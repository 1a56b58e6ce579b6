#include <cresset/distributed/work.h>

#include "distributed/wait_slices.h"

namespace cresset::distributed {

const char* op_name(OpType op) {
  switch (op) {
    case OpType::BROADCAST: return "broadcast";
    case OpType::ALLREDUCE: return "allreduce";
    case OpType::ALLREDUCE_COALESCED: return "allreduce_coalesced";
    case OpType::REDUCE: return "reduce";
    case OpType::ALLGATHER: return "allgather";
    case OpType::_ALLGATHER_BASE: return "_allgather_base";
    case OpType::ALLGATHER_COALESCED: return "allgather_coalesced";
    case OpType::GATHER: return "gather";
    case OpType::SCATTER: return "scatter";
    case OpType::REDUCE_SCATTER: return "reduce_scatter";
    case OpType::ALLTOALL_BASE: return "alltoall_base";
    case OpType::ALLTOALL: return "alltoall";
    case OpType::SEND: return "send";
    case OpType::RECV: return "recv";
    case OpType::RECVANYSOURCE: return "recv_anysource";
    case OpType::BARRIER: return "barrier";
    case OpType::_REDUCE_SCATTER_BASE: return "_reduce_scatter_base";
    case OpType::COALESCED: return "coalesced";
    case OpType::_ALLREDUCE_SPARSE: return "_allreduce_sparse";
    case OpType::UNKNOWN: break;
  }
  return "unknown";
}

Work::Work(int rank, OpType op, const char* title, const std::optional<std::vector<Tensor>>&) : rank_(rank), op_(op), title_(title) {}
Work::~Work() = default;
bool Work::isCompleted() {
  const std::lock_guard lock(mutex_);
  return completed_;
}
bool Work::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}
std::exception_ptr Work::exception() const {
  const std::lock_guard lock(mutex_);
  return exception_;
}
int Work::sourceRank() const {
  CRESSET_THROW(Error, "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.");
}
std::vector<Tensor> Work::result() { CRESSET_THROW(Error, "result() not implemented."); }
void Work::synchronize() {}
bool Work::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!wait_in_slices(lock, changed_, timeout, [this] { return completed_; })) CRESSET_THROW(DistBackendError, "Operation timed out!");
  if (exception_) std::rethrow_exception(exception_);
  lock.unlock();
  synchronize();
  return true;
}
void Work::abort() { CRESSET_THROW(Error, "Work::abort not implemented."); }
intrusive_ptr<ivalue::Future> Work::getFuture() { CRESSET_THROW(Error, "Work::getFuture not implemented."); }
intrusive_ptr<ivalue::Future> Work::getFutureResult() { CRESSET_THROW(Error, "Work::getFutureResult not implemented."); }
void Work::finish(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    completed_ = true;
    exception_ = std::move(error);
  }
  changed_.notify_all();
}
intrusive_ptr<ivalue::Future> Work::future_of(const IValue& value) {
  const std::lock_guard lock(mutex_);
  if (!future_) {
    future_ = make_intrusive<ivalue::Future>();
    if (completed_ && exception_) future_->set_error(exception_);
    if (completed_ && !exception_) future_->mark_completed(value);
  }
  return future_;
}
void Work::finish_with_future(std::exception_ptr error, const IValue& value) {
  finish(error);
  intrusive_ptr<ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    future = future_;
  }
  if (!future || future->completed()) return;
  if (error)
    future->set_error(error);
  else
    future->mark_completed(value);
}

}  // namespace cresset::distributed
