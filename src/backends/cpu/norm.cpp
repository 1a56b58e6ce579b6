// Normalisation kernels. Sums run in several independent lanes so that they vectorise; statistics are float or double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_reduce.h>

#include "backends/cpu/channels.h"
#include "backends/cpu/norm_loops.h"
#include "cpu/cpu_decl_norm.h"
#include "ops/norm.h"
#include "ops/ops_decl_norm.h"

namespace cresset::cpu {
namespace {

// The statistics themselves, or a buffer of the type that they are computed in.
Tensor wide(const Tensor& t, ScalarType type) { return t.scalar_type() == type ? t : detail::empty_cpu(t.sizes(), type); }

}  // namespace

void native_layer_norm(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  int64_t n = 1;
  for (int64_t s : normalized_shape) n *= s;
  const int64_t rows = mean.numel();
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(input.scalar_type()), "\"LayerNormKernelImpl\" not implemented for '", input.scalar_type(),
                                "'");
  if (rows == 0) return;
  if (n == 0) {
    Tensor(mean).fill_(0);
    Tensor(rstd).fill_(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  // Half types are computed as float and converted at the ends.
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor x = input.to(type).contiguous(), wt = dense(weight, type), bt = dense(bias, type);
  const Tensor y = wide(out, type), wide_mean = wide(mean, type), wide_rstd = wide(rstd, type);
  CRESSET_DISPATCH(type, "LayerNormKernelImpl", CRESSET_FLOATING_TYPES, [&] {
    const NormLoops<scalar_t>& loops = find_norm_loops<scalar_t>();
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const w = pointer<scalar_t>(wt), *const b = pointer<scalar_t>(bt);
    scalar_t *const py = y.mutable_data_ptr<scalar_t>(), *const pm = wide_mean.mutable_data_ptr<scalar_t>(),
                    *const pr = wide_rstd.mutable_data_ptr<scalar_t>();
    parallel_for(0, rows, std::max<int64_t>(1, kNormGrain / n), [&](int64_t begin, int64_t end) {
      loops.forward_rows(px + begin * n, py + begin * n, end - begin, n, w, b, eps, pm + begin, pr + begin);
    });
  });
  for (const auto& [from, to] : {std::pair(&y, &out), std::pair(&wide_mean, &mean), std::pair(&wide_rstd, &rstd)})
    if (!from->is_same(*to)) Tensor(*to).copy_(*from);
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape,
                                                              const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight,
                                                              const std::optional<Tensor>& bias, std::array<bool, 3> output_mask) {
  auto [gx, gw, gb] =
      ops::native_layer_norm_backward_meta(grad_out, input.contiguous(), normalized_shape, mean, rstd, weight, bias, output_mask);
  int64_t n = 1;
  for (int64_t s : normalized_shape) n *= s;
  const int64_t rows = mean.numel();
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor x = input.to(type).contiguous(), g = grad_out.to(type).contiguous(), wt = dense(weight, type);
  const Tensor mt = mean.to(type).contiguous(), rt = rstd.to(type).contiguous();
  CRESSET_DISPATCH(type, "LayerNormBackwardKernelImpl", CRESSET_FLOATING_TYPES, [&] {
    const NormLoops<scalar_t>& loops = find_norm_loops<scalar_t>();
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const pg = g.const_data_ptr<scalar_t>(), *const w = pointer<scalar_t>(wt),
                          *const pm = mt.const_data_ptr<scalar_t>(), *const pr = rt.const_data_ptr<scalar_t>();
    if (gx.defined() && n > 0) {
      const Tensor to = wide(gx, type);
      scalar_t* const p = to.mutable_data_ptr<scalar_t>();
      parallel_for(0, rows, std::max<int64_t>(1, kNormGrain / n), [&](int64_t begin, int64_t end) {
        const int64_t at = begin * n;
        loops.backward_rows(pg + at, px + at, p + at, end - begin, n, w, pm + begin, pr + begin);
      });
      if (!to.is_same(gx)) gx.copy_(to);
    }
    if (gw.defined() || gb.defined()) {
      std::vector<scalar_t> sum_w(static_cast<std::size_t>(n)), sum_b(static_cast<std::size_t>(n));
      parallel_for(0, n, std::max<int64_t>(16, kNormGrain / std::max<int64_t>(rows, 1)), [&](int64_t begin, int64_t end) {
        loops.backward_columns(pg, px, rows, n, begin, end, pm, pr, sum_w.data(), sum_b.data());
      });
      const auto store = [&](const Tensor& to, const std::vector<scalar_t>& sums) {
        if (!to.defined() || n == 0) return;
        const Tensor kept = wide(to, type);
        std::copy(sums.begin(), sums.end(), kept.mutable_data_ptr<scalar_t>());
        if (!kept.is_same(to)) Tensor(to).copy_(kept);
      };
      store(gw, sum_w);
      store(gb, sum_b);
    }
  });
  return {gx, gw, gb};
}

}  // namespace cresset::cpu
