#include "process_group.h"

#include <cresset/base/interrupt.h>
#include <cresset/core/grad_mode.h>
#include <cresset/ops/from_blob.h>
#include <cresset/ops/functions_creation.h>

#include <atomic>
#include <deque>
#include <set>
#include <thread>

namespace simulated {

using namespace cresset;
using Tensors = std::vector<Tensor>;

namespace {

// --- arguments: their tensors, and the same arguments with tensors of the processor over the memory as the device sees it

void collect(Tensors& to, const Tensor& t) {
  if (t.defined()) to.push_back(t);
}
void collect(Tensors&, const std::vector<int64_t>&) {}
void collect(Tensors&, int) {}
template <class T>
void collect(Tensors& to, const std::vector<T>& list) {
  for (const T& t : list) collect(to, t);
}
void collect(Tensors& to, const CollectiveOptions&) { static_cast<void>(to); }
template <class Options>
  requires requires(Options o) { o.reduceOp; }
void collect(Tensors& to, const Options& o) {
  if (o.reduceOp.tensor.defined() && !o.reduceOp.tensor.is_cpu()) to.push_back(o.reduceOp.tensor);
}

struct SeenByDevice {
  const simulated_driver& driver;
  Tensor operator()(const Tensor& t) const {
    if (!t.defined() || t.is_cpu()) return t;
    if (t.numel() == 0) return cresset::empty(t.sizes(), TensorOptions(t.scalar_type()));
    const std::size_t span = detail::compute_storage_nbytes(t.sizes(), t.strides(), t.itemsize());
    char* address = driver.address(t.storage().data(), static_cast<std::size_t>(t.storage_offset()) * t.itemsize(), span);
    CRESSET_CHECK(address, "scc: a tensor reaches outside of its memory.");
    return from_blob(address, t.sizes(), t.strides(), TensorOptions(t.scalar_type()));
  }
  std::vector<int64_t> operator()(const std::vector<int64_t>& list) const { return list; }
  int operator()(int n) const { return n; }
  template <class T>
  std::vector<T> operator()(const std::vector<T>& list) const {
    std::vector<T> out;
    for (const T& t : list) out.push_back((*this)(t));
    return out;
  }
  template <class Options>
    requires std::is_base_of_v<CollectiveOptions, Options>
  Options operator()(const Options& o) const {
    Options out = o;
    out.asyncOp = true;  // the group's thread does it, whoever waits
    if constexpr (requires { out.reduceOp; }) out.reduceOp.tensor = (*this)(o.reduceOp.tensor);
    return out;
  }
};

// --- which device, which peer, what is written

std::optional<DeviceIndex> index_asked_for(const BarrierOptions& o) {
  if (o.device && o.device->has_index()) return o.device->index();
  return o.device_ids.empty() ? std::nullopt : std::optional(static_cast<DeviceIndex>(o.device_ids[0]));
}
template <class... Args>
std::optional<DeviceIndex> index_asked_for(const Args&...) {
  return std::nullopt;
}
template <class... Args>
std::vector<int> numbers_of(const Args&... args) {
  std::vector<int> out;
  const auto add = [&]<class T>(const T& arg) {
    if constexpr (std::is_same_v<T, int>) out.push_back(arg);
  };
  (add(args), ...);
  return out;
}
template <class First, class... Rest>
Tensors written_by(const First& first, const Rest&...) {
  Tensors out;
  collect(out, first);
  return out;
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "a transfer failed";
  }
}

}  // namespace

// --- transfers

/// What the threads of a group share. It lives as long as one of them has something to do, which may be longer than the group.
struct SccGroup::State {
  const simulated_driver& driver;
  intrusive_ptr<GlooBackend> gloo;
  std::function<void()> issued;  // the collective that Gloo has just checked; under the group's `calls_`

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::size_t under_way = 0;
  std::string broken;  // why the group cannot be used any more
  bool closed = false;
  std::set<Work*> messages;  // that a thread waits for

  explicit State(const simulated_driver& d) : driver(d) {}
  /// A message that can be aborted while this lives.
  struct Message {
    State& state;
    Work& work;
    Message(State& s, Work& w) : state(s), work(w) {
      const std::lock_guard lock(state.mutex);
      CRESSET_CHECK(!state.closed, "the group was shut down");
      state.messages.insert(&work);
    }
    ~Message() {
      const std::lock_guard lock(state.mutex);
      state.messages.erase(&work);
    }
    Message(const Message&) = delete;
  };
};

