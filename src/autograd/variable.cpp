// Autograd parts of tensors: edges, views and their rebasing, hooks, and the autograd members of Tensor.
#include <cresset/autograd/variable.h>

#include <mutex>

#include <cresset/autograd/autograd.h>
#include <cresset/autograd/forward_ad.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_view.h>

#include "autograd/captured_tensors.h"
#include "autograd/nodes.h"
#include "core/traced_alias.h"
#include "ops/shared/pointwise.h"

namespace cresset::autograd {

AutogradMeta::~AutogradMeta() {
  if (grad_fn_) detail::release_node(std::move(grad_fn_));
}

namespace {
const std::shared_ptr<Node> no_node;
const Tensor no_tensor;

/// Writes the gradient that passes a node into .grad of the tensor, for retain_grad.
struct RetainGradHook final : FunctionPreHook {
  RetainGradHook(const TensorBase& t, uint32_t nr) : tensor_(t.getIntrusivePtr()), nr_(nr) {}
  variable_list operator()(const variable_list& grads) override {
    if (const auto impl = tensor_.lock()) {
      const std::lock_guard lock(mutex_);  // several threads may run backward through the node
      const Tensor t(impl);
      AutogradMeta* meta = impl::materialize_autograd_meta(t);
      const Tensor& g = grads[nr_];
      if (g.defined()) meta->grad_ = !meta->grad_.defined() ? cresset::clone(g) : cresset::add(meta->grad_, g);
    }
    return grads;
  }

 private:
  weak_intrusive_ptr<TensorImpl> tensor_;
  uint32_t nr_;
  std::mutex mutex_;
};

/// The functions given to Tensor::register_hook, in order.
struct CppHooks final : FunctionPreHook {
  using Hook = std::function<Tensor(const Tensor&)>;
  explicit CppHooks(uint32_t nr) : nr_(nr) {}
  variable_list operator()(const variable_list& grads) override {
    Tensor value = grads[nr_];
    for (std::size_t i = 0; i < size(); ++i) {
      const Hook hook = at(i);
      if (!hook) continue;
      Tensor replaced = hook(value);
      if (!replaced.defined()) continue;
      if (value.defined()) {
        CRESSET_CHECK(replaced.sizes() == value.sizes(), "hook '", i, "' has changed the size of value");
        CRESSET_CHECK(replaced.scalar_type() == value.scalar_type() && replaced.device().type() == value.device().type(), "hook '", i,
                      "' has changed the type of value (was ", value.toString(), " got ", replaced.toString(), ")");
      }
      value = std::move(replaced);
    }
    variable_list result(grads);
    result[nr_] = std::move(value);
    return result;
  }
  std::size_t add(Hook hook) {
    const std::lock_guard<detail::SpinLock> lock(lock_);
    hooks_.push_back(std::move(hook));
    return hooks_.size() - 1;
  }
  bool remove(std::size_t id) {
    Hook gone;  // destroyed after the lock has been given back
    const std::lock_guard<detail::SpinLock> lock(lock_);
    if (id >= hooks_.size()) return false;
    gone.swap(hooks_[id]);
    return true;
  }

