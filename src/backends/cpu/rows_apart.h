// Rows of floats for products that read some of them side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cresset/base/parallel.h>
#include <cresset/core/tensor.h>
#include <cresset/ops/functions_creation.h>

namespace cresset::cpu {

/// The rows where they are, or a copy in which they begin elsewhere: rows that are whole pages apart share one set of the first cache,
/// which then holds fewer of them than a tile of a product reads (a tenth of the time of 128 rows of 3072).
struct RowsApart {
  RowsApart(const float* from, int64_t pitch, int64_t rows, int64_t n, int64_t outputs) : x(from), ld(pitch) {
    constexpr int64_t kPage = 1024, kLine = 16, kRowsInSet = 8, kWorthCopy = 512;  // floats; rows; outputs
    if (pitch % kPage != 0 || rows <= kRowsInSet || outputs < kWorthCopy) return;
    ld = n + kLine;
    copy = detail::empty_cpu({rows, ld}, kFloat);
    auto* const to = copy.data_ptr<float>();
    parallel_for(0, rows, std::max<int64_t>(1, (int64_t{1} << 17) / n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) std::copy_n(from + r * pitch, n, to + r * ld);
    });
    x = to;
  }

  const float* x;
  int64_t ld;
  Tensor copy;
};

}  // namespace cresset::cpu
