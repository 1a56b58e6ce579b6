// gemm: OpenBLAS for float, double and complex; own tiles for integers and for products too small to be worth a call;
// half types go through float; bfloat16 and the products of floats at which it is faster through oneDNN.
#include "backends/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>
#include <vector>

#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/from_blob.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/few_rows_loops.h"
#include "backends/cpu/packed_loops.h"
#include "backends/cpu/panel_products.h"
#include "backends/cpu/tile_products.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

void set_blas_threads(bool small) {
  static std::atomic<int> current{0};
  const int wanted = small || in_parallel_region() ? 1 : get_num_threads();
  if (current.exchange(wanted, std::memory_order_relaxed) != wanted) openblas_set_num_threads(wanted);
}

namespace {

// Everything but bool.
#define CRESSET_GEMM_TYPES(...) CRESSET_REAL_TYPES(__VA_ARGS__) CRESSET_CASES_COMPLEX(__VA_ARGS__)

constexpr int64_t kWorthOnednn = 32 * 32 * 32;  // multiply-adds that pay for making a oneDNN primitive
constexpr int64_t kConverted = 1 << 16;         // elements of half types worth waking a thread for
constexpr int64_t kWorthFewRows = 1 << 18;      // multiply-adds: of fewer BLAS's copies cost nothing
// Multiply-adds up to which a BLAS call costs more than it saves.
template <class T>
constexpr int64_t kSmall = is_complex_v<T> ? 512 : 4096;

template <class T>
void small_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    if (beta == T(0))
      for (int64_t j = 0; j < n; ++j) row[j] = T(0);
    else if (beta != T(1))
      for (int64_t j = 0; j < n; ++j) row[j] *= beta;
    if (br.column == 1 && n > 1) {
      for (int64_t p = 0; p < k; ++p) {
        const T x = alpha * a[i * ar.row + p * ar.column];
        const T* const from = b + p * br.row;
        for (int64_t j = 0; j < n; ++j) row[j] += x * from[j];
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        T sum = T(0);
        for (int64_t p = 0; p < k; ++p) sum += a[i * ar.row + p * ar.column] * b[p * br.row + j * br.column];
        row[j] += alpha * sum;
      }
    }
  }
}

template <class T>
void integer_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c, int64_t ldc) {
  constexpr int64_t kFewRows = 4;                    // with the columns of b they are products of vectors
  constexpr int64_t kLeastRows = 8, kPartRows = 64;  // that pay for copying b for each part
  constexpr int64_t kWork = int64_t{1} << 16;        // multiply-adds worth waking a thread for
  constexpr int64_t kLong = int64_t{1} << 27;        // multiply-adds: less than half a second, between which the product can be stopped
  const int64_t of_row = std::max<int64_t>(1, n * k), rows = std::clamp(kLong / of_row, kLeastRows, kPartRows);
  const auto product = m < kFewRows && br.column != 1 ? small_gemm<T> : find_tile_product<T>();
  parallel_for(0, m, std::max(rows, kWork / of_row), [&](int64_t begin, int64_t end) {
    product(end - begin, n, k, alpha, a + begin * ar.row, ar, b, br, beta, c + begin * ldc, ldc);
  });
}

// Too few multiply-adds for BLAS, or no terms.
template <class T>
void small_product(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c,
                   int64_t ldc) {
  constexpr bool has_tiles = std::is_same_v<T, float> || std::is_same_v<T, double>;
  if constexpr (has_tiles)
    if (k > 1 && m > 1 && n > 1) return find_tile_product<T>()(m, n, k, alpha, a, ar, b, br, beta, c, ldc);
  small_gemm<T>(m, n, k, alpha, a, ar, b, br, beta, c, ldc);
}

struct Operand {
  CBLAS_TRANSPOSE transpose;
  blasint ld;
};
// Row-major BLAS reads rows with unit column stride, or columns with unit row stride when told to transpose.
Operand operand(MatrixRef r, int64_t rows, int64_t columns) {
  if (r.column == 1 && (rows == 1 || r.row >= std::max<int64_t>(1, columns)))
    return {CblasNoTrans, static_cast<blasint>(std::max({r.row, columns, int64_t{1}}))};
  return {CblasTrans, static_cast<blasint>(std::max({r.column, rows, int64_t{1}}))};
}

