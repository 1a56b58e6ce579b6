// Instruction sets that kernels are compiled for, and the one chosen for this process.
#pragma once

#include <cstdint>

namespace cresset::cpu {

// Compiled variants of generated loops; on machines other than x86-64 only Baseline exists.
enum class Isa : uint8_t { Baseline = 0, Avx2 = 1, Avx512 = 2 };
inline constexpr int kNumIsas = 3;

// The best variant this processor can run, chosen once; the environment variable CRESSET_ISA
// (baseline, avx2, avx512) lowers it. An unknown or unsupported value is an error at first use.
Isa isa();

// "baseline", "avx2" or "avx512".
const char* isa_name(Isa isa);

}  // namespace cresset::cpu
