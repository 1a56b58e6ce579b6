// Operators that give their operand itself when there is nothing to do, although their schemas promise a new tensor.
#pragma once

#include <unordered_map>

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// Could the result be the first operand?
inline bool may_give_operand(const Node* n) {
  enum class When : uint8_t { perhaps, not_training };
  static const std::unordered_map<Symbol, When> kinds = [] {
    std::unordered_map<Symbol, When> out;
    for (const char* name : {"type_as", "matrix_power", "atleast_1d", "atleast_2d", "atleast_3d"}) out[Symbol::aten(name)] = When::perhaps;
    for (const char* name : {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})
      out[Symbol::aten(name)] = When::not_training;
    return out;
  }();
  const auto found = kinds.find(n->kind());
  if (found == kinds.end() || n->inputs().empty()) return false;
  if (found->second == When::perhaps) return true;
  const FunctionSchema* s = n->maybeSchema();
  const auto train = s ? s->argument_index("train") : std::nullopt;
  return !train || constant_as<bool>(n->input(*train)) != std::optional(true);
}

}  // namespace cresset::jit
