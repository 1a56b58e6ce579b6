// SavedVariable: a tensor that a node keeps for backward, with the version it had.
#pragma once

#include <memory>
#include <optional>

#include <cresset/autograd/variable.h>

namespace cresset::autograd {

/// User functions that keep something else in place of a saved tensor and give the tensor back.
struct CRESSET_API SavedVariableHooks {
  virtual ~SavedVariableHooks() = default;
  /// Called once with the saved tensor (detached when it is an output of the node).
  virtual void call_pack_hook(const Tensor& tensor) = 0;
  /// Gives a tensor of the same data; called at each use.
  virtual Tensor call_unpack_hook() = 0;
};

/// The hooks that apply to every tensor saved by this thread; innermost last.
struct CRESSET_API SavedTensorDefaultHooks {
  /// Makes the hooks object for one saved tensor.
  using Factory = std::function<std::unique_ptr<SavedVariableHooks>()>;
  static void push_hooks(Factory factory);
  static void pop_hooks();
  static std::unique_ptr<SavedVariableHooks> get_hooks();
  static bool is_active();
  /// Refuses push_hooks with this message until enabled again; returns the message that was in force.
  static std::optional<std::string> set_disabled_message(std::optional<std::string> message);
  static const std::optional<std::string>& disabled_message();
};

class CRESSET_API SavedVariable {
 public:
  SavedVariable() noexcept = default;
  /// Keeps a tensor. Outputs of the node are kept without their history, so that no cycle forms.
  SavedVariable(const Tensor& variable, bool is_output, bool is_inplace_on_view = false);
  SavedVariable(const std::optional<Tensor>& variable, bool is_output, bool is_inplace_on_view = false)
      : SavedVariable(variable ? *variable : Tensor(), is_output, is_inplace_on_view) {}
  SavedVariable(SavedVariable&&) noexcept = default;
  SavedVariable& operator=(SavedVariable&&) noexcept = default;

  /// The tensor as it was saved, with its history; `saved_for` is the node it was saved for (needed for outputs).
  /// Raises when it was changed in place since, or dropped by an earlier backward.
  Tensor unpack(const std::shared_ptr<Node>& saved_for = nullptr) const;
  /// What a gradient formula needs: the same checks, but an output comes without history when grad mode is off.
  Tensor unpack_in(Node& node) const {
    if (CRESSET_LIKELY(holds_data() && data_.unsafeGetTensorImpl()->version() == saved_version_ &&
                       (saved_original_ ? !lost_history() : !GradMode::is_enabled())))
      return data_;
    return unpack(node.shared_from_this());
  }
  /// Replaces the kept tensor by what the hooks keep; raises when there are hooks already.
  void register_hooks(std::unique_ptr<SavedVariableHooks>&& hooks);
  bool has_hooks() const { return extras_ && extras_->hooks; }
  /// Drops the tensor; unpack raises from now on.
  void reset_data();
  bool was_undefined() const { return state_ == State::Undefined; }

 private:
  enum class State : uint8_t { Undefined, Held, Released };
  struct Extras {
    std::unique_ptr<SavedVariableHooks> hooks;
    std::weak_ptr<Node> changed_base;      // of an in-place changed view: the node of its base, a CopySlices
    std::shared_ptr<Node> grad_fn;         // of an input replaced by hooks
    std::weak_ptr<Node> grad_accumulator;  // of a leaf replaced by hooks
    Tensor counter;                        // carries the version counter while hooks hold the data
    std::shared_ptr<struct ForwardGrad> fw_grad;
    bool requires_grad = false;
  };
  bool holds_data() const { return state_ == State::Held && (!extras_ || !extras_->hooks); }
  /// Was an input that had a node cut from it by detach_()?
  bool lost_history() const {
    if (is_leaf_) return false;
    const AutogradMeta* meta = impl::get_autograd_meta(data_);
    return !meta || !meta->grad_fn_;
  }
  void set_hooks_and_pack(std::unique_ptr<SavedVariableHooks>&& hooks, const Tensor& data);
  /// The place in the graph of a tensor whose node is grad_fn, or of a changed view.
  Edge edge_of(const std::shared_ptr<Node>& grad_fn) const;
  Tensor unpack_hooked(const Edge& edge) const;
  [[noreturn]] void raise_modified(uint32_t now, const std::shared_ptr<Node>& grad_fn, const Tensor& t) const;

  Tensor data_;
  std::unique_ptr<Extras> extras_;
  uint32_t saved_version_ = 0;
  uint32_t output_nr_ = 0;
  State state_ = State::Undefined;
  bool is_output_ = false;
  bool is_leaf_ = false;
  bool saved_original_ = false;
};

/// "Trying to backward through the graph a second time …".
CRESSET_API extern const char* const kBackwardTwice;
[[noreturn]] CRESSET_API void raise_backward_twice();

}  // namespace cresset::autograd
