// Switches the compiler to the instruction set named by CRESSET_ISA_NAMESPACE (baseline, avx2 or avx512) for the rest
// of the source. A pragma and not a compiler flag, because inline functions of headers included before it stay
// baseline code: the linker merges them across sources, and code for AVX must not reach other processors that way.
// Include it after every other header.
#pragma once

#ifndef CRESSET_ISA_NAMESPACE
#error "define CRESSET_ISA_NAMESPACE before including backends/cpu/isa_begin.h"
#endif

#define CRESSET_ISA_LEVEL_baseline 0
#define CRESSET_ISA_LEVEL_avx2 1
#define CRESSET_ISA_LEVEL_avx512 2
#define CRESSET_ISA_JOIN_(a, b) a##b
#define CRESSET_ISA_JOIN(a, b) CRESSET_ISA_JOIN_(a, b)
#define CRESSET_ISA_LEVEL CRESSET_ISA_JOIN(CRESSET_ISA_LEVEL_, CRESSET_ISA_NAMESPACE)

#if defined(__clang__)
// Clang has no such pragma: every variant is baseline code.
#undef CRESSET_ISA_LEVEL
#define CRESSET_ISA_LEVEL 0
#endif

#if CRESSET_ISA_LEVEL == 1
#pragma GCC target("arch=x86-64-v3")
#elif CRESSET_ISA_LEVEL == 2
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif
