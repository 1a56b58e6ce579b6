// The Fortran interface of LAPACK: arguments by address, lengths of characters at the end, work space asked for first.
#include "backends/cpu/lapack.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <vector>

#include <cresset/base/error.h>

#include "backends/cpu/gemm.h"

using cresset::cpu::lapack::Int;
using Length = std::size_t;
using FloatComplex = std::complex<float>;
using DoubleComplex = std::complex<double>;

// _(element type, real type, prefix, prefix of the orthogonal or unitary family: or / un)
#define CRESSET_LAPACK_REAL(_) _(float, float, s, sor) _(double, double, d, dor)
#define CRESSET_LAPACK_COMPLEX(_) _(FloatComplex, float, c, cun) _(DoubleComplex, double, z, zun)

extern "C" {
#define CRESSET_DECLARE(T, R, p, q)                                                                                              \
  void p##potrf_(const char*, const Int*, T*, const Int*, Int*, Length);                                                         \
  void p##potri_(const char*, const Int*, T*, const Int*, Int*, Length);                                                         \
  void p##potrs_(const char*, const Int*, const Int*, const T*, const Int*, T*, const Int*, Int*, Length);                       \
  void p##getrf_(const Int*, const Int*, T*, const Int*, Int*, Int*);                                                            \
  void p##getrs_(const char*, const Int*, const Int*, const T*, const Int*, const Int*, T*, const Int*, Int*, Length);           \
  void p##trsm_(const char*, const char*, const char*, const char*, const Int*, const Int*, const T*, const T*, const Int*, T*,  \
                const Int*, Length, Length, Length, Length);                                                                     \
  void p##sytrf_(const char*, const Int*, T*, const Int*, Int*, T*, const Int*, Int*, Length);                                   \
  void p##sytrs_(const char*, const Int*, const Int*, const T*, const Int*, const Int*, T*, const Int*, Int*, Length);           \
  void p##geqrf_(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*);                                              \
  void q##gqr_(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*, const Int*, Int*);                              \
  void q##mqr_(const char*, const char*, const Int*, const Int*, const Int*, const T*, const Int*, const T*, T*, const Int*, T*, \
               const Int*, Int*, Length, Length);                                                                                \
  void p##gels_(const char*, const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, T*, const Int*, Int*, Length);
CRESSET_LAPACK_REAL(CRESSET_DECLARE)
CRESSET_LAPACK_COMPLEX(CRESSET_DECLARE)
#undef CRESSET_DECLARE

#define CRESSET_DECLARE(T, R, p, q)                                                                                                   \
  void p##geev_(const char*, const char*, const Int*, T*, const Int*, T*, T*, T*, const Int*, T*, const Int*, T*, const Int*, Int*,   \
                Length, Length);                                                                                                      \
  void p##syevd_(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, Int*, const Int*, Int*, Length, Length);   \
  void p##gesdd_(const char*, const Int*, const Int*, T*, const Int*, T*, T*, const Int*, T*, const Int*, T*, const Int*, Int*, Int*, \
                 Length);                                                                                                             \
  void p##gelsy_(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, Int*, const T*, Int*, T*, const Int*, Int*);     \
  void p##gelsd_(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, T*, const T*, Int*, T*, const Int*, Int*, Int*); \
  void p##gelss_(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, T*, const T*, Int*, T*, const Int*, Int*);
CRESSET_LAPACK_REAL(CRESSET_DECLARE)
#undef CRESSET_DECLARE

#define CRESSET_DECLARE(T, R, p, q)                                                                                                        \
  void p##hetrf_(const char*, const Int*, T*, const Int*, Int*, T*, const Int*, Int*, Length);                                             \
  void p##hetrs_(const char*, const Int*, const Int*, const T*, const Int*, const Int*, T*, const Int*, Int*, Length);                     \
  void p##geev_(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, T*, const Int*, T*, const Int*, R*, Int*,        \
                Length, Length);                                                                                                           \
  void p##heevd_(const char*, const char*, const Int*, T*, const Int*, R*, T*, const Int*, R*, const Int*, Int*, const Int*, Int*, Length, \
                 Length);                                                                                                                  \
  void p##gesdd_(const char*, const Int*, const Int*, T*, const Int*, R*, T*, const Int*, T*, const Int*, T*, const Int*, R*, Int*, Int*,  \
                 Length);                                                                                                                  \
  void p##gelsy_(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, Int*, const R*, Int*, T*, const Int*, R*, Int*);      \
  void p##gelsd_(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, R*, const R*, Int*, T*, const Int*, R*, Int*, Int*);  \
  void p##gelss_(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, R*, const R*, Int*, T*, const Int*, R*, Int*);
