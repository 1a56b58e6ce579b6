// The rule shared by all pointwise operators: broadcasting, type promotion, output strides, and checks.
// Generated code describes a row with a PointwiseOp and one call with a PointwiseCall; see docs/design/pointwise.md.
#pragma once

#include <cstdint>

#include <optional>

#include <cresset/core/limits.h>
#include <cresset/core/tensor.h>
#include <cresset/ops/pointwise_rule.h>

#include "ops/shared/out_rules.h"

namespace cresset::ops {

// The key `types` of a pointwise row: classes of compute types that have a loop.
// The last three hold types that are only stored; rows that accept one compute in the loops of the integers, floating or complex types.
enum ComputeClass : uint8_t {
  kBoolClass = kPointwiseBool,
  kIntClass = kPointwiseInt,
  kFloatClass = kPointwiseFloat,
  kComplexClass = kPointwiseComplex,
  kUnsignedClass = 16,
  kFloat8Class = 32,
  kComplexHalfClass = 64
};

struct PointwiseOp;
struct PointwiseCall;

// Words of its own for classes of types that a row has no loop for: keys `refuses` and `lacks` (NotImplementedError).
struct Refusal {
  uint8_t classes;  // ComputeClass bits
  bool unimplemented;
  const char* text;
};

// What only some rows say; docs/design/operator-table.md explains the keys.
struct PointwiseFacts {
  ArrayRef<Refusal> refusals;
  const char* no_bool = nullptr;      // raised for any bool operand
  const char* shown = nullptr;        // the name in the refusal of a type, where it is not the operator's
  const char* equal_types = nullptr;  // raised where the first two operands' types differ; {0} and {1} are the types
  ArrayRef<const char*> follows;      // Scalar arguments that must be numbers of the result's kind
  void (*check)(const PointwiseOp& op, const PointwiseCall& call, ScalarType common) = nullptr;
};

// What is the same for every call of a row. `name` is the operator's name without overload, for error texts.
struct PointwiseOp {
  const char* name;
  PointwiseRule rule;
  uint8_t classes;  // ComputeClass bits
  OutRule out_dtype = OutDtype::Castable;
  const PointwiseFacts* facts = nullptr;

  // Do operands of other types meet a check of the row?
  bool compares_types() const { return facts && (facts->equal_types || facts->check); }
};

// A Scalar argument that only the expression sees (`alpha`, `value`).
struct CheckedScalar {
  const char* name;
  const Scalar* value;
  bool follows = false;  // must be a number of the result's kind
};

inline constexpr int kMaxPointwiseInputs = 8;
inline constexpr int kMaxPointwiseScalars = 2;

// The arguments of one call. Everything is borrowed for the duration of the call.
//   inputs   tensor operands in schema order (at most kMaxPointwiseInputs, at least 1)
//   scalars  Scalar arguments that the row's `promotes` names, in schema order: they take part in promotion
//            like Python numbers; an absent `Scalar?` is a null pointer (at most kMaxPointwiseScalars)
//   checked  all other Scalar arguments of the row
struct PointwiseCall {
  const Tensor* const* inputs;
  int num_inputs;
  const Scalar* const* scalars = nullptr;
  int num_scalars = 0;
  const CheckedScalar* checked = nullptr;
  int num_checked = 0;
};

// The promoted type of the operands before and after the rule (compute happens in the compute type of the first). Raises
// NotImplementedError when the row has no loop for the class, and user errors for CheckedScalars.
CRESSET_API PointwiseTypes pointwise_types(const PointwiseOp& op, const PointwiseCall& call);

// Allocates the result on the operands' device: broadcast sizes, strides that keep the operands' permutation.
// This is the Meta kernel and the allocation step of devices.
CRESSET_API Tensor pointwise_allocate(const PointwiseOp& op, const PointwiseCall& call);

// Prepares an out tensor: checks device and castability of the result type, resizes when the shape differs (never
// for in place, which raises `output with shape [3] doesn't match the broadcast shape [2, 3]`), checks memory overlap.
// This is also the Meta kernel of the out and in-place forms.
CRESSET_API void pointwise_prepare_out(const PointwiseOp& op, const PointwiseCall& call, const Tensor& out, bool in_place);

// The element type as C++ spells it, where PyTorch's messages do ("long int").
const char* cpp_type_name(ScalarType type);

// The rows that have facts: backends outside know a row by its name.
ArrayRef<const PointwiseOp*> pointwise_rows_with_facts();

// A check of rows with limits: integers of fewer bits must hold the call's numbers.
void check_numbers_fit(const PointwiseOp& op, const PointwiseCall& call, ScalarType common);

// Broadcast shape of the operands into `sizes` (capacity kMaxDims); returns the number of dimensions.
// Raises `The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1`.
int broadcast_sizes(const Tensor* const* inputs, int num_inputs, int64_t* sizes);

// Strides of a new result, or nothing when they are row-major: all operands channels-last, or all of one dense layout,
// give the same layout; otherwise dimensions are ordered by the operands' strides, first operand first.
std::optional<DimVector> pointwise_strides(const PointwiseCall& call, IntArrayRef sizes);

// Strides of a copy that preserves self's layout, or nothing when they are row-major: those of a dense tensor, also of its dimensions of
// one element; otherwise row-major in the order of its dimensions.
std::optional<DimVector> preserved_strides(const Tensor& self);

// A tensor's strides seen under broadcast sizes of `ndim` dimensions; 0 where it repeats.
void aligned_strides(const Tensor& tensor, const int64_t* sizes, int ndim, int64_t* strides);

// Orders dimensions by the operands' strides, outermost first. A stride of 0 tells nothing; ties keep row-major order.
CRESSET_API void order_dimensions(const int64_t* sizes, int ndim, const int64_t* const* strides, int num_operands, int* order);

// Does one address belong to two elements (expanded tensors)? Unknown cases count as no.
bool has_internal_overlap(const Tensor& tensor);
// Do two dense views of one storage share elements without being the same view?
bool partially_overlaps(const Tensor& a, const Tensor& b);
// Raise `unsupported operation: ...` for the above.
void check_no_internal_overlap(const Tensor& tensor);
void check_no_partial_overlap(const Tensor& written, const Tensor& input);

}  // namespace cresset::ops
