// Inner loops of pooling where channels are neighbours in memory, compiled for every instruction set: a place of the input, n channels,
// joins its window.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

struct PoolLoops {
  // value = max(value, x), and `best` the place it came from; NaN wins over everything and the last one stays.
  void (*max)(const float* x, int32_t place, float* value, int32_t* best, int64_t n);
  // sum += x
  void (*add)(const float* x, float* sum, int64_t n);
  // y = sum / divisor
  void (*divide)(const float* sum, float divisor, float* y, int64_t n);
};

CRESSET_IN_EACH_ISA(const PoolLoops& pool_loops();)

// The loops for this process.
inline const PoolLoops& find_pool_loops() { return CRESSET_FOR_THIS_PROCESSOR(pool_loops()); }

}  // namespace cresset::cpu
