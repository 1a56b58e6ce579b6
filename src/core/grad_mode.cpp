// Thread-local grad mode state, and whether forward mode is at work.
#include <cresset/core/forward_levels.h>
#include <cresset/core/grad_mode.h>

#include "base/thread_state.h"

namespace cresset {
namespace detail {
thread_local constinit GradModeState grad_mode_state{};
std::atomic<int> forward_levels{0};

namespace {
const bool grad_mode_carried = [] {
  register_thread_state(
      [] {
        return uint64_t{grad_mode_state.grad} | uint64_t{grad_mode_state.forward_grad} << 1 | uint64_t{grad_mode_state.inference} << 2;
      },
      [](uint64_t w) { grad_mode_state = {(w & 1) != 0, (w & 2) != 0, (w & 4) != 0}; });
  return true;
}();
}  // namespace
}  // namespace detail

namespace {
LocalDispatchKeySet keys_for(bool inference) {
  const LocalDispatchKeySet now = impl::tls_local_dispatch_key_set();
  if (inference) return {now.included.remove(DispatchKey::ADInplaceOrView), now.excluded | autograd_dispatch_keyset};
  return {now.included.add(DispatchKey::ADInplaceOrView), now.excluded - autograd_dispatch_keyset_with_ADInplaceOrView};
}
}  // namespace

InferenceMode::InferenceMode(bool on) : saved_(detail::grad_mode_state), keys_(keys_for(on)) { detail::grad_mode_state = {!on, !on, on}; }
InferenceMode::~InferenceMode() { detail::grad_mode_state = saved_; }

}  // namespace cresset
