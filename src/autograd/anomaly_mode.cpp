// Anomaly mode: switches, traces of the forward operation, the warning that shows them.
#include <cresset/autograd/anomaly_mode.h>

#include <cresset/autograd/engine.h>
#include <cresset/base/warn_always.h>

namespace cresset::autograd {

std::atomic<bool> AnomalyMode::enabled_{false}, AnomalyMode::check_nan_{true};

void AnomalyMode::set_enabled(bool on, bool check_nan) {
  enabled_ = on;
  check_nan_ = check_nan;
}

DetectAnomalyGuard::DetectAnomalyGuard(bool check_nan) : enabled_(AnomalyMode::is_enabled()), check_nan_(AnomalyMode::should_check_nan()) {
  CRESSET_WARN_FIRST("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.");
  AnomalyMode::set_enabled(true, check_nan);
}
DetectAnomalyGuard::~DetectAnomalyGuard() { AnomalyMode::set_enabled(enabled_, check_nan_); }

namespace {
std::atomic<ForwardTraceFunction> trace_function{nullptr};
}
void set_forward_trace_function(ForwardTraceFunction f) { trace_function = f; }

namespace detail {

void store_forward_trace(Node& node) {
  NodeExtras& extras = node.mutable_extras();
  if (ForwardTraceFunction f = trace_function) extras.forward_trace = f();
  extras.parent = current_node();
}

void warn_forward_trace(const Node& node) {
  const auto trace = [](const Node& n) {
    return n.extras() && !n.extras()->forward_trace.empty()
               ? " Traceback of forward call that caused the error:\n" + n.extras()->forward_trace
               : " No forward pass information available. Enable detect anomaly during forward pass for more information.";
  };
  warn("Error detected in " + node.name() + "." + trace(node));
  std::string child = node.name();
  const Node* n = &node;
  while (n->extras() && n->extras()->parent) {
    n = n->extras()->parent.get();
    warn("Previous calculation was induced by " + n->name() + "." + trace(*n));
  }
}

}  // namespace detail
}  // namespace cresset::autograd
