// One register's worth of floats and their products and sums. For sources that are compiled once for each instruction set; included after
// isa_begin.h, where the machine has intrinsics after those.
#pragma once

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

typedef float FloatRegister __attribute__((vector_size(CRESSET_ISA_VECTOR_BYTES)));

// p need not be aligned.
inline __attribute__((always_inline)) FloatRegister load_register(const float* p) {
  FloatRegister v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline __attribute__((always_inline)) void store_register(FloatRegister v, float* p) { __builtin_memcpy(p, &v, sizeof v); }

// sum + a * b, in one instruction where there is one.
inline __attribute__((always_inline)) FloatRegister multiply_add(FloatRegister a, FloatRegister b, FloatRegister sum) {
#if CRESSET_ISA_VECTOR_BYTES == 64
  return _mm512_fmadd_ps(a, b, sum);
#elif CRESSET_ISA_HAS_AVX2
  return _mm256_fmadd_ps(a, b, sum);
#else
  return sum + a * b;
#endif
}

}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
