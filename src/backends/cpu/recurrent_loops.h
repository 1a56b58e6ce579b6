// Inner loops of recurrent layers whose weights were packed: a step's product with the gates' arithmetic behind it, compiled for every
// instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

enum class Recurrence : uint8_t { Tanh, Relu, Gru, Lstm };

/// Units that are computed together: weights are packed in blocks of them.
inline constexpr int64_t kRecurrentUnits = 16;

constexpr int64_t recurrent_gates(Recurrence kind) { return kind == Recurrence::Lstm ? 4 : kind == Recurrence::Gru ? 3 : 1; }

/// One step of one direction. Rows are the examples of a batch; the strides are in elements.
struct RecurrentStep {
  Recurrence kind;
  int64_t rows, hidden;
  /// The input's part of the gates: that of gate g and unit u of a row at [g * hidden + u].
  const float* gates;
  int64_t gates_stride;
  /// The state before: floats, or (bfloat16) words of two numbers, of which the even one is the lower half.
  const void* products_of;
  int64_t products_stride;
  /// The same as floats (GRU).
  const float* state;
  int64_t state_stride;
  /// (rows, hidden), dense, changed in place (LSTM).
  float* cell;
  /// Of the new gate's recurrent product, which the reset gate multiplies (GRU); null for none.
  const float* new_bias;
  float* out;
  int64_t out_stride;
  const void* weight;
};

struct RecurrentLoops {
  /// Bytes of the packed weight for `hidden` units.
  int64_t (*bytes)(Recurrence kind, int64_t hidden, bool bfloat16);
  /// weight: (gates * hidden, hidden), dense. With bfloat16 numbers are rounded to the nearest, even ones where two are as near.
  void (*pack)(Recurrence kind, int64_t hidden, bool bfloat16, const float* weight, void* packed);
  /// Units of the blocks [first, last) of kRecurrentUnits.
  void (*step)(const RecurrentStep& step, int64_t first, int64_t last);
  void (*step_bfloat16)(const RecurrentStep& step, int64_t first, int64_t last);
  /// Floats as words of two of bfloat16; an odd one at the end has zero beside it.
  void (*to_words)(const float* x, int64_t n, uint32_t* words);
};

CRESSET_IN_EACH_ISA(extern const RecurrentLoops recurrent_loops;)

inline const RecurrentLoops& find_recurrent_loops() { return CRESSET_FOR_THIS_PROCESSOR(recurrent_loops); }

}  // namespace cresset::cpu
