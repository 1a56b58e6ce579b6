// Floats as whole numbers of 8 bits, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

/// y = x * factor to the nearest whole number, halves to the even one, within the range of y. NaN becomes the least.
struct NarrowLoops {
  void (*to_unsigned)(const float* x, uint8_t* y, int64_t n, float factor);
  void (*to_signed)(const float* x, int8_t* y, int64_t n, float factor);
};

CRESSET_IN_EACH_ISA(const NarrowLoops& narrow_loops();)

}  // namespace cresset::cpu
