// Messages between two ranks, and barriers, of the backend "gloo".
#include <gloo/barrier.h>
#include <gloo/transport/unbound_buffer.h>

#include <numeric>

#include <cresset/core/grad_mode.h>
#include <cresset/ops/functions_creation.h>

#include "distributed/gloo_group.h"
#include "distributed/wait_slices.h"

namespace cresset::distributed {

namespace {

Tensor single(const char* op, const std::vector<Tensor>& tensors) {
  CRESSET_CHECK_VALUE(tensors.size() == 1, "ProcessGroupGloo::", op, " takes a single tensor");
  CRESSET_CHECK_VALUE(tensors[0].defined() && tensors[0].layout() == Layout::Strided && tensors[0].is_cpu(), "ProcessGroupGloo::", op,
                      ": a dense tensor in this host's memory was required.");
  return tensors[0];
}
uint64_t checked_tag(int tag) {
  CRESSET_CHECK(tag >= 0, "Tag must be nonnegative");
  return static_cast<uint64_t>(tag);
}
void check_peer(const char* what, int peer, int rank, int size) {
  CRESSET_CHECK_VALUE(peer >= 0 && peer < size && peer != rank, "ProcessGroupGloo::", what, ": another rank from 0 to ", size - 1,
                      " was required; ", peer, " was given.");
}

}  // namespace

/// A message that Gloo's own thread sends or receives; it is waited for by who asks.
class GlooMessage final : public Work {
 public:
  GlooMessage(intrusive_ptr<GlooGroup> group, OpType op, Tensor tensor, Tensor memory, std::optional<int> peer)
      : Work(-1, op),
        group_(std::move(group)),
        tensor_(std::move(tensor)),
        memory_(std::move(memory)),
        buffer_(group_->connections_.context->createUnboundBuffer(memory_.numel() ? memory_.data_ptr() : &nothing_, memory_.nbytes())),
        peer_(peer) {}
  gloo::transport::UnboundBuffer& buffer() { return *buffer_; }

  bool isCompleted() override {
    const std::lock_guard waiting(waiting_);
    if (!Work::isCompleted()) {
      // Told to give up before it begins, Gloo's wait answers at once whether the message has gone or come.
      retrieveOpType() == OpType::SEND ? buffer_->abortWaitSend() : buffer_->abortWaitRecv();
      wait_for_gloo(std::chrono::milliseconds(1000), true);
    }
    return Work::isCompleted();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    const auto limit = timeout > kNoTimeout ? timeout : group_->options_->timeout;
    {
      const std::lock_guard waiting(waiting_);
      if (!Work::isCompleted()) {
        const CancelScope cancel([this] { abort(); });
        if (!wait_for_gloo(limit, false) && cancel.cancelled()) CRESSET_THROW(Interrupted, "interrupted");
      }
    }
    if (const auto error = exception()) std::rethrow_exception(error);
    return Work::isCompleted();
  }
  int sourceRank() const override {
    if (retrieveOpType() == OpType::SEND) return Work::sourceRank();
    const std::lock_guard lock(mutex_);
    return source_;
  }
  std::vector<Tensor> result() override { return {tensor_}; }
  void abort() override { retrieveOpType() == OpType::SEND ? buffer_->abortWaitSend() : buffer_->abortWaitRecv(); }
  intrusive_ptr<ivalue::Future> getFuture() override {
    wait(kNoTimeout);  // Gloo has no callback for messages
    auto future = make_intrusive<ivalue::Future>();
    future->mark_completed(IValue(std::vector<Tensor>{tensor_}));
    return future;
  }

