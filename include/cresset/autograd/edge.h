// Edge: one arrow of the backward graph, a node and the number of the node's input it leads to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <cresset/autograd/inline_vector.h>
#include <cresset/core/tensor.h>

namespace cresset::autograd {

using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;

struct Node;

/// Where a gradient goes. An edge without a function is invalid: the gradient is not wanted.
struct Edge {
  Edge() noexcept : input_nr(0) {}
  Edge(std::shared_ptr<Node> fn, uint32_t nr) noexcept : function(std::move(fn)), input_nr(nr) {}
  bool is_valid() const noexcept { return function != nullptr; }
  friend bool operator==(const Edge& a, const Edge& b) noexcept { return a.function == b.function && a.input_nr == b.input_nr; }

  std::shared_ptr<Node> function;
  uint32_t input_nr;
};

using edge_list = InlineVector<Edge, 2>;

}  // namespace cresset::autograd

template <>
struct std::hash<cresset::autograd::Edge> {
  std::size_t operator()(const cresset::autograd::Edge& e) const noexcept {
    return std::hash<cresset::autograd::Node*>()(e.function.get()) * 31 + e.input_nr;
  }
};
