// What custom Functions share, whatever language they are written in: connecting the results of forward to their node.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <cresset/autograd/node.h>
#include <cresset/autograd/saved_variable.h>

namespace cresset::autograd {

/// Runs the user's jvp: tangents of the inputs (undefined where there is none) to tangents of the outputs.
using CustomJvp = std::function<variable_list(variable_list tangents)>;

/// What a custom Function's forward said about its tensors.
struct CustomFunctionMarks {
  std::vector<TensorImpl*> non_differentiable;
  std::vector<TensorImpl*> dirty;
};

/// Makes the results of forward outputs of `node` (null when nothing is recorded): changed inputs are rebased, inputs
/// returned as they are become views, integral and non-differentiable results stay outside. inputs are the tensor
/// arguments, whose edges the node has in this order. An undefined result is a value that is not a tensor.
/// jvp_name names the Function when it has no jvp and an input carries a tangent (then `jvp` is empty).
CRESSET_API variable_list wrap_outputs(const variable_list& inputs, const CustomFunctionMarks& marks, const variable_list& raw_outputs,
                                       const std::shared_ptr<Node>& node, const CustomJvp& jvp);

/// A tensor that forward saved, after wrap_outputs made its results outputs of the node.
CRESSET_API SavedVariable save_for(const std::shared_ptr<Node>& node, const Tensor& t);

/// Checks what the node's backward returned for all arguments of forward (is_tensor says which are tensors) and keeps the gradients of
/// tensors. Raises for a wrong number, for gradients of what is no tensor, and for complex gradients of real tensors.
CRESSET_API variable_list check_custom_gradients(const Node& node, variable_list&& grads, const std::vector<bool>& is_tensor);

}  // namespace cresset::autograd