template <class T>
bool goes_to_onednn(int64_t m, int64_t n, int64_t k, const Operand& a, const Operand& b) {
  return std::is_same_v<T, float> && onednn_sgemm_is_faster(a.transpose == CblasTrans, b.transpose == CblasTrans, m, n, k, a.ld, b.ld);
}

template <class T>
void blas_gemv(CBLAS_TRANSPOSE t, int64_t rows, int64_t columns, T alpha, const T* matrix, blasint ld, const T* v, int64_t step, T beta,
               T* out, int64_t out_step) {
  const auto M = static_cast<blasint>(rows), N = static_cast<blasint>(columns), from = static_cast<blasint>(std::max<int64_t>(step, 1)),
             to = static_cast<blasint>(out_step);
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemv(CblasRowMajor, t, M, N, alpha, matrix, ld, v, from, beta, out, to);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dgemv(CblasRowMajor, t, M, N, alpha, matrix, ld, v, from, beta, out, to);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    cblas_cgemv(CblasRowMajor, t, M, N, &alpha, matrix, ld, v, from, &beta, out, to);
  else
    cblas_zgemv(CblasRowMajor, t, M, N, &alpha, matrix, ld, v, from, &beta, out, to);
}

template <class T>
T blas_dot(int64_t n, const T* a, int64_t a_step, const T* b, int64_t b_step) {
  const auto N = static_cast<blasint>(n), x = static_cast<blasint>(std::max<int64_t>(a_step, 1)),
             y = static_cast<blasint>(std::max<int64_t>(b_step, 1));
  if constexpr (std::is_same_v<T, float>)
    return cblas_sdot(N, a, x, b, y);
  else
    return cblas_ddot(N, a, x, b, y);
}

// A part of a product of one row or one column, for which plain gemm is far from memory speed.
template <class T>
void vector_part(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c, int64_t ldc) {
  const Operand x = operand(ar, m, k), y = operand(br, k, n);
  if constexpr (!is_complex_v<T>)
    if (m == 1 && n == 1) {
      const T before = beta == T(0) ? T(0) : beta * *c;
      *c = before + alpha * blas_dot(k, a, ar.column, b, br.row);
      return;
    }
  if (m == 1 && y.transpose == CblasNoTrans)
    blas_gemv(CblasTrans, k, n, alpha, b, y.ld, a, ar.column, beta, c, 1);
  else if (m == 1)
    blas_gemv(CblasNoTrans, n, k, alpha, b, y.ld, a, ar.column, beta, c, 1);
  else if (x.transpose == CblasNoTrans)
    blas_gemv(CblasNoTrans, m, k, alpha, a, x.ld, b, br.row, beta, c, ldc);
  else
    blas_gemv(CblasTrans, k, m, alpha, a, x.ld, b, br.row, beta, c, ldc);
}

// A matrix of floats in memory, and a copy of it by rows.
Tensor matrix_at(const float* data, int64_t rows, int64_t columns, MatrixRef strides) {
  return from_blob(const_cast<float*>(data), {rows, columns}, {strides.row, strides.column}, TensorOptions(kFloat));
}
Tensor by_rows(const float* data, int64_t rows, int64_t columns, MatrixRef strides) {
  const Tensor copy = detail::empty_cpu({rows, columns}, kFloat);
  ops::copy_data(matrix_at(data, rows, columns, strides), copy);
  return copy;
}

// False where OpenBLAS is quicker.
bool onednn_part(int64_t m, int64_t n, int64_t k, float alpha, const float* a, MatrixRef ar, const float* b, MatrixRef br, float beta,
                 float* c, int64_t ldc) {
  const Operand x = operand(ar, m, k), y = operand(br, k, n);
  const bool turned_a = x.transpose == CblasTrans, turned_b = y.transpose == CblasTrans;
  if (!goes_to_onednn<float>(m, n, k, x, y)) return false;
  if (!onednn_sgemm_wants_first_turned(turned_a, turned_b, m, n, y.ld))
    return onednn_sgemm(turned_a, turned_b, m, n, k, alpha, a, x.ld, b, y.ld, beta, c, ldc);
  const Tensor columns = by_rows(a, k, m, {nullptr, ar.column, ar.row});
  return onednn_sgemm(true, turned_b, m, n, k, alpha, columns.const_data_ptr<float>(), m, b, y.ld, beta, c, ldc);
}

