// Inner loops of products with weights of sixteen, eight and four bits, compiled for every instruction set.
#pragma once

#include <cstdint>

#include <cresset/base/half.h>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

inline constexpr int kPackedRows = 16;  // rows of 4-bit weights that a call takes at most

// Scales and zeros of a block of rows of 4-bit weights: those of group g and row r at [g * kPackedRows + r]. A weight is
// number * scale + offset, where the offset has the 8 taken off already: zero - 8 * scale.
struct GroupFacts {
  const float *scale, *offset;
  int64_t group;
};

struct PackedLoops {
  // out[r] = sum over j < k of x[j] * rows[r * stride + j], for r < n.
  void (*dot_half)(const float* x, const Half* rows, int64_t n, int64_t k, int64_t stride, float* out);
  void (*dot_bfloat16)(const float* x, const BFloat16* rows, int64_t n, int64_t k, int64_t stride, float* out);
  // out[r] = sum over j < k of x[j] * rows[r * k + j], for r < n.
  void (*dot8)(const float* x, const int8_t* rows, int64_t n, int64_t k, float* out);
  // The same for rows of k / 2 bytes, n <= kPackedRows. x has its k / 2 numbers of even places, then those of odd ones; sums has the sum of
  // each group of x.
  void (*dot4)(const float* x, const float* sums, const uint8_t* rows, int64_t n, int64_t k, const GroupFacts& facts, float* out);
  // out[r * k + j] = the weight, for r < n.
  void (*widen8)(const int8_t* rows, const float* scales, int64_t n, int64_t k, float* out);
  void (*widen4)(const uint8_t* rows, int64_t n, int64_t k, const GroupFacts& facts, float* out);
  // out[i * ldo + r] = sum of a[i * k + j] * b[r * k + j], exact but for overflow of int32, which wraps.
  void (*dot16)(const int16_t* a, int64_t m, const int16_t* b, int64_t n, int64_t k, int32_t* out, int64_t ldo);
};

CRESSET_IN_EACH_ISA(extern const PackedLoops packed_loops;)

inline const PackedLoops& find_packed_loops() { return CRESSET_FOR_THIS_PROCESSOR(packed_loops); }

}  // namespace cresset::cpu
