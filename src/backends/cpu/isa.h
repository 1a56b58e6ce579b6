// Instruction sets that kernels are compiled for, and the one chosen for this process.
#pragma once

#include <cstdint>

// Written by the build (cmake/CressetIsas.cmake has one row for each set), from lowest to best:
//   CRESSET_ISAS                           Baseline, Avx2, …: those of this kind of processor
//   CRESSET_ISA_ROWS                       {name, whether this processor has it}, …
// and for the sets that it compiles (CRESSET_CPU_ISAS):
//   CRESSET_COMPILED_ISAS                  Isa::Baseline, Isa::Avx2, …
//   CRESSET_IN_EACH_ISA(DECLARATIONS)      DECLARATIONS in the namespace of each set
//   CRESSET_FOR_THIS_PROCESSOR(NAME)       NAME in the namespace of the set of this process
//   CRESSET_ISA_TABLE(NAME)                {&baseline::NAME, …} by Isa, null for sets that are not compiled
#include "cpu/compiled_isas.h"

namespace cresset::cpu {

enum class Isa : uint8_t { CRESSET_ISAS kEnd };
inline constexpr int kNumIsas = static_cast<int>(Isa::kEnd);
inline constexpr Isa kCompiledIsas[] = {CRESSET_COMPILED_ISAS};

// The best compiled variant that this processor can run, chosen once; the environment variable CRESSET_ISA
// (its name: avx2, …) lowers it. An unknown or unsupported value is an error at first use.
Isa isa();

// "baseline", "avx2", …
const char* isa_name(Isa isa);

}  // namespace cresset::cpu