// A part of a product. `vector`: the whole product has one row or one column.
template <class T>
void blas_part(bool vector, int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c,
               int64_t ldc) {
  if (vector) return vector_part(m, n, k, alpha, a, ar, b, br, beta, c, ldc);
  const Operand x = operand(ar, m, k), y = operand(br, k, n);
  const auto M = static_cast<blasint>(m), N = static_cast<blasint>(n), K = static_cast<blasint>(k),
             L = static_cast<blasint>(std::max<int64_t>(ldc, n));
  if constexpr (std::is_same_v<T, float>) {
    if (onednn_part(m, n, k, alpha, a, ar, b, br, beta, c, L)) return;
    if (m <= kFewRows && y.transpose == CblasNoTrans && m * n * k > kWorthFewRows)
      few_rows_product({m, n, k, alpha, a, ar.row, ar.column, b, br.row, beta, c, ldc});
    else
      cblas_sgemm(CblasRowMajor, x.transpose, y.transpose, M, N, K, alpha, a, x.ld, b, y.ld, beta, c, L);
  } else if constexpr (std::is_same_v<T, double>)
    cblas_dgemm(CblasRowMajor, x.transpose, y.transpose, M, N, K, alpha, a, x.ld, b, y.ld, beta, c, L);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    cblas_cgemm(CblasRowMajor, x.transpose, y.transpose, M, N, K, &alpha, a, x.ld, b, y.ld, &beta, c, L);
  else
    cblas_zgemm(CblasRowMajor, x.transpose, y.transpose, M, N, K, &alpha, a, x.ld, b, y.ld, &beta, c, L);
}

// Parts of a result for threads: rows by columns of them, with sides of a multiple of kPartUnit.
struct Parts {
  int64_t rows = 1, columns = 1;
  int64_t height, width;

  // Of m rows, with heights that are multiples of `unit`.
  Parts of_rows(int64_t m, int64_t unit) const {
    const int64_t higher = (height + unit - 1) / unit * unit;
    return {(m + higher - 1) / higher, columns, higher, width};
  }
};
constexpr int64_t kPartUnit = 16;                // elements that OpenBLAS's kernels compute side by side: parts do not change how
constexpr int64_t kPartWork = int64_t{1} << 18;  // multiply-adds worth waking a thread for
constexpr int64_t kFewTerms = 32;                // products of fewer terms wait for memory rather than for arithmetic
constexpr int64_t kLongPart = int64_t{1} << 31;  // multiply-adds: less than a tenth of a second
constexpr int64_t kHeldPart = int64_t{1} << 26;  // a millisecond: what a thread that is held up may keep to itself
constexpr int64_t kShares = 2;                   // of a thread
constexpr int64_t kMostParts = 512;
constexpr int64_t kPartElements = 1 << 15;  // of such a product: BLAS goes over the result twice, the second time in the cache

// At most `limit` parts. The time of one: its multiply-adds, and reading its share of both operands, an element like kPartUnit of those.
// Parts beside each other fetch each other's lines, which counts where terms are few; of two that take as long the one of more rows is
// best.
Parts parts_of(int64_t m, int64_t n, int64_t k, int64_t limit) {
  const auto side = [](int64_t size, int64_t parts) { return ((size + parts - 1) / parts + kPartUnit - 1) / kPartUnit * kPartUnit; };
  Parts best{1, 1, m, n};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t rows = 1; rows <= limit; ++rows) {
    const int64_t columns = limit / rows;
    if (rows * columns != limit) continue;
    const int64_t height = side(m, rows), width = side(n, columns);
    const int64_t time = height * width * (columns > 1 && k < kFewTerms ? 2 : 1) + (height + width) * kPartUnit;
    if (time > least) continue;
    least = time;
    best = {(m + height - 1) / height, (n + width - 1) / width, height, width};
  }
  return best;
}

