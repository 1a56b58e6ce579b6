// Forward mode: the level, tangents of tensors, of views and of tensors changed in place.
#include <cresset/autograd/forward_ad.h>
#include <cresset/base/fork.h>

#include <mutex>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

#include "autograd/elements_apart.h"
#include "autograd/generated_support.h"
#include "autograd/nodes.h"
#include "batching/batched_tensor.h"
#include "core/traced_alias.h"

namespace cresset::autograd {

namespace {
struct Level {
  ForkSafe<std::mutex> mutex;
  std::vector<std::weak_ptr<ForwardGrad>> tangents;
  std::size_t sweep_at = 1024;
};
Level& level_state() {
  static auto* level = new Level();
  return *level;
}

/// Remembers a tangent so that the end of the level frees it.
void remember(const std::shared_ptr<ForwardGrad>& g) {
  Level& level = level_state();
  std::lock_guard<std::mutex> lock(level.mutex);
  if (level.tangents.size() >= level.sweep_at) {
    std::erase_if(level.tangents, [](const auto& w) { return w.expired(); });
    level.sweep_at = std::max<std::size_t>(1024, level.tangents.size() * 2);
  }
  level.tangents.push_back(g);
}

const ForwardGrad* tangent_slot(const Tensor& t) {
  const AutogradMeta* meta = impl::get_autograd_meta(t);
  return meta && meta->fw_grad_ && meta->fw_grad_->value.defined() ? meta->fw_grad_.get() : nullptr;
}

/// A view shows its base's tangent, looked at in the same way.
Tensor tangent_of(const Tensor& t) {
  if (const ForwardGrad* own = tangent_slot(t)) return own->value;
  DifferentiableViewMeta* view = impl::get_view_autograd_meta(t);
  if (!view || !view->has_fw_view()) return Tensor();
  const ViewInfo& info = view->forward_info();
  const ForwardGrad* of_base = tangent_slot(info.base);
  if (!of_base) return Tensor();
  AutoFwGradMode off(false);
  Tensor tangent = ViewGeometry(info, t).of(of_base->value);
  view->fw_grad_ = std::make_shared<ForwardGrad>(ForwardGrad{tangent});
  remember(view->fw_grad_);
  return tangent;
}

/// Would a change of t's tangent in place reach memory that somebody else sees?
bool is_shared(const Tensor& tangent) {
  const AutogradMeta* meta = impl::get_autograd_meta(tangent);
  return (meta && meta->is_tangent_) || (tangent.has_storage() && tangent.unsafeGetTensorImpl()->unsafe_storage().use_count() > 1);
}

void store_tangent(const Tensor& t, Tensor tangent) {
  impl::materialize_autograd_meta(tangent)->is_tangent_ = true;
  AutogradMeta* meta = impl::materialize_autograd_meta(t);
  meta->fw_grad_ = std::make_shared<ForwardGrad>(ForwardGrad{std::move(tangent)});
  remember(meta->fw_grad_);
}

bool same_layout(const Tensor& tangent, const Tensor& primal) {
  if (!tangent.has_storage() || !primal.has_storage()) return true;
  for (int64_t d = 0; d < primal.dim(); ++d)
    if (primal.size(d) > 1 && tangent.stride(d) != primal.stride(d)) return false;
  return true;
}

/// Zeros with the primal's strides.
Tensor zeros_with_layout(const Tensor& primal, const TensorOptions& options) {
  if (primal.has_storage() && primal.is_non_overlapping_and_dense()) {
    Tensor z = cresset::empty_strided(primal.sizes(), primal.strides(), options);
    cresset::zero_(z);
    return z;
  }
  if (primal.has_storage() && primal.numel() > 0) {
    // Gaps in the primal's memory are kept, for views of it find their tangents by the same strides.
    int64_t extent = 1;
    for (int64_t d = 0; d < primal.dim(); ++d) extent += (primal.size(d) - 1) * primal.stride(d);
    if (elements_apart(primal))
      return detach_shared(cresset::as_strided(cresset::zeros({extent}, options), primal.sizes(), primal.strides()));
  }
  return cresset::zeros(primal.sizes(), options);
}
}  // namespace

namespace detail {
bool has_fw_grad(const Tensor& t) { return t.defined() && tangent_of(t).defined(); }
}  // namespace detail

Tensor fw_grad(const Tensor& t) { return t.defined() ? tangent_of(t) : Tensor(); }

Tensor fw_grad_or_zeros(const Tensor& t) {
  if (!t.defined()) return Tensor();
  Tensor tangent = tangent_of(t);
  if (tangent.defined()) return tangent;
  // Formulas subtract, which bools cannot.
  return cresset::zeros(t.sizes(), t.scalar_type() == kBool ? t.options().dtype(kByte) : t.options());
}

std::vector<Tensor> fw_grad_or_zeros(TensorList list) {
  std::vector<Tensor> r;
  r.reserve(list.size());
  for (const Tensor& t : list) r.push_back(fw_grad_or_zeros(t));
  return r;
}

namespace {
/// keep: the tangent itself shall be kept where its layout allows, though others see it.
void set_tangent(const Tensor& t, const Tensor& tangent, bool is_inplace, bool keep) {
  if (!t.defined() || !tangent.defined() || cresset::detail::forward_levels.load(std::memory_order_relaxed) == 0) return;
  if (!isDifferentiableType(t.scalar_type())) return;
  CRESSET_CHECK(t.sizes() == tangent.sizes(),
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                "Tensor is of size ",
                t.sizes(), " while the given forward gradient is of size ", tangent.sizes(), ".");
  CRESSET_CHECK(!tangent_slot(tangent), "Setting a forward grad that itself has a forward gradient at the same level0 is not supported.");
  CRESSET_CHECK(
      !cresset::detail::trace_runs(),
      "A trace cannot follow tangents of forward mode: they are computed inside of the operators that it records. Trace a function "
      "that computes the derivative with autograd.grad, or record it with make_fx.");
  const AutoFwGradMode off(false);
  if (is_inplace) {
    // The tensor keeps the tangent object it has: views of it see the change.
    if (Tensor existing = tangent_of(t); existing.defined()) {
      if (!existing.is_same(tangent)) {
        if (existing.sizes() != t.sizes()) {
          store_tangent(t, tangent);  // transpose_ and its like gave the tensor itself other sizes
        } else if (GradMode::is_enabled() && (tangent.requires_grad() || existing.requires_grad()) && existing.is_leaf() &&
                   existing.requires_grad()) {
          store_tangent(t, tangent);
        } else {
          cresset::copy_(existing, tangent);
        }
      }
      return;
    }
    DifferentiableViewMeta* view = impl::get_view_autograd_meta(t);
    if (view && view->has_fw_view()) {
      // The base becomes dual: zeros outside of the view.
      const ViewInfo info = view->forward_info();
      Tensor whole = zeros_with_layout(
          info.base, info.base.options().dtype(tangent.scalar_type() == t.scalar_type() ? info.base.scalar_type() : tangent.scalar_type()));
      Tensor part = ViewGeometry(info, t).of(whole);
      cresset::copy_(part, tangent);
      store_tangent(info.base, whole);
      view->fw_grad_.reset();
      return;
    }
  } else if (const DifferentiableViewMeta* view = impl::get_view_autograd_meta(t);
             view && view->has_fw_view() && tangent_slot(view->forward_info().base)) {
    // A view made by an operator: its tangent is the same view of the base's tangent.
    store_tangent(t, tangent);
    return;
  }
  if (same_layout(tangent, t) && (keep || !is_shared(tangent))) {
    store_tangent(t, tangent);
    return;
  }
  Tensor copy = zeros_with_layout(t, t.options().dtype(tangent.scalar_type()));
  cresset::copy_(copy, tangent);
  store_tangent(t, std::move(copy));
}

}  // namespace

void set_fw_grad(const Tensor& t, const Tensor& tangent, bool is_inplace) {
  // Python's numbers do not decide types; as operands of a formula they are tensors that do (1j: complex128).
  const bool other = t.defined() && tangent.defined() && t.scalar_type() != tangent.scalar_type() && isDifferentiableType(t.scalar_type());
  if (CRESSET_LIKELY(!other || (tangent.is_complex() && !t.is_complex()))) return set_tangent(t, tangent, is_inplace, false);
  const AutoFwGradMode off(false);
  set_tangent(t, tangent.to(t.scalar_type()), is_inplace, false);
}

void set_fw_grad(TensorList list, TensorList tangents, bool is_inplace) {
  for (std::size_t i = 0; i < list.size(); ++i) set_fw_grad(list[i], tangents[i], is_inplace);
}

namespace forward_ad {

void keep_tangent(const Tensor& t, const Tensor& tangent) { set_tangent(t, tangent, false, true); }

int64_t enter_dual_level() {
  int expected = 0;
  CRESSET_CHECK(cresset::detail::forward_levels.compare_exchange_strong(expected, 1),
                "Nested forward mode AD is not supported at the moment");
  return 0;
}

namespace {
void close_level() {
  Level& state = level_state();
  std::vector<std::weak_ptr<ForwardGrad>> tangents;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    tangents.swap(state.tangents);
  }
  for (const auto& w : tangents)
    if (const auto g = w.lock()) g->value = Tensor();
  cresset::detail::forward_levels = 0;
}
}  // namespace

void exit_dual_level(int64_t level) {
  CRESSET_CHECK(cresset::detail::forward_levels.load() == 1 && (level == -1 || level == 0),
                "Trying to exit a forward AD level that was not the last one that was created. This is not supported.");
  close_level();
}

DualLevel::~DualLevel() {
  if (current_level() == level_) close_level();
}

int64_t current_level() { return cresset::detail::forward_levels.load(std::memory_order_relaxed) - 1; }

Tensor tangent(const Tensor& t) { return batching::is_batched(t) ? batching::wrap_like(fw_grad(batching::physical(t)), t) : fw_grad(t); }

Tensor primal(const Tensor& t) {
  return batching::is_batched(t) ? batching::wrap_like(alias_of(batching::physical(t), false), t) : alias_of(t, false);
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent, int64_t level) {
  CRESSET_CHECK(current_level() >= 0,
                "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.");
  CRESSET_CHECK(level <= 0, "Nested forward mode AD is not supported at the moment");
  CRESSET_CHECK_VALUE(isDifferentiableType(primal.scalar_type()), "Expected primal to be floating point or complex, but got: torch.",
                      dtype_name(primal.scalar_type()));
  CRESSET_CHECK_VALUE(isDifferentiableType(tangent.scalar_type()), "Expected tangent to be floating point or complex, but got: torch.",
                      dtype_name(tangent.scalar_type()));
  if (batching::is_batched(primal) || batching::is_batched(tangent)) {
    CRESSET_CHECK(primal.sizes() == tangent.sizes(),
                  "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                  "Tensor is of size ",
                  primal.sizes(), " while the given forward gradient is of size ", tangent.sizes(), ".");
    // A tangent sits on a physical tensor and is physical itself: the primal is batched wherever the tangent is.
    const Tensor wide = batching::batched_as(primal, tangent);
    return batching::wrap_like(make_dual(batching::physical(wide), batching::to_physical_of(tangent, wide), level), wide);
  }
  CRESSET_CHECK(!fw_grad(primal).defined(),
                "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported.");
  CRESSET_CHECK(!primal.is_inference() && !tangent.is_inference(),
                "Expected both tensors to be normal tensors, but an inference tensor was given.");
  Tensor dual = alias_of(primal, false);
  set_tangent(dual, tangent, false, true);
  return dual;
}

std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, int64_t level) {
  CRESSET_CHECK(level <= 0, "Nested forward mode AD is not supported at the moment");
  if (current_level() < 0) return {t, Tensor()};
  return {primal(t), tangent(t)};
}

}  // namespace forward_ad
}  // namespace cresset::autograd