 private:
  /// Is it over? A look that finds nothing leaves everything as it was.
  bool wait_for_gloo(std::chrono::milliseconds timeout, bool look) {
    int source = -1;
    try {
      const bool sends = retrieveOpType() == OpType::SEND;
      if (!(sends ? buffer_->waitSend(timeout) : buffer_->waitRecv(&source, timeout))) return false;
      const NoGradGuard no_grad;
      if (!sends && !tensor_.is_same(memory_)) tensor_.copy_(memory_.view(tensor_.sizes()));
      if (!sends) tensor_.unsafeGetTensorImpl()->bump_version();
      {
        const std::lock_guard lock(mutex_);
        source_ = source;
      }
      finish();
    } catch (const std::exception& e) {
      static_cast<void>(look);
      const std::string what = op_name(retrieveOpType()) +
                               (peer_ ? (retrieveOpType() == OpType::SEND ? " to rank " : " from rank ") + std::to_string(*peer_) : "");
      finish(group_->explained(what, timeout, peer_, e));
    }
    return true;
  }
  const intrusive_ptr<GlooGroup> group_;
  const Tensor tensor_, memory_;
  uint8_t nothing_ = 0;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  const std::optional<int> peer_;
  std::mutex waiting_;
  int source_ = -1;
};

intrusive_ptr<Work> GlooGroup::send(std::vector<Tensor>& tensors, int destination, int tag) {
  const Tensor t = single("send", tensors);
  check_peer("send", destination, rank_, size_);
  check_usable("send");
  const uint64_t slot = checked_tag(tag);
  const Tensor memory = t.is_contiguous() ? t : t.contiguous();
  intrusive_ops::incref(this);
  auto work = make_intrusive<GlooMessage>(intrusive_ptr<GlooGroup>::reclaim(this), OpType::SEND, t, memory, destination);
  try {
    work->buffer().send(destination, slot);
  } catch (const std::exception& e) {
    std::rethrow_exception(explained("send to rank " + std::to_string(destination), options_->timeout, destination, e));
  }
  return work;
}

intrusive_ptr<Work> GlooGroup::recv(std::vector<Tensor>& tensors, int source, int tag) {
  const Tensor t = single("recv", tensors);
  check_peer("recv", source, rank_, size_);
  check_usable("recv");
  const uint64_t slot = checked_tag(tag);
  const Tensor memory = t.is_contiguous() ? t : cresset::empty(t.sizes(), t.options());
  intrusive_ops::incref(this);
  auto work = make_intrusive<GlooMessage>(intrusive_ptr<GlooGroup>::reclaim(this), OpType::RECV, t, memory, source);
  try {
    work->buffer().recv(source, slot);
  } catch (const std::exception& e) {
    std::rethrow_exception(explained("recv from rank " + std::to_string(source), options_->timeout, source, e));
  }
  return work;
}

intrusive_ptr<Work> GlooGroup::recvAnysource(std::vector<Tensor>& tensors, int tag) {
  const Tensor t = single("recvAnysource", tensors);
  check_usable("recv_anysource");
  const uint64_t slot = checked_tag(tag);
  const Tensor memory = t.is_contiguous() ? t : cresset::empty(t.sizes(), t.options());
  std::vector<int> sources;
  for (int r = 0; r < size_; ++r)
    if (r != rank_) sources.push_back(r);
  intrusive_ops::incref(this);
  auto work = make_intrusive<GlooMessage>(intrusive_ptr<GlooGroup>::reclaim(this), OpType::RECVANYSOURCE, t, memory, std::nullopt);
  work->buffer().recv(sources, slot);
  return work;
}

intrusive_ptr<Work> GlooGroup::barrier(const BarrierOptions& opts) {
  return start(OpType::BARRIER, opts, std::vector<Tensor>(), [](const GlooCall& call) {
    if (call.context->size == 1) return;
    gloo::BarrierOptions o(call.context);
    o.setTag(call.tag);
    o.setTimeout(call.timeout);
    gloo::barrier(o);
  });
}

// Over the store, so that a rank that does not come leaves the connections as they are.
void GlooGroup::monitoredBarrier(const BarrierOptions& opts, bool wait_all_ranks) {
  const auto timeout = timeout_of(opts);
  const std::string number = "barrier/" + std::to_string(barriers_++) + "/";
  const auto key = [&](int r) { return number + std::to_string(r); };
  store_->set(key(rank_), std::string("here"));
  // All have left the barrier before who come to this one, so that its keys are of no more use.
  const std::string before = "barrier/" + std::to_string(barriers_ - 2) + "/";
  if (barriers_ > 1) store_->deleteKey(before + std::to_string(rank_));
  if (rank_ != 0) {
    std::string verdict;
    try {
      store_->wait({number + "all"}, timeout + std::chrono::seconds(1));
      verdict = store_->get_to_str(number + "all");
    } catch (const DistError& e) {
      verdict = e.what();
    }
    CRESSET_CHECK(verdict == "here", "Rank ", rank_,
                  " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. ",
                  "Please check rank 0 logs for faulty rank.\n Original exception: \n", verdict);
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::string missing;
  int count = 0;
  for (int r = 1; r < size_ && (missing.empty() || wait_all_ranks); ++r) {
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    try {
      store_->wait({key(r)}, std::max(timeout - passed, std::chrono::milliseconds(1)));
    } catch (const DistError&) {
      missing += (count++ ? ", " : "") + std::to_string(r);
    }
  }
  if (missing.empty() && barriers_ > 1) store_->deleteKey(before + "all");
  const std::string words = "[Rank 0]: Rank" + std::string(wait_all_ranks ? "s " : " ") + missing + " failed to pass monitoredBarrier in " +
                            std::to_string(timeout.count()) + " ms";
  store_->set(number + "all", missing.empty() ? std::string("here") : words);
  CRESSET_CHECK(missing.empty(), words);
}

}  // namespace cresset::distributed
