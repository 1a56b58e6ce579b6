// LAPACK for float, double and their complex types. Matrices are column-major: element (i, j) at a[i + j * lda].
// Every function returns LAPACK's info: 0, or i > 0 where the algorithm stopped. A negative one (a bad argument) is a defect.
#pragma once

#include <cstdint>

#include <cresset/core/scalar_type.h>

namespace cresset::cpu::lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

/// Extents and pivots as LAPACK has them.
using Int = int32_t;
/// Raises when an extent does not fit.
Int to_int(int64_t n);

// Cholesky: A = L L^H ('L') or U^H U ('U').
template <class T>
Int potrf(char uplo, Int n, T* a, Int lda);
template <class T>
Int potri(char uplo, Int n, T* a, Int lda);
template <class T>
Int potrs(char uplo, Int n, Int nrhs, const T* a, Int lda, T* b, Int ldb);

// LU with row exchanges: pivots count from 1.
template <class T>
Int getrf(Int m, Int n, T* a, Int lda, Int* pivots);
template <class T>
Int getrs(char trans, Int n, Int nrhs, const T* a, Int lda, const Int* pivots, T* b, Int ldb);
/// B = op(A)^-1 B, or B op(A)^-1 for side 'R'; B has m rows and n columns.
template <class T>
void trsm(char side, char uplo, char trans, char diag, Int m, Int n, const T* a, Int lda, T* b, Int ldb);

// Bunch-Kaufman: symmetric (also complex) or Hermitian.
template <class T>
Int sytrf(bool hermitian, char uplo, Int n, T* a, Int lda, Int* pivots);
template <class T>
Int sytrs(bool hermitian, char uplo, Int n, Int nrhs, const T* a, Int lda, const Int* pivots, T* b, Int ldb);

// QR and products of Householder reflections.
template <class T>
Int geqrf(Int m, Int n, T* a, Int lda, T* tau);
template <class T>
Int orgqr(Int m, Int n, Int k, T* a, Int lda, const T* tau);
/// C = op(Q) C or C op(Q); adjoint says op = conjugate transpose.
template <class T>
Int ormqr(char side, bool adjoint, Int m, Int n, Int k, const T* a, Int lda, const T* tau, T* c, Int ldc);

/// Eigenvalues w and, unless v is null, right eigenvectors (n x n, dense) of a general matrix, which is destroyed.
template <class T>
Int geev(Int n, T* a, Int lda, std::complex<Real<T>>* w, std::complex<Real<T>>* v);
/// Eigenvalues w in ascending order of a Hermitian matrix; eigenvectors replace a when wanted.
template <class T>
Int syevd(bool vectors, char uplo, Int n, T* a, Int lda, Real<T>* w);
/// Singular values; job 'A' all, 'S' the first min(m, n), 'N' no vectors. Destroys a.
template <class T>
Int gesdd(char job, Int m, Int n, T* a, Int lda, Real<T>* s, T* u, Int ldu, T* vh, Int ldvh);

// Least squares: b (max(m, n) rows) becomes the solution. Destroys a.
template <class T>
Int gels(Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb);
template <class T>
Int gelsy(Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, Real<T> rcond, Int* rank);
template <class T>
Int gelsd(Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, Real<T>* s, Real<T> rcond, Int* rank);
template <class T>
Int gelss(Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, Real<T>* s, Real<T> rcond, Int* rank);

}  // namespace cresset::cpu::lapack
