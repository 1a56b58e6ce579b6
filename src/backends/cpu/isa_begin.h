// Switches the compiler to the instruction set named by CRESSET_ISA_NAMESPACE (baseline, avx2, …) for the rest
// of the source. A pragma and not a compiler flag, because inline functions of headers included before it stay
// baseline code: the linker merges them across sources, and code for AVX must not reach other processors that way.
// Include it after every other header. CRESSET_ISA_HAS_AVX2, _FMA, _NEON, … tell what the set has (cmake/CressetIsas.cmake): macros of our
// own, because those of the compiler do not follow the pragma in its preprocessed output, which compiler caches look at.
#pragma once

#ifndef CRESSET_ISA_NAMESPACE
#error "define CRESSET_ISA_NAMESPACE before including backends/cpu/isa_begin.h"
#endif

#define CRESSET_ISA_JOIN_(a, b) a##b
#define CRESSET_ISA_JOIN(a, b) CRESSET_ISA_JOIN_(a, b)
#if defined(__clang__)
#define CRESSET_ISA_NUMBER 0  // Clang has no such pragma: every variant is baseline code
#else
#define CRESSET_ISA_NUMBER CRESSET_ISA_JOIN(CRESSET_ISA_NUMBER_, CRESSET_ISA_NAMESPACE)
#endif
#include "cpu/isa_target.h"
