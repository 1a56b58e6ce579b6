// What function transforms (grad, vjp, jvp of functions) need from autograd: leaves of their own, and derivatives of
// tensors that vmap wraps. Examples of a batch are independent, so derivatives are taken on physical tensors.
#pragma once

#include <vector>

#include <cresset/autograd/node.h>

namespace cresset::autograd::transforms {

/// The same data as a tensor that gradients can be asked for: connected to t when t is recorded, otherwise a new leaf. Tangents stay.
/// Under vmap it is batched at every level of the thread, so that each example has a gradient of its own.
CRESSET_API Tensor fresh_input(const Tensor& t);
/// t, or a tensor cut off from the graph (tangents stay) when nothing but new leaves among `inputs` is reached from it, or always.
CRESSET_API Tensor without_own_history(const Tensor& t, const variable_list& inputs, bool always);
/// Does the graph of a tensor reach a leaf that is none of `inputs`?
CRESSET_API bool depends_on_others(const variable_list& tensors, const variable_list& inputs);
/// Is the tensor, or the physical tensor of a batched one, recorded?
CRESSET_API bool is_recorded(const Tensor& t);
/// Gradients of outputs with respect to inputs, undefined ones where there is no path. Wrappers of vmap are taken off and put on again;
/// a gradient may be batched at levels that its output does not have.
CRESSET_API variable_list gradients(const variable_list& outputs, const variable_list& inputs, const variable_list& grads, bool keep_graph,
                                    bool create_graph);

}  // namespace cresset::autograd::transforms
