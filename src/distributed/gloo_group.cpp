#include "distributed/gloo_group.h"

#include <cresset/core/grad_mode.h>

#include <cctype>
#include <cstdlib>
#include <cstring>

#include "base/thread_state.h"
#include "distributed/wait_slices.h"

namespace cresset::distributed {

// --- Ctrl-C in waits that Gloo makes

namespace {

/// One thread looks every tenth of a second whether the main thread's wait is to end, with that thread's eyes: what came since it began
/// counts, also before the first look.
struct CancelWatch {
  std::mutex mutex;
  std::function<void()> cancel;
  ThreadState state;  // of the thread that waits
  bool cancelled = false;

  static CancelWatch& get() {
    static auto* const watch = new CancelWatch;  // its thread may outlive the end of main
    return *watch;
  }
  CancelWatch() {
    std::thread([this] { look(); }).detach();
  }
  void look() {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const std::lock_guard lock(mutex);
      if (!cancel) continue;
      const ThreadStateGuard guard(state);
      try {
        check_interrupt();
      } catch (const std::exception&) {
        cancelled = true;
        cancel();
        cancel = nullptr;
      }
    }
  }
};

}  // namespace

CancelScope::CancelScope(std::function<void()> cancel) : watched_(detail::may_be_interrupted()) {
  if (!watched_) return;
  check_signals();
  CancelWatch& watch = CancelWatch::get();
  const std::lock_guard lock(watch.mutex);
  watch.cancel = std::move(cancel);
  watch.state = ThreadState::capture();
  watch.cancelled = false;
}
CancelScope::~CancelScope() {
  if (!watched_) return;
  CancelWatch& watch = CancelWatch::get();
  const std::lock_guard lock(watch.mutex);
  watch.cancel = nullptr;
}
bool CancelScope::cancelled() const {
  if (!watched_) return false;
  CancelWatch& watch = CancelWatch::get();
  const std::lock_guard lock(watch.mutex);
  return watch.cancelled;
}

// --- work

std::vector<Tensor> GlooWork::result() {
  const std::lock_guard lock(mutex_);
  CRESSET_CHECK(completed_, "Work needs to be completed before calling result(). Should call wait() before result().");
  CRESSET_CHECK(value_.isTensorList(), "work result does not support list of lists, use .getFuture() and value()");
  return value_.toTensorVector();
}
intrusive_ptr<ivalue::Future> GlooWork::getFuture() { return future_of(value_); }
void GlooWork::done(std::exception_ptr error) {
  body = nullptr;
  finish_with_future(std::move(error), value_);
}

// --- the group

namespace {
/// Without "[/path/of/gloo.cc:12] ".
std::string words_of(const std::exception& e) {
  std::string text = e.what();
  const auto end = text.find("] ");
  return text.starts_with("[") && end != std::string::npos ? text.substr(end + 2) : text;
}
}  // namespace

GlooGroup::GlooGroup(const intrusive_ptr<Store>& store, int rank, int size, intrusive_ptr<GlooOptions> options)
    : GlooBackend(rank, size), store_(store), options_(std::move(options)) {
  CRESSET_CHECK_VALUE(size > 0 && rank >= 0 && rank < size, "gloo: a rank from 0 to ", size - 1, " was required; ", rank, " was given.");
  connections_ = connect_gloo(store_, rank, size, *options_);
}

GlooGroup::~GlooGroup() { shutdown(); }

void GlooGroup::shutdown() {
  if (!state_.here()) return;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    if (broken_.empty()) broken_ = "it was shut down";
  }
  changed_.notify_all();
  close_connections();
  for (std::thread& t : threads_) t.join();
  for (auto& work : queue_)
    work->done(std::make_exception_ptr(
        DistBackendError(std::string(op_name(work->retrieveOpType())) + ": the group was shut down before it ran.")));
  queue_.clear();
}

