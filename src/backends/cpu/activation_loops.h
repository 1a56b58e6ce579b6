// Activations in place, for results that are still in the caches; compiled for every instruction set.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

struct ActivationLoops {
  using Loop = void (*)(float* y, int64_t n, float a, float b);  // a and b: the step's numbers (epilogue.h)
  using Join = void (*)(float* y, const float* operand, int64_t n);
  Loop gelu, hardswish, sigmoid, silu;  // null where oneDNN 2.6 is quicker
  Loop clamp, hardsigmoid, leaky_relu, relu, tanh;
  Join add, mul;

  /// Null for the steps that oneDNN takes along for nothing, or does as well.
  Loop find(std::string_view name) const {
    return name == "gelu" ? gelu : name == "hardswish" ? hardswish : name == "sigmoid" ? sigmoid : name == "silu" ? silu : nullptr;
  }
  /// For results that are not oneDNN's.
  Loop find_any(std::string_view name) const {
    if (name == "clamp") return clamp;
    if (name == "hardsigmoid") return hardsigmoid;
    if (name == "leaky_relu") return leaky_relu;
    return name == "relu" ? relu : name == "tanh" ? tanh : find(name);
  }
};

CRESSET_IN_EACH_ISA(extern const ActivationLoops activation_loops;)

inline const ActivationLoops& find_activation_loops() { return CRESSET_FOR_THIS_PROCESSOR(activation_loops); }

}  // namespace cresset::cpu
