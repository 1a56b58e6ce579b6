// Anomaly mode: every node remembers where its forward operation ran, and NaN gradients raise.
#pragma once

#include <atomic>
#include <string>

#include <cresset/base/macros.h>

namespace cresset::autograd {

struct Node;

struct CRESSET_API AnomalyMode {
  static bool is_enabled() noexcept { return enabled_.load(std::memory_order_relaxed); }
  static bool should_check_nan() noexcept { return check_nan_.load(std::memory_order_relaxed); }
  /// For all threads of the process.
  static void set_enabled(bool on, bool check_nan = true);

 private:
  static std::atomic<bool> enabled_, check_nan_;
};

/// Turns anomaly mode on for a scope and warns that it is slow.
class CRESSET_API DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true);
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_, check_nan_;
};

/// Gives the text of the caller's stack for the forward trace. Python installs one that formats Python frames.
using ForwardTraceFunction = std::string (*)();
CRESSET_API void set_forward_trace_function(ForwardTraceFunction f);

namespace detail {
CRESSET_API void store_forward_trace(Node& node);
/// Warns with the trace of the node, and of the nodes whose backward made it.
CRESSET_API void warn_forward_trace(const Node& node);
}  // namespace detail

}  // namespace cresset::autograd
