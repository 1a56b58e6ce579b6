// Gradient of embedding and the renormalisation of its rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_embedding.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_sort.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/index_common.h"
#include "cpu/cpu_decl_embedding.h"
#include "ops/ops_decl_embedding.h"

namespace cresset::cpu {

void embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                              bool scale_grad_by_freq, const Tensor& out) {
  const Indices rows = read_indices(indices);
  for (int64_t r : rows)
    CRESSET_CHECK_INDEX(r == padding_idx || (r >= 0 && r < num_weights), "index ", r, " is out of bounds for dimension 0 with size ",
                        num_weights);
  std::vector<int64_t> counts;
  if (scale_grad_by_freq) {
    counts.assign(static_cast<std::size_t>(num_weights), 0);
    for (int64_t r : rows)
      if (r != padding_idx) ++counts[r];
  }
  const Tensor grad = grad_output.contiguous();
  const int64_t width = out.size(1);
  CRESSET_DISPATCH(out.scalar_type(), "embedding_dense_backward", CRESSET_FLOATING_AND_COMPLEX_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t* const from = grad.const_data_ptr<scalar_t>();
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    // Each thread owns a range of the table and passes over all indices, so no two write the same row.
    const int64_t work = static_cast<int64_t>(rows.size()) * width + out.numel();
    parallel_for(0, num_weights, work < kCopyGrain ? num_weights : std::max<int64_t>(1, num_weights / get_num_threads()),
                 [&](int64_t begin, int64_t end) {
                   std::fill(to + begin * width, to + end * width, scalar_t(0));
                   for (std::size_t i = 0; i < rows.size(); ++i) {
                     const int64_t r = rows[i];
                     if (r < begin || r >= end || r == padding_idx) continue;
                     const C scale = counts.empty() ? C(1) : C(1) / static_cast<C>(counts[r]);
                     const scalar_t* const g = from + static_cast<int64_t>(i) * width;
                     scalar_t* const t = to + r * width;
                     for (int64_t k = 0; k < width; ++k) t[k] = static_cast<scalar_t>(static_cast<C>(t[k]) + static_cast<C>(g[k]) * scale);
                   }
                 });
  });
}

Tensor& embedding_renorm(Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  ops::embedding_renorm_meta(self, indices, max_norm, norm_type);
  Indices rows = read_indices(indices);
  for (int64_t& r : rows) {
    CRESSET_CHECK_INDEX(r >= -self.size(0) && r < self.size(0), "select(): index ", r, " out of range for tensor of size ", self.sizes(),
                        " at dimension 0");
    if (r < 0) r += self.size(0);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  CRESSET_DISPATCH(self.scalar_type(), "embedding_renorm_", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    scalar_t* const base = self.mutable_data_ptr<scalar_t>();
    const int64_t width = self.size(1), step = self.stride(1);
    for (int64_t r : rows) {
      scalar_t* const row = base + r * self.stride(0);
      double norm = 0;
      for (int64_t k = 0; k < width; ++k) {
        const double v = std::abs(static_cast<double>(static_cast<C>(row[k * step])));
        if (std::isinf(norm_type))
          norm = std::max(norm, v);
        else
          norm += norm_type == 2 ? v * v : norm_type == 1 ? v : std::pow(v, norm_type);
      }
      if (!std::isinf(norm_type) && norm_type != 1) norm = norm_type == 2 ? std::sqrt(norm) : std::pow(norm, 1 / norm_type);
      if (!(norm > max_norm)) continue;
      const C scale = static_cast<C>(max_norm / (norm + 1e-7));
      for (int64_t k = 0; k < width; ++k) row[k * step] = static_cast<scalar_t>(static_cast<C>(row[k * step]) * scale);
    }
  });
  return self;
}

}  // namespace cresset::cpu
