// What kernels of factorisations share: column-major copies and walks over batches of matrices.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>

#include <cresset/core/dispatch_types.h>
#include <cresset/core/tensor.h>

#include "backends/cpu/lapack.h"
#include "ops/decomposition.h"

namespace cresset::cpu {

/// The types LAPACK computes in.
#define CRESSET_LAPACK_TYPES(...) CRESSET_CASES_FLOATING(__VA_ARGS__) CRESSET_CASES_COMPLEX(__VA_ARGS__)

/// Number of matrices in a batch.
inline int64_t matrix_count(const Tensor& t) {
  int64_t n = 1;
  for (int64_t d = 0; d < t.dim() - 2; ++d) n *= t.size(d);
  return n;
}

/// A new column-major tensor with the values of t, broadcast to `sizes`.
inline Tensor column_major_copy(const Tensor& t, IntArrayRef sizes) {
  Tensor out = detail::empty_strided_cpu(sizes, ops::column_major_strides(sizes), t.scalar_type());
  out.copy_(t.sizes() == sizes ? t : t.expand(sizes));
  return out;
}
inline Tensor column_major_copy(const Tensor& t) { return column_major_copy(t, t.sizes()); }

/// t itself where its matrices lie column by column one after the other, otherwise a copy that does.
inline Tensor column_major(const Tensor& t, IntArrayRef sizes) {
  return t.sizes() == sizes && t.strides() == IntArrayRef(ops::column_major_strides(sizes)) ? t : column_major_copy(t, sizes);
}
inline Tensor column_major(const Tensor& t) { return column_major(t, t.sizes()); }

/// Matrices of one column-major tensor, by number.
template <class T>
struct Matrices {
  T* data;
  int64_t rows, columns;
  lapack::Int ld;

  explicit Matrices(const Tensor& t)
      : data(t.data_ptr<T>()), rows(t.size(-2)), columns(t.size(-1)), ld(lapack::to_int(std::max<int64_t>(1, rows))) {}
  T* operator[](int64_t i) const { return data + i * rows * columns; }
};

template <class T>
T conjugate(T x) {
  return x;
}
template <class T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}
template <class T>
bool is_finite(T x) {
  return std::isfinite(x);
}
template <class T>
bool is_finite(std::complex<T> x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}
template <class T>
bool all_finite(const T* data, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!is_finite(data[i])) return false;
  return true;
}

/// Sets what lies on one side of the diagonal to zero; `uplo` names the triangle that stays.
template <class T>
void keep_triangle(char uplo, int64_t rows, int64_t columns, T* a) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      if (uplo == 'L' ? i < j : i > j) a[i + j * rows] = T(0);
}

}  // namespace cresset::cpu
