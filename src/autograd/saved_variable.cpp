// Saved tensors: version checks, user hooks, history of saved outputs.
#include <cresset/autograd/saved_variable.h>

#include <cresset/autograd/anomaly_mode.h>
#include <cresset/autograd/variable.h>

#include "autograd/captured_tensors.h"
#include "autograd/generated_support.h"
#include "autograd/kept_default_hooks.h"
#include "autograd/nodes.h"
#include "autograd/seen_detach.h"

namespace cresset::autograd {

const char* const kBackwardTwice =
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
    "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
    "backward through the graph a second time or if you need to access saved tensors after calling backward.";
void raise_backward_twice() { CRESSET_THROW(Error, kBackwardTwice); }

namespace {
struct DefaultHooks {
  std::vector<SavedTensorDefaultHooks::Factory> stack;
  std::optional<std::string> disabled;
};
// The quick question is answered without touching the thread's vector.
thread_local constinit bool any_default_hooks = false;
DefaultHooks& default_hooks() {
  thread_local const auto hooks = std::make_unique<DefaultHooks>();  // on the heap: thread-local storage is scarce
  return *hooks;
}
}  // namespace

void SavedTensorDefaultHooks::push_hooks(Factory factory) {
  if (default_hooks().disabled) CRESSET_THROW(Error, *default_hooks().disabled);
  default_hooks().stack.push_back(std::move(factory));
  any_default_hooks = true;
}
void SavedTensorDefaultHooks::pop_hooks() {
  CRESSET_CHECK(!default_hooks().stack.empty(), "saved_tensors_hooks: there are no hooks to remove.");
  default_hooks().stack.pop_back();
  any_default_hooks = !default_hooks().stack.empty();
}
std::unique_ptr<SavedVariableHooks> SavedTensorDefaultHooks::get_hooks() {
  return any_default_hooks ? default_hooks().stack.back()() : nullptr;
}
KeptDefaultHooks::KeptDefaultHooks() {
  if (CRESSET_UNLIKELY(any_default_hooks)) before_ = default_hooks().stack;
}
KeptDefaultHooks::~KeptDefaultHooks() {
  if (CRESSET_LIKELY(!any_default_hooks && before_.empty())) return;
  default_hooks().stack = std::move(before_);
  any_default_hooks = !default_hooks().stack.empty();
}
bool SavedTensorDefaultHooks::is_active() { return any_default_hooks; }
std::optional<std::string> SavedTensorDefaultHooks::set_disabled_message(std::optional<std::string> message) {
  CRESSET_CHECK(!message || default_hooks().stack.empty(), message.value_or(std::string()));
  return std::exchange(default_hooks().disabled, std::move(message));
}
const std::optional<std::string>& SavedTensorDefaultHooks::disabled_message() { return default_hooks().disabled; }

namespace {
/// The tangent of a tensor, which a view may still have to take from its base.
std::shared_ptr<ForwardGrad> tangent_of_saved(const Tensor& variable) {
  return detail::has_fw_grad(variable) ? impl::get_autograd_meta(variable)->fw_grad_ : nullptr;
}

/// An output that a mode saw being saved: it sees every use, too. User's hooks may take its place.
struct SeenOutput final : SavedVariableHooks {
  explicit SeenOutput(const Tensor& output) : kept(detach_seen_by_modes(output)) {}
  void call_pack_hook(const Tensor&) override {}
  Tensor call_unpack_hook() override { return detach_seen_by_modes(kept); }
  Tensor kept;
};
SeenOutput* seen_output(SavedVariableHooks* hooks) { return dynamic_cast<SeenOutput*>(hooks); }
}  // namespace

SavedVariable::SavedVariable(const Tensor& variable, bool is_output, bool is_inplace_on_view) {
  if (!variable.defined()) return;
  TensorImpl* impl = variable.unsafeGetTensorImpl();
  if (CRESSET_UNLIKELY(impl->is_inference() && !is_output && transforms::inside_function())) {
    // The function of a transform (grad, vjp) may be called in inference mode with what was made there.
    *this = SavedVariable(variable.clone(), false, false);
    return;
  }
  CRESSET_CHECK(
      !impl->is_inference(),
      "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
      "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
      "instead of `torch.inference_mode()`.");
  state_ = State::Held;
  is_output_ = is_output;
  saved_version_ = impl->version();
  const AutogradMeta* meta = impl::get_autograd_meta(variable);
  output_nr_ = meta ? meta->output_nr_ : 0;
  is_leaf_ = !is_output && (!meta || variable.is_leaf());
  if (is_inplace_on_view) {
    // The view itself may die before backward, and its own node with it: its place in the graph is found again from the base.
    extras_ = std::make_unique<Extras>();
    extras_->changed_base = impl::get_view_autograd_meta(variable)->backward_info().base.grad_fn();
  }
  if (CRESSET_UNLIKELY(any_default_hooks) && !impl->is_wrapped_number()) {
    // Python numbers that became tensors are nothing that users saved: hooks do not see them.
    // Hooks see inputs themselves. An output comes without its history, so that a hook may keep it: the node would own itself. The
    // pieces that the unpacked tensor needs are kept beside it.
    if (auto hooks = SavedTensorDefaultHooks::get_hooks()) {
      if (!extras_) extras_ = std::make_unique<Extras>();
      extras_->requires_grad = variable.requires_grad();
      if (!is_output) {
        if (is_leaf_)
          extras_->grad_accumulator = impl::grad_accumulator(variable);
        else
          extras_->grad_fn = variable.grad_fn();
      }
      if (CRESSET_UNLIKELY(forward_mode_is_on())) extras_->fw_grad = tangent_of_saved(variable);
      data_ = is_output ? detach_shared(variable) : variable;
      set_hooks_and_pack(std::move(hooks), data_);
      return;
    }
  }
  if (!is_output || is_leaf_) {
    saved_original_ = true;
    data_ = variable;
    return;
  }
  if (is_seen_by_modes(variable)) {
    if (!extras_) extras_ = std::make_unique<Extras>();
    extras_->requires_grad = variable.requires_grad();
    if (CRESSET_UNLIKELY(forward_mode_is_on())) extras_->fw_grad = tangent_of_saved(variable);
    extras_->hooks = std::make_unique<SeenOutput>(variable);
    return;
  }
  data_ = detach_shared(variable);
  if (CRESSET_UNLIKELY(forward_mode_is_on()))
    if (auto tangent = tangent_of_saved(variable)) impl::materialize_autograd_meta(data_)->fw_grad_ = std::move(tangent);
}

void SavedVariable::set_hooks_and_pack(std::unique_ptr<SavedVariableHooks>&& hooks, const Tensor& data) {
  const uint32_t before = data.unsafeGetTensorImpl()->version();
  {
    NoGradGuard no_grad;
    hooks->call_pack_hook(saved_original_ ? detach_shared(data) : data);
  }
  CRESSET_CHECK(
      data.unsafeGetTensorImpl()->version() == before,
      "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place "
      "operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the "
      "input to a pack hook.");
  extras_->hooks = std::move(hooks);
  data_ = Tensor();
}

void SavedVariable::register_hooks(std::unique_ptr<SavedVariableHooks>&& hooks) {
  CRESSET_CHECK(state_ != State::Undefined, "Calling register_hooks on a saved tensor with value None is forbidden");
  CRESSET_CHECK(
      state_ != State::Released,
      "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you "
      "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
      "if you need to access saved variables after calling backward.");
  if (SeenOutput* seen = extras_ ? seen_output(extras_->hooks.get()) : nullptr) {
    const Tensor kept = seen->kept;
    set_hooks_and_pack(std::move(hooks), kept);
    return;
  }
  CRESSET_CHECK(
      !has_hooks(),
      "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.");
  if (!extras_) extras_ = std::make_unique<Extras>();
  if (saved_original_) {
    extras_->requires_grad = data_.requires_grad();
    if (is_leaf_)
      extras_->grad_accumulator = impl::grad_accumulator(data_);
    else
      extras_->grad_fn = data_.grad_fn();
  }
  const Tensor data = data_;
  set_hooks_and_pack(std::move(hooks), data);
}

void SavedVariable::raise_modified(uint32_t now, const std::shared_ptr<Node>& grad_fn, const Tensor& t) const {
  std::string message =
      str("one of the variables needed for gradient computation has been modified by an inplace operation: [torch.",
          t.is_cpu() ? std::string() : DeviceTypeName(t.device().type()) + ".", t.scalar_type(), "Tensor ", t.sizes(), "]");
  if (grad_fn) message += str(", which is output ", output_nr_, " of ", forward_name(*grad_fn), ",");
  message += str(" is at version ", now, "; expected version ", saved_version_, " instead.");
  message +=
      AnomalyMode::is_enabled()
          ? " Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in question was "
            "changed in there or anywhere later. Good luck!"
          : " Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False).";
  CRESSET_THROW(Error, message);
}

Tensor SavedVariable::unpack(const std::shared_ptr<Node>& saved_for) const {
  if (state_ == State::Undefined) return Tensor();
  if (state_ == State::Released) raise_backward_twice();
  std::shared_ptr<Node> grad_fn;
  if (is_output_)
    grad_fn = saved_for;
  else if (has_hooks())
    grad_fn = extras_->grad_fn;
  else if (saved_original_)
    grad_fn = data_.grad_fn();
  CRESSET_INTERNAL_ASSERT(!is_output_ || grad_fn || is_leaf_, "a saved output was unpacked without its node.");
  if (has_hooks()) {
    if (const SeenOutput* seen = seen_output(extras_->hooks.get()))
      if (const uint32_t now = seen->kept.unsafeGetTensorImpl()->version(); now != saved_version_) raise_modified(now, grad_fn, seen->kept);
    return unpack_hooked(edge_of(grad_fn));
  }

  const uint32_t now = data_.unsafeGetTensorImpl()->version();
  if (CRESSET_UNLIKELY(now != saved_version_)) {
    // The tensor may have another node by now; the message names the one it had.
    raise_modified(now, saved_original_ && is_leaf_ ? nullptr : grad_fn, data_);
  }
  CRESSET_CHECK(!saved_original_ || !lost_history(),
                "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please use "
                "out-of-place `.detach()` instead");
  if (saved_original_) return data_;
  Tensor result = make_variable(data_, edge_of(grad_fn));
  if (const AutogradMeta* meta = impl::get_autograd_meta(data_); meta && meta->fw_grad_)
    impl::materialize_autograd_meta(result)->fw_grad_ = meta->fw_grad_;
  return result;
}

Edge SavedVariable::edge_of(const std::shared_ptr<Node>& grad_fn) const {
  const std::shared_ptr<Node> base = extras_ ? extras_->changed_base.lock() : nullptr;
  if (auto* slices = dynamic_cast<CopySlices*>(base.get())) return slices->view_edge();
  return Edge(grad_fn, output_nr_);
}

Tensor SavedVariable::unpack_hooked(const Edge& edge) const {
  Tensor data = extras_->hooks->call_unpack_hook();
  if (!data.defined()) return data;
  // What has no place in the graph is the very object that the hook gave.
  if (!edge.function && !extras_->requires_grad && !extras_->fw_grad && !data.requires_grad()) return data;
  Tensor result = detach_shared(data);
  AutogradMeta* meta = impl::materialize_autograd_meta(result);
  if (is_leaf_) {
    // A leaf given back by a hook must accumulate where the original does.
    meta->requires_grad_ = extras_->requires_grad;
    meta->grad_accumulator_ = extras_->grad_accumulator;
  } else {
    meta->grad_fn_ = edge.function;
    meta->output_nr_ = edge.input_nr;
  }
  if (extras_->fw_grad) meta->fw_grad_ = extras_->fw_grad;
  return result;
}

void SavedVariable::reset_data() {
  if (state_ == State::Undefined) return;
  state_ = State::Released;
  data_ = Tensor();
  extras_.reset();
}

}  // namespace cresset::autograd
