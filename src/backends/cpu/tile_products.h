// Products of matrices that no BLAS has (integers, whose sums wrap around) or that are too small for one (floats), compiled for every
// instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"

namespace cresset::cpu {

// c = alpha * a b + beta * c for a (m, k), b (k, n) of any strides and c of rows `ldc` elements apart; with beta 0 what c was does not
// count. T: int8_t, uint8_t, int16_t, int32_t, int64_t, float, double.
CRESSET_IN_EACH_ISA(template <class T> void tile_product(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b,
                                                         MatrixRef br, T beta, T* c, int64_t ldc);)

template <class T>
using TileProduct = void (*)(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c,
                             int64_t ldc);
CRESSET_IN_EACH_ISA(template <class T> inline constexpr TileProduct<T> tile_product_pointer = tile_product<T>;)
template <class T>
TileProduct<T> find_tile_product() {
  return CRESSET_FOR_THIS_PROCESSOR(tile_product_pointer<T>);
}

}  // namespace cresset::cpu
