// backward and grad: argument checks, implicit gradients, then the engine.
#include <cresset/autograd/autograd.h>

#include <cresset/autograd/variable.h>
#include <cresset/base/warn_always.h>
#include <cresset/ops/functions_creation.h>

#include "autograd/nodes.h"

namespace cresset::autograd {

namespace {

/// Checks the gradients that the caller gave and makes the missing ones.
variable_list make_grads(const variable_list& outputs, const variable_list& grads) {
  variable_list result;
  result.reserve(outputs.size());
  CRESSET_CHECK(grads.empty() || grads.size() == outputs.size(), "got ", outputs.size(), " tensors and ", grads.size(), " gradients");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    if (!grads.empty() && grads[i].defined()) {
      const Tensor& g = grads[i];
      CRESSET_CHECK(g.sizes() == out.sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of torch.Size(", g.sizes(),
                    ") and output[", i, "] has a shape of torch.Size(", out.sizes(), ").");
      CRESSET_CHECK(g.is_complex() == out.is_complex(),
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[",
                    i, "] has a dtype of torch.", dtype_name(g.scalar_type()), " and output[", i, "] has a dtype of torch.",
                    dtype_name(out.scalar_type()), ".");
      result.push_back(g);
    } else if (out.defined() && out.requires_grad()) {
      CRESSET_CHECK(out.numel() == 1, "grad can be implicitly created only for scalar outputs");
      CRESSET_CHECK(out.is_floating_point(), "grad can be implicitly created only for real scalar outputs but got torch.",
                    dtype_name(out.scalar_type()));
      NoGradGuard no_grad;
      // Classes, modes and profiles that see operators get the one that keeps the class; so do devices, which may have a kernel for it.
      constexpr uint64_t listeners = (DispatchKeySet(DispatchKey::Python) | DispatchKeySet(DispatchKey::PreDispatch)).raw_repr();
      const bool seen = !out.is_cpu() || out.key_set().has(DispatchKey::Python) || (cresset::detail::local_keys.included & listeners) != 0;
      result.push_back(seen ? cresset::ones_like(out, {}, {}, {}, false, MemoryFormat::Preserve)
                            : cresset::ones(out.sizes(), out.options()));
    } else {
      result.emplace_back();
    }
  }
  return result;
}

}  // namespace

variable_list run_backward(const variable_list& outputs, const variable_list& grad_outputs, bool keep_graph, bool create_graph,
                           const variable_list& inputs, bool allow_unused, bool accumulate_grad) {
  edge_list roots;
  roots.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CRESSET_CHECK(outputs[i].defined() && outputs[i].requires_grad(), "element ", i,
                  " of tensors does not require grad and does not have a grad_fn");
    roots.push_back(impl::gradient_edge(outputs[i]));
  }
  edge_list targets;
  targets.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    if (accumulate_grad && input.defined()) input.retain_grad();
    CRESSET_CHECK(input.defined() && input.requires_grad(), "One of the differentiated Tensors does not require grad");
    const std::shared_ptr<Node>& fn = input.grad_fn();
    std::shared_ptr<Node> node = fn ? fn : accumulate_grad ? impl::grad_accumulator(input) : impl::try_get_grad_accumulator(input);
    if (!node)
      targets.emplace_back(make_node<Identity>(), 0);
    else
      targets.emplace_back(std::move(node), static_cast<uint32_t>(input.output_nr()));
  }
  return run_backward(roots, variable_list(grad_outputs), keep_graph, create_graph, targets, allow_unused, accumulate_grad);
}

variable_list run_backward(const edge_list& roots, variable_list&& grad_outputs, bool keep_graph, bool create_graph,
                           const edge_list& inputs, bool allow_unused, bool accumulate_grad) {
  if (create_graph && accumulate_grad)
    CRESSET_WARN_FIRST(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a "
        "memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure "
        "to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak.");
  variable_list grads = Engine::get_default_engine().execute(
      roots, std::move(grad_outputs), {.keep_graph = keep_graph, .create_graph = create_graph, .accumulate_grad = accumulate_grad}, inputs);
  if (!inputs.empty() && !accumulate_grad)
    for (std::size_t i = 0; i < inputs.size(); ++i)
      CRESSET_CHECK(allow_unused || grads[i].defined(), "The differentiated Tensor at index ", i,
                    " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
  return grads;
}

void backward(const variable_list& tensors, const variable_list& grad_tensors, std::optional<bool> retain_graph, bool create_graph,
              const variable_list& inputs) {
  for (const Tensor& t : tensors)
    CRESSET_CHECK(
        !t.key_set().has(DispatchKey::FuncTorchBatched),
        "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead "
        "or call backward() outside of functorch transforms.");
  run_backward(tensors, make_grads(tensors, grad_tensors), retain_graph.value_or(create_graph), create_graph, inputs, true, true);
}

variable_list grad(const variable_list& outputs, const variable_list& inputs, const variable_list& grad_outputs,
                   std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  CRESSET_CHECK(!inputs.empty(), "grad requires non-empty inputs.");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    CRESSET_CHECK(inputs[i].defined() && inputs[i].requires_grad(), "element ", i, " of the input tensors does not require grad");
  return run_backward(outputs, make_grads(outputs, grad_outputs), retain_graph.value_or(create_graph), create_graph, inputs, allow_unused,
                      false);
}

}  // namespace cresset::autograd
