// Grad mode and inference mode of the calling thread.
#pragma once

#include <cresset/core/dispatch_key_set.h>

namespace cresset {

namespace detail {
struct GradModeState {
  bool grad = true;
  bool forward_grad = true;
  bool inference = false;
};
extern CRESSET_API thread_local constinit GradModeState grad_mode_state __attribute__((tls_model("initial-exec")));
}  // namespace detail

/// Are operations recorded for backward?
struct GradMode {
  static bool is_enabled() { return detail::grad_mode_state.grad; }
  static void set_enabled(bool on) { detail::grad_mode_state.grad = on; }
};
/// Sets grad mode for a scope.
struct AutoGradMode {
  explicit AutoGradMode(bool on) : saved_(GradMode::is_enabled()) { GradMode::set_enabled(on); }
  ~AutoGradMode() { GradMode::set_enabled(saved_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool saved_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
/// Forward-mode differentiation on or off for a scope.
struct AutoFwGradMode {
  explicit AutoFwGradMode(bool on) : saved_(detail::grad_mode_state.forward_grad) { detail::grad_mode_state.forward_grad = on; }
  ~AutoFwGradMode() { detail::grad_mode_state.forward_grad = saved_; }
  AutoFwGradMode(const AutoFwGradMode&) = delete;

 private:
  bool saved_;
};

/// Inference mode for a scope: new tensors carry neither autograd keys nor versions.
struct CRESSET_API InferenceMode {
  explicit InferenceMode(bool on = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  static bool is_enabled() { return detail::grad_mode_state.inference; }

 private:
  detail::GradModeState saved_;
  impl::ForceDispatchKeyGuard keys_;
};

}  // namespace cresset
