// Products of matrices of integers, compiled for every instruction set. Sums wrap around, as all arithmetic of integers here.
#pragma once

#include <cstdint>

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"

namespace cresset::cpu {

// c = alpha * a b + beta * c for a (m, k), b (k, n) of any strides and c of rows `ldc` elements apart; with beta 0 what c was does not
// count. T: int8_t, uint8_t, int16_t, int32_t, int64_t.
CRESSET_IN_EACH_ISA(template <class T> void integer_product(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b,
                                                            MatrixRef br, T beta, T* c, int64_t ldc);)

template <class T>
using IntegerProduct = void (*)(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c,
                                int64_t ldc);
CRESSET_IN_EACH_ISA(template <class T> inline constexpr IntegerProduct<T> integer_product_pointer = integer_product<T>;)
template <class T>
IntegerProduct<T> find_integer_product() {
  return CRESSET_FOR_THIS_PROCESSOR(integer_product_pointer<T>);
}

}  // namespace cresset::cpu
