// Calls of schemas: which values go where, and the implicit conversions that make them fit.
#pragma once

#include <optional>

#include <cresset/ir/operator.h>

namespace cresset::jit {

/// A value given to a call; the name is that of a keyword.
struct CallValue {
  Value* value;
  std::string name;
};

/// A call of an operator by its kinds (tried in order). The first overload that fits as it stands is taken, then the first that fits
/// after tensors were converted to numbers. `self` goes first and to no other argument. Raises with all overloads and why each does not
/// fit.
Value* emit_operator(const SourceRange& range, Graph& g, std::vector<Symbol> kinds, std::vector<CallValue> args, Value* self = nullptr);
/// The arguments of a call of one schema, in its order, with defaults as constants; raises when they do not fit.
std::vector<Value*> match_schema(const SourceRange& range, Graph& g, const FunctionSchema& schema, const std::vector<CallValue>& args,
                                 Value* self = nullptr);
/// A value as one of another type, as calls convert it (annotate, return values): tuples to lists, tensors to numbers, strings to devices.
/// Null when that is impossible.
Value* convert_to(const SourceRange& range, Graph& g, Value* v, const TypePtr& type, bool convert = true);
/// The name under which graphs have an operator that has several ("aten::divide" is aten::div).
Symbol canonical_operator(Symbol kind);
/// Whether some overload of this kind takes a value of the type as its `self`.
bool is_method_of(Symbol kind, const TypePtr& type);

}  // namespace cresset::jit
