// backward and grad: running the backward graph from tensors.
#pragma once

#include <cresset/autograd/engine.h>

namespace cresset::autograd {

/// Adds into .grad of the leaves (or of `inputs`) the gradients of the tensors, each weighted with its grad_tensor (an
/// undefined one, or none at all, means 1 for a one-element tensor). retain_graph defaults to create_graph.
CRESSET_API void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                          std::optional<bool> retain_graph = std::nullopt, bool create_graph = false, const variable_list& inputs = {});

/// The gradients of outputs with respect to inputs. An input that the outputs do not depend on raises, or gives an
/// undefined tensor with allow_unused.
CRESSET_API variable_list grad(const variable_list& outputs, const variable_list& inputs, const variable_list& grad_outputs = {},
                               std::optional<bool> retain_graph = std::nullopt, bool create_graph = false, bool allow_unused = false);

/// The general form: inputs as edges.
CRESSET_API variable_list run_backward(const variable_list& outputs, const variable_list& grad_outputs, bool keep_graph, bool create_graph,
                                       const variable_list& inputs, bool allow_unused, bool accumulate_grad);

/// The same for edges of the graph in place of tensors. `inputs` that are edges of leaves may accumulate into .grad.
CRESSET_API variable_list run_backward(const edge_list& roots, variable_list&& grad_outputs, bool keep_graph, bool create_graph,
                                       const edge_list& inputs, bool allow_unused, bool accumulate_grad);

}  // namespace cresset::autograd
