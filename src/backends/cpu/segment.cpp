// Reductions of runs of a dimension.
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_view.h>

#include "cpu/cpu_decl_segment.h"

namespace cresset::cpu {
namespace {

// Where runs begin and end in the axis: first[row * (runs + 1) + run], the next one's beginning after each.
struct Runs {
  std::vector<int64_t> first;
  int64_t rows, runs;
};

// `numbers` are offsets, or lengths which must fill the axis when `fill`. Every range is checked against the axis.
Runs read_runs(const Tensor& numbers, bool offsets, bool fill, int64_t size) {
  const Tensor t = numbers.to(kLong).contiguous();
  const int64_t n = t.size(-1), rows = n == 0 ? 0 : t.numel() / n;
  Runs out{{}, rows, offsets ? n - 1 : n};
  const int64_t* const p = t.numel() > 0 ? t.const_data_ptr<int64_t>() : nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    if (!offsets) out.first.push_back(0);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t v = p[row * n + i];
      if (offsets) {
        CRESSET_CHECK(v >= 0 && v <= size && (i == 0 || v >= p[row * n + i - 1]),
                      "segment_reduce(): offsets that do not decrease and lie in [0, ", size, "] were required; got ", v, ".");
        out.first.push_back(v);
      } else {
        CRESSET_CHECK(v >= 0, "lengths contains negative value!");
        CRESSET_CHECK(v <= size - out.first.back(),
                      "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
        out.first.push_back(out.first.back() + v);
      }
    }
    CRESSET_CHECK(offsets || !fill || out.first.back() == size,
                  "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
  }
  return out;
}

enum class Reduce { kSum, kMean, kProd, kMax, kMin };
Reduce reduce_of(std::string_view name) {
  if (name == "sum") return Reduce::kSum;
  if (name == "mean") return Reduce::kMean;
  if (name == "prod") return Reduce::kProd;
  return name == "max" || name == "amax" ? Reduce::kMax : Reduce::kMin;
}

template <class A>
A identity(Reduce reduce) {
  switch (reduce) {
    case Reduce::kProd: return 1;
    case Reduce::kMax: return -std::numeric_limits<A>::infinity();
    case Reduce::kMin: return std::numeric_limits<A>::infinity();
    default: return 0;
  }
}

template <class A>
A combine(Reduce reduce, A a, A b) {
  switch (reduce) {
    case Reduce::kProd: return a * b;
    case Reduce::kMax: return b != b || b > a ? b : a;
    case Reduce::kMin: return b != b || b < a ? b : a;
    default: return a + b;
  }
}

}  // namespace

void segment_reduce(const Tensor& data, std::string_view reduce, const std::optional<Tensor>& lengths, const std::optional<Tensor>&,
                    const std::optional<Tensor>& offsets, int64_t axis, bool unsafe, const std::optional<Scalar>& initial,
                    const Tensor& out) {
  axis = maybe_wrap_dim(axis, data.dim());
  const bool by_offsets = offsets && offsets->defined();
  const int64_t size = data.size(axis);
  const Runs runs = read_runs(by_offsets ? *offsets : *lengths, by_offsets, !unsafe, size);
  if (out.numel() == 0) return;
  const Tensor in = data.contiguous();
  const Reduce kind = reduce_of(reduce);
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < data.dim(); ++d) inner *= data.size(d);
  CRESSET_DISPATCH(data.scalar_type(), "_segment_reduce_cpu", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const A start = initial ? initial->to<A>() : identity<A>(kind);
    const scalar_t* const from = data.numel() > 0 ? in.const_data_ptr<scalar_t>() : nullptr;
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, runs.rows * runs.runs, 1 + (int64_t{1} << 14) / (1 + size * inner), [&](int64_t begin, int64_t end) {
      std::vector<A> sums(static_cast<std::size_t>(inner));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / runs.runs, *const first = runs.first.data() + row * (runs.runs + 1) + i % runs.runs;
        sums.assign(sums.size(), start);
        for (int64_t k = first[0]; k < first[1]; ++k)
          for (int64_t j = 0; j < inner; ++j) sums[j] = combine(kind, sums[j], A(from[(row * size + k) * inner + j]));
        const int64_t n = first[1] - first[0];
        for (int64_t j = 0; j < inner; ++j) {
          A v = sums[j];
          if (kind == Reduce::kMean) v = n > 0 ? v / A(n) : initial ? v : std::numeric_limits<A>::quiet_NaN();
          to[i * inner + j] = scalar_t(v);
        }
      }
    });
  });
}

}  // namespace cresset::cpu
