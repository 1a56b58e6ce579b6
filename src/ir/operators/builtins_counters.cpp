// What scripts measure of themselves: counters, and points of time.
#include <chrono>

#include "ir/operators/builtin_call.h"
#include "ir/operators/builtins.h"
#include "ir/operators/counters.h"

namespace cresset::jit {
namespace {

std::atomic<bool> counters_are_set{false};
std::shared_ptr<Counters>& current_counters() {
  static std::shared_ptr<Counters> counters;
  return counters;
}
ForkSafe<std::mutex>& current_counters_mutex() {
  static ForkSafe<std::mutex> mutex;
  return mutex;
}

}  // namespace

void Counters::add(const std::string& name, int64_t value) {
  const std::lock_guard lock(mutex_);
  Counter& c = counters_[name];
  c.sum = static_cast<int64_t>(static_cast<uint64_t>(c.sum) + static_cast<uint64_t>(value));
  ++c.count;
}
int64_t Counters::value(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = counters_.find(name);
  if (found == counters_.end() || found->second.count == 0) return 0;
  return found->second.mean ? found->second.sum / found->second.count : found->second.sum;
}
void Counters::set_mean(const std::string& name, bool mean) {
  const std::lock_guard lock(mutex_);
  counters_[name].mean = mean;
}

std::shared_ptr<Counters> set_counters(std::shared_ptr<Counters> counters) {
  const std::lock_guard lock(current_counters_mutex());
  counters_are_set = counters != nullptr;
  std::swap(current_counters(), counters);
  return counters;
}

namespace builtin {
namespace {

void add_to_counter(Text name, int64_t value) {
  if (!counters_are_set.load(std::memory_order_acquire)) return;
  std::shared_ptr<Counters> counters;
  {
    const std::lock_guard lock(current_counters_mutex());
    counters = current_counters();
  }
  if (counters) counters->add(std::string(name), value);
}

int64_t time_point() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const BuiltinRow kCounterRows[] = {
    {"prim::AddStatValue(str key, int val) -> ()",
     CRESSET_BUILTIN((Text name, int64_t value)->void { add_to_counter(name, value); }),
     {.side_effects = true}},
    {"prim::TimePoint() -> int", CRESSET_BUILTIN(()->int64_t { return time_point(); }), {.side_effects = true}},
};

}  // namespace
}  // namespace builtin

void register_counter_builtins(const AddRows& add) { add(builtin::kCounterRows, std::size(builtin::kCounterRows)); }

}  // namespace cresset::jit