 private:
  std::size_t size() {
    const std::lock_guard<detail::SpinLock> lock(lock_);
    return hooks_.size();
  }
  Hook at(std::size_t i) {
    const std::lock_guard<detail::SpinLock> lock(lock_);
    return hooks_[i];
  }
  std::vector<Hook> hooks_;  // removed ones are empty
  detail::SpinLock lock_;
  uint32_t nr_;
};

/// The hooks registered so far belong to the old value of a tensor, and to its node.
void forget_hooks(AutogradMeta& meta) {
  TensorHooks* hooks = meta.hooks_.get();
  if (!hooks) return;
  std::vector<std::shared_ptr<FunctionPreHook>> gone;  // destroyed after the lock has been given back
  std::shared_ptr<FunctionPreHook> gone_list;
  const std::lock_guard<detail::SpinLock> lock(hooks->lock);
  gone.swap(hooks->pre_hooks);
  gone_list.swap(hooks->cpp_hooks);
}

/// Rebuilds the history of a view whose base has changed since. The view's lock is held.
void refresh_view_grad_fn(const TensorBase& self, DifferentiableViewMeta& meta, uint32_t now) {
  const ViewInfo& info = meta.backward_info();
  if (meta.creation_meta_ != CreationMeta::DEFAULT) handle_view_on_rebase(meta, true);
  Tensor again;
  {
    AutoGradMode grad(true);
    cresset::impl::ForceDispatchKeyGuard keys(DispatchKeySet(), autocast_dispatch_keyset);
    again = ViewGeometry(info, self).of(info.base);
  }
  AutogradMeta* fresh = impl::get_autograd_meta(again);
  meta.attr_version_ = now;
  // The base needs no gradient: what does is a leaf between the two, and the way to it is as it was.
  if (!fresh || !fresh->grad_fn_) return;
  std::shared_ptr<FunctionPreHook> retain;
  if (meta.retains_grad_ && meta.grad_fn_) retain = meta.grad_fn_->pop_retains_grad_hook(meta.output_nr_);
  std::shared_ptr<Node> old = std::move(meta.grad_fn_);
  meta.grad_fn_ = fresh->grad_fn_;
  meta.output_nr_ = fresh->output_nr_;
  if (retain) meta.grad_fn_->add_retains_grad_hook(meta.output_nr_, std::make_shared<RetainGradHook>(self, meta.output_nr_));
  detail::release_node(std::move(old));
}

const std::shared_ptr<Node>& grad_fn_of(const TensorBase& t) {
  AutogradMeta* meta = impl::get_autograd_meta(t);
  if (!meta) return no_node;
  if (!meta->is_view_) return meta->grad_fn_;
  auto& view = static_cast<DifferentiableViewMeta&>(*meta);
  if (!view.has_bw_view()) return meta->grad_fn_;
  std::lock_guard<detail::SpinLock> lock(meta->lock_);
  if (!meta->grad_fn_ && !impl::requires_grad(view.backward_info().base)) return meta->grad_fn_;
  const uint32_t now = impl::version(t);
  if (view.attr_version_ != now) refresh_view_grad_fn(t, view, now);
  return meta->grad_fn_;
}
}  // namespace

// --- views ----------------------------------------------------------------------------------------------------------------

ViewGeometry::ViewGeometry(const ViewInfo& info, const TensorBase& view) : sizes(view.sizes()) {
  if (info.replay) {
    replay = info.replay;
    return;
  }
  strides = view.strides();
  relative_offset = view.storage_offset() - info.base.storage_offset();
}

Tensor ViewGeometry::of(const Tensor& other) const {
  return replay ? replay(other) : cresset::as_strided(other, sizes, strides, other.storage_offset() + relative_offset);
}

namespace {
thread_local constinit bool view_replay_enabled = false;
}
bool is_view_replay_enabled() { return view_replay_enabled; }
void set_view_replay_enabled(bool on) { view_replay_enabled = on; }

bool view_needs_replay(const Tensor& base, const Tensor& view) {
  if (view_replay_enabled || !base.has_storage() || base.scalar_type() != view.scalar_type()) return true;
  const DispatchKey backend = base.key_set().highestPriorityBackendTypeId();
  if (backend != DispatchKey::CPU && backend != DispatchKey::Meta) return true;
  const DifferentiableViewMeta* meta = impl::get_view_autograd_meta(base);
  return meta && ((meta->has_bw_view() && meta->backward_info().replay) || (meta->has_fw_view() && meta->forward_info().replay));
}

namespace {
/// The root and the way to a view of a tensor that may be a view itself.
ViewInfo chain(const Tensor& base, const Tensor& view, ViewReplay replay, const ViewInfo* outer) {
  if (!outer) return {base, std::move(replay)};
  if (!outer->replay && !replay) return {outer->base, {}};
  ViewGeometry first(*outer, base);
  if (!replay) replay = [second = ViewGeometry(ViewInfo{base, {}}, view)](const Tensor& t) { return second.of(t); };
  return {outer->base, [first = std::move(first), second = std::move(replay)](const Tensor& t) { return second(first.of(t)); }};
}
}  // namespace

Tensor make_variable_differentiable_view(const Tensor& base, Tensor view, bool bw, bool fw, ViewReplay replay, CreationMeta creation_meta) {
  if (!bw && !fw) return view;
  // A tensor that Python made is held there too, and stays the object that it is: modes tell tensors by identity.
  const bool shared = view.use_count() != 1 && !view.unsafeGetTensorImpl()->pyobject();
  if (view.is_same(base) || view.unsafeGetTensorImpl()->autograd_meta() || shared)
    view = Tensor(view.unsafeGetTensorImpl()->shallow_copy_and_detach(true));
  const DifferentiableViewMeta* outer = impl::get_view_autograd_meta(base);
  auto meta = std::make_unique<DifferentiableViewMeta>();
  meta->is_view_ = true;
  meta->creation_meta_ = creation_meta;
  if (outer && bw && outer->has_bw_view() && outer->creation_meta_ != CreationMeta::DEFAULT) meta->creation_meta_ = outer->creation_meta_;
  const ViewInfo* outer_bw = outer && outer->has_bw_view() ? &outer->backward_info() : nullptr;
  const ViewInfo* outer_fw = outer && outer->has_fw_view() ? &outer->forward_info() : nullptr;
  meta->shared_ = bw == fw && outer_bw == outer_fw;
  if (fw && !meta->shared_) meta->forward_ = chain(base, view, replay, outer_fw);
  if (bw) meta->backward_ = chain(base, view, std::move(replay), outer_bw);
  meta->attr_version_ = view.unsafeGetTensorImpl()->version();
  view.unsafeGetTensorImpl()->set_autograd_meta(std::move(meta));
  return view;
}

void handle_view_on_rebase(const DifferentiableViewMeta& meta, bool indirect) {
  if (meta.creation_meta_ == CreationMeta::DEFAULT) return;
  const bool inference = meta.creation_meta_ == CreationMeta::INFERENCE_MODE, no_grad = meta.creation_meta_ == CreationMeta::NO_GRAD_MODE;
  const bool says_mode = inference || no_grad || !meta.grad_fn_;
  const char* const made = inference ? " was created in inference mode" : " was created in no_grad mode";
  std::string message = !meta.grad_fn_ ? str("A view", made)
                                       : str("Output ", meta.output_nr_, " of ", forward_name(*meta.grad_fn_), " is a view",
                                             says_mode ? str(" of a view which", made) : std::string());
  message += indirect ? " and its base or another view of its base has been modified inplace" : " and is being modified inplace";
  message += !says_mode ? "." : inference ? " in normal mode." : " with grad mode enabled.";
  if (inference || no_grad) {
    const std::string mode = inference ? "inference_mode" : "no_grad";
    message +=
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
        "the "
        "inplace either both inside the " +
        mode +
        " block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked).";
  } else if (meta.creation_meta_ == CreationMeta::MULTI_OUTPUT_NODE) {
    message +=
        " This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified "
        "inplace. You should replace the inplace operation by an out-of-place one.";
  } else {
    message +=
        " This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
        "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
        "behavior "
        "is forbidden. You can fix this by cloning the output of the custom Function.";
  }
  CRESSET_THROW(Error, message);
}

Tensor make_variable(const Tensor& data, bool requires_grad, bool) {
  if (!data.defined()) return Tensor();
  Tensor t(data.unsafeGetTensorImpl()->shallow_copy_and_detach(false));
  if (requires_grad) t.requires_grad_();
  return t;
}

Tensor make_variable(const Tensor& data, Edge gradient_edge) {
  if (!data.defined()) return Tensor();
  Tensor t = detach_shared(data);
  AutogradMeta* meta = impl::materialize_autograd_meta(t);
  meta->grad_fn_ = std::move(gradient_edge.function);
  meta->output_nr_ = gradient_edge.input_nr;
  return t;
}

Tensor detach_shared(const Tensor& t) {
  if (!t.defined()) return Tensor();
  Tensor alias(t.unsafeGetTensorImpl()->shallow_copy_and_detach(true));
  cresset::detail::note_traced_alias(t, alias);
  return alias;
}

Tensor alias_of(const Tensor& t, bool fw, CreationMeta creation_meta) {
  ViewReplay replay;
  if (view_needs_replay(t, t)) replay = [](const Tensor& base) { return cresset::view_as(base, base); };
  Tensor result = detach_shared(t);
  if (!t.is_inference()) result = make_variable_differentiable_view(t, std::move(result), true, fw, std::move(replay), creation_meta);
  // Tangents of tensors that repeat elements (expanded ones, under vmap) have another layout: strides do not find a view's part in them.
  if (const Tensor tangent = fw ? fw_grad(t) : Tensor(); tangent.defined()) {
    const AutoFwGradMode off(false);
    forward_ad::keep_tangent(result, cresset::view_as(tangent, tangent));
  }
  if (GradMode::is_enabled() && impl::requires_grad(t)) {
    auto node = make_node<AliasBackward0>(edge_list{impl::gradient_edge(t)});
    node->add_input_metadata(result);
    impl::set_gradient_edge(result, {std::move(node), 0});
  }
  return result;
}

// --- the graph around a tensor --------------------------------------------------------------------------------------------

namespace impl {

AutogradMeta* materialize_autograd_meta(const TensorBase& t) {
  CRESSET_CHECK(t.defined(), "cannot call materialize_autograd_meta() on undefined tensor");
  TensorImpl* impl = t.unsafeGetTensorImpl();
  if (!impl->autograd_meta()) impl->set_autograd_meta(std::make_unique<AutogradMeta>());
  return static_cast<AutogradMeta*>(impl->autograd_meta());
}

bool view_requires_grad(const AutogradMeta* m) {
  const auto* view = static_cast<const DifferentiableViewMeta*>(m);
  return view->has_bw_view() && requires_grad(view->backward_info().base);
}

Edge gradient_edge_slow(const Tensor& t) {
  const std::shared_ptr<Node>& fn = grad_fn_of(t);
  if (fn) return Edge(fn, get_autograd_meta(t)->output_nr_);
  return Edge(grad_accumulator(t), 0);
}

void set_gradient_edge(const Tensor& t, Edge edge) {
  AutogradMeta* meta = materialize_autograd_meta(t);
  if (CRESSET_UNLIKELY(meta->retains_grad_ && meta->grad_fn_)) {
    if (meta->grad_fn_->pop_retains_grad_hook(meta->output_nr_) && edge.function)
      edge.function->add_retains_grad_hook(edge.input_nr, std::make_shared<RetainGradHook>(t, edge.input_nr));
  }
  std::shared_ptr<Node> old = std::exchange(meta->grad_fn_, std::move(edge.function));
  meta->output_nr_ = edge.input_nr;
  if (CRESSET_UNLIKELY(old != nullptr)) {
    forget_hooks(*meta);
    detail::release_node(std::move(old));
  }
  if (CRESSET_UNLIKELY(meta->is_view_)) static_cast<DifferentiableViewMeta*>(meta)->attr_version_ = version(t);
}

std::shared_ptr<Node> grad_accumulator(const Tensor& t) {
  AutogradMeta* meta = get_autograd_meta(t);
  if (!meta || !meta->requires_grad_) return nullptr;
  CRESSET_INTERNAL_ASSERT(!meta->grad_fn_, "an accumulator exists only for leaves.");
  std::lock_guard<detail::SpinLock> lock(meta->lock_);
  // set_() may have changed the sizes since: a graph that still holds the old accumulator keeps it, new ones get another.
  if (auto existing = meta->grad_accumulator_.lock(); existing && existing->input_metadata(0).shape() == t.unsafeGetTensorImpl()->sizes())
    return existing;
  std::shared_ptr<Node> fresh = make_node<AccumulateGrad>(t);
  if (CRESSET_UNLIKELY(meta->any_grad_dtype_ || meta->grad_dtype_ != ScalarType::Undefined))
    fresh->mutable_input_metadata(0).set_grad_dtype(meta->any_grad_dtype_ ? ScalarType::Undefined : meta->grad_dtype_);
  meta->grad_accumulator_ = fresh;
  return fresh;
}

std::optional<ScalarType> grad_dtype(const TensorBase& t) {
  const AutogradMeta* meta = get_autograd_meta(t);
  if (meta && meta->any_grad_dtype_) return std::nullopt;
  return meta && meta->grad_dtype_ != ScalarType::Undefined ? meta->grad_dtype_ : t.scalar_type();
}

void set_grad_dtype(const TensorBase& t, std::optional<ScalarType> dtype) {
  AutogradMeta* meta = materialize_autograd_meta(t);
  CRESSET_CHECK(!dtype || !meta->grad_.defined() || meta->grad_.scalar_type() == *dtype, "Cannot set grad_dtype to '",
                toString(dtype.value_or(ScalarType::Undefined)), "' because there is already a gradient with dtype '",
                meta->grad_.defined() ? ops::cpp_type_name(meta->grad_.scalar_type()) : "",
                "'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the existing "
                "gradient's dtype.");
  std::lock_guard<detail::SpinLock> lock(meta->lock_);
  meta->any_grad_dtype_ = !dtype;
  meta->grad_dtype_ = dtype.value_or(ScalarType::Undefined);
  if (const auto accumulator = meta->grad_accumulator_.lock()) accumulator->mutable_input_metadata(0).set_grad_dtype(meta->grad_dtype_);
}

void check_grad_dtype(const TensorBase& t, const Tensor& grad) {
  const std::optional<ScalarType> dtype = grad_dtype(t);
  CRESSET_CHECK(!dtype || grad.scalar_type() == *dtype, "attempting to assign a gradient with dtype '",
                ops::cpp_type_name(grad.scalar_type()), "' to a tensor with grad_dtype '", toString(dtype.value_or(ScalarType::Undefined)),
                "'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
                "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a "
                "tensor and its gradient may break downstream systems that assume they match.");
}

std::shared_ptr<Node> try_get_grad_accumulator(const Tensor& t) {
  AutogradMeta* meta = get_autograd_meta(t);
  if (!meta) return nullptr;
  std::lock_guard<detail::SpinLock> lock(meta->lock_);
  return meta->grad_accumulator_.lock();
}

void set_grad_accumulator(const Tensor& t, std::weak_ptr<Node> accumulator) {
  AutogradMeta* meta = materialize_autograd_meta(t);
  std::lock_guard<detail::SpinLock> lock(meta->lock_);
  meta->grad_accumulator_ = std::move(accumulator);
}

void rebase_history(const Tensor& self, Edge edge, std::size_t self_index) {
  DifferentiableViewMeta* view = get_view_autograd_meta(self);
  if (!view || !view->has_bw_view()) return set_gradient_edge(self, std::move(edge));
  if (view->creation_meta_ != CreationMeta::DEFAULT) handle_view_on_rebase(*view);
  CRESSET_CHECK(edge.input_nr == 0 && edge.function->num_inputs() == 1,
                "Functions which modify views in-place must return a single Variable");
  forget_hooks(*view);  // the view's node is made again from the base below
  const ViewInfo& info = view->backward_info();
  std::shared_ptr<Node> copy_slices = make_node<CopySlices>(info.base, ViewGeometry(info, self), std::move(edge.function), self_index);
  set_gradient_edge(info.base, {std::move(copy_slices), 0});
  // Made again even if the view's node was asked for between the change and now: then it belongs to the base's old history.
  const std::lock_guard<detail::SpinLock> lock(view->lock_);
  refresh_view_grad_fn(self, *view, version(self));
}

void set_version_counter(const Tensor& t, const Tensor& shared_with) {
  t.unsafeGetTensorImpl()->share_version_with(*shared_with.unsafeGetTensorImpl());
}

void add_hook(const TensorBase& t, std::shared_ptr<FunctionPreHook> hook) {
  AutogradMeta* meta = materialize_autograd_meta(t);
  TensorHooks& hooks = meta->hooks_.make();
  {
    const std::lock_guard<detail::SpinLock> lock(hooks.lock);
    hooks.pre_hooks.push_back(hook);
  }
  if (const std::shared_ptr<Node>& fn = grad_fn_of(t)) fn->add_tensor_pre_hook(meta->output_nr_, std::move(hook));
}

std::vector<std::shared_ptr<FunctionPreHook>> hooks(const TensorBase& t) {
  AutogradMeta* meta = get_autograd_meta(t);
  TensorHooks* hooks = meta ? meta->hooks_.get() : nullptr;
  if (!hooks) return {};
  const std::lock_guard<detail::SpinLock> lock(hooks->lock);
  return hooks->pre_hooks;
}
void clear_hooks(const TensorBase& t) {
  if (AutogradMeta* meta = get_autograd_meta(t)) forget_hooks(*meta);
}
void set_post_acc_grad_hooks(const TensorBase& t, std::unique_ptr<PostAccumulateGradHook> hook) {
  TensorHooks& hooks = materialize_autograd_meta(t)->hooks_.make();
  std::shared_ptr<PostAccumulateGradHook> value = std::move(hook);
  const std::lock_guard<detail::SpinLock> lock(hooks.lock);
  hooks.post_accumulate.swap(value);  // the old one goes when the lock has been given back
}
std::shared_ptr<PostAccumulateGradHook> post_acc_grad_hooks(const TensorBase& t) {
  AutogradMeta* meta = get_autograd_meta(t);
  TensorHooks* hooks = meta ? meta->hooks_.get() : nullptr;
  if (!hooks) return nullptr;
  const std::lock_guard<detail::SpinLock> lock(hooks->lock);
  return hooks->post_accumulate;
}

}  // namespace impl
}  // namespace cresset::autograd

