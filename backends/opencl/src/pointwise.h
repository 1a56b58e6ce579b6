// Rows of the operator table as kernels: what generate/pointwise.py writes, and what runs them.
#pragma once

#include <cresset/ops/pointwise_rule.h>

#include <span>

namespace cresset_opencl {

using cresset::PointwiseRule;

/// How an argument reaches the expression: as a_<name>, with has_<name> beside an optional one.
enum class ArgumentKind : uint8_t {
  Tensor,             // an element, in the compute type
  Promoting,          // a Scalar that takes part in promotion, in the compute type
  OptionalPromoting,  //
  Number,             // any other Scalar, in the compute type
  OptionalNumber,     //
  Real,               // a float argument, in the widest type of the device
  OptionalReal,       //
  Int,                // as long
  Flag,               // a bool, as int
  Word,               // a string, as int: whether it is `word`
};

struct Argument {
  const char* name;
  ArgumentKind kind;
  const char* word;
};

struct PointwiseRow {
  const char* op;  // aten::add.Tensor
  const char* name;
  const char* out;  // empty: there is no such form
  const char* inplace;
  PointwiseRule rule;
  uint8_t classes;
  const char* expression;
  const char* functions;  // source of what the expression calls
  std::span<const Argument> arguments;
};

}  // namespace cresset_opencl