/// One call: an entry of a queue, and what a thread does when the queue has come to it.
class SccGroup::Transfer final : public DeviceWork {
 public:
  Transfer(OpType op, const Stream& stream, Tensors outputs) : DeviceWork(op, stream, std::move(outputs)) {}
  /// A barrier is for the host.
  bool wait(std::chrono::milliseconds timeout) override {
    const bool host = retrieveOpType() == OpType::BARRIER && timeout <= kNoTimeout;
    return DeviceWork::wait(host ? std::chrono::milliseconds::max() : timeout);
  }
  /// Blocks the host until the message has come.
  int sourceRank() const override {
    if (retrieveOpType() != OpType::RECV && retrieveOpType() != OpType::RECVANYSOURCE) return Work::sourceRank();
    const_cast<Transfer*>(this)->wait(std::chrono::milliseconds::max());
    return source;
  }

  std::function<void()> run;
  simulated_external* reached = nullptr;  // set when the queue has come here; under State::mutex
  std::atomic<int> source{-1};
};

struct SccGroup::Channel {
  std::deque<intrusive_ptr<Transfer>> transfers;

  static void serve(const std::shared_ptr<State>& state, const std::shared_ptr<Channel>& channel) {
    auto& waiting = channel->transfers;
    std::unique_lock lock(state->mutex);
    for (;;) {
      state->changed.wait(lock, [&] { return waiting.empty() ? state->closed : waiting.front()->reached != nullptr; });
      if (waiting.empty()) return;
      auto next = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      carry_out(*state, *next);
      next = nullptr;
      lock.lock();
      --state->under_way;
      state->changed.notify_all();
    }
  }

 private:
  static void carry_out(State& state, Transfer& transfer) {
    std::exception_ptr error;
    try {
      const NoGradGuard no_grad;
      state.driver.before_transfer();
      transfer.run();
    } catch (...) {
      error = std::current_exception();
    }
    transfer.run = nullptr;
    const std::string text = text_of(error);
    if (error) {
      const std::lock_guard lock(state.mutex);
      if (state.broken.empty()) state.broken = text;
    }
    transfer.finished(error);
    state.driver.finish(transfer.reached, error ? text.c_str() : nullptr);
  }
};

// --- calls

template <class Call, class... Args>
intrusive_ptr<Work> SccGroup::start(const char* name, Call call, Args&... args) {
  constexpr bool is_message = (std::is_same_v<std::remove_const_t<Args>, int> || ...);
  Tensors used;
  (collect(used, args), ...);
  for (const Tensor& t : used)
    CRESSET_CHECK(t.device().type() == type_ && t.device() == used[0].device() && t.layout() == Layout::Strided, "scc: ", name,
                  ": dense tensors of one device of the kind ", DeviceTypeName(type_), " were required; one is on ", t.device(), ".");
  const auto* guard = impl::getDeviceGuardImpl(type_);
  const DeviceIndex index = used.empty() ? index_asked_for(args...).value_or(guard->getDevice().index()) : used[0].device().index();
  CRESSET_CHECK(!guard->getStream(Device(type_, index)).is_capturing(), "scc: ", name,
                ": communication cannot be recorded in a graph. Call it between two replays.");

  const std::lock_guard lock(calls_);
  check_usable(name);
  std::tuple host(SeenByDevice{state_->driver}(args)...);
  if constexpr (is_message) {
    // Gloo would begin at once: its call waits until the queue has come there.
    const std::string_view which = name;
    const OpType op = which == "send" ? OpType::SEND : which == "recv" ? OpType::RECV : OpType::RECVANYSOURCE;
    const std::vector<int> numbers = numbers_of(args...);  // peer, tag; or the tag alone
    const int peer = op == OpType::RECVANYSOURCE ? -1 : numbers[0];
    CRESSET_CHECK_VALUE(used.size() == 1, "scc: ", name, " takes a single tensor");
    CRESSET_CHECK_VALUE(op == OpType::RECVANYSOURCE || (peer >= 0 && peer < size_ && peer != rank_), "scc: ", name,
                        ": another rank from 0 to ", size_ - 1, " was required; ", peer, " was given.");
    CRESSET_CHECK(numbers.back() >= 0, "Tag must be nonnegative");
    const Key key{op == OpType::SEND ? Way::Send : Way::Receive, peer};
    auto transfer = make_intrusive<Transfer>(op, stream(key, index), used);
    transfer->run = [state = state_.get(), call, host, into = transfer.get()]() mutable {
      const intrusive_ptr<Work> message = std::apply(call, host);
      State::Message under_way(*state, *message);
      CRESSET_CHECK(message->wait(kNoTimeout), "the message was aborted");
      if (into->retrieveOpType() != OpType::SEND) into->source = message->sourceRank();
    };
    return submit(key, transfer, used);
  } else {
    const intrusive_ptr<Work> checked = std::apply(call, host);  // gives what is to be done to State::issued
    const OpType op = checked->retrieveOpType();
    const Key key{Way::Collective, 0};
    auto transfer = make_intrusive<Transfer>(op, stream(key, index), op == OpType::BARRIER ? Tensors() : written_by(args...));
    transfer->run = [run = std::exchange(state_->issued, nullptr), checked] {
      run();
      if (const auto error = checked->exception()) std::rethrow_exception(error);
    };
    return submit(key, transfer, used);
  }
}

