// GlooGroup: the backend "gloo". This file has what every call goes through: threads, errors, checks; the collectives themselves are in
// gloo_collectives.cpp, messages and barriers in gloo_messages.cpp.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "base/thread_state.h"
#include "distributed/gloo_context.h"
#include "distributed/of_this_process.h"

namespace cresset::distributed {

/// What the body of a collective gets.
struct GlooCall {
  const std::shared_ptr<gloo::Context>& context;
  uint32_t tag;
  std::chrono::milliseconds timeout;
};

class GlooWork;

class GlooGroup final : public GlooBackend {
 public:
  GlooGroup(const intrusive_ptr<Store>& store, int rank, int size, intrusive_ptr<GlooOptions> options);
  ~GlooGroup() override;
  const std::string getBackendName() const override { return "gloo"; }

#define CRESSET_DECLARE(name, parameters, arguments) intrusive_ptr<Work> name parameters override;
  CRESSET_COLLECTIVES(CRESSET_DECLARE)
#undef CRESSET_DECLARE
  void monitoredBarrier(const BarrierOptions& opts, bool wait_all_ranks) override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  void shutdown() override;
  const intrusive_ptr<GlooOptions>& options() const override { return options_; }
  intrusive_ptr<Options> getBackendOptions() override { return options_; }

  /// Is the error of a message between two ranks, not of a collective?
  std::exception_ptr explained(const std::string& what, std::chrono::milliseconds timeout, std::optional<int> peer,
                               const std::exception& e);

 private:
  friend class GlooWork;
  friend class GlooMessage;
  using Body = std::function<void(const GlooCall&)>;

  /// Runs the body, on this thread when the caller waits for it, else on one of the group's. `value`: what the work's future has.
  intrusive_ptr<Work> start(OpType op, const CollectiveOptions& opts, IValue value, Body body);
  void execute(GlooWork& work);
  void execute_as_the_caller(GlooWork& work);
  void run_queue();
  /// The cause that is known already, or "". A rank that times out closes its connections before it can tell why, which looks as if it were
  /// gone: where it is about to tell, this waits.
  std::string told_by(int lost, const std::string& what, std::chrono::milliseconds timeout);
  std::string late_ranks(uint64_t sequence, const std::string& what, std::chrono::milliseconds timeout);
  void check_usable(const char* what);
  /// Ends the connections; what waits for them on other threads fails.
  void close_connections();
  std::chrono::milliseconds timeout_of(const CollectiveOptions& opts) const {
    return opts.timeout == kUnsetTimeout ? options_->timeout : opts.timeout;
  }

  const intrusive_ptr<Store> store_;
  const intrusive_ptr<GlooOptions> options_;

  struct State {
    GlooConnections connections;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<intrusive_ptr<GlooWork>> queue;
    std::vector<std::thread> threads;
  };
  const OfThisProcess<State> state_{std::in_place};
  GlooConnections& connections_ = state_->connections;
  std::atomic<uint32_t> next_tag_{0};
  std::atomic<uint64_t> sequence_{0}, barriers_{0};

  std::mutex& mutex_ = state_->mutex;
  std::condition_variable& changed_ = state_->changed;
  std::deque<intrusive_ptr<GlooWork>>& queue_ = state_->queue;
  std::vector<std::thread>& threads_ = state_->threads;
  int running_ = 0;  // calls that wait for Gloo
  bool stopping_ = false;
  std::string broken_;  // why the connections cannot be used any more
};

/// A collective on its way.
class GlooWork final : public Work {
 public:
  GlooWork(OpType op, IValue value, std::function<void(const GlooCall&)> body, uint32_t tag, uint64_t sequence,
           std::chrono::milliseconds timeout)
      : Work(-1, op), body(std::move(body)), tag(tag), sequence(sequence), timeout(timeout), value_(std::move(value)) {}
  std::vector<Tensor> result() override;
  intrusive_ptr<ivalue::Future> getFuture() override;
  void done(std::exception_ptr error);

  std::function<void(const GlooCall&)> body;
  const ThreadState state = ThreadState::capture();  // of the caller, for the thread that does the work
  const uint32_t tag;
  const uint64_t sequence;
  const std::chrono::milliseconds timeout;

 private:
  const IValue value_;
};

/// While it lives, Ctrl-C calls `cancel`; for waits of the main thread that Gloo makes itself.
class CancelScope {
 public:
  explicit CancelScope(std::function<void()> cancel);
  ~CancelScope();
  bool cancelled() const;

 private:
  bool watched_;
};

}  // namespace cresset::distributed
