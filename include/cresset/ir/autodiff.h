// The gradient of a graph as another graph.
#pragma once

#include <memory>
#include <vector>

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// What differentiate gives, under PyTorch's names; indices count inputs and outputs of the graphs.
struct Gradient {
  explicit operator bool() const { return df != nullptr; }
  /// The graph itself, and the graph of vector-Jacobian products. The inputs of df are gradients of the outputs df_input_vjps of f, then
  /// the inputs df_input_captured_inputs of f, then its outputs df_input_captured_outputs (none here). It gives a tuple with the gradients
  /// of the inputs df_output_vjps of f, undefined where an output does not depend on the input.
  std::shared_ptr<Graph> f, df;
  /// Outputs of f that the given graph had; all of them here.
  std::size_t f_real_outputs = 0;
  std::vector<std::size_t> df_input_vjps, df_input_captured_inputs, df_input_captured_outputs, df_output_vjps;
};

/// df computes f again, on detached inputs, and asks autograd, so that every operator with a derivative may occur; it runs where gradients
/// are recorded. Inputs and outputs whose types say that they require no gradient get none. A graph that writes its inputs is refused, for
/// df would write them a second time. In programs whose graphs have no autograd (it comes with Python's bindings) aten::grad says so and
/// raises.
CRESSET_API Gradient differentiate(const std::shared_ptr<Graph>& graph);

/// Nodes prim::GradOf become an If: what they hold where any of their inputs is defined, else undefined tensors.
CRESSET_API void LowerGradOf(Graph& graph);

}  // namespace cresset::jit
