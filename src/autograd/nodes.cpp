// Leaf accumulation and in-place changes of views.
#include "autograd/nodes.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

#include "autograd/gradient_layout.h"
#include "autograd/seen_detach.h"

namespace cresset::autograd {

std::string forward_name(const Node& node) {
  std::string name = node.name();
  const auto at = name.rfind("Backward");
  if (at != std::string::npos && at > 0 && name.find_first_not_of("0123456789", at + 8) == std::string::npos) name.resize(at);
  return name;
}

namespace {
thread_local constinit bool layout_is_enforced = true;
}
bool is_gradient_layout_enforced() { return layout_is_enforced; }
void set_gradient_layout_enforced(bool on) { layout_is_enforced = on; }

// --- AccumulateGrad -----------------------------------------------------------------------------------------------------

AccumulateGrad::AccumulateGrad(Tensor leaf) : Node(UINT64_MAX), variable(std::move(leaf)) { add_input_metadata(variable); }

std::vector<std::shared_ptr<FunctionPreHook>> AccumulateGrad::leaf_tensor_hooks() { return impl::hooks(variable); }

namespace {
/// The layout that the first gradient of a leaf must have: the leaf's own when it is dense, otherwise contiguous.
bool obeys_layout(const Tensor& grad, const Tensor& variable) {
  if (grad.is_contiguous() && variable.is_contiguous()) return true;
  if (!variable.is_non_overlapping_and_dense()) return grad.is_contiguous();
  for (int64_t d = 0; d < grad.dim(); ++d)
    if (grad.size(d) != 1 && grad.stride(d) != variable.stride(d)) return false;
  return true;
}

/// A tensor whose operators run in Python and whose memory, if it has any, is not to be seen.
bool is_wrapper(const Tensor& t) { return !t.has_storage() && t.key_set().has(DispatchKey::Python); }

Tensor clone_with_layout(const Tensor& grad, const Tensor& variable) {
  if ((!grad.has_storage() && !is_wrapper(grad)) || grad.layout() != kStrided) return cresset::clone(grad);
  if (!is_wrapper(grad) && !variable.is_non_overlapping_and_dense()) return cresset::clone(grad, MemoryFormat::Contiguous);
  Tensor copy = cresset::new_empty_strided(grad, variable.sizes(), variable.strides());
  return cresset::copy_(copy, grad);
}

/// Does nobody but the tensor hold its memory? The base of a view that only the view holds goes with it.
bool owns_memory(const Tensor& t) {
  if (!t.has_storage()) return false;
  const auto* view = impl::get_view_autograd_meta(t);
  const bool with_base = view && view->shared_ && view->has_bw_view() && view->backward_info().base.use_count() == 1;
  return t.unsafeGetTensorImpl()->unsafe_storage().use_count() == (with_base ? 2 : 1);
}

/// First gradient: keeps the tensor itself when nobody else holds it or its memory, except for hooks that see it afterwards.
Tensor first_gradient(Tensor&& grad, const Tensor& variable, bool seen_by_hooks) {
  const std::size_t holders = seen_by_hooks ? 2 : 1;
  const bool wrapper = is_wrapper(grad), fits = !layout_is_enforced || obeys_layout(grad, variable);
  if (GradMode::is_enabled()) return clone_with_layout(grad, variable);
  if (wrapper && grad.use_count() <= holders && fits) return cresset::detach(grad);
  if (is_seen_by_modes(grad) && grad.use_count() <= holders && fits) return detach_seen_by_modes(grad);
  if (grad.use_count() <= holders && owns_memory(grad) && fits) {
    grad.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
    return std::move(grad);
  }
  return clone_with_layout(grad, variable);
}
}  // namespace

Tensor detach_seen_by_modes(const Tensor& t) {
  if (!is_seen_by_modes(t)) return detach_shared(t);
  AutoDispatchBelowADInplaceOrView below;
  Tensor result = cresset::detach(t);
  if (result.is_same(t) || result.unsafeGetTensorImpl()->autograd_meta()) return detach_shared(t);
  result.unsafeGetTensorImpl()->share_version_with(*t.unsafeGetTensorImpl());
  return result;
}

variable_list AccumulateGrad::apply(variable_list&& grads) {
  if (!grads[0].defined()) return {};
  AutogradMeta* meta = impl::get_autograd_meta(variable);
  CRESSET_CHECK(!meta->grad_fn_, "leaf variable has been moved into the graph interior");
  if (!meta->requires_grad_) return {};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Tensor grad = std::move(grads[0]);
    if (!meta->grad_.defined())
      meta->grad_ = first_gradient(std::move(grad), variable, extras() && !extras()->post_hooks.empty());
    else if (meta->grad_.is_sparse() && !grad.is_sparse())
      meta->grad_ = cresset::add(grad, meta->grad_);
    else if (GradMode::is_enabled())
      meta->grad_ = cresset::add(meta->grad_, grad);
    else
      cresset::add_(meta->grad_, grad);
  }
  // This node may be gone, with its mutex, when the next backward pass makes another: who finds it gone has the lock after this.
  std::unique_lock<detail::SpinLock>(meta->lock_).unlock();
  if (const auto hook = impl::post_acc_grad_hooks(variable)) (*hook)(variable);
  return {};
}

