// Values of the constant expressions that stand in archives' code: fields, enumerators and defaults.
#pragma once

#include <functional>

#include "ir/frontend/frontend.h"
#include "ir/frontend/tree.h"

namespace cresset::jit {

/// What a dotted name means ("CONSTANTS.c0", "__torch__.Color.RED"); nothing when it means no value.
using NamedConstants = std::function<std::optional<IValue>(const std::string& name)>;

/// Raises at the expression's place when it is no constant, or its value is not of the type.
IValue constant_of(const ExprPtr& e, const TypePtr& type, Resolver* resolver, const NamedConstants& named);
/// "a.b.c" of names and attributes; empty for other expressions.
std::string dotted_name(const Expr& e);

}  // namespace cresset::jit
