// The process group `scc` of the device: collectives in queues of its own, which Gloo does over the device's memory.
//
// A call puts an event into the caller's current stream, lets the group's queue wait for it, puts the transfer into that queue and an event
// behind it, and returns. When the queue comes to the transfer, a thread of the group does it; the device's worker goes on with other
// queues.
#pragma once

#include <cresset/distributed/device_work.h>
#include <cresset/distributed/gloo.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "driver.h"

namespace simulated {

using namespace cresset::distributed;  // for the words of CRESSET_COLLECTIVES
using cresset::DeviceIndex, cresset::DeviceType, cresset::intrusive_ptr, cresset::Stream, cresset::Tensor;

class SccGroup final : public Backend {
 public:
  SccGroup(const simulated_driver& driver, DeviceType type, const intrusive_ptr<Store>& store, int rank, int size,
           std::chrono::milliseconds timeout);
  ~SccGroup() override;
  const std::string getBackendName() const override { return "scc"; }

#define SCC_DECLARE(name, parameters, arguments) intrusive_ptr<Work> name parameters override;
  CRESSET_COLLECTIVES(SCC_DECLARE)
#undef SCC_DECLARE
  void setSequenceNumberForGroup() override;
  uint64_t getSequenceNumberForGroup() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  /// Lets what is under way end, for the group's timeout or 10 seconds; then as abort().
  void shutdown() override;
  /// Transfers under way fail, and so do those that their queues have not come to. Returns at once.
  void abort() override;

 private:
  struct State;
  struct Channel;
  class Transfer;
  /// Which thread and queues: all collectives have one channel, messages one for each peer and direction, so that no message waits for one
  /// that its peer has yet to send.
  enum class Way : uint8_t { Collective, Send, Receive };
  using Key = std::pair<Way, int>;

  template <class Call, class... Args>
  intrusive_ptr<Work> start(const char* name, Call call, Args&... args);
  intrusive_ptr<Work> submit(const Key& key, const intrusive_ptr<Transfer>& transfer, const std::vector<Tensor>& used);
  void check_usable(const char* name) const;
  Channel& channel(const Key& key);
  Stream stream(const Key& key, DeviceIndex index);

  const DeviceType type_;
  const std::shared_ptr<State> state_;
  std::mutex calls_;  // queues and channels have calls in the same order
  std::map<Key, std::shared_ptr<Channel>> channels_;
  std::map<std::pair<Key, DeviceIndex>, Stream> streams_;
};

}  // namespace simulated
