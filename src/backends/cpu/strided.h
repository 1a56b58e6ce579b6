// Strided traversal shared by pointwise operators and copies: operands, coalescing, splitting into blocks and threads.
#pragma once

#include <cstdint>

#include <cresset/core/limits.h>
#include <cresset/core/tensor.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/pointwise.h"
#include "ops/shared/pointwise.h"

namespace cresset::cpu {

inline constexpr int kMaxOperands = ops::kMaxPointwiseInputs + 1;
inline constexpr int64_t kBlock = 512;            // elements converted at a time, at least; threads start at multiples of it
inline constexpr int64_t kParallelGrain = 32768;  // elements a thread must have to be worth waking

// One operand of a traversal. Strides are in bytes, one for each dimension of the traversal, innermost first.
struct Operand {
  char* data;
  ScalarType dtype;     // of the elements in memory
  ScalarType through;   // elements are rounded through this type on load (Undefined: not)
  ComputeType compute;  // what the loop reads or writes
  int64_t strides[kMaxDims];

  // Do loops read or write the elements as they are in memory?
  bool as_it_is() const { return dtype == scalar_type(compute) && through == ScalarType::Undefined; }
};

// A traversal of up to kMaxOperands operands; operand 0 is written.
struct Traversal {
  int num_operands = 0;
  int ndim = 0;
  int64_t numel = 0;
  int64_t sizes[kMaxDims];  // innermost first
  Operand operands[kMaxOperands];
  const void* constants[ops::kMaxPointwiseScalars];  // passed on to the loop after the operands
  int num_constants = 0;

  // Adds an operand seen under the broadcast sizes set by set_sizes.
  void set_sizes(IntArrayRef broadcast);
  void add(const Tensor& tensor, ComputeType compute, ScalarType through = ScalarType::Undefined);
  // Orders and merges dimensions; call once after all operands were added.
  void coalesce();
  // Runs the loop over everything, on several threads when that pays. A null loop copies operand 1 to operand 0 (equal compute types).
  // `repeating` is the loop for a last operand of one element, if there is one: taken for long rows through which it does not change.
  void run(PointwiseLoop loop, const void* params, PointwiseLoop repeating = nullptr) const;

 private:
  bool runs_across() const;
  bool repeats_last() const;
};

}  // namespace cresset::cpu
