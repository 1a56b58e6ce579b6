// Counters that scripts and programs add to: prim::AddStatValue.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <cresset/base/fork.h>
#include <cresset/base/macros.h>

namespace cresset::jit {

/// Counters by name. All members may be used from any thread.
class CRESSET_API Counters {
 public:
  void add(const std::string& name, int64_t value);
  /// The sum, or the mean without its fraction; 0 for one that nothing was added to.
  int64_t value(const std::string& name) const;
  void set_mean(const std::string& name, bool mean);

 private:
  struct Counter {
    int64_t sum = 0, count = 0;
    bool mean = false;
  };
  mutable ForkSafe<std::mutex> mutex_;
  std::unordered_map<std::string, Counter> counters_;
};

/// Those that prim::AddStatValue adds to; none at first. Gives those before.
CRESSET_API std::shared_ptr<Counters> set_counters(std::shared_ptr<Counters> counters);

}  // namespace cresset::jit