#define SCC_DEFINE(name, parameters, arguments)                                                   \
  intrusive_ptr<Work> SccGroup::name parameters {                                                 \
    const auto call = [gloo = state_->gloo.get()](auto&... host) { return gloo->name(host...); }; \
    const auto with = [&](auto&... all) { return start(#name, call, all...); };                   \
    return with arguments;                                                                        \
  }
CRESSET_COLLECTIVES(SCC_DEFINE)
#undef SCC_DEFINE

intrusive_ptr<Work> SccGroup::submit(const Key& key, const intrusive_ptr<Transfer>& transfer, const Tensors& used) {
  struct Arrival {
    std::shared_ptr<State> state;
    intrusive_ptr<Transfer> transfer;
  };
  const auto arrived = [](void* arg, simulated_external* entry) {
    const std::unique_ptr<Arrival> arrival(static_cast<Arrival*>(arg));
    const std::lock_guard lock(arrival->state->mutex);
    arrival->transfer->reached = entry;
    arrival->state->changed.notify_all();
  };
  const Stream& queue = transfer->stream();
  const auto id = static_cast<uint64_t>(queue.id());
  transfer->begin(used);
  auto arrival = std::make_unique<Arrival>(Arrival{state_, transfer});
  CRESSET_CHECK(state_->driver.submit_external(queue.device_index(), id, arrived, arrival.get()) == 0, "scc: the device took no work.");
  static_cast<void>(arrival.release());
  transfer->end();
  state_->driver.forget_failure(queue.device_index(), id);
  for (const Tensor& t : transfer->result())
    if (transfer->retrieveOpType() != OpType::SEND) t.unsafeGetTensorImpl()->bump_version();
  Channel& to = channel(key);
  const std::lock_guard lock(state_->mutex);
  to.transfers.push_back(transfer);
  ++state_->under_way;
  state_->changed.notify_all();
  return transfer;
}

void SccGroup::check_usable(const char* name) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->broken.empty())
    CRESSET_THROW(DistBackendError, name, ": the group cannot be used any more: ", state_->broken,
                  " Call destroy_process_group() and init_process_group().");
}

SccGroup::Channel& SccGroup::channel(const Key& key) {
  auto& found = channels_[key];
  if (!found) {
    found = std::make_shared<Channel>();
    std::thread([state = state_, channel = found] { Channel::serve(state, channel); }).detach();
  }
  return *found;
}
Stream SccGroup::stream(const Key& key, DeviceIndex index) {
  const auto found = streams_.find({key, index});
  if (found != streams_.end()) return found->second;
  // Before others: what the device does for a transfer is short, and what waits for a transfer is long.
  constexpr int kPriority = -2;
  const auto queue = static_cast<StreamId>(state_->driver.make_queue(index, kPriority));
  return streams_.emplace(std::pair(key, index), Stream(Stream::UNSAFE, Device(type_, index), queue)).first->second;
}

// --- the group

SccGroup::SccGroup(const simulated_driver& driver, DeviceType type, const intrusive_ptr<Store>& store, int rank, int size,
                   std::chrono::milliseconds timeout)
    : Backend(rank, size), type_(type), state_(std::make_shared<State>(driver)) {
  const auto options = make_intrusive<GlooOptions>(timeout);
  options->run = [state = state_.get()](std::function<void()> work) { state->issued = std::move(work); };
  state_->gloo = make_gloo(store, rank, size, options);
}
SccGroup::~SccGroup() { abort(); }

void SccGroup::setSequenceNumberForGroup() { state_->gloo->setSequenceNumberForGroup(); }
uint64_t SccGroup::getSequenceNumberForGroup() { return state_->gloo->getSequenceNumberForGroup(); }
void SccGroup::setTimeout(std::chrono::milliseconds timeout) { state_->gloo->setTimeout(timeout); }

void SccGroup::shutdown() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience{10000}, kSlice{50};
  const auto deadline = Clock::now() + std::min(state_->gloo->options()->timeout, kPatience);
  {
    std::unique_lock lock(state_->mutex);
    while (state_->under_way > 0 && !state_->closed && Clock::now() < deadline) {
      state_->changed.wait_for(lock, kSlice);
      lock.unlock();
      check_signals();
      lock.lock();
    }
  }
  abort();
}

void SccGroup::abort() {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->closed) return;
    state_->closed = true;
    if (state_->broken.empty()) state_->broken = "it was shut down.";
    for (Work* message : state_->messages) message->abort();
    state_->changed.notify_all();
  }
  state_->gloo->shutdown();
}

}  // namespace simulated