void GlooGroup::check_usable(const char* what) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty())
    CRESSET_THROW(DistBackendError, what, ": the group cannot be used any more: ", broken_,
                  ". Call destroy_process_group() and init_process_group().");
}

void GlooGroup::close_connections() {
  if (size_ == 1) return;
  bool waited_for;
  {
    const std::lock_guard lock(mutex_);
    waited_for = running_ > 0;
  }
  if (waited_for) {
    // Closing wakes nobody here, but a wait that times out fails all others of its connections.
    uint8_t nothing = 0;
    constexpr uint64_t kSlot = ~uint64_t{0} >> 1;
    try {
      auto buffer = connections_.context->createUnboundBuffer(&nothing, 1);
      buffer->recv(rank_ == 0 ? 1 : 0, kSlot);
      buffer->waitRecv(std::chrono::milliseconds(1));
    } catch (const std::exception&) {
    }
  }
  connections_.context->closeConnections();
}

intrusive_ptr<Work> GlooGroup::start(OpType op, const CollectiveOptions& opts, IValue value, Body body) {
  check_usable(op_name(op));
  auto work = make_intrusive<GlooWork>(op, std::move(value), std::move(body), next_tag_++, ++sequence_, timeout_of(opts));
  if (!opts.asyncOp) {
    execute(*work);
    return work;
  }
  if (options_->run) {
    options_->run([this, work] { execute_as_the_caller(*work); });
    return work;
  }
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(work);
    if (threads_.size() < static_cast<std::size_t>(std::max(1, options_->threads))) threads_.emplace_back([this] { run_queue(); });
  }
  changed_.notify_one();
  return work;
}

void GlooGroup::run_queue() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const auto work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    execute_as_the_caller(*work);
    lock.lock();
  }
}

void GlooGroup::execute_as_the_caller(GlooWork& work) {
  const ThreadStateGuard state(work.state);
  execute(work);
}

void GlooGroup::execute(GlooWork& work) {
  const NoGradGuard no_grad;
  const GlooCall call{connections_.context, work.tag, work.timeout};
  const CancelScope cancel([this] { close_connections(); });
  std::exception_ptr error;
  try {
    check_usable(op_name(work.retrieveOpType()));
    struct Running {
      GlooGroup& group;
      explicit Running(GlooGroup& g) : group(g) { count(1); }
      ~Running() { count(-1); }
      void count(int n) {
        const std::lock_guard lock(group.mutex_);
        group.running_ += n;
      }
    } running(*this);
    work.body(call);
  } catch (const cresset::Error&) {
    error = std::current_exception();
  } catch (const std::exception& e) {
    const std::string what = std::string(op_name(work.retrieveOpType())) + " (number " + std::to_string(work.sequence) + ")";
    error = cancel.cancelled() ? std::make_exception_ptr(Interrupted("interrupted")) : explained(what, work.timeout, std::nullopt, e);
    if (cancel.cancelled()) {
      const std::lock_guard lock(mutex_);
      if (broken_.empty()) broken_ = what + " was interrupted";
    }
  }
  work.done(error);
}

// --- errors that name ranks

namespace {
/// How long ranks that come to their timeouts about now may take to say so.
std::chrono::milliseconds patience_with_late(std::chrono::milliseconds timeout) {
  return std::clamp(timeout / 2, std::chrono::milliseconds(200), std::chrono::milliseconds(3000));
}
}  // namespace