// --- Tensor members --------------------------------------------------------------------------------------------------------

namespace cresset {

using autograd::AutogradMeta;
namespace ag = autograd::impl;

bool TensorBase::requires_grad() const { return ag::requires_grad(*this); }

const TensorBase& TensorBase::requires_grad_(bool v) const {
  CRESSET_CHECK(
      v || is_leaf() || !requires_grad(),
      "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't "
      "require differentiation use var_no_grad = var.detach().");
  if (v && key_set().has(DispatchKey::FuncTorchBatched)) autograd::transforms::refuse_requires_grad();
  CRESSET_CHECK(!v || !is_inference() || InferenceMode::is_enabled(),
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (v == requires_grad()) return *this;
  CRESSET_CHECK(!v || isDifferentiableType(scalar_type()), "only Tensors of floating point dtype can require gradients");
  ag::materialize_autograd_meta(*this)->requires_grad_ = v;
  return *this;
}

const Tensor& Tensor::grad() const {
  const AutogradMeta* meta = ag::get_autograd_meta(*this);
  if (!meta) return autograd::no_tensor;
  if (CRESSET_UNLIKELY(!meta->grad_.defined() && !is_leaf() && !meta->retains_grad_))
    warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
        "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf "
        "Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.");
  return meta->grad_;
}
Tensor& Tensor::mutable_grad() const { return ag::materialize_autograd_meta(*this)->grad_; }
const std::shared_ptr<autograd::Node>& TensorBase::grad_fn() const { return autograd::grad_fn_of(*this); }
bool TensorBase::is_leaf() const { return !grad_fn(); }
int64_t TensorBase::output_nr() const {
  const AutogradMeta* meta = ag::get_autograd_meta(*this);
  return meta ? meta->output_nr_ : 0;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph, std::optional<TensorList> inputs) const {
  CRESSET_CHECK(!inputs || !inputs->empty(), "`inputs` argument to `backward()` cannot be empty.");
  autograd::variable_list grads;
  if (gradient.defined()) grads.push_back(gradient);
  autograd::backward({*this}, grads, retain_graph, create_graph, inputs ? inputs->vec() : autograd::variable_list());
}

void TensorBase::retain_grad() const {
  CRESSET_CHECK(requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf()) return;
  AutogradMeta* meta = ag::get_autograd_meta(*this);
  if (meta->retains_grad_) return;
  grad_fn()->add_retains_grad_hook(meta->output_nr_, std::make_shared<autograd::RetainGradHook>(*this, meta->output_nr_));
  meta->retains_grad_ = true;
}
bool TensorBase::retains_grad() const {
  const AutogradMeta* meta = ag::get_autograd_meta(*this);
  return meta && meta->retains_grad_;
}

unsigned Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  CRESSET_CHECK(requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  autograd::TensorHooks& hooks = ag::materialize_autograd_meta(*this)->hooks_.make();
  std::shared_ptr<autograd::FunctionPreHook> fresh = std::make_shared<autograd::CppHooks>(static_cast<uint32_t>(output_nr())), list;
  {
    const std::lock_guard<autograd::detail::SpinLock> lock(hooks.lock);
    if (hooks.cpp_hooks)
      fresh.reset();
    else
      hooks.cpp_hooks = fresh;
    list = hooks.cpp_hooks;
  }
  if (fresh) ag::add_hook(*this, fresh);
  return static_cast<unsigned>(static_cast<autograd::CppHooks&>(*list).add(std::move(hook)));
}
void TensorBase::remove_hook(unsigned id) const {
  AutogradMeta* meta = ag::get_autograd_meta(*this);
  std::shared_ptr<autograd::FunctionPreHook> list;
  if (autograd::TensorHooks* hooks = meta ? meta->hooks_.get() : nullptr) {
    const std::lock_guard<autograd::detail::SpinLock> lock(hooks->lock);
    list = hooks->cpp_hooks;
  }
  CRESSET_CHECK(list && static_cast<autograd::CppHooks&>(*list).remove(id), "Invalid index, no hook at position ", id);
}

bool TensorBase::is_view() const {
  const auto* view = ag::get_view_autograd_meta(*this);
  return view && view->has_bw_view();
}
const Tensor& Tensor::_base() const {
  CRESSET_CHECK(is_view(), "Can't get base of non-view Tensor");
  return ag::get_view_autograd_meta(*this)->backward_info().base;
}
const TensorBase& TensorBase::_base() const {
  CRESSET_CHECK(is_view(), "Can't get base of non-view Tensor");
  return ag::get_view_autograd_meta(*this)->backward_info().base;
}

TensorBase TensorBase::tensor_data() const { return variable_data(); }
TensorBase TensorBase::variable_data() const { return defined() ? TensorBase(impl_->shallow_copy_and_detach(false)) : TensorBase(); }

void Tensor::set_data(const Tensor& new_data) const {
  CRESSET_CHECK(new_data.defined() && new_data.layout() == layout() && new_data.device().type() == device().type() &&
                    std::string_view(new_data.unsafeGetTensorImpl()->tensorimpl_type_name()) == impl_->tensorimpl_type_name(),
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.");
  CRESSET_CHECK(!requires_grad() || isDifferentiableType(new_data.scalar_type()),
                "data set to a tensor that requires gradients must be floating point or complex dtype");
  AutogradMeta* meta = ag::get_autograd_meta(*this);
  if (meta && (new_data.scalar_type() != scalar_type() || !(new_data.device() == device()))) meta->grad_accumulator_.reset();
  if (is_inference()) {
    impl_->shallow_copy_from(new_data.getIntrusivePtr());
    return;
  }
  // The tensor goes on counting where it was, together with its views and detached forms; alone it need not keep the old memory for that.
  const bool alone = !has_storage() || impl_->unsafe_storage().use_count() == 1;
  const uint32_t version = impl_->version();
  const Tensor before = alone ? Tensor() : autograd::detach_shared(*this);
  impl_->shallow_copy_from(new_data.getIntrusivePtr());
  cresset::detail::note_traced_alias(new_data, *this);
  if (alone)
    impl_->new_version_counter(version);
  else
    impl_->share_version_with(*before.unsafeGetTensorImpl());
}

}  // namespace cresset
