// torch/csrc/autograd/engine.h.
#pragma once

#include <functional>

#include <cresset_compat/torch.h>

#include <cresset/autograd/engine.h>

namespace torch::autograd {
using cresset::autograd::validate_outputs;

/// Checks gradients against what is known of the tensors they are for, and sums, converts or moves them where that is all they need.
/// Messages of errors pass through `format_error`.
inline void validate_outputs(const std::vector<std::optional<InputMetadata>>& metadata, variable_list& grads,
                             const std::function<std::string(const std::string&)>& format_error) {
  const auto node = std::make_shared<UndefinedGradBackward>();
  edge_list edges;
  for (const auto& m : metadata) edges.push_back(m ? Edge(node, node->add_input_metadata(*m)) : Edge());
  try {
    cresset::autograd::validate_outputs(edges, grads, nullptr);
  } catch (const c10::Error& error) {
    CRESSET_THROW(Error, format_error(error.msg()));
  }
}
}  // namespace torch::autograd
