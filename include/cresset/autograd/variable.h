// The autograd part of a tensor: its gradient, the node that made it, its hooks, and for views their base.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <cresset/autograd/node.h>

namespace cresset::autograd {

/// The tangent of a dual tensor. Emptied when its level ends.
struct CRESSET_API ForwardGrad {
  Tensor value;
};

/// How a view was made; decides whether it may be changed in place while gradients are recorded.
enum class CreationMeta : uint8_t { DEFAULT, IN_CUSTOM_FUNCTION, MULTI_OUTPUT_NODE, NO_GRAD_MODE, INFERENCE_MODE };

/// What an operator of the present thread state records for its views.
inline CreationMeta creation_meta_now(CreationMeta recorded = CreationMeta::DEFAULT) {
  return InferenceMode::is_enabled() ? CreationMeta::INFERENCE_MODE : GradMode::is_enabled() ? recorded : CreationMeta::NO_GRAD_MODE;
}

/// Makes the view again from another base of the same geometry.
using ViewReplay = std::function<Tensor(const Tensor&)>;

/// The root a view looks at. Without replay the view is as_strided of it.
struct ViewInfo {
  Tensor base;
  ViewReplay replay;
};

/// Hooks of a tensor.
struct TensorHooks {
  detail::SpinLock lock;  // guards everything: hooks may come and go while another thread runs backward
  std::vector<std::shared_ptr<FunctionPreHook>> pre_hooks;
  std::shared_ptr<PostAccumulateGradHook> post_accumulate;
  std::shared_ptr<FunctionPreHook> cpp_hooks;  // the hooks given to Tensor::register_hook
};

struct CRESSET_API AutogradMeta : AutogradMetaInterface {
  AutogradMeta() = default;
  AutogradMeta(const AutogradMeta&) = delete;
  ~AutogradMeta() override;

  static void* operator new(std::size_t n) { return alloc_cpu(n); }
  static void operator delete(void* p, std::size_t n) noexcept { free_cpu_sized(p, n); }

  Tensor grad_;
  std::shared_ptr<Node> grad_fn_;
  std::weak_ptr<Node> grad_accumulator_;
  std::shared_ptr<ForwardGrad> fw_grad_;
  detail::OnDemand<TensorHooks> hooks_;
  uint32_t output_nr_ = 0;
  bool requires_grad_ = false;  // only of leaves; others have grad_fn_
  bool retains_grad_ = false;
  bool is_view_ = false;                           // this is a DifferentiableViewMeta
  bool is_tangent_ = false;                        // some tensor has this one as its tangent
  bool any_grad_dtype_ = false;                    // grad_ may have any dtype
  ScalarType grad_dtype_ = ScalarType::Undefined;  // otherwise it has this one; Undefined: the tensor's
  detail::SpinLock lock_;                          // guards the lazily made grad_accumulator_ and a view's grad_fn_
};

/// The autograd part of a tensor that is a view. Backward and forward mode may see different roots.
struct CRESSET_API DifferentiableViewMeta : AutogradMeta {
  bool has_bw_view() const { return backward_.has_value(); }
  bool has_fw_view() const { return shared_ ? backward_.has_value() : forward_.has_value(); }
  CreationMeta get_creation_meta() const { return creation_meta_; }
  const ViewInfo& backward_info() const { return *backward_; }
  const ViewInfo& forward_info() const { return shared_ ? *backward_ : *forward_; }
  static void* operator new(std::size_t n) { return alloc_cpu(n); }
  static void operator delete(void* p, std::size_t n) noexcept { free_cpu_sized(p, n); }

