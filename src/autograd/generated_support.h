// The contract between the code that tools/opgen generates for the Autograd and ADInplaceOrView keys and the hand-written
// part of autograd. In short, for an operator with a formula:
//
//   struct MulBackward0 final : Node {
//     using Node::Node;
//     std::string name() const override { return "MulBackward0"; }
//     void release_variables() override { const SavedLock lock(*this); self_.reset_data(); other_.reset_data(); released_ = true; }
//     variable_list apply(variable_list&& grads) override {
//       variable_list grad_inputs(2);
//       if (!any_grad_defined(grads)) return grad_inputs;
//       Tensor self, other;
//       { const SavedLock lock(*this); if (released_) raise_backward_twice();        // released_: only for saved lists and values
//         self = self_.unpack_in(*this); … }
//       const Tensor& grad = grads[0];                                               // several outputs: materialized(grads, i, *this)
//       if (task_should_compute_output(0)) grad_inputs[0] = <formula>;
//       …
//       return grad_inputs;
//     }
//     SavedVariable self_, other_;
//   };
//
//   Tensor mul(DispatchKeySet ks, const Tensor& self, const Tensor& other) {        // key Autograd
//     std::shared_ptr<MulBackward0> node;
//     if (compute_requires_grad(self, other)) {
//       node = make_node<MulBackward0>(collect_next_edges(self, other));             // one edge for each tensor, lists flattened
//       if (node->should_compute_output(1)) node->self_ = SavedVariable(self, false);
//       …
//     }
//     Tensor result = [&] { AutoDispatchBelowADInplaceOrView guard; return redispatch::mul(ks & after_autograd_keyset, self, other); }();
//     if (node) set_history(result, node);                                           // std::move(node) when nothing follows
//     if (any_fw_grad(self, other)) {
//       AutoFwGradMode off(false);                                                   // so that x_p is x itself
//       set_fw_grad(result, <jvp of fw_grad_or_zeros(self) …>, false);
//     }
//     if (node) node->result_ = SavedVariable(result, true);                         // with the tangent it has by now
//     return result;
//   }
//
// In place:  const bool req = compute_requires_grad(self, other); check_inplace(self, req);
//            a saved self that the formula needs from before is SavedVariable(self.clone(), false); the kernel runs;
//            if (node) rebase_history(self, node).
//            The tangent: compute it from fw_grad before the kernel ran where the formula mentions self, set with is_inplace = true.
//            Then a saved result is SavedVariable(self, true, self.is_view()).
// out=:      if (compute_requires_grad(all inputs and outs)) throw_error_out_requires_grad("add"); likewise throw_error_out_fw_grad;
//            then redispatch. One kernel for each signature does this, and the bumping of versions below (autograd/writing.h).
// View:      AutoDispatchBelowAutograd guard (so that ADInplaceOrView runs), then set_history as above.
// Key ADInplaceOrView:
//   view:     result = below ADInplaceOrView; return as_view(self, std::move(result), true, true,
//                      [&]() -> ViewReplay { return [size = size.vec()](const Tensor& base) { return base.view(size); }; });
//             lists of views: as_view_list(self, result, true, true, [&](std::size_t i) -> ViewReplay { … });
//             nondiff views (detach): as_view(self, std::move(result), false, false, no_replay)
//   in place: check_write(self); below ADInplaceOrView; increment_version(self);           out=: the same for each out.
// No formula and not nondiff: node = not_implemented_node("aten::name", collect_next_edges(all tensors)); forward mode:
//   throw_error_no_forward_ad("aten::name") when any_fw_grad(...).
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include <cresset/autograd/saved_values.h>
#include <cresset/autograd/saved_variable.h>
#include <cresset/autograd/variable.h>
#include <cresset/core/forward_levels.h>

