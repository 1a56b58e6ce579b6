// The boxed fallback of the Autograd keys: an operator without an autograd kernel must not lose gradients silently.
#include <cresset/autograd/fallback.h>

#include <atomic>

#include <cresset/dispatch/library.h>

#include "autograd/generated_support.h"
#include "autograd/nodes.h"

namespace cresset::autograd {
namespace {

std::atomic<AutogradFallbackMode> mode{AutogradFallbackMode::Warn};

void warn_no_kernel(const std::string& op) {
  warn(op +
       ": an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. This may lead to silently "
       "incorrect behavior. If your operator is differentiable, register an autograd kernel to DispatchKey::Autograd or make it a "
       "CompositeImplicitAutograd operator. If it is not differentiable, or to squash this warning, register "
       "CppFunction::makeFallthrough() to "
       "DispatchKey::Autograd.");
}

struct WarnNotImplemented final : Node {
  WarnNotImplemented(std::string op, edge_list&& edges) : Node(std::move(edges)), op_(std::move(op)) {}
  std::string name() const override { return "WarnNotImplemented"; }

 protected:
  variable_list apply(variable_list&&) override {
    warn_no_kernel(op_);
    return variable_list(num_outputs());
  }

 private:
  std::string op_;
};

/// Calls f(tensor, index of the value) for every tensor among stack values, those in lists included.
template <class F>
void for_each_tensor(ArrayRef<IValue> values, const F& f) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const IValue& v = values[i];
    if (v.isTensor()) {
      f(v.toTensor(), i);
    } else if (v.isList()) {
      for (const IValue& e : v.toListRef())
        if (e.isTensor()) f(e.toTensor(), i);
    }
  }
}

/// Warns when a gradient of t is computed. The kernel may have recorded a graph of its own (composite code, a Function), which may be
/// right; a tensor that was written keeps the history it had. What was written through a view shows in its base, too.
void warn_in_backward(const Tensor& t, const std::string& op, bool written) {
  const auto hook = [op](const Tensor&) { warn_no_kernel(op); };
  if (t.requires_grad()) t.register_hook(hook);
  const DifferentiableViewMeta* view = impl::get_view_autograd_meta(t);
  if (written && view && view->has_bw_view())
    if (const Tensor base = view->backward_info().base; base.requires_grad()) base.register_hook(hook);
}

bool is_view(const Argument& result) { return result.alias && !result.is_mutable(); }

void run_without_kernel(AutogradFallbackMode now, const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  const FunctionSchema& schema = op.schema();
  const std::size_t count = schema.arguments().size();
  edge_list edges;
  bool any_requires_grad = false, any_tangent = false;
  if (now != AutogradFallbackMode::Nothing) {
    for_each_tensor(last(*stack, count), [&](const Tensor& t, std::size_t) {
      any_requires_grad |= compute_requires_grad(t);
      any_tangent |= any_fw_grad(t);
    });
    if (now == AutogradFallbackMode::Error && any_requires_grad)
      for_each_tensor(last(*stack, count), [&](const Tensor& t, std::size_t i) {
        if (schema.arguments()[i].is_mutable()) check_inplace(t, true);
      });
    if (any_requires_grad) for_each_tensor(last(*stack, count), [&](const Tensor& t, std::size_t) { detail::append_edges(edges, t); });
  }
  op.redispatchBoxed(ks & after_autograd_keyset, stack);
  if (!any_requires_grad && !any_tangent) return;

  const std::string name = str(op.operator_name());
  std::shared_ptr<Node> node;
  if (any_requires_grad && now == AutogradFallbackMode::Error)
    node = make_node<NotImplementedNode>(name, std::move(edges));
  else if (any_requires_grad)
    node = make_node<WarnNotImplemented>(name, std::move(edges));
  const auto& returns = schema.returns();
  for_each_tensor(last(*stack, returns.size()), [&](const Tensor& t, std::size_t i) {
    if (!t.defined() || !isDifferentiableType(t.scalar_type())) return;
    if (any_tangent && !any_fw_grad(t)) throw_error_no_forward_ad(name.c_str());
    if (!node) return;
    const bool written = returns[i].is_mutable();
    if (now == AutogradFallbackMode::Warn && (written || t.requires_grad())) {
      warn_in_backward(t, name, written);
      return;
    }
    // Views have their base's gradient until they get this node; what is written gets it whatever it required before. Of other results
    // that need a gradient the kernel recorded a graph of its own (composite code, a Function): it may be right.
    const bool takes_node = now == AutogradFallbackMode::Error && (written || is_view(returns[i]));
    if (t.requires_grad() && !takes_node) return;
    if (written) {
      check_inplace(t, true);
      rebase_history(t, make_node<NotImplementedNode>(name, edge_list(node->next_edges())));
    } else {
      set_history(t, node);
    }
  });
}

void autograd_fallback(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  run_without_kernel(mode.load(std::memory_order_relaxed), op, ks, stack);
}

}  // namespace

void autograd_not_implemented(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  run_without_kernel(AutogradFallbackMode::Error, op, ks, stack);
}

namespace {
/// The result that is a view of the first input; nothing where there is none.
std::optional<std::size_t> view_result(const OperatorHandle& op) {
  const auto& returns = op.schema().returns();
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < returns.size(); ++i) {
    if (!is_view(returns[i])) continue;
    CRESSET_CHECK(!found, op.operator_name(),
                  ": Expected only a single output in the operator schema to have a non-write alias annotation (i.e., 'Tensor(a)'). "
                  "Register it as a composite operator of operators with one view each.");
    found = i;
  }
  if (!found) return found;
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 1; i < arguments.size(); ++i)
    CRESSET_CHECK(!arguments[i].alias || arguments[i].is_mutable(), op.operator_name(),
                  ": can only create view relationships between the first input and the output; '", arguments[i].str(),
                  "' is another one.");
  return found;
}
}  // namespace

void autograd_not_implemented_inplace_or_view(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const std::optional<std::size_t> view = view_result(op);
  std::vector<Tensor> written;
  const ArrayRef<IValue> inputs = last(*stack, arguments.size());
  for_each_tensor(inputs, [&](const Tensor& t, std::size_t i) {
    if (arguments[i].is_mutable()) written.push_back(t);
  });
  const Tensor base = view && !inputs.empty() && inputs[0].isTensor() ? inputs[0].toTensor() : Tensor();
  {
    const AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(ks & after_ADInplaceOrView_keyset, stack);
  }
  for (const Tensor& t : written) increment_version(t);
  if (!view || !base.defined()) return;
  IValue& result = (*stack)[stack->size() - op.schema().returns().size() + *view];
  if (result.isTensor()) {
    result = as_view(base, result.toTensor(), true, true, no_replay);
  } else if (result.isTensorList()) {
    std::vector<Tensor> views = result.toTensorVector();
    as_view_list(base, views, true, true, [](std::size_t) { return no_replay(); });
    result = IValue(std::move(views));
  }
}

void set_autograd_fallback_mode(AutogradFallbackMode m) { mode = m; }
AutogradFallbackMode get_autograd_fallback_mode() { return mode; }

CRESSET_LIBRARY_IMPL(_, Autograd, m) {
  // Programs that compare tables of kernels know this one by PyTorch's name of the file.
  m.fallback(CppFunction::makeFromBoxedFunction<&autograd_fallback>().debug(
      "registered at src/autograd/fallback.cpp, which is PyTorch's VariableFallbackKernel.cpp"));
}

}  // namespace cresset::autograd