// One for each thread where there is work enough, some more where a thread may be held up, and as many as let big products be stopped
// between two parts.
int64_t number_of_parts(int64_t work, bool vector, int64_t threads) {
  const int64_t each = std::clamp<int64_t>(work / kPartWork, 1, threads);
  return vector ? each
                : each * std::clamp<int64_t>(std::max(work / each / kLongPart, std::min(work / each / kHeldPart, each > 1 ? kShares : 1)),
                                             1, kMostParts);
}

// Parts of kPartElements, each some whole rows.
Parts bands(int64_t m, int64_t n) {
  const int64_t height = std::max(kPartElements / n / kPartUnit, int64_t{1}) * kPartUnit;
  return {(m + height - 1) / height, 1, height, n};
}

int64_t threads_here() { return in_parallel_region() ? 1 : get_num_threads(); }

// The pool's threads call f(row, column, height, width) for the parts of a result.
template <class F>
void each_part(const Parts& parts, int64_t m, int64_t n, const F& f) {
  parallel_for(0, parts.rows * parts.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      check_interrupt();
      const int64_t row = i / parts.columns * parts.height, column = i % parts.columns * parts.width;
      f(row, column, std::min(parts.height, m - row), std::min(parts.width, n - column));
    }
  });
}

template <class T>
void blas_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c, int64_t ldc);

// With AVX-512 oneDNN reads a second operand by columns, which a linear layer's weight is, one number of each line at a time (0.2 to 2 ns
// an element); products of our own read it along its lines, and where they are too short to pay, a copy by rows is read. Where both
// operands lie by columns the product of the other way round has none, and is turned back, or the first one is copied. False where the
// product is as quick as it is. Figures: docs/design/pointwise.md, Products.
bool column_gemm(int64_t m, int64_t n, int64_t k, float alpha, const float* a, MatrixRef ar, const float* b, MatrixRef br, float beta,
                 float* c, int64_t ldc) {
  constexpr int64_t kShortLines = 128, kManyRows = 16;
  const PanelLoops& loops = find_panel_loops();
  const Operand x = operand(ar, m, k), y = operand(br, k, n);
  if (loops.panel == 0 || y.transpose == CblasNoTrans || m == 1 || n == 1 || !goes_to_onednn<float>(m, n, k, x, y)) return false;
  if (m >= kManyRows && x.transpose == CblasTrans && n <= k) {
    const MatrixRef turned_b{nullptr, br.column, br.row}, turned_c{nullptr, 1, ldc};
    const Tensor result = beta == 0 ? detail::empty_cpu({n, m}, kFloat) : by_rows(c, n, m, turned_c);
    blas_gemm<float>(n, m, k, alpha, b, turned_b, a, {nullptr, ar.column, ar.row}, beta, result.data_ptr<float>(), m);
    ops::copy_data(result, matrix_at(c, n, m, turned_c));
    return true;
  }
  if (m >= kManyRows && k <= kShortLines) {
    const Tensor rows = by_rows(b, k, n, br);
    blas_gemm<float>(m, n, k, alpha, a, ar, rows.const_data_ptr<float>(), {nullptr, n, 1}, beta, c, ldc);
    return true;
  }
  Tensor rows;
  if (x.transpose == CblasTrans || alpha != 1) {
    rows = by_rows(a, m, k, ar);
    auto* const copied = rows.data_ptr<float>();
    for (int64_t i = 0; i < m * k && alpha != 1; ++i) copied[i] *= alpha;
    a = copied;
    ar = {nullptr, k, 1};
  }
  for (int64_t i = 0; i < m && beta != 0 && beta != 1; ++i)
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] *= beta;
  const PanelProducts products({a, ar.row, m, k, n, b, br.column, nullptr, nullptr, beta != 0, c, ldc});
  each_part(parts_of(m, n, k, number_of_parts(m * n * k, false, threads_here())).of_rows(m, products.rows_together()), m, n,
            [&](int64_t row, int64_t column, int64_t height, int64_t width) { products.run(row, height, column, width); });
  return true;
}