CRESSET_LAPACK_COMPLEX(CRESSET_DECLARE)
#undef CRESSET_DECLARE
}

namespace cresset::cpu::lapack {

Int to_int(int64_t n) {
  CRESSET_CHECK(n >= 0 && n <= std::numeric_limits<Int>::max(), "linalg: an extent of at most ", std::numeric_limits<Int>::max(),
                " was required; ", n, " was given.");
  return static_cast<Int>(n);
}

namespace {

double real_part(double x) { return x; }
template <class R>
double real_part(std::complex<R> x) {
  return x.real();
}

// Factorisations of smaller matrices lose more to waiting threads than they gain.
constexpr Int kThreadedOrder = 512;
void choose_threads(Int order) { set_blas_threads(order < kThreadedOrder); }

Int checked(const char* name, Int info) {
  CRESSET_INTERNAL_ASSERT(info >= 0, "LAPACK ", name, ": argument ", -info, " was refused");
  return info;
}

// Calls f(work, size, info) with size -1, which stores the best size in work[0], and then with that much work space.
template <class T, class F>
Int with_work(const char* name, Int order, const F& f) {
  choose_threads(order);
  T best{};
  Int size = -1, info = 0;
  f(&best, &size, &info);
  if (info != 0) return checked(name, info);
  // Single precision cannot hold every integer: the next one up is enough.
  const double wanted = real_part(best) * (1 + 2.0 * std::numeric_limits<float>::epsilon());
  size = std::max<Int>(1, static_cast<Int>(std::min(wanted + 1, double{std::numeric_limits<Int>::max()})));
  std::vector<T> work(static_cast<std::size_t>(size));
  f(work.data(), &size, &info);
  return info;
}

// Rows that the rank-revealing routines may pivot freely.
std::vector<Int> free_pivots(Int n) { return std::vector<Int>(static_cast<std::size_t>(std::max<Int>(n, 1)), 0); }

// Integer work space of gelsd: 3 * levels * k + 11 * k for k = min(m, n), with more levels than ever needed.
std::vector<Int> gelsd_iwork(Int m, Int n) {
  return std::vector<Int>(static_cast<std::size_t>(std::max<Int>(1, std::min(m, n))) * (3 * 32 + 11));
}

}  // namespace

namespace {
// Real geev stores a conjugate pair of vectors as two columns: real part, imaginary part of the one with positive im.
template <class R>
void unpack_vectors(Int n, const R* im, const R* packed, std::complex<R>* v) {
  const auto rows = static_cast<std::size_t>(n);
  for (std::size_t j = 0; j < rows; ++j) {
    const R* column = packed + j * rows;
    const bool pair = im[j] != R(0) && j + 1 < rows;
    for (std::size_t i = 0; i < rows; ++i) {
      v[j * rows + i] = {column[i], pair ? column[rows + i] : R(0)};
      if (pair) v[(j + 1) * rows + i] = {column[i], -column[rows + i]};
    }
    if (pair) ++j;
  }
}
}  // namespace

#define CRESSET_DEFINE(T, R, p, q)                                                                               \
  template <>                                                                                                    \
  Int potrf<T>(char uplo, Int n, T* a, Int lda) {                                                                \
    choose_threads(n);                                                                                           \
    Int info = 0;                                                                                                \
    p##potrf_(&uplo, &n, a, &lda, &info, 1);                                                                     \
    return checked("potrf", info);                                                                               \
  }                                                                                                              \
  template <>                                                                                                    \
  Int potri<T>(char uplo, Int n, T* a, Int lda) {                                                                \
    choose_threads(n);                                                                                           \
    Int info = 0;                                                                                                \
    p##potri_(&uplo, &n, a, &lda, &info, 1);                                                                     \
    return checked("potri", info);                                                                               \
  }                                                                                                              \
  template <>                                                                                                    \
  Int potrs<T>(char uplo, Int n, Int nrhs, const T* a, Int lda, T* b, Int ldb) {                                 \
    choose_threads(n);                                                                                           \
    Int info = 0;                                                                                                \
    p##potrs_(&uplo, &n, &nrhs, a, &lda, b, &ldb, &info, 1);                                                     \
    return checked("potrs", info);                                                                               \
  }                                                                                                              \
  template <>                                                                                                    \
  Int getrf<T>(Int m, Int n, T * a, Int lda, Int * pivots) {                                                     \
    choose_threads(std::min(m, n));                                                                              \
    Int info = 0;                                                                                                \
    p##getrf_(&m, &n, a, &lda, pivots, &info);                                                                   \
    return checked("getrf", info);                                                                               \
  }                                                                                                              \
  template <>                                                                                                    \
  Int getrs<T>(char trans, Int n, Int nrhs, const T* a, Int lda, const Int* pivots, T* b, Int ldb) {             \
    choose_threads(n);                                                                                           \
    Int info = 0;                                                                                                \
    p##getrs_(&trans, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);                                            \
    return checked("getrs", info);                                                                               \
  }                                                                                                              \
  template <>                                                                                                    \
  void trsm<T>(char side, char uplo, char trans, char diag, Int m, Int n, const T* a, Int lda, T* b, Int ldb) {  \
    choose_threads(side == 'L' ? m : n);                                                                         \
    const T one(1);                                                                                              \
    p##trsm_(&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb, 1, 1, 1, 1);                           \
  }                                                                                                              \
  template <>                                                                                                    \
  Int geqrf<T>(Int m, Int n, T * a, Int lda, T * tau) {                                                          \
    return checked("geqrf", with_work<T>("geqrf", std::min(m, n), [&](T* work, const Int* size, Int* info) {     \
                     p##geqrf_(&m, &n, a, &lda, tau, work, size, info);                                          \
                   }));                                                                                          \
  }                                                                                                              \
  template <>                                                                                                    \
  Int orgqr<T>(Int m, Int n, Int k, T * a, Int lda, const T* tau) {                                              \
    return checked("orgqr", with_work<T>("orgqr", k, [&](T* work, const Int* size, Int* info) {                  \
                     q##gqr_(&m, &n, &k, a, &lda, tau, work, size, info);                                        \
                   }));                                                                                          \
  }                                                                                                              \
  template <>                                                                                                    \
  Int ormqr<T>(char side, bool adjoint, Int m, Int n, Int k, const T* a, Int lda, const T* tau, T* c, Int ldc) { \
    const char trans = !adjoint ? 'N' : std::is_same_v<T, R> ? 'T' : 'C';                                        \
    return checked("ormqr", with_work<T>("ormqr", k, [&](T* work, const Int* size, Int* info) {                  \
                     q##mqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, size, info, 1, 1);          \
                   }));                                                                                          \
  }                                                                                                              \
  template <>                                                                                                    \
  Int gels<T>(Int m, Int n, Int nrhs, T * a, Int lda, T * b, Int ldb) {                                          \
    const char trans = 'N';                                                                                      \
    return checked("gels", with_work<T>("gels", std::min(m, n), [&](T* work, const Int* size, Int* info) {       \
                     p##gels_(&trans, &m, &n, &nrhs, a, &lda, b, &ldb, work, size, info, 1);                     \
                   }));                                                                                          \
  }
CRESSET_LAPACK_REAL(CRESSET_DEFINE)
CRESSET_LAPACK_COMPLEX(CRESSET_DEFINE)
#undef CRESSET_DEFINE

#define CRESSET_DEFINE(T, R, p, q)                                                                                                         \
  template <>                                                                                                                              \
  Int sytrf<T>(bool, char uplo, Int n, T* a, Int lda, Int* pivots) {                                                                       \
    return checked("sytrf", with_work<T>("sytrf", n, [&](T* work, const Int* size, Int* info) {                                            \
                     p##sytrf_(&uplo, &n, a, &lda, pivots, work, size, info, 1);                                                           \
                   }));                                                                                                                    \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  Int sytrs<T>(bool, char uplo, Int n, Int nrhs, const T* a, Int lda, const Int* pivots, T* b, Int ldb) {                                  \
    choose_threads(n);                                                                                                                     \
    Int info = 0;                                                                                                                          \
    p##sytrs_(&uplo, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);                                                                       \
    return checked("sytrs", info);                                                                                                         \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  Int geev<T>(Int n, T * a, Int lda, std::complex<T> * w, std::complex<T> * v) {                                                           \
    const char left = 'N', right = v ? 'V' : 'N';                                                                                          \
    const Int one = 1;                                                                                                                     \
    const auto size_n = static_cast<std::size_t>(n);                                                                                       \
    std::vector<T> re(size_n), im(size_n), vectors(v ? size_n* size_n : 1);                                                                \
    const Int info =                                                                                                                       \
        checked("geev", with_work<T>("geev", n, [&](T* work, const Int* size, Int* status) {                                               \
                  p##geev_(&left, &right, &n, a, &lda, re.data(), im.data(), nullptr, &one, vectors.data(), &n, work, size, status, 1, 1); \
                }));                                                                                                                       \
    for (std::size_t j = 0; j < size_n; ++j) w[j] = {re[j], im[j]};                                                                        \
    if (v) unpack_vectors(n, im.data(), vectors.data(), v);                                                                                \
    return info;                                                                                                                           \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  Int syevd<T>(bool vectors, char uplo, Int n, T* a, Int lda, T* w) {                                                                      \
    const char job = vectors ? 'V' : 'N';                                                                                                  \
    Int liwork = -1, best = 0, status = 0;                                                                                                 \
    T ignored{};                                                                                                                           \
    p##syevd_(&job, &uplo, &n, a, &lda, w, &ignored, &liwork, &best, &liwork, &status, 1, 1);                                              \
    liwork = std::max<Int>(best, 1);                                                                                                       \
    std::vector<Int> iwork(static_cast<std::size_t>(liwork));                                                                              \
    return checked("syevd", with_work<T>("syevd", n, [&](T* work, const Int* size, Int* info) {                                            \
                     p##syevd_(&job, &uplo, &n, a, &lda, w, work, size, iwork.data(), &liwork, info, 1, 1);                                \
                   }));                                                                                                                    \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  Int gesdd<T>(char job, Int m, Int n, T* a, Int lda, T* s, T* u, Int ldu, T* vh, Int ldvh) {                                              \
    std::vector<Int> iwork(8 * static_cast<std::size_t>(std::min(m, n)));                                                                  \
    return with_work<T>("gesdd", std::min(m, n), [&](T* work, const Int* size, Int* info) {                                                \
      p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, work, size, iwork.data(), info, 1);                                          \
    });                                                                                                                                    \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  Int gelsy<T>(Int m, Int n, Int nrhs, T * a, Int lda, T * b, Int ldb, T rcond, Int * rank) {                                              \
    std::vector<Int> pivots = free_pivots(n);                                                                                              \
    return checked("gelsy", with_work<T>("gelsy", std::min(m, n), [&](T* work, const Int* size, Int* info) {                               \
                     p##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, pivots.data(), &rcond, rank, work, size, info);                            \
                   }));                                                                                                                    \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  Int gelsd<T>(Int m, Int n, Int nrhs, T * a, Int lda, T * b, Int ldb, T * s, T rcond, Int * rank) {                                       \
    std::vector<Int> iwork = gelsd_iwork(m, n);                                                                                            \
    return checked("gelsd", with_work<T>("gelsd", std::min(m, n), [&](T* work, const Int* size, Int* info) {                               \
                     p##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, iwork.data(), info);                          \
                   }));                                                                                                                    \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  Int gelss<T>(Int m, Int n, Int nrhs, T * a, Int lda, T * b, Int ldb, T * s, T rcond, Int * rank) {                                       \
    return checked("gelss", with_work<T>("gelss", std::min(m, n), [&](T* work, const Int* size, Int* info) {                               \
                     p##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, info);                                        \
                   }));                                                                                                                    \
  }
CRESSET_LAPACK_REAL(CRESSET_DEFINE)
#undef CRESSET_DEFINE

#define CRESSET_DEFINE(T, R, p, q)                                                                                                    \
  template <>                                                                                                                         \
  Int sytrf<T>(bool hermitian, char uplo, Int n, T* a, Int lda, Int* pivots) {                                                        \
    return checked("sytrf", with_work<T>("sytrf", n, [&](T* work, const Int* size, Int* info) {                                       \
                     (hermitian ? p##hetrf_ : p##sytrf_)(&uplo, &n, a, &lda, pivots, work, size, info, 1);                            \
                   }));                                                                                                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  Int sytrs<T>(bool hermitian, char uplo, Int n, Int nrhs, const T* a, Int lda, const Int* pivots, T* b, Int ldb) {                   \
    choose_threads(n);                                                                                                                \
    Int info = 0;                                                                                                                     \
    (hermitian ? p##hetrs_ : p##sytrs_)(&uplo, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);                                        \
    return checked("sytrs", info);                                                                                                    \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  Int geev<T>(Int n, T * a, Int lda, T * w, T * v) {                                                                                  \
    const char left = 'N', right = v ? 'V' : 'N';                                                                                     \
    const Int one = 1;                                                                                                                \
    T none{};                                                                                                                         \
    std::vector<R> rwork(2 * static_cast<std::size_t>(n));                                                                            \
    return checked("geev", with_work<T>("geev", n, [&](T* work, const Int* size, Int* info) {                                         \
                     p##geev_(&left, &right, &n, a, &lda, w, nullptr, &one, v ? v : &none, &n, work, size, rwork.data(), info, 1, 1); \
                   }));                                                                                                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  Int syevd<T>(bool vectors, char uplo, Int n, T* a, Int lda, R* w) {                                                                 \
    const char job = vectors ? 'V' : 'N';                                                                                             \
    Int ask = -1, liwork = 0, status = 0;                                                                                             \
    T ignored{};                                                                                                                      \
    R best{};                                                                                                                         \
    p##heevd_(&job, &uplo, &n, a, &lda, w, &ignored, &ask, &best, &ask, &liwork, &ask, &status, 1, 1);                                \
    liwork = std::max<Int>(liwork, 1);                                                                                                \
    const Int lrwork = vectors ? 1 + 5 * n + 2 * to_int(int64_t{n} * n) : std::max<Int>(n, 1);                                        \
    std::vector<Int> iwork(static_cast<std::size_t>(liwork));                                                                         \
    std::vector<R> rwork(static_cast<std::size_t>(std::max<Int>(lrwork, 1)));                                                         \
    return checked("heevd", with_work<T>("heevd", n, [&](T* work, const Int* size, Int* info) {                                       \
                     p##heevd_(&job, &uplo, &n, a, &lda, w, work, size, rwork.data(), &lrwork, iwork.data(), &liwork, info, 1, 1);    \
                   }));                                                                                                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  Int gesdd<T>(char job, Int m, Int n, T* a, Int lda, R* s, T* u, Int ldu, T* vh, Int ldvh) {                                         \
    const auto small = static_cast<std::size_t>(std::min(m, n)), large = static_cast<std::size_t>(std::max(m, n));                    \
    std::vector<Int> iwork(8 * small);                                                                                                \
    std::vector<R> rwork(std::max<std::size_t>(                                                                                       \
        1, job == 'N' ? 7 * small : std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small)));         \
    return with_work<T>("gesdd", std::min(m, n), [&](T* work, const Int* size, Int* info) {                                           \
      p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, work, size, rwork.data(), iwork.data(), info, 1);                       \
    });                                                                                                                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  Int gelsy<T>(Int m, Int n, Int nrhs, T * a, Int lda, T * b, Int ldb, R rcond, Int * rank) {                                         \
    std::vector<Int> pivots = free_pivots(n);                                                                                         \
    std::vector<R> rwork(2 * static_cast<std::size_t>(std::max<Int>(n, 1)));                                                          \
    return checked("gelsy", with_work<T>("gelsy", std::min(m, n), [&](T* work, const Int* size, Int* info) {                          \
                     p##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, pivots.data(), &rcond, rank, work, size, rwork.data(), info);         \
                   }));                                                                                                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  Int gelsd<T>(Int m, Int n, Int nrhs, T * a, Int lda, T * b, Int ldb, R * s, R rcond, Int * rank) {                                  \
    std::vector<Int> iwork = gelsd_iwork(m, n);                                                                                       \
    R best{};                                                                                                                         \
    T ignored{};                                                                                                                      \
    Int ask = -1, status = 0;                                                                                                         \
    p##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &ignored, &ask, &best, iwork.data(), &status);                        \
    std::vector<R> rwork(static_cast<std::size_t>(std::max(R(1), best)) * 5 / 4 + 1);                                                 \
    return checked("gelsd", with_work<T>("gelsd", std::min(m, n), [&](T* work, const Int* size, Int* info) {                          \
                     p##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, rwork.data(), iwork.data(), info);       \
                   }));                                                                                                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  Int gelss<T>(Int m, Int n, Int nrhs, T * a, Int lda, T * b, Int ldb, R * s, R rcond, Int * rank) {                                  \
    std::vector<R> rwork(5 * static_cast<std::size_t>(std::max<Int>(1, std::min(m, n))));                                             \
    return checked("gelss", with_work<T>("gelss", std::min(m, n), [&](T* work, const Int* size, Int* info) {                          \
                     p##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, rwork.data(), info);                     \
                   }));                                                                                                               \
  }
CRESSET_LAPACK_COMPLEX(CRESSET_DEFINE)
#undef CRESSET_DEFINE

}  // namespace cresset::cpu::lapack
