// Operators that give their operand itself when there is nothing to do, although their schemas promise a new tensor.
#pragma once

#include <string_view>

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// Could the result be the first operand?
inline bool may_give_operand(const Node* n) {
  std::string_view name = n->kind().toUnqualString();
  if (!n->kind().is_aten() || n->inputs().empty()) return false;
  if (name == "type_as" || name == "matrix_power" || name.starts_with("atleast_")) return true;
  if (name.ends_with("_")) return false;  // says that it does
  if (!name.ends_with("dropout") || name == "native_dropout") return false;
  const FunctionSchema* s = n->maybeSchema();
  const auto train = s ? s->argument_index("train") : std::nullopt;
  return !train || constant_as<bool>(n->input(*train)) != std::optional(true);
}

}  // namespace cresset::jit