  std::optional<ViewInfo> backward_;
  std::optional<ViewInfo> forward_;
  bool shared_ = true;
  CreationMeta creation_meta_ = CreationMeta::DEFAULT;
  uint32_t attr_version_ = 0;  // version of the data for which grad_fn_ is right
};

namespace impl {

inline AutogradMeta* get_autograd_meta(const TensorBase& t) { return static_cast<AutogradMeta*>(t.unsafeGetTensorImpl()->autograd_meta()); }
inline DifferentiableViewMeta* get_view_autograd_meta(const TensorBase& t) {
  AutogradMeta* m = get_autograd_meta(t);
  return m && m->is_view_ ? static_cast<DifferentiableViewMeta*>(m) : nullptr;
}
/// The autograd part, made when missing. Raises for an undefined tensor.
CRESSET_API AutogradMeta* materialize_autograd_meta(const TensorBase& t);

CRESSET_API bool view_requires_grad(const AutogradMeta* m);
inline bool requires_grad(const TensorBase& t) {
  const AutogradMeta* m = get_autograd_meta(t);
  return m && (m->requires_grad_ || m->grad_fn_ || (m->is_view_ && view_requires_grad(m)));
}

CRESSET_API Edge gradient_edge_slow(const Tensor& t);
/// Where the gradient of a tensor that requires grad goes: its grad_fn, or its accumulator when it is a leaf.
inline Edge gradient_edge(const Tensor& t) {
  const AutogradMeta* m = get_autograd_meta(t);
  if (CRESSET_LIKELY(m && !m->is_view_ && m->grad_fn_)) return Edge(m->grad_fn_, m->output_nr_);
  return gradient_edge_slow(t);
}
/// Declares that a tensor is output `edge.input_nr` of `edge.function`.
CRESSET_API void set_gradient_edge(const Tensor& t, Edge edge);
/// The node that adds into a leaf's .grad, made when missing; null when the tensor does not require grad.
CRESSET_API std::shared_ptr<Node> grad_accumulator(const Tensor& t);
/// The accumulator if somebody already asked for it.
CRESSET_API std::shared_ptr<Node> try_get_grad_accumulator(const Tensor& t);
CRESSET_API void set_grad_accumulator(const Tensor& t, std::weak_ptr<Node> accumulator);
/// After an in-place operation: the tensor (a view too) is now output 0 of the node. self_index is the number of the
/// node's edge that belongs to the changed tensor.
CRESSET_API void rebase_history(const Tensor& self, Edge gradient_edge, std::size_t self_index = 0);
/// The dtype of a leaf's gradient, to which the engine converts what comes in: the tensor's own unless another was set; nothing: any dtype.
CRESSET_API std::optional<ScalarType> grad_dtype(const TensorBase& t);
CRESSET_API void set_grad_dtype(const TensorBase& t, std::optional<ScalarType> dtype);
/// RuntimeError for a gradient of another dtype.
CRESSET_API void check_grad_dtype(const TensorBase& t, const Tensor& grad);
CRESSET_API void set_version_counter(const Tensor& t, const Tensor& shared_with);
inline uint32_t version(const TensorBase& t) { return t.unsafeGetTensorImpl()->version(); }
inline void bump_version(const TensorBase& t) { t.unsafeGetTensorImpl()->bump_version(); }

/// Hooks on the gradient of a tensor; on a leaf they live in the tensor, otherwise in its node too.
CRESSET_API void add_hook(const TensorBase& t, std::shared_ptr<FunctionPreHook> hook);
CRESSET_API std::vector<std::shared_ptr<FunctionPreHook>> hooks(const TensorBase& t);
CRESSET_API void clear_hooks(const TensorBase& t);
CRESSET_API void set_post_acc_grad_hooks(const TensorBase& t, std::unique_ptr<PostAccumulateGradHook> hook);
CRESSET_API std::shared_ptr<PostAccumulateGradHook> post_acc_grad_hooks(const TensorBase& t);

}  // namespace impl

/// A tensor with the data of `data`, a leaf; shares the version counter unless told otherwise.
CRESSET_API Tensor make_variable(const Tensor& data, bool requires_grad = false, bool allow_tensor_metadata_change = true);
/// A tensor with the data of `data` that is an output of a node.
CRESSET_API Tensor make_variable(const Tensor& data, Edge gradient_edge);
/// The same data as a tensor that is not connected to the graph but counts versions together with t.
CRESSET_API Tensor detach_shared(const Tensor& t);

/// Marks `view` as a view of `base` (roots are found). Either direction may be non-differentiable.
CRESSET_API Tensor make_variable_differentiable_view(const Tensor& base, Tensor view, bool bw, bool fw, ViewReplay replay,
                                                     CreationMeta creation_meta);
/// Does this base need a replay function because as_strided cannot rebuild the view?
CRESSET_API bool view_needs_replay(const Tensor& base, const Tensor& view);
/// Are views of this thread rebuilt by calling their operators again, though as_strided would do? Off at first.
CRESSET_API bool is_view_replay_enabled();
CRESSET_API void set_view_replay_enabled(bool on);
/// Raises when an in-place change of this view would give wrong gradients.
CRESSET_API void handle_view_on_rebase(const DifferentiableViewMeta& meta, bool indirect = false);

}  // namespace cresset::autograd
