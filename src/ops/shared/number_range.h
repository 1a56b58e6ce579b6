// Which numbers a type holds, where an operator stores a number in tensors of that type.
#pragma once

#include <cresset/core/scalar.h>

namespace cresset::ops {

/// Raises `value cannot be converted to type float without overflow` when `type` does not hold the number. NaN is held by every floating
/// type, infinity by those that have one. Arithmetic has another rule: there a number beyond the type's range is infinite.
CRESSET_API void check_number(const Scalar& number, ScalarType type);

}  // namespace cresset::ops