namespace cresset::autograd {

// --- does it need recording? ------------------------------------------------------------------------------------------

namespace detail {
inline bool any_requires(const Tensor& t) { return impl::requires_grad(t); }
inline bool any_requires(const std::optional<Tensor>& t) { return t && impl::requires_grad(*t); }
inline bool any_requires(TensorList l) {
  for (const Tensor& t : l)
    if (impl::requires_grad(t)) return true;
  return false;
}
inline bool any_requires(OptionalTensorList l) {
  for (const auto& t : l)
    if (any_requires(t)) return true;
  return false;
}

CRESSET_API void append_edges(edge_list& edges, const Tensor& t);
CRESSET_API void append_edges(edge_list& edges, const std::optional<Tensor>& t);
CRESSET_API void append_edges(edge_list& edges, TensorList l);
CRESSET_API void append_edges(edge_list& edges, OptionalTensorList l);
CRESSET_API edge_list edges_of(std::initializer_list<const Tensor*> tensors);

CRESSET_API bool has_fw_grad(const Tensor& t);
inline bool any_fw(const Tensor& t) { return has_fw_grad(t); }
inline bool any_fw(const std::optional<Tensor>& t) { return t && has_fw_grad(*t); }
inline bool any_fw(TensorList l) {
  for (const Tensor& t : l)
    if (has_fw_grad(t)) return true;
  return false;
}
inline bool any_fw(OptionalTensorList l) {
  for (const auto& t : l)
    if (any_fw(t)) return true;
  return false;
}
}  // namespace detail

// Tensors that have no memory of their own have no strides.
inline DimVector strides_or_none(const Tensor& t) { return t.has_storage() ? DimVector(t.strides()) : DimVector(); }

/// Is grad mode on and does any argument require grad? Arguments: Tensor, optional<Tensor>, TensorList, OptionalTensorList.
template <class... Args>
bool compute_requires_grad(const Args&... args) {
  return GradMode::is_enabled() && (detail::any_requires(args) || ...);
}

/// One edge for each tensor, lists flattened in order; invalid edges for tensors that do not require grad.
template <class... Args>
edge_list collect_next_edges(const Args&... args) {
  if constexpr ((std::is_same_v<Args, Tensor> && ...)) {
    return detail::edges_of({&args...});
  } else {
    edge_list edges;
    (detail::append_edges(edges, args), ...);
    return edges;
  }
}

// --- connecting results -------------------------------------------------------------------------------------------------

/// Makes t the next output of the node. Results of integral type stay outside of the graph.
CRESSET_API void set_history(const Tensor& t, const std::shared_ptr<Node>& node);
CRESSET_API void set_history(const Tensor& t, std::shared_ptr<Node>&& node);
template <class T>
void set_history(const Tensor& t, const std::shared_ptr<T>& node) {
  set_history(t, std::shared_ptr<Node>(node));
}
template <class T>
void set_history(const Tensor& t, std::shared_ptr<T>&& node) {
  set_history(t, std::shared_ptr<Node>(std::move(node)));
}
/// The same for each tensor of a list; undefined tensors take a number too.
template <class T>
void set_history(const std::vector<Tensor>& list, const std::shared_ptr<T>& node) {
  for (const Tensor& t : list) set_history(t, std::shared_ptr<Node>(node));
}

/// After an in-place change: self is now the next output of the node; a view's base is rebased.
CRESSET_API void rebase_history(const Tensor& self, std::shared_ptr<Node> node);
CRESSET_API void rebase_history(TensorList list, const std::shared_ptr<Node>& node);

/// Raises when self must not be changed in place: a leaf that requires grad, or a view whose history could not be kept.
CRESSET_API void check_inplace_slow(const Tensor& self, bool any_requires_grad);
inline void check_inplace(const Tensor& self, bool any_requires_grad) {
  if (any_requires_grad) check_inplace_slow(self, any_requires_grad);
}
inline void check_inplace(TensorList list, bool any_requires_grad) {
  for (const Tensor& t : list) check_inplace(t, any_requires_grad);
}

/// The data of t will be changed: refused for inference tensors outside of inference mode.
inline void check_write(const Tensor& t) { t.unsafeGetTensorImpl()->check_write(); }
inline void check_write(TensorList list) {
  for (const Tensor& t : list) check_write(t);
}
/// The data of t has changed.
inline void increment_version(const Tensor& t) { t.unsafeGetTensorImpl()->bump_version(); }
inline void increment_version(TensorList list) {
  for (const Tensor& t : list) increment_version(t);
}

[[noreturn]] CRESSET_API void throw_error_out_requires_grad(const char* name);
[[noreturn]] CRESSET_API void throw_error_out_fw_grad(const char* name);
/// NotImplementedError: "Trying to use forward AD with NAME that does not support it because …".
[[noreturn]] CRESSET_API void throw_error_no_forward_ad(const char* name);
/// A node that raises `derivative for NAME is not implemented` when backward reaches it.
CRESSET_API std::shared_ptr<Node> not_implemented_node(const char* name, edge_list&& next_edges);
/// Lets a leaf have a new accumulator (its sizes or dtype changed).
CRESSET_API void reset_grad_accumulator(const Tensor& self);

// --- views ----------------------------------------------------------------------------------------------------------------

/// For views that need no replay function.
inline ViewReplay no_replay() { return {}; }

/// Marks result as a view of base. make_replay() is called only when as_strided cannot rebuild the view.
template <class MakeReplay>
Tensor as_view(const Tensor& base, Tensor result, bool bw_differentiable, bool fw_differentiable, const MakeReplay& make_replay,
               CreationMeta creation_meta = creation_meta_now()) {
  if (!(bw_differentiable || fw_differentiable)) {
    // What is detached from an inference tensor outside of inference mode counts for itself.
    if (CRESSET_UNLIKELY(base.is_inference()) && !InferenceMode::is_enabled()) result.unsafeGetTensorImpl()->new_version_counter();
    return result;
  }
  if (CRESSET_UNLIKELY(base.is_inference() || result.is_inference())) return result;
  ViewReplay replay;
  if (CRESSET_UNLIKELY(view_needs_replay(base, result))) replay = make_replay();
  return make_variable_differentiable_view(base, std::move(result), bw_differentiable, fw_differentiable, std::move(replay), creation_meta);
}

/// The same for several views made by one call; they may not be changed in place while recorded. make_replay(i) replays result i.
template <class MakeReplay>
void as_view_list(const Tensor& base, std::vector<Tensor>& results, bool bw_differentiable, bool fw_differentiable,
                  const MakeReplay& make_replay, CreationMeta creation_meta = creation_meta_now(CreationMeta::MULTI_OUTPUT_NODE)) {
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = as_view(base, std::move(results[i]), bw_differentiable, fw_differentiable, [&] { return make_replay(i); }, creation_meta);
}

// --- saved lists, gradients of apply() ----------------------------------------------------------------------------------

CRESSET_API std::vector<SavedVariable> make_saved_variable_list(TensorList list, bool is_output = false);
CRESSET_API std::vector<SavedVariable> make_saved_variable_list(OptionalTensorList list, bool is_output = false);
CRESSET_API std::vector<Tensor> unpack_list(const std::vector<SavedVariable>& saved, Node& node);
CRESSET_API std::vector<std::optional<Tensor>> unpack_opt_list(const std::vector<SavedVariable>& saved, Node& node);
/// An optional tensor that was saved: nullopt when there was none.
CRESSET_API std::optional<Tensor> unpack_opt(const SavedVariable& saved, Node& node);
inline void reset_saved_list(std::vector<SavedVariable>& saved) {
  for (SavedVariable& s : saved) s.reset_data();
}

/// A saved value that is no tensor, for a visitor; None for what Python has no word for.
template <class T>
IValue saved_value(const T& value) {
  if constexpr (std::is_same_v<T, std::size_t>)
    return static_cast<int64_t>(value);
  else if constexpr (std::is_convertible_v<const T&, IValue>)
    return value;
  else
    return {};
}
inline IValue saved_value(const DimVector& sizes) { return IntArrayRef(sizes); }
inline IValue saved_value(const std::vector<DimVector>& list) {
  std::vector<std::vector<int64_t>> out;
  out.reserve(list.size());
  for (const DimVector& sizes : list) out.emplace_back(sizes.begin(), sizes.end());
  return out;
}

inline bool any_grad_defined(const variable_list& grads) {
  for (const Tensor& g : grads)
    if (g.defined()) return true;
  return false;
}
/// grads[i], or zeros that fit output i of the node when no gradient came.
CRESSET_API Tensor materialized(const variable_list& grads, std::size_t i, const Node& node);
/// Puts the gradients of a list argument into their range of apply()'s result.
CRESSET_API void copy_range(variable_list& out, IndexRange range, TensorList values);
inline void copy_range(variable_list& out, IndexRange range, const Tensor& value) { out[range.first] = value; }

// --- forward mode -----------------------------------------------------------------------------------------------------------

inline bool forward_mode_is_on() {
  return CRESSET_UNLIKELY(cresset::detail::forward_levels.load(std::memory_order_relaxed) != 0) &&
         cresset::detail::grad_mode_state.forward_grad;
}
/// Does any argument carry a tangent (and is forward mode on)?
template <class... Args>
bool any_fw_grad(const Args&... args) {
  return forward_mode_is_on() && (detail::any_fw(args) || ...);
}
/// The tangent, undefined when there is none.
CRESSET_API Tensor fw_grad(const Tensor& t);
inline Tensor fw_grad(const std::optional<Tensor>& t) { return t ? fw_grad(*t) : Tensor(); }
/// The tangent, or zeros of the primal's shape.
CRESSET_API Tensor fw_grad_or_zeros(const Tensor& t);
inline Tensor fw_grad_or_zeros(const std::optional<Tensor>& t) { return t ? fw_grad_or_zeros(*t) : Tensor(); }
CRESSET_API std::vector<Tensor> fw_grad_or_zeros(TensorList list);
/// Gives t a tangent of the same shape (an undefined one is ignored). is_inplace: t existed and was changed; views then
/// give their base a tangent too.
CRESSET_API void set_fw_grad(const Tensor& t, const Tensor& tangent, bool is_inplace);
CRESSET_API void set_fw_grad(TensorList list, TensorList tangents, bool is_inplace);
/// sum += t, where either may be undefined.
CRESSET_API void add_tangent(Tensor& sum, const Tensor& t);

// --- what formulas save ---------------------------------------------------------------------------------------------------

CRESSET_API std::vector<DimVector> sizes_of(TensorList list);
CRESSET_API std::vector<ScalarType> scalar_types_of(TensorList list);

}  // namespace cresset::autograd
