// Arithmetic that a graph does on tensors of rank 0 made of numbers (as tracing records sizes), and the same arithmetic on the numbers.
#pragma once

#include "ir/passes/rewrite.h"

namespace cresset::jit::rewrite {

/// Only what gives the same number bit for bit: int64 and float64, no promotion to the default dtype, no float division that rounds.
class ScalarExpressions {
 public:
  explicit ScalarExpressions(Aliases& aliases) : aliases_(aliases) {}
  /// Int or Float, when the tensor is a number put into a tensor, a constant of rank 0, or arithmetic on such of at most `depth` operators
  /// above one another. Nothing when a node carries a mark or memory of it is written.
  std::optional<TypeKind> kind_of(const Value* tensor, int depth);
  /// The number; kind_of must have said that there is one.
  Value* emit(const Emitter& emit, const Value* tensor);
  /// The number that NumToTensor was given; null for other values.
  static Value* number_in(const Value* tensor);

 private:
  std::optional<TypeKind> operand_kind(const Value* v, int depth, bool& is_tensor);

  std::optional<TypeKind> find_kind(const Value* tensor, int depth);
  Value* make(const Emitter& emit, const Value* tensor);

  Aliases& aliases_;
  // Operands may be shared: each value is looked at and made once.
  std::unordered_map<const Value*, std::optional<TypeKind>> kinds_;
  std::unordered_map<const Value*, Value*> made_;
};

}  // namespace cresset::jit::rewrite
