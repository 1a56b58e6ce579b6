// Which numbers a type holds, where an operator stores a number in tensors of that type.
#pragma once

#include <cresset/core/scalar.h>

namespace cresset::ops {

/// Raises `value cannot be converted to type float without overflow` when `type` does not hold the number. Infinity and NaN
/// are held by every floating type. Arithmetic has another rule: there a number beyond the type's range is infinite.
CRESSET_API void check_number(const Scalar& number, ScalarType type);

}  // namespace cresset::ops
