// Matrix products on raw places, for matmul and convolution.
#pragma once

#include "launch.h"

namespace cresset_opencl {

/// A matrix inside a tensor, or one for each number of a batch; offsets and strides in elements.
struct Matrix {
  Tensor tensor;
  int64_t offset = 0;
  int64_t batch = 0;
  int64_t row = 0;
  int64_t column = 1;
};

/// out = alpha a b + beta c0 for each of `batch` products of (m, k) and (k, n). b and out must have column 1; c0 may be undefined when beta
/// is 0. All have one type, c0 perhaps another one that computes alike.
struct Gemm {
  int64_t batch, m, n, k;
  Matrix a, b, c0, out;
  double alpha = 1, beta = 0;
};
void gemm(const Gemm& g);

/// A matrix or batch of matrices as an operand: its own strides where `any` or its columns lie side by side, else a dense copy.
Matrix matrix_of(const Tensor& t, bool any);

}  // namespace cresset_opencl