// The pool's threads take parts of the result, rather than OpenBLAS's own threads: those would be a second set beside the pool, and wait
// for each other when the machine is busy.
template <class T>
void blas_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c, int64_t ldc) {
  if constexpr (std::is_same_v<T, float>)
    if (column_gemm(m, n, k, alpha, a, ar, b, br, beta, c, ldc)) return;
  const bool vector = m == 1 || n == 1;
  const bool few_terms =
      k < kFewTerms && m * n > kPartElements && !vector && !goes_to_onednn<T>(m, n, k, operand(ar, m, k), operand(br, k, n));
  const Parts parts = few_terms ? bands(m, n) : parts_of(m, n, k, number_of_parts(m * n * k, vector, threads_here()));
  set_blas_threads(true);
  each_part(parts, m, n, [&](int64_t row, int64_t column, int64_t height, int64_t width) {
    blas_part(vector, height, width, k, alpha, a + row * ar.row, ar, b + column * br.column, br, beta, c + row * ldc + column, ldc);
  });
}

// False where oneDNN has no such product.
bool bfloat16_gemm(int64_t m, int64_t n, int64_t k, float alpha, const BFloat16* a, MatrixRef ar, const BFloat16* b, MatrixRef br,
                   float beta, BFloat16* c, int64_t ldc) {
  const Parts parts = parts_of(m, n, k, number_of_parts(m * n * k, m == 1 || n == 1, threads_here()));
  std::atomic<bool> possible{true};
  parallel_for(0, parts.rows * parts.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && possible.load(std::memory_order_relaxed); ++i) {
      const int64_t row = i / parts.columns * parts.height, column = i % parts.columns * parts.width;
      const MatrixRef x{a + row * ar.row, ar.row, ar.column}, y{b + column * br.column, br.row, br.column};
      if (!onednn_bfloat16_gemm(std::min(parts.height, m - row), std::min(parts.width, n - column), k, alpha, x, y, beta,
                                c + row * ldc + column, ldc))
        possible.store(false, std::memory_order_relaxed);
    }
  });
  return possible.load();
}

// A matrix of a half type as floats, in the order that it has in memory.
struct Widened {
  Tensor memory;
  MatrixRef matrix;

  Widened(ScalarType type, const void* data, MatrixRef from, int64_t rows, int64_t columns) {
    const bool by_rows = from.column == 1 || columns == 1;
    const int64_t lines = by_rows ? rows : columns, n = by_rows ? columns : rows, item = static_cast<int64_t>(elementSize(type)),
                  line = (by_rows ? from.row : from.column) * item, step = (by_rows ? from.column : from.row) * item;
    memory = detail::empty_cpu({lines * n}, kFloat);
    auto* const to = memory.data_ptr<float>();
    auto* const bytes = static_cast<char*>(const_cast<void*>(data));
    matrix = by_rows ? MatrixRef{to, n, 1} : MatrixRef{to, 1, n};
    if (lines * n == 0) return;
    parallel_for(0, lines, std::max<int64_t>(1, kConverted / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
      load_function(type, ComputeType::Float)(to + begin * n, {bytes + begin * line, step, line}, n, end - begin);
    });
  }
};

// A vector, and a matrix whose lines along the sum are contiguous: those are read as they are. False for others.
template <class T>
bool half_gemv(int64_t m, int64_t n, int64_t k, float alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, float beta, T* c,
               int64_t ldc) {
  const bool row = m == 1 && br.row == 1;
  if (!row && !(n == 1 && ar.column == 1)) return false;
  constexpr ScalarType type = CppTypeToScalarType<T>::value;
  const Widened vector = row ? Widened(type, a, ar, 1, k) : Widened(type, b, br, k, 1);
  const T* const matrix = row ? b : a;
  const int64_t lines = row ? n : m, stride = row ? br.column : ar.row, step = row ? 1 : ldc;
  const auto* const x = static_cast<const float*>(vector.matrix.data);
  const Tensor sums = detail::empty_cpu({lines}, kFloat);
  auto* const to = sums.data_ptr<float>();
  const PackedLoops& loops = find_packed_loops();
  parallel_for(0, lines, std::max<int64_t>(1, kPartWork / std::max<int64_t>(1, k)), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, Half>)
      loops.dot_half(x, matrix + begin * stride, end - begin, k, stride, to + begin);
    else
      loops.dot_bfloat16(x, matrix + begin * stride, end - begin, k, stride, to + begin);
    for (int64_t i = begin; i < end; ++i) c[i * step] = T(alpha * to[i] + (beta == 0 ? 0.0f : beta * static_cast<float>(c[i * step])));
  });
  return true;
}