std::string GlooGroup::late_ranks(uint64_t sequence, const std::string& what, std::chrono::milliseconds timeout) {
  // Who waits, too, comes to its timeout about now, and says what it waits in. Who does not is late.
  const auto key = [](int rank) { return "late/" + std::to_string(rank); };
  store_->set(key(rank_), what);
  const auto deadline = deadline_after(patience_with_late(timeout));
  std::vector<std::string> keys;
  for (int r = 0; r < size_; ++r) keys.push_back(key(r));
  while (!store_->check(keys) && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::string missing, elsewhere;
  for (int r = 0; r < size_; ++r) {
    if (!store_->check({key(r)})) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    } else if (const std::string theirs = store_->get_to_str(key(r)); theirs != what) {
      elsewhere += (elsewhere.empty() ? "" : ", ") + std::string("rank ") + std::to_string(r) + " waits in " + theirs;
    }
  }
  static_cast<void>(sequence);
  if (!missing.empty()) return (missing.find(',') == std::string::npos ? "rank " : "ranks ") + missing + " did not take part";
  return elsewhere.empty() ? "all ranks wait" : elsewhere;
}

std::string GlooGroup::told_by(int lost, const std::string& what, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  store_->set("late/" + std::to_string(rank_), what);  // for who counts those that take part
  const std::string theirs = "late/" + std::to_string(lost);
  const auto begin = Clock::now();
  for (;;) {
    if (store_->check({"failure"})) return store_->get_to_str("failure");
    const auto patience = store_->check({theirs}) ? patience_with_late(timeout) + std::chrono::seconds(1) : std::chrono::milliseconds(200);
    if (Clock::now() - begin >= patience) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::exception_ptr GlooGroup::explained(const std::string& what, std::chrono::milliseconds timeout, std::optional<int> peer,
                                        const std::exception& e) {
  const std::string words = words_of(e);
  std::string cause;
  const bool late = words.find("imed out") != std::string::npos;
  try {
    if (late && !peer) {
      cause = what + " timed out after " + std::to_string(timeout.count()) + " ms: " + late_ranks(0, what, timeout);
    } else if (late) {
      cause = what + " timed out after " + std::to_string(timeout.count()) + " ms: rank " + std::to_string(*peer) + " did not take part";
    } else {
      std::optional<int> lost;
      for (int r = 0; r < size_ && !lost; ++r) {
        const std::string& address = connections_.addresses[static_cast<std::size_t>(r)];
        if (!address.empty() && words.find(address) != std::string::npos) lost = r;
      }
      // Some errors name a socket of which nobody told; the connection that it was of takes no more calls.
      for (int r = 0; r < size_ && !lost; ++r) {
        uint8_t nothing = 0;
        constexpr uint64_t kSlot = (~uint64_t{0} >> 1) - 1;
        if (r == rank_) continue;
        try {
          connections_.context->createUnboundBuffer(&nothing, 1)->recv(r, kSlot);
        } catch (const std::exception&) {
          lost = r;
        }
      }
      if (!lost) lost = peer;
      if (lost) {
        cause = "rank " + std::to_string(*lost) + " is gone";
        if (const std::string told = told_by(*lost, what, timeout); !told.empty()) cause = told;
      }
    }
    if (cause.empty()) cause = "a rank is gone";
    // The first cause is everybody's: connections that end because of it are not told about.
    const Store::Bytes first = store_->compareSet("failure", {}, Store::Bytes(cause.begin(), cause.end()));
    cause = std::string(first.begin(), first.end());
  } catch (const std::exception&) {  // the store's process may be what is gone
    if (cause.empty())
      cause = late ? what + " timed out after " + std::to_string(timeout.count()) + " ms, and the store does not answer" : "a rank is gone";
  }
  {
    const std::lock_guard lock(mutex_);
    if (broken_.empty()) broken_ = cause;
  }
  close_connections();
  const bool own = cause.starts_with(what);
  return std::make_exception_ptr(
      DistBackendError("[rank " + std::to_string(rank_) + "] " + (own ? "" : what + ": ") + cause + ". (gloo: " + words + ")"));
}

intrusive_ptr<GlooBackend> make_gloo(const intrusive_ptr<Store>& store, int rank, int size, const intrusive_ptr<GlooOptions>& options) {
  return make_intrusive<GlooGroup>(store, rank, size, options);
}
GlooOptions::~GlooOptions() = default;
GlooBackend::~GlooBackend() = default;

}  // namespace cresset::distributed
