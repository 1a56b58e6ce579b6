// Derivatives of functions of possibly batched tensors.
#include "autograd/transforms.h"

#include <unordered_set>

#include <cresset/autograd/autograd.h>
#include <cresset/autograd/forward_ad.h>
#include <cresset/autograd/variable.h>
#include <cresset/ops/functions_view.h>

#include "autograd/generated_support.h"
#include "autograd/nodes.h"
#include "batching/batched_tensor.h"

namespace cresset::autograd::transforms {

using batching::physical;

namespace {

/// The leaves among inputs, by the nodes that would add to their .grad.
std::unordered_set<const Node*> own_leaves(const variable_list& inputs) {
  std::unordered_set<const Node*> own;
  for (const Tensor& input : inputs) {
    const Tensor t = physical(input);
    if (!t.defined() || t.grad_fn()) continue;
    if (const auto node = impl::try_get_grad_accumulator(t)) own.insert(node.get());
  }
  return own;
}

bool reaches_others(const Tensor& t, const std::unordered_set<const Node*>& own) {
  if (!impl::requires_grad(t)) return false;
  const Edge root = impl::gradient_edge(t);
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack{root.function.get()};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (own.count(node) || !seen.insert(node).second) continue;
    if (dynamic_cast<const AccumulateGrad*>(node)) return true;
    for (const Edge& e : node->next_edges())
      if (e.is_valid()) stack.push_back(e.function.get());
  }
  return false;
}

}  // namespace

Tensor fresh_input(const Tensor& given) {
  const Tensor t = batching::batched_everywhere(given);
  // A tensor of inference mode has no place for history: a copy stands for it.
  const Tensor inner = physical(t).is_inference() ? physical(t).clone() : physical(t);
  if (GradMode::is_enabled() && impl::requires_grad(inner)) return batching::wrap_like(alias_of(inner, true), t);
  Tensor leaf = detach_shared(inner);
  if (any_fw_grad(inner)) forward_ad::keep_tangent(leaf, fw_grad(inner));
  leaf.requires_grad_();
  return batching::wrap_like(leaf, t);
}

bool depends_on_others(const variable_list& tensors, const variable_list& inputs) {
  const auto own = own_leaves(inputs);
  for (const Tensor& t : tensors)
    if (t.defined() && reaches_others(physical(t), own)) return true;
  return false;
}

Tensor without_own_history(const Tensor& t, const variable_list& inputs, bool always) {
  const Tensor inner = physical(t);
  if (!impl::requires_grad(inner) || (!always && reaches_others(inner, own_leaves(inputs)))) return t;
  Tensor cut = detach_shared(inner);
  if (any_fw_grad(inner)) forward_ad::keep_tangent(cut, fw_grad(inner));
  return batching::wrap_like(cut, t);
}

bool is_recorded(const Tensor& t) { return impl::requires_grad(physical(t)); }

variable_list gradients(const variable_list& outputs, const variable_list& inputs, const variable_list& grads, bool keep_graph,
                        bool create_graph) {
  variable_list roots, starts, targets;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor inner = physical(outputs[i]);
    if (!impl::requires_grad(inner) || !grads[i].defined()) continue;
    CRESSET_CHECK(grads[i].sizes() == outputs[i].sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of torch.Size(",
                  grads[i].sizes(), ") and output[", i, "] has a shape of torch.Size(", outputs[i].sizes(), ").");
    roots.push_back(inner);
    starts.push_back(batching::to_physical_of(grads[i], outputs[i]));
  }
  for (const Tensor& input : inputs) targets.push_back(physical(input));
  if (roots.empty()) return variable_list(inputs.size());
  variable_list result = run_backward(roots, starts, keep_graph, create_graph, targets, true, false);
  for (std::size_t i = 0; i < result.size(); ++i)
    if (result[i].defined()) result[i] = batching::wrap_like(result[i], inputs[i]);
  return result;
}

}  // namespace cresset::autograd::transforms
