#include "distributed/host_staging.h"

#include <cresset/core/grad_mode.h>

#include <tuple>

namespace cresset::distributed {

namespace {

using Tensors = std::vector<Tensor>;

// --- copies of arguments

Tensor on_host(const Tensor& t) { return t.defined() ? t.detach().to(Device(DeviceType::CPU)) : t; }
template <class T>
std::vector<T> on_host(const std::vector<T>& list) {
  std::vector<T> out;
  for (const T& t : list) out.push_back(on_host(t));
  return out;
}
std::vector<int64_t> on_host(const std::vector<int64_t>& list) { return list; }
int on_host(int n) { return n; }
template <class Options>
  requires std::is_base_of_v<CollectiveOptions, Options>
Options on_host(const Options& o) {
  Options out = o;
  if constexpr (requires { out.reduceOp; })
    if (out.reduceOp.tensor.defined()) out.reduceOp.tensor = on_host(out.reduceOp.tensor);
  return out;
}

// --- what goes back: all of the first argument, which every collective writes

struct Copied {
  Tensor device, host;
};
void pair(std::vector<Copied>& to, const Tensor& device, const Tensor& host) {
  if (device.defined()) to.push_back({device, host});
}
template <class T>
void pair(std::vector<Copied>& to, const std::vector<T>& device, const std::vector<T>& host) {
  for (std::size_t i = 0; i < device.size(); ++i) pair(to, device[i], host[i]);
}
void pair(std::vector<Copied>&, const BarrierOptions&, const BarrierOptions&) {}

class StagedWork final : public Work {
 public:
  StagedWork(OpType op, intrusive_ptr<Work> inner, std::vector<Copied> results)
      : Work(-1, op), inner_(std::move(inner)), results_(std::move(results)) {}
  bool isCompleted() override { return inner_->isCompleted() && bring_back(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override { return inner_->exception(); }
  int sourceRank() const override { return inner_->sourceRank(); }
  void abort() override { inner_->abort(); }
  bool wait(std::chrono::milliseconds timeout) override { return inner_->wait(timeout) && bring_back(); }
  Tensors result() override {
    Tensors out;
    for (const Copied& r : results_) out.push_back(r.device);
    return out;
  }
  intrusive_ptr<ivalue::Future> getFuture() override {
    auto future = make_intrusive<ivalue::Future>();
    intrusive_ops::incref(this);
    const auto self = intrusive_ptr<StagedWork>::reclaim(this);
    inner_->getFuture()->then([self, future](ivalue::Future& of_host) {
      try {
        const IValue& host = of_host.value();
        self->bring_back();
        future->mark_completed(self->like(host));
      } catch (...) {
        future->set_error(std::current_exception());
      }
    });
    return future;
  }

 private:
  // The results in the lists that the host's are in.
  IValue like(const IValue& host) {
    if (host.isTensorList()) return IValue(result());
    std::vector<Tensors> lists;
    auto next = results_.begin();
    for (const IValue& list : host.toListRef()) {
      lists.emplace_back();
      for (std::size_t i = 0; i < list.toListRef().size(); ++i) lists.back().push_back(next++->device);
    }
    return IValue(lists);
  }
  bool bring_back() {
    const std::lock_guard lock(mutex_);
    if (completed_ || inner_->exception()) return true;
    completed_ = true;
    const NoGradGuard no_grad;
    for (const Copied& r : results_) r.device.copy_(r.host, /*non_blocking=*/true);
    return true;
  }
  const intrusive_ptr<Work> inner_;
  const std::vector<Copied> results_;
};

template <class Call, class First, class... Rest>
intrusive_ptr<Work> staged(bool writes, Call call, First& first, Rest&... rest) {
  std::tuple host(on_host(first), on_host(rest)...);
  auto inner = std::apply(call, host);
  std::vector<Copied> results;
  if (writes) pair(results, first, std::get<0>(host));
  const OpType op = inner->retrieveOpType();
  return make_intrusive<StagedWork>(op, std::move(inner), std::move(results));
}

}  // namespace

HostStaging::~HostStaging() = default;

#define CRESSET_STAGE(name, parameters, arguments)                                                           \
  intrusive_ptr<Work> HostStaging::name parameters {                                                         \
    const auto call = [this](auto&... host) { return host_->name(host...); };                                \
    const auto with = [&](auto&... all) { return staged(std::string_view(#name) != "send", call, all...); }; \
    return with arguments;                                                                                   \
  }
CRESSET_COLLECTIVES(CRESSET_STAGE)
#undef CRESSET_STAGE

}  // namespace cresset::distributed
