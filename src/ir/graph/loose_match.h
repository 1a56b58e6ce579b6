// Arguments that fit a schema only because a bool may stand for a number.
#pragma once

#include <vector>

#include <cresset/dispatch/function_schema.h>

namespace cresset::jit {

class Value;

/// A bool is a number where nothing else fits: `var(x, [0], True, False)` is not the overload whose third argument is a Scalar. Null
/// inputs are to become defaults.
bool takes_bool_as_number(const FunctionSchema& schema, const std::vector<Value*>& inputs);

}  // namespace cresset::jit
