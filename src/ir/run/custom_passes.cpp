// Passes of programs over every graph that is about to run.
#include <cresset/ir/custom_passes.h>

#include <atomic>
#include <mutex>

#include <cresset/base/fork.h>

#include "ir/run/custom_passes.h"

namespace cresset::jit {
namespace {

std::atomic<uint64_t> changes{0};

class Passes {
 public:
  GraphPassNameType add(GraphPass pass) {
    const std::lock_guard lock(mutex_);
    passes_.emplace_back(std::move(pass), next_);
    ++changes;
    return next_++;
  }
  void remove(GraphPassNameType name) {
    const std::lock_guard lock(mutex_);
    std::erase_if(passes_, [&](const auto& p) { return p.second == name; });
    ++changes;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    passes_.clear();
    ++changes;
  }
  std::vector<std::pair<GraphPass, GraphPassNameType>> all() const {
    const std::lock_guard lock(mutex_);
    return passes_;
  }

 private:
  mutable ForkSafe<std::mutex> mutex_;
  std::vector<std::pair<GraphPass, GraphPassNameType>> passes_;
  GraphPassNameType next_ = 1;
};
// Programs register while they start.
Passes& pre_passes() {
  static auto* passes = new Passes;
  return *passes;
}
Passes& post_passes() {
  static auto* passes = new Passes;
  return *passes;
}

}  // namespace

uint64_t custom_pass_changes() { return changes.load(std::memory_order_acquire); }

GraphPassNameType registerPrePass(GraphPass pass) { return pre_passes().add(std::move(pass)); }
GraphPassNameType registerPostPass(GraphPass pass) { return post_passes().add(std::move(pass)); }
void clearPrePass(GraphPassNameType name) { pre_passes().remove(name); }
void clearPostPass(GraphPassNameType name) { post_passes().remove(name); }
void clearAllPrePasses() { pre_passes().clear(); }
void clearAllPostPasses() { post_passes().clear(); }
std::vector<std::pair<GraphPass, GraphPassNameType>> getCustomPrePasses() { return pre_passes().all(); }
std::vector<std::pair<GraphPass, GraphPassNameType>> getCustomPostPasses() { return post_passes().all(); }

}  // namespace cresset::jit
