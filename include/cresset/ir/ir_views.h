// prim::If and prim::Loop by the names of their parts.
#pragma once

#include <limits>

#include <cresset/ir/ir.h>

namespace cresset::jit {

class IfView {
 public:
  /// A prim::If.
  explicit IfView(Node* node) : node_(node) { CRESSET_CHECK(node->kind() == prim::If, "IfView: a prim::If was required; ", node->str()); }
  Value* cond() const { return node_->input(0); }
  Block* thenBlock() const { return node_->blocks()[0]; }
  Block* elseBlock() const { return node_->blocks()[1]; }
  const Sequence<Value*>& thenOutputs() const { return thenBlock()->outputs(); }
  const Sequence<Value*>& elseOutputs() const { return elseBlock()->outputs(); }
  const Sequence<Value*>& outputs() const { return node_->outputs(); }
  Node* node() const { return node_; }
  operator Node*() const { return node_; }
  void permuteOutputs(const std::vector<std::size_t>& order) {
    node_->permuteOutputs(order);
    for (Block* b : node_->blocks()) b->permuteOutputs(order);
  }

 private:
  Node* node_;
};

class LoopView {
 public:
  enum LoopType { While, For, ModifiedLoop };
  /// A prim::Loop.
  explicit LoopView(Node* node) : node_(node) {
    CRESSET_CHECK(node->kind() == prim::Loop, "LoopView: a prim::Loop was required; ", node->str());
  }
  Value* maxTripCount() const { return node_->input(0); }
  Value* inputCond() const { return node_->input(1); }
  Block* bodyBlock() const { return node_->blocks()[0]; }
  Value* currentTripCount() const { return bodyBlock()->inputs()[0]; }
  Value* nextCond() const { return bodyBlock()->outputs()[0]; }
  ArrayRef<Value*> carriedInputs() const { return node_->inputs().slice(2); }
  ArrayRef<Value*> carriedInputsWithCond() const { return node_->inputs().slice(1); }
  const Sequence<Value*>& carriedOutputs() const { return node_->outputs(); }
  ArrayRef<Value*> bodyCarriedInputs() const { return bodyBlock()->inputs().slice(1); }
  ArrayRef<Value*> bodyCarriedOutputs() const { return bodyBlock()->outputs().slice(1); }
  Node* node() const { return node_; }
  operator Node*() const { return node_; }
  void replaceMaxTripCount(Value* count) { node_->replaceInput(0, count); }
  /// While: no bound but the largest number. For: the conditions are constants that are true.
  LoopType loopType() const {
    const auto trips = constant_as<int64_t>(maxTripCount());
    const auto first = constant_as<bool>(inputCond()), next = constant_as<bool>(nextCond());
    const bool counts = first.value_or(false) && next.value_or(false);
    if (trips == std::numeric_limits<int64_t>::max()) return counts ? ModifiedLoop : While;
    return counts ? For : ModifiedLoop;
  }
  /// An order of carried values as one of the loop's operands and the body's results, which begin with the condition.
  static std::vector<std::size_t> adjustIndices(std::size_t offset, const std::vector<std::size_t>& order) {
    std::vector<std::size_t> out(offset + order.size());
    for (std::size_t i = 0; i < offset; ++i) out[i] = i;
    for (std::size_t i = 0; i < order.size(); ++i) out[offset + i] = order[i] + offset;
    return out;
  }
  void permuteLoopCarried(const std::vector<std::size_t>& order) {
    node_->permuteOutputs(order);
    node_->permuteInputs(adjustIndices(2, order));
    bodyBlock()->permuteInputs(adjustIndices(1, order));
    bodyBlock()->permuteOutputs(adjustIndices(1, order));
  }

 private:
  Node* node_;
};

}  // namespace cresset::jit
