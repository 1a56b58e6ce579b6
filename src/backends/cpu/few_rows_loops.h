// Products of a few rows with a matrix that is read once, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

inline constexpr int64_t kFewRows = 8;

// c = alpha * a b + beta * c. a is (m, k) with strides, m <= kFewRows; b is (k, n), the columns of a row are neighbours; the rows of c
// begin ldc apart, and what is in c does not count where beta is 0.
struct FewRows {
  int64_t m, n, k;
  float alpha;
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t ldb;
  float beta;
  float* c;
  int64_t ldc;
};

CRESSET_IN_EACH_ISA(void few_rows_product(const FewRows& p);)

inline void few_rows_product(const FewRows& p) { CRESSET_FOR_THIS_PROCESSOR(few_rows_product(p)); }

}  // namespace cresset::cpu
