// Runs pointwise operators on the CPU: plans strides and types, then calls generated loops on contiguous blocks.
// Generated code needs only what this file declares; see docs/design/pointwise.md.
//
// For the row `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)`, pointwise = "self + alpha * other", types
// "bifc", opgen writes once
//
//   struct add_Tensor_args { Scalar alpha; };       // arguments that are neither tensors nor promoting scalars, by value
//   const ops::PointwiseOp add_Tensor_op{"add", PointwiseRule::Promote, ops::kBoolClass | ops::kIntClass | ...};
//   const cpu::PointwiseKernel add_Tensor_kernel{&add_Tensor_op, {&baseline::add_Tensor_loops, &avx2::…, &avx512::…}};
//
//   Tensor add_Tensor(const Tensor& self, const Tensor& other, const Scalar& alpha) {           // key CPU
//     const add_Tensor_args args{alpha};
//     const Tensor* inputs[] = {&self, &other};
//     const ops::CheckedScalar checked[] = {{"alpha", &alpha}};
//     return cpu::pointwise(add_Tensor_kernel, {.inputs = inputs, .num_inputs = 2, .checked = checked, .num_checked = 1}, &args);
//   }
//   Tensor& add_out(..., Tensor& out)        { cpu::pointwise_out(add_Tensor_kernel, call, &args, out); return out; }
//   Tensor& add__Tensor(Tensor& self, ...)   { cpu::pointwise_inplace(add_Tensor_kernel, call, &args, self); return self; }
//
// and once for each instruction set, in a source that includes backends/cpu/pointwise_loops.h (see there).
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"
#include "cresset/core/tensor.h"
#include "ops/shared/pointwise.h"

namespace cresset::cpu {

// ptrs[0] is the result, ptrs[1..] the operands in order, all contiguous, n elements of the compute type (results of
// Compare and ToBool are bool, of Abs the real type; the condition of BoolFirst is bool). A result may be exactly one
// of the operands. After them one pointer for each promoting scalar (PointwiseCall::scalars): to a single value
// of the compute type, or null when absent. params is the row's args structure.
using PointwiseLoop = void (*)(void* const* ptrs, int64_t n, const void* params);

// Types that loops compute in: half types use float, small integers int32_t.
enum class ComputeType : uint8_t { Bool, Int32, Int64, Float, Double, ComplexFloat, ComplexDouble };
inline constexpr int kNumComputeTypes = 7;

// Loops of one row for one instruction set by ComputeType; null where the row has no such class.
using PointwiseLoops = PointwiseLoop[kNumComputeTypes];

// Loops of one row for one instruction set whose operands and result are all Half, or all BFloat16, in memory: they compute in float and
// round once, without blocks of floats between. The second pair is for a last operand that is one float; null where the row has none.
using ReducedLoops = PointwiseLoop[4];

struct PointwiseKernel {
  const ops::PointwiseOp* op;
  const PointwiseLoops* loops[kNumIsas];  // entries of instruction sets that are not compiled are null
  // The same for a last operand that is one element, to which its pointer points; null where the row has none.
  const PointwiseLoops* repeating_loops[kNumIsas] = {};
  const ReducedLoops* reduced_loops[kNumIsas] = {};  // null where the row has none
};

// Computes into a new tensor. Errors are those of ops::pointwise_types and ops::broadcast_sizes.
Tensor pointwise(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params);

// Computes into `out`, after ops::pointwise_prepare_out.
void pointwise_out(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& out);

// Computes into `self`, which is also one of the operands (or an operand that must not be resized).
void pointwise_inplace(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& self);

}  // namespace cresset::cpu
