// What collectives are called with: kinds of reduction, options, and the errors of communication.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <cresset/base/error.h>
#include <cresset/core/device.h>
#include <cresset/core/tensor.h>

namespace cresset {

#define CRESSET_DISTRIBUTED_ERROR(Name, Base) \
  class CRESSET_API Name : public Base {      \
   public:                                    \
    using Base::Base;                         \
    ~Name() override;                         \
    Name(const Name&) = default;              \
    Name& operator=(const Name&) = default;   \
  }
/// Communication failed (Python: cresset.distributed.DistError, a RuntimeError).
CRESSET_DISTRIBUTED_ERROR(DistError, Error);
/// A backend failed: a peer is gone or late.
CRESSET_DISTRIBUTED_ERROR(DistBackendError, DistError);
/// A store failed, or did not get a key in time.
CRESSET_DISTRIBUTED_ERROR(DistStoreError, DistError);
/// A queue of a store is empty.
CRESSET_DISTRIBUTED_ERROR(QueueEmptyError, DistStoreError);
/// A connection could not be made, or broke.
CRESSET_DISTRIBUTED_ERROR(DistNetworkError, DistError);
#undef CRESSET_DISTRIBUTED_ERROR

}  // namespace cresset

namespace cresset::distributed {

/// "No time was given": that of the group is taken.
inline constexpr std::chrono::milliseconds kUnsetTimeout{-1};
/// "Wait as long as it takes": what Work::wait() is given without a time.
inline constexpr std::chrono::milliseconds kNoTimeout{0};
inline constexpr std::chrono::milliseconds kBackendDefaultTimeout = std::chrono::minutes(30);

/// How values of several ranks become one.
struct ReduceOp {
  enum RedOpType : uint8_t { SUM = 0, AVG = 1, PRODUCT = 2, MIN = 3, MAX = 4, BAND = 5, BOR = 6, BXOR = 7, PREMUL_SUM = 8, UNUSED = 9 };
  ReduceOp(RedOpType op = SUM) : op_(op) {}
  /// PREMUL_SUM: each rank's values are multiplied by its factor, a number or a tensor of one element, before they are summed.
  explicit ReduceOp(double factor) : op_(PREMUL_SUM), number(factor) {}
  explicit ReduceOp(Tensor factor) : op_(PREMUL_SUM), tensor(std::move(factor)) {}
  operator RedOpType() const { return op_; }
  bool operator==(RedOpType o) const { return op_ == o; }
  bool operator==(const ReduceOp& o) const { return op_ == o.op_; }

  RedOpType op_ = SUM;
  std::optional<double> number;
  Tensor tensor;
};

struct CollectiveOptions {
  std::chrono::milliseconds timeout = kUnsetTimeout;
  /// False: the caller waits at once, and the backend may do the work on its thread.
  bool asyncOp = true;
};
struct BroadcastOptions : CollectiveOptions {
  int64_t rootRank = 0, rootTensor = 0;
};
struct AllreduceOptions : CollectiveOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
};
struct AllreduceCoalescedOptions : AllreduceOptions {};
struct ReduceOptions : CollectiveOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
  int64_t rootRank = 0, rootTensor = 0;
};
struct AllgatherOptions : CollectiveOptions {};
struct GatherOptions : CollectiveOptions {
  int64_t rootRank = 0;
};
struct ScatterOptions : CollectiveOptions {
  int64_t rootRank = 0;
};
struct ReduceScatterOptions : CollectiveOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
};
struct AllToAllOptions : CollectiveOptions {};
struct BarrierOptions : CollectiveOptions {
  std::vector<int64_t> device_ids;
  std::optional<Device> device;
};

}  // namespace cresset::distributed
