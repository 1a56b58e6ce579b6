// The loop of few_rows_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
//
// Such a product takes as long as b takes to come. Libraries copy b first, or go down its columns, whose elements fall into few sets of the
// first cache where rows are as long as a page. Here four rows of b at a time are added to sums of a strip of columns, which stay in the
// first cache.
#include "backends/cpu/few_rows_loops.h"

#include <algorithm>
#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // what GCC 12's own header does in _mm512_undefined_epi32
#include <immintrin.h>
#endif

#include "backends/cpu/isa_begin.h"

#include "backends/cpu/multiply_add.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

constexpr int64_t kLanes = CRESSET_ISA_VECTOR_BYTES / sizeof(float), kStrip = 256;  // columns
constexpr int64_t kDeep = 4;                                                        // rows of b at a time
constexpr int64_t kTerms = 256;  // that are added before they are added to the others: a long chain of sums loses digits

// sums[r] += a[r] of `Deep` rows of b, for R rows from `row` on, over columns [0, n) of a strip.
template <int R, int Deep>
void add_rows(const FewRows& p, int64_t row, int64_t k, const float* b, int64_t n, float (*sums)[kStrip]) {
  float factor[R][Deep];
  for (int r = 0; r < R; ++r)
    for (int d = 0; d < Deep; ++d) factor[r][d] = p.a[(row + r) * p.a_row + (k + d) * p.a_column];
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    FloatRegister from[Deep];
    for (int d = 0; d < Deep; ++d) from[d] = load_register(b + d * p.ldb + j);
    for (int r = 0; r < R; ++r) {
      FloatRegister sum = load_register(sums[row + r] + j);
      for (int d = 0; d < Deep; ++d) sum = multiply_add(factor[r][d] - FloatRegister{}, from[d], sum);
      store_register(sum, sums[row + r] + j);
    }
  }
  for (; j < n; ++j)
    for (int r = 0; r < R; ++r)
      for (int d = 0; d < Deep; ++d) sums[row + r][j] += factor[r][d] * b[d * p.ldb + j];
}
template <int Deep>
void add_all_rows(const FewRows& p, int64_t k, const float* b, int64_t n, float (*sums)[kStrip]) {
  int64_t row = 0;
  for (; row + 2 <= p.m; row += 2) add_rows<2, Deep>(p, row, k, b, n, sums);
  if (row < p.m) add_rows<1, Deep>(p, row, k, b, n, sums);
}

}  // namespace

void few_rows_product(const FewRows& p) {
  for (int64_t first = 0; first < p.n; first += kStrip) {
    const int64_t n = std::min(kStrip, p.n - first);
    alignas(64) float all[kFewRows][kStrip] = {};
    for (int64_t from = 0; from < p.k; from += kTerms) {
      alignas(64) float sums[kFewRows][kStrip] = {};
      const int64_t end = std::min(p.k, from + kTerms);
      int64_t k = from;
      for (; k + kDeep <= end; k += kDeep) add_all_rows<kDeep>(p, k, p.b + k * p.ldb + first, n, sums);
      for (; k < end; ++k) add_all_rows<1>(p, k, p.b + k * p.ldb + first, n, sums);
      for (int64_t r = 0; r < p.m; ++r)
        for (int64_t j = 0; j < n; ++j) all[r][j] += sums[r][j];
    }
    for (int64_t r = 0; r < p.m; ++r) {
      float* const to = p.c + r * p.ldc + first;
      for (int64_t j = 0; j < n; ++j) to[j] = p.beta == 0 ? p.alpha * all[r][j] : p.alpha * all[r][j] + p.beta * to[j];
    }
  }
}

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
