// Sums, means and maxima of rows over bags of indices.
#include <algorithm>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_embedding.h>

#include "backends/cpu/index_common.h"
#include "cpu/cpu_decl_embedding.h"
#include "ops/embedding.h"
#include "ops/ops_decl_embedding.h"

namespace cresset::cpu {
namespace {

// Where every bag begins and ends; the last one takes all indices that are left.
Indices bag_limits(const Tensor& offsets, int64_t n, bool include_last_offset) {
  Indices limits = read_indices(offsets);
  if (limits.empty()) return {0};
  CRESSET_CHECK(limits.front() == 0,
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got ",
                limits.front());
  CRESSET_CHECK(limits.back() <= n, "offsets[-1] can not be greater than input's length ", n, " but got offsets[-1] of ", limits.back());
  CRESSET_CHECK(std::is_sorted(limits.begin(), limits.end()), "embedding_bag: offsets that do not decrease were required.");
  if (include_last_offset)
    limits.back() = n;
  else
    limits.push_back(n);
  return limits;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                                         bool scale_grad_by_freq, int64_t mode, bool sparse,
                                                         const std::optional<Tensor>& per_sample_weights, bool include_last_offset,
                                                         int64_t padding_idx) {
  const auto results = ops::embedding_bag_meta(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                               include_last_offset, padding_idx);
  const Indices rows = read_indices(indices);
  const int64_t n = static_cast<int64_t>(rows.size()), height = weight.size(0), width = weight.size(1);
  for (int64_t i = 0; i < n; ++i) {
    if (rows[i] >= 0 && rows[i] < height) continue;
    const bool summed_at_once =
        mode != ops::kBagMax && padding_idx < 0 && weight.scalar_type() != ScalarType::Double;  // PyTorch's words differ
    CRESSET_CHECK(summed_at_once, "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", rows[i]);
    CRESSET_CHECK(false, "Index ", i, " of input takes value ", rows[i], " which is not in the valid range [0, ", height, ")");
  }
  const Indices limits = bag_limits(offsets, n, include_last_offset);
  const int64_t bags = static_cast<int64_t>(limits.size()) - 1;

  // Integer results are small; they are written as int64 and converted at the end.
  std::vector<int64_t> bag_of(static_cast<std::size_t>(n)), sizes(static_cast<std::size_t>(bags));
  std::vector<int64_t> maxima(mode == ops::kBagMax ? static_cast<std::size_t>(bags * width) : 0);
  const Tensor table = weight.contiguous();
  const Tensor factors = per_sample_weights ? per_sample_weights->contiguous() : Tensor();
  const Tensor& out = std::get<0>(results);
  CRESSET_DISPATCH(weight.scalar_type(), "embedding_bag", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const scalar_t* const from = table.const_data_ptr<scalar_t>();
    const scalar_t* const factor = factors.defined() ? factors.const_data_ptr<scalar_t>() : nullptr;
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    const int64_t cost = std::max<int64_t>(1, n * width / std::max<int64_t>(1, bags));
    parallel_for(0, bags, std::max<int64_t>(1, 32768 / cost), [&](int64_t begin, int64_t end) {
      std::vector<A> sum(static_cast<std::size_t>(width));
      for (int64_t b = begin; b < end; ++b) {
        std::fill(sum.begin(), sum.end(), A(0));
        int64_t count = 0;
        for (int64_t i = limits[b]; i < limits[b + 1]; ++i) {
          bag_of[i] = b;
          if (rows[i] == padding_idx) continue;
          const scalar_t* const row = from + rows[i] * width;
          if (mode == ops::kBagMax) {
            for (int64_t k = 0; k < width; ++k) {
              const A v = static_cast<A>(row[k]);
              if (count == 0 || v > sum[k]) {
                sum[k] = v;
                maxima[b * width + k] = rows[i];
              }
            }
          } else {
            const A f = factor ? static_cast<A>(factor[i]) : A(1);
            for (int64_t k = 0; k < width; ++k) sum[k] += static_cast<A>(row[k]) * f;
          }
          ++count;
        }
        const A scale = mode == ops::kBagMean && count > 0 ? A(1) / static_cast<A>(count) : A(1);
        for (int64_t k = 0; k < width; ++k) to[b * width + k] = static_cast<scalar_t>(sum[k] * scale);
        sizes[b] = mode == ops::kBagSum ? 0 : count;
      }
    });
  });
  const auto store = [](const std::vector<int64_t>& values, const Tensor& target) {
    CRESSET_DISPATCH(target.scalar_type(), "embedding_bag", CRESSET_INDEX_TYPES, [&] {
      scalar_t* const to = target.mutable_data_ptr<scalar_t>();
      for (int64_t i = 0; i < target.numel(); ++i) to[i] = static_cast<scalar_t>(values[i]);
    });
  };
  store(bag_of, std::get<1>(results));
  store(sizes, std::get<2>(results));
  store(mode == ops::kBagMax ? maxima : sizes, std::get<3>(results));
  return results;
}

}  // namespace cresset::cpu
