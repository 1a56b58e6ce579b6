// Node by node through a graph and the blocks in it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// Gives every node of the graph once, a node in front of those in its blocks. The node that was given last may be destroyed, with what
/// is in it; nodes further on must stay where they are.
class DepthFirstGraphNodeIterator {
 public:
  explicit DepthFirstGraphNodeIterator(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) { push(graph_->block()); }
  /// The next node, or null behind the last one.
  Node* next() {
    while (!stack_.empty() && stack_.back().first == stack_.back().second) stack_.pop_back();
    if (stack_.empty()) return nullptr;
    Node* node = stack_.back().first;
    stack_.back().first = node->next();
    for (std::size_t i = node->blocks().size(); i-- > 0;) push(node->blocks()[i]);
    return node;
  }

 private:
  void push(Block* block) {
    if (block->nodes().begin() != block->nodes().end()) stack_.emplace_back(*block->nodes().begin(), block->return_node());
  }
  std::shared_ptr<Graph> graph_;
  std::vector<std::pair<Node*, Node*>> stack_;  // the next node of a block, and where the block ends
};

}  // namespace cresset::jit