// --- CopySlices ------------------------------------------------------------------------------------------------------------

CopySlices::CopySlices(const Tensor& base, ViewGeometry view, std::shared_ptr<Node> f, std::size_t self_index)
    : fn(std::move(f)), view_(std::move(view)), base_sizes_(base.sizes()), self_index_(self_index) {
  add_input_metadata(base);
  // as_strided finds the view only among the base's own strides; a replay finds it in any tensor of the base's sizes.
  base_strided_ = base.has_storage() && (!view_.replay || base.is_non_overlapping_and_dense());
  if (base_strided_) base_strides_ = base.strides();
  // The changed tensor's gradient goes to the base; fn's own edge must say so, as fn asks what it has to compute.
  Edge to_base = impl::requires_grad(base) ? impl::gradient_edge(base) : Edge();
  fn->set_next_edge(self_index_, to_base);
  add_next_edge(std::move(to_base));
  for (std::size_t i = 0; i < fn->num_outputs(); ++i)
    if (i != self_index_) add_next_edge(fn->next_edge(i));
}

Tensor CopySlices::empty_base(const Tensor& grad) const {
  return base_strided_ ? cresset::new_empty_strided(grad, base_sizes_, base_strides_) : cresset::new_empty(grad, base_sizes_);
}

Edge CopySlices::view_edge() {
  const InputMetadata& base = input_metadata(0);
  const Tensor stand_in =
      base_strided_ ? cresset::empty_strided(base_sizes_, base_strides_, base.options()) : cresset::empty(base_sizes_, base.options());
  const AutoGradMode grad(true);
  const cresset::impl::ForceDispatchKeyGuard keys(DispatchKeySet(), autocast_dispatch_keyset);
  impl::set_gradient_edge(stand_in, Edge(shared_from_this(), 0));
  return impl::gradient_edge(view_.of(stand_in));
}

variable_list CopySlices::apply(variable_list&& grads) {
  variable_list grad_inputs(num_outputs());
  if (!grads[0].defined()) return grad_inputs;
  std::shared_ptr<Node> inner;
  {
    const SavedLock lock(*this);
    inner = fn;
  }
  if (!inner) raise_backward_twice();
  // A copy of the gradient with the base's geometry, of which the view's part is replaced.
  const Tensor& grad = grads[0];
  Tensor whole;
  if (view_.replay && !base_strided_) {
    whole = cresset::clone(grad);
  } else {
    whole = empty_base(grad);
    cresset::copy_(whole, grad);
  }
  Tensor part = view_.of(whole);
  variable_list inputs;
  inputs.push_back(cresset::clone(part));
  variable_list results = (*inner)(std::move(inputs));
  for (std::size_t i = 0, out = 1; i < results.size(); ++i) {
    const bool is_self = i == self_index_;
    const std::size_t at = is_self ? 0 : out++;
    if (!task_should_compute_output(at)) continue;
    if (!is_self) {
      grad_inputs[at] = std::move(results[i]);
    } else if (results[i].defined()) {
      cresset::copy_(part, results[i]);
      grad_inputs[0] = whole;
    } else {
      cresset::zero_(part);
      grad_inputs[0] = whole;
    }
  }
  return grad_inputs;
}

void CopySlices::release_variables() {
  std::shared_ptr<Node> inner;
  {
    const SavedLock lock(*this);
    inner = std::move(fn);
  }
  detail::release_node(std::move(inner));
}

}  // namespace cresset::autograd
