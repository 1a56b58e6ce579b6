// How much groups check: TORCH_DISTRIBUTED_DEBUG, and a backend that compares the calls of all ranks.
#pragma once

#include <cresset/distributed/backend.h>

namespace cresset::distributed {

enum class DebugLevel : uint8_t { Off = 0, Info = 1, Detail = 2 };

/// What was set; before that, what the environment says now.
CRESSET_API DebugLevel debug_level();
CRESSET_API void setDebugLevel(DebugLevel level);
/// ValueError for a word in TORCH_DISTRIBUTED_DEBUG that is no level.
CRESSET_API void setDebugLevelFromEnvironment();

/// Before each collective of `wrapped`: a barrier that names who is missing, and a comparison of operation, shapes, dtypes and devices of
/// all ranks, by connections of its own, so that those of `wrapped` stay usable after a mismatch. Messages between two ranks are passed on.
class CRESSET_API ProcessGroupWrapper final : public Backend {
 public:
  /// `compared` has the same ranks; its timeout is that of the barrier.
  ProcessGroupWrapper(intrusive_ptr<Backend> wrapped, intrusive_ptr<Backend> compared);
  ~ProcessGroupWrapper() override;
  const std::string getBackendName() const override { return wrapped_->getBackendName(); }
  const intrusive_ptr<Backend>& getWrappedPg() const { return wrapped_; }
#define CRESSET_DECLARE(name, parameters, arguments) intrusive_ptr<Work> name parameters override;
  CRESSET_COLLECTIVES(CRESSET_DECLARE)
#undef CRESSET_DECLARE
  void monitoredBarrier(const BarrierOptions& opts, bool wait_all_ranks) override { wrapped_->monitoredBarrier(opts, wait_all_ranks); }
  void setSequenceNumberForGroup() override { wrapped_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return wrapped_->getSequenceNumberForGroup(); }
  void startCoalescing() override { wrapped_->startCoalescing(); }
  intrusive_ptr<Work> endCoalescing() override { return wrapped_->endCoalescing(); }
  void setTimeout(std::chrono::milliseconds timeout) override { wrapped_->setTimeout(timeout); }
  void shutdown() override;
  void abort() override;

 private:
  void compare(const char* name, const std::vector<Tensor>& tensors);
  const intrusive_ptr<Backend> wrapped_, compared_;
  uint64_t calls_ = 0;
};

}  // namespace cresset::distributed
