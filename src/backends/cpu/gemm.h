// Dense products over raw memory: the one place that talks to BLAS (LAPACK: lapack.h).
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::cpu {

/// A matrix in memory: element (i, j) at data[i * row + j * column] elements; one of the strides is 1 or the extent is.
struct MatrixRef {
  const void* data;
  int64_t row, column;
};

/// C (m, n), row-major with row stride ldc, becomes alpha * A (m, k) @ B (k, n) + beta * C. beta = 0 does not read C.
/// All of one dtype; bool raises NotImplementedError named after `op`.
void gemm(const char* op, ScalarType dtype, int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixRef a, MatrixRef b,
          const Scalar& beta, void* c, int64_t ldc);

/// Whether oneDNN multiplies matrices of bfloat16 on this processor.
bool onednn_has_bfloat16();

/// gemm for bfloat16, rounded once (src/backends/cpu/gemm_onednn.cpp). False when oneDNN cannot; nothing is written then.
bool onednn_bfloat16_gemm(int64_t m, int64_t n, int64_t k, float alpha, MatrixRef a, MatrixRef b, float beta, void* c, int64_t ldc);

/// Whether the next function is faster than OpenBLAS for a product of m rows, n columns and k terms.
bool onednn_sgemm_is_faster(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb);

/// Whether it pays to turn the first operand for it, with rows of the second one ldb elements apart.
bool onednn_sgemm_wants_first_turned(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t ldb);

/// gemm for float by oneDNN on the calling thread alone. The leading dimensions are BLAS's, of row-major matrices that are transposed
/// first when told so. False where oneDNN has no machine code for it; nothing is written then.
bool onednn_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                  const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

/// Gives BLAS and LAPACK as many threads as parallel_for has; one inside of a parallel region, and when the work is `small` or
/// a part of one that the pool's threads share.
/// Called before each call of theirs.
void set_blas_threads(bool small = false);

/// Can BLAS read this (rows, columns) matrix as it is, row by row or column by column?
bool blas_readable(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride);

}  // namespace cresset::cpu
