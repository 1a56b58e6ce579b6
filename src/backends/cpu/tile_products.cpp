// The product of tile_products.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
//
// Some columns of b are copied together, and a few rows of a at a time go over them with their sums in registers.
#include "backends/cpu/tile_products.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/isa_begin.h"

#include "backends/cpu/vector_types.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

constexpr int64_t kWide = CRESSET_ISA_VECTOR_BYTES, kNarrow = std::min<int64_t>(kWide, 32);  // bytes of a vector

template <class T, int64_t kBytes, int kVectors>
struct Tile {
  static constexpr int64_t kLanes = kBytes / static_cast<int64_t>(sizeof(T));
  static constexpr int kRows = 4;
  static constexpr int64_t kOnStack = 4096;  // elements of a panel
  static constexpr int64_t kFewRows = 16;    // that do not pay for copying b
  static constexpr int64_t kColumns = kVectors * kLanes;
  using V = typename VectorOf<T, kLanes>::type;

  // Sums of `rows` rows of a with kColumns columns, whose rows are `line` elements apart.
  template <int rows>
  static void sums(int64_t k, const T* a, MatrixRef ar, const T* columns, int64_t line, T* to) {
    V sum[rows][kVectors] = {};
    for (int64_t p = 0; p < k; ++p)
      for (int v = 0; v < kVectors; ++v) {
        const V b = load_as<V>(columns + p * line + v * kLanes);
        for (int r = 0; r < rows; ++r) sum[r][v] += b * a[r * ar.row + p * ar.column];
      }
    std::memcpy(to, sum, sizeof sum);
  }

  // Some columns side by side, zeros beside them.
  static void copy_columns(int64_t k, int64_t columns, const T* b, MatrixRef br, T* panel) {
    if (columns < kColumns) std::fill_n(panel, k * kColumns, T(0));
    if (br.row == 1)
      for (int64_t x = 0; x < columns; ++x)
        for (int64_t p = 0; p < k; ++p) panel[p * kColumns + x] = b[p + x * br.column];
    else
      for (int64_t p = 0; p < k; ++p)
        for (int64_t x = 0; x < columns; ++x) panel[p * kColumns + x] = b[p * br.row + x * br.column];
  }

  static void product(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c,
                      int64_t ldc) {
    T few[kOnStack];
    std::vector<T> many(static_cast<std::size_t>(k * kColumns > kOnStack ? k * kColumns : 0));
    T* const panel = many.empty() ? few : many.data();
    for (int64_t j = 0; j < n; j += kColumns) {
      const int64_t columns = std::min(kColumns, n - j);
      const bool in_place = br.column == 1 && columns == kColumns && m <= kFewRows;
      if (!in_place) copy_columns(k, columns, b + j * br.column, br, panel);
      const T* const from = in_place ? b + j : panel;
      const int64_t line = in_place ? br.row : kColumns;
      for (int64_t i = 0; i < m; i += kRows) {
        T sum[kRows * kColumns];
        const int64_t rows = std::min<int64_t>(kRows, m - i);
        if (rows == kRows)
          sums<kRows>(k, a + i * ar.row, ar, from, line, sum);
        else
          for (int64_t r = 0; r < rows; ++r) sums<1>(k, a + (i + r) * ar.row, ar, from, line, sum + r * kColumns);
        for (int64_t r = 0; r < rows; ++r) {
          T* const row = c + (i + r) * ldc + j;
          for (int64_t x = 0; x < columns; ++x)
            row[x] = static_cast<T>(alpha * sum[r * kColumns + x] + (beta == T(0) ? T(0) : static_cast<T>(beta * row[x])));
        }
      }
    }
  }
};

}  // namespace

template <class T>
void tile_product(int64_t m, int64_t n, int64_t k, T alpha, const T* a, MatrixRef ar, const T* b, MatrixRef br, T beta, T* c, int64_t ldc) {
  if (n * static_cast<int64_t>(sizeof(T)) <= kNarrow)
    Tile<T, kNarrow, 1>::product(m, n, k, alpha, a, ar, b, br, beta, c, ldc);
  else if (n * static_cast<int64_t>(sizeof(T)) <= kWide)
    Tile<T, kWide, 1>::product(m, n, k, alpha, a, ar, b, br, beta, c, ldc);
  else
    Tile<T, kWide, 2>::product(m, n, k, alpha, a, ar, b, br, beta, c, ldc);
}
#define CRESSET_PRODUCT_OF(T) \
  template void tile_product<T>(int64_t, int64_t, int64_t, T, const T*, MatrixRef, const T*, MatrixRef, T, T*, int64_t);
CRESSET_PRODUCT_OF(int8_t)
CRESSET_PRODUCT_OF(uint8_t)
CRESSET_PRODUCT_OF(int16_t)
CRESSET_PRODUCT_OF(int32_t)
CRESSET_PRODUCT_OF(int64_t)
CRESSET_PRODUCT_OF(float)
CRESSET_PRODUCT_OF(double)

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
