// Instruction sets that kernels are compiled for, and the one chosen for this process.
#pragma once

#include <cstdint>

// Written by the build for the sets that it compiles (CRESSET_CPU_ISAS), from lowest to best:
//   CRESSET_COMPILED_ISAS                  Isa::Baseline, Isa::Avx2, …
//   CRESSET_IN_EACH_ISA(DECLARATIONS)      DECLARATIONS in the namespace of each set
//   CRESSET_FOR_THIS_PROCESSOR(NAME)       NAME in the namespace of the set of this process
//   CRESSET_ISA_TABLE(NAME)                {&baseline::NAME, …} by Isa, null for sets that are not compiled
#include "cpu/compiled_isas.h"

namespace cresset::cpu {

enum class Isa : uint8_t { Baseline = 0, Avx2 = 1, Avx512 = 2 };
inline constexpr int kNumIsas = 3;
inline constexpr Isa kCompiledIsas[] = {CRESSET_COMPILED_ISAS};

// The best compiled variant that this processor can run, chosen once; the environment variable CRESSET_ISA
// (baseline, avx2, avx512) lowers it. An unknown or unsupported value is an error at first use.
Isa isa();

// "baseline", "avx2" or "avx512".
const char* isa_name(Isa isa);

}  // namespace cresset::cpu
