// Built-in functions on floats that are functions of C: native code calls those, with ints converted.
#pragma once

#include "ir/run/code.h"

namespace cresset::jit::native {

/// One of the two.
struct MathFunction {
  const char* name;  // of the operator; overloads for ints and floats
  double (*of_one)(double) = nullptr;
  double (*of_two)(double, double) = nullptr;
};

/// Null when the call is of another kind.
const MathFunction* math_function(const Call& c);

}  // namespace cresset::jit::native
