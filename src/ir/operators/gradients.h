// aten::grad and aten::backward of scripts. Autograd is no layer below graphs: who has it says how gradients are computed.
#pragma once

#include <optional>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::jit {

struct GradientFunctions {
  std::vector<Tensor> (*grad)(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                              std::optional<bool> retain_graph, bool create_graph, bool allow_unused) = nullptr;
  void (*backward)(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, std::optional<bool> retain_graph,
                   bool create_graph) = nullptr;
};
/// While the program starts.
CRESSET_API void set_gradient_functions(const GradientFunctions& functions);

}  // namespace cresset::jit