// Half types: widen, multiply in float, narrow once.
template <class T>
void half_gemm(int64_t m, int64_t n, int64_t k, float alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, float beta, T* c,
               int64_t ldc) {
  if (half_gemv(m, n, k, alpha, a, ar, b, br, beta, c, ldc)) return;
  if constexpr (std::is_same_v<T, BFloat16>)
    if (m * n * k > kWorthOnednn && onednn_has_bfloat16() && bfloat16_gemm(m, n, k, alpha, a, ar, b, br, beta, c, ldc)) return;
  constexpr ScalarType type = CppTypeToScalarType<T>::value;
  const Widened x(type, a, ar, m, k), y(type, b, br, k, n);
  const auto *fa = static_cast<const float*>(x.matrix.data), *fb = static_cast<const float*>(y.matrix.data);
  const Rows rows{reinterpret_cast<char*>(c), sizeof(T), ldc * static_cast<int64_t>(sizeof(T))};
  const Tensor sums = detail::empty_cpu({m * n}, kFloat);
  auto* const to = sums.data_ptr<float>();
  if (beta != 0) load_function(type, ComputeType::Float)(to, rows, n, m);
  if (k == 0 || m * n * k <= kSmall<float>)  // BLAS's products with a vector would not even apply beta to nothing
    small_product<float>(m, n, k, alpha, fa, x.matrix, fb, y.matrix, beta, to, n);
  else
    blas_gemm<float>(m, n, k, alpha, fa, x.matrix, fb, y.matrix, beta, to, n);
  store_function(ComputeType::Float, type)(rows, to, n, m);
}

}  // namespace

bool blas_readable(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  constexpr int64_t limit = std::numeric_limits<blasint>::max();
  if (rows > limit || columns > limit) return true;
  const bool by_rows = (column_stride == 1 || columns == 1) && (row_stride >= std::max<int64_t>(columns, 1) || rows == 1);
  const bool by_columns = (row_stride == 1 || rows == 1) && (column_stride >= std::max<int64_t>(rows, 1) || columns == 1);
  return by_rows || by_columns;
}

void gemm(const char* op, ScalarType dtype, int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixRef a, MatrixRef b,
          const Scalar& beta, void* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  // Extents of one leave their stride free; give it the value that makes the matrix look regular.
  if (k == 1) {
    if (a.row != 1) a.column = 1;
    if (b.column != 1) b.row = 1;
  }
  CRESSET_DISPATCH(dtype, op, CRESSET_GEMM_TYPES, [&] {
    const auto* pa = static_cast<const scalar_t*>(a.data);
    const auto* pb = static_cast<const scalar_t*>(b.data);
    auto* pc = static_cast<scalar_t*>(c);
    if constexpr (is_reduced_floating_point_v<scalar_t>) {
      half_gemm(m, n, k, alpha.to<float>(), pa, a, pb, b, beta.to<float>(), pc, ldc);
    } else {
      const auto x = alpha.to<scalar_t>(), y = beta.to<scalar_t>();
      if (k == 0 || m * n * k <= kSmall<scalar_t>) {
        small_product<scalar_t>(m, n, k, x, pa, a, pb, b, y, pc, ldc);
      } else if constexpr (std::is_integral_v<scalar_t>) {
        integer_gemm<scalar_t>(m, n, k, x, pa, a, pb, b, y, pc, ldc);
      } else {
        blas_gemm<scalar_t>(m, n, k, x, pa, a, pb, b, y, pc, ldc);
      }
    }
  });
}

}  // namespace cresset::cpu
