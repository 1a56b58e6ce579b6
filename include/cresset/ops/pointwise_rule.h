// The rule that all pointwise operators share, for kernels of device backends: promotion, broadcasting, layout of the result,
// checks. A row of the operator table (operators.json of the installed package: key `pointwise`) gives name, rule and classes.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset {

/// The key `dtype` of a row: which type computes and which type results.
enum class PointwiseRule : uint8_t {
  Promote,    // promoted type of all operands; result the same
  Float,      // promoted; integral and bool become the default float; result the same
  Compare,    // promoted; result bool
  ToBool,     // promoted; result bool (unary predicates)
  Abs,        // promoted; a complex result becomes its real type
  First,      // the first operand's type; result the same
  BoolFirst,  // the first operand is a bool condition, the others are promoted; result the promoted type
};

/// The key `types` of a row, letters b, i, f, c: classes of types that the operator computes in.
enum PointwiseClass : uint8_t { kPointwiseBool = 1, kPointwiseInt = 2, kPointwiseFloat = 4, kPointwiseComplex = 8 };

struct PointwiseScalar {
  const char* name;
  const Scalar* value;
};

/// One call. Everything is borrowed.
///   tensors  operands in schema order, 1 to 8
///   scalars  Scalar arguments that the row's `pointwise.promotes` names, in schema order (at most 2): they take part in promotion;
///            an absent `Scalar?` is null
///   others   all other Scalar arguments that are there
struct PointwiseArguments {
  const char* name;  // without namespace, with the overload where there is one ("pow.Tensor_Scalar"): checks are those of this row
  PointwiseRule rule;
  uint8_t classes;
  ArrayRef<const Tensor*> tensors;
  ArrayRef<const Scalar*> scalars;
  ArrayRef<PointwiseScalar> others;
};

struct PointwiseTypes {
  ScalarType common;  // operands are converted to it
  ScalarType result;
};

/// The types of a call. Raises what the operator raises for types that it refuses.
CRESSET_API PointwiseTypes pointwise_types(const PointwiseArguments& call);
/// A new uninitialised result on the operands' device (zero-dimensional CPU tensors go with any device).
CRESSET_API Tensor pointwise_result(const PointwiseArguments& call);
/// Makes `out` fit the result: device, castable type, no element twice, no partial overlap with an operand; another shape is resized,
/// or refused in place.
CRESSET_API void pointwise_prepare(const PointwiseArguments& call, const Tensor& out, bool in_place);

}  // namespace cresset
