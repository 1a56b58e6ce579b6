// Work: a collective under way.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

#include <cresset/dispatch/script_values.h>
#include <cresset/distributed/types.h>

namespace cresset::distributed {

enum class OpType : uint8_t {
  BROADCAST = 0,
  ALLREDUCE = 1,
  ALLREDUCE_COALESCED = 2,
  REDUCE = 3,
  ALLGATHER = 4,
  _ALLGATHER_BASE = 5,
  ALLGATHER_COALESCED = 6,
  GATHER = 7,
  SCATTER = 8,
  REDUCE_SCATTER = 9,
  ALLTOALL_BASE = 10,
  ALLTOALL = 11,
  SEND = 12,
  RECV = 13,
  RECVANYSOURCE = 14,
  BARRIER = 15,
  _REDUCE_SCATTER_BASE = 16,
  COALESCED = 17,
  _ALLREDUCE_SPARSE = 18,
  UNKNOWN = 100,
};
CRESSET_API const char* op_name(OpType op);

/// A collective under way: waited for, asked, or followed by a future. Backends derive from it; this one is finished by finish().
class CRESSET_API Work : public intrusive_ptr_target {
 public:
  explicit Work(int rank = -1, OpType op = OpType::UNKNOWN, const char* title = nullptr,
                const std::optional<std::vector<Tensor>>& inputs = std::nullopt);
  ~Work() override;
  virtual bool isCompleted();
  /// Completed without an error.
  virtual bool isSuccess() const;
  virtual std::exception_ptr exception() const;
  /// The rank that a message came from; of receptions only.
  virtual int sourceRank() const;
  virtual std::vector<Tensor> result();
  virtual void synchronize();
  /// The current stream waits for the end, the host does not.
  virtual void blockCurrentStream() { synchronize(); }
  /// Blocks until it is done and true; raises its error. After `timeout`, if it is more than 0: DistBackendError, and the work goes on.
  virtual bool wait(std::chrono::milliseconds timeout = kNoTimeout);
  virtual void abort();
  /// Of the tensors that the collective writes.
  virtual intrusive_ptr<ivalue::Future> getFuture();
  /// Of how the work ended.
  virtual intrusive_ptr<ivalue::Future> getFutureResult();
  OpType retrieveOpType() const { return op_; }
  const char* title() const { return title_; }

 protected:
  void finish(std::exception_ptr error = nullptr);
  /// For works that have a future: it, with `value` (what is written: a list of tensors, or one of such lists) when they are finished; and
  /// finish(), which completes it.
  intrusive_ptr<ivalue::Future> future_of(const IValue& value);
  void finish_with_future(std::exception_ptr error, const IValue& value);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool completed_ = false;
  std::exception_ptr exception_;
  const int rank_;
  const OpType op_;
  const char* const title_;

 private:
  intrusive_ptr<ivalue::Future> future_;
};

}  // namespace cresset::distributed
