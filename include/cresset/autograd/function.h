// Function<T>: an operation with a hand-written gradient, in C++.
//
//   struct Mul : cresset::autograd::Function<Mul> {
//     static Tensor forward(AutogradContext* ctx, const Tensor& a, double by) { ctx->saved_data["by"] = by; return a * by; }
//     static tensor_list backward(AutogradContext* ctx, tensor_list grads) { return {grads[0] * ctx->saved_data["by"].toDouble(),
//     Tensor()}; }
//   };
//   Tensor y = Mul::apply(x, 2.0);
// backward gives one gradient for each argument of forward; undefined for arguments that are not tensors. An optional
// static jvp(ctx, tangents) gives the tangents of the outputs in forward mode.
#pragma once

#include <string>
#include <type_traits>
#include <unordered_map>

#include <cresset/autograd/custom_function.h>
#include <cresset/autograd/variable.h>
#include <cresset/dispatch/ivalue.h>

namespace cresset::autograd {

/// What forward passes to backward.
struct CRESSET_API AutogradContext {
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;

  /// Keeps inputs or outputs of forward for backward. Anything else goes into saved_data.
  void save_for_backward(variable_list to_save) { to_save_ = std::move(to_save); }
  /// The tensors saved; raises when one was changed in place since, or after their release.
  variable_list get_saved_variables() const;
  /// Declares inputs that forward changed in place.
  void mark_dirty(const variable_list& inputs) {
    for (const Tensor& t : inputs) marks_.dirty.push_back(t.unsafeGetTensorImpl());
  }
  void set_return(const variable_list&) {}
  /// Declares outputs that have no gradient.
  void mark_non_differentiable(const variable_list& outputs) {
    for (const Tensor& t : outputs) marks_.non_differentiable.push_back(t.unsafeGetTensorImpl());
  }
  /// With false, gradients that did not arrive are undefined in backward instead of zeros.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  /// Is the gradient of the i-th tensor argument wanted?
  bool needs_input_grad(std::size_t i) const;
  bool needs_input_grad(std::initializer_list<IndexRange> ranges) const;

  /// Numbers, strings, lists … for backward.
  std::unordered_map<std::string, IValue> saved_data;

 private:
  template <class T>
  friend class Function;
  template <class T>
  friend struct CppNode;
  void save_variables(const std::shared_ptr<Node>& node);

  CustomFunctionMarks marks_;
  variable_list to_save_;
  std::vector<SavedVariable> saved_variables_;
  std::weak_ptr<Node> grad_fn_;
  bool materialize_grads_ = true;
  bool has_freed_buffers_ = false;
};

/// The node of a Function.
template <class T>
struct CppNode final : Node {
  CppNode() = default;
  std::string name() const override;
  void release_variables() override {
    const SavedLock lock(*this);
    ctx_.saved_variables_.clear();
    ctx_.has_freed_buffers_ = true;
  }

  AutogradContext ctx_;
  std::vector<bool> is_tensor_;         // by argument of forward
  std::vector<InputMetadata> outputs_;  // for zeros

 protected:
  variable_list apply(variable_list&& grads) override {
    if (ctx_.materialize_grads_)
      for (std::size_t i = 0; i < grads.size() && i < outputs_.size(); ++i)
        if (!grads[i].defined() && !outputs_[i].was_default_constructed()) grads[i] = outputs_[i].zeros_like();
    return check_custom_gradients(*this, T::backward(&ctx_, std::move(grads)), is_tensor_);
  }
};

namespace detail {
CRESSET_API std::string demangle(const char* name);

template <class A>
void collect_tensor(variable_list& inputs, std::vector<bool>& is_tensor, const A& arg) {
  if constexpr (std::is_convertible_v<const A&, const Tensor&>) {
    inputs.push_back(arg);
    is_tensor.push_back(true);
  } else if constexpr (std::is_same_v<A, std::optional<Tensor>>) {
    if (arg && arg->defined()) inputs.push_back(*arg);
    is_tensor.push_back(arg && arg->defined());
  } else if constexpr (std::is_same_v<A, variable_list> || std::is_same_v<A, TensorList>) {
    for (const Tensor& t : arg) collect_tensor(inputs, is_tensor, t);
  } else {
    is_tensor.push_back(false);
  }
}
inline variable_list to_list(const Tensor& t) { return {t}; }
inline const variable_list& to_list(const variable_list& l) { return l; }
template <class... T>
variable_list to_list(const std::tuple<T...>& t) {
  return std::apply([](const auto&... x) { return variable_list{x...}; }, t);
}
inline void from_list(Tensor& out, variable_list&& l) { out = std::move(l[0]); }
inline void from_list(variable_list& out, variable_list&& l) { out = std::move(l); }
template <class... T>
void from_list(std::tuple<T...>& out, variable_list&& l) {
  std::size_t i = 0;
  std::apply([&](auto&... x) { ((x = std::move(l[i++])), ...); }, out);
}
}  // namespace detail

template <class T>
std::string CppNode<T>::name() const {
  return detail::demangle(typeid(CppNode<T>).name());
}

/// Base of custom Functions: derive with T = the class itself and call T::apply.
template <class T>
class Function {
 public:
  /// Runs T::forward(ctx, args...) unrecorded and connects its result (Tensor, tensor_list or tuple of tensors) to T::backward.
  template <class X = T, class... Args>
  static auto apply(Args&&... args) {
    auto node = make_node<CppNode<T>>();
    variable_list inputs;
    inputs.reserve(sizeof...(Args));
    node->is_tensor_.reserve(sizeof...(Args));
    (detail::collect_tensor(inputs, node->is_tensor_, args), ...);
    bool executable = false;
    if (GradMode::is_enabled())
      for (const Tensor& t : inputs) executable |= impl::requires_grad(t);
    edge_list edges;
    for (const Tensor& t : inputs) {
      if (executable && impl::requires_grad(t))
        edges.push_back(impl::gradient_edge(t));
      else
        edges.emplace_back();
    }
    node->set_next_edges(std::move(edges));
    node->ctx_.grad_fn_ = node;

    using Result = std::decay_t<decltype(X::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...))>;
    Result result;
    {
      const AutoGradMode no_grad(false);
      const AutoFwGradMode no_forward(false);
      result = X::forward(&node->ctx_, std::forward<Args>(args)...);
    }
    CustomJvp jvp;
    if constexpr (requires(AutogradContext* ctx, variable_list tangents) { X::jvp(ctx, std::move(tangents)); }) {
      jvp = [&node, &inputs](variable_list tangents) {
        if (node->ctx_.materialize_grads_)
          for (std::size_t i = 0; i < tangents.size(); ++i)
            if (!tangents[i].defined()) tangents[i] = InputMetadata(inputs[i]).zeros_like();
        return detail::to_list(X::jvp(&node->ctx_, std::move(tangents)));
      };
    }
    const std::shared_ptr<Node> recorded = executable ? std::shared_ptr<Node>(node) : nullptr;
    variable_list outputs = wrap_outputs(inputs, node->ctx_.marks_, detail::to_list(result), recorded, jvp);
    node->outputs_.reserve(outputs.size());
    for (const Tensor& t : outputs) node->outputs_.emplace_back(t);
    if (executable)
      node->ctx_.save_variables(node);
    else
      node->ctx_.to_save_.clear();
    detail::from_list(result, std::move(outputs));
    return result;
  }
};

}  // namespace cresset::autograd
