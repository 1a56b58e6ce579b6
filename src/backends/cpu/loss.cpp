// nll_loss: picks one value a position, forward and back.
#include <algorithm>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_loss.h>

#include "cpu/cpu_decl_loss.h"
#include "ops/loss.h"

namespace cresset::cpu {
namespace {

// Input (N, C, inner) or (C), all contiguous.
struct Classes {
  int64_t batch, classes, inner = 1;
  explicit Classes(const Tensor& x) : batch(x.dim() == 1 ? 1 : x.size(0)), classes(x.dim() == 1 ? x.size(0) : x.size(1)) {
    for (int64_t d = 2; d < x.dim(); ++d) inner *= x.size(d);
  }
  int64_t positions() const { return batch * inner; }
  int64_t offset(int64_t position, int64_t c) const { return (position / inner * classes + c) * inner + position % inner; }
};

// Checked before anything is written.
Tensor checked_target(const Tensor& target, const Classes& shape, int64_t ignore_index) {
  const Tensor t = target.to(kLong).contiguous();
  const int64_t* p = t.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < t.numel(); ++i)
    CRESSET_CHECK_INDEX(p[i] == ignore_index || (p[i] >= 0 && p[i] < shape.classes), "Target ", p[i], " is out of bounds.");
  return t;
}

}  // namespace

void nll_loss_forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                      int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  const Classes shape(self);
  const Tensor x = self.contiguous(), t = checked_target(target, shape, ignore_index), w = weight ? weight->contiguous() : Tensor();
  const int64_t* pt = t.const_data_ptr<int64_t>();
  CRESSET_DISPATCH(self.scalar_type(), "nll_loss_out_frame", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const auto* px = x.const_data_ptr<scalar_t>();
    const auto* pw = w.defined() ? w.const_data_ptr<scalar_t>() : nullptr;
    auto* out = output.mutable_data_ptr<scalar_t>();
    A sum = 0, weights = 0, part = 0, weight_part = 0;  // partial sums of 256 keep rounding small
    for (int64_t i = 0; i < shape.positions(); ++i) {
      const bool kept = pt[i] != ignore_index;
      const A wi = !kept ? A(0) : pw ? A(pw[pt[i]]) : A(1);
      const A value = kept ? -A(px[shape.offset(i, pt[i])]) * wi : A(0);
      if (reduction == ops::kReduceNone) {
        out[i] = scalar_t(value);
        if (self.dim() == 1) weights = wi;  // one sample has a total always, as in PyTorch
        continue;
      }
      part += value;
      weight_part += wi;
      if ((i & 255) == 255) {
        sum += part;
        weights += weight_part;
        part = weight_part = 0;
      }
    }
    sum += part;
    weights += weight_part;
    if (reduction != ops::kReduceNone) out[0] = scalar_t(reduction == ops::kReduceMean ? sum / weights : sum);
    total_weight.mutable_data_ptr<scalar_t>()[0] = scalar_t(weights);
  });
}

void nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                       int64_t reduction, int64_t ignore_index, const Tensor& total_weight, const Tensor& out) {
  const Classes shape(self);
  const Tensor t = checked_target(target, shape, ignore_index), w = weight ? weight->contiguous() : Tensor(), g = grad_output.contiguous();
  const int64_t* pt = t.const_data_ptr<int64_t>();
  CRESSET_DISPATCH(self.scalar_type(), "nll_loss_backward_out_frame", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const auto* pg = g.const_data_ptr<scalar_t>();
    const auto* pw = w.defined() ? w.const_data_ptr<scalar_t>() : nullptr;
    auto* to = out.mutable_data_ptr<scalar_t>();
    std::fill_n(to, out.numel(), scalar_t(0));
    const A divide = reduction == ops::kReduceMean ? A(total_weight.const_data_ptr<scalar_t>()[0]) : A(1);
    for (int64_t i = 0; i < shape.positions(); ++i) {
      if (pt[i] == ignore_index) continue;
      const A gi = A(pg[reduction == ops::kReduceNone ? i : 0]);
      to[shape.offset(i, pt[i])] = scalar_t(-gi * (pw ? A(pw[pt[i]]) : A(1)) / divide);
    }
  });
}

}  // namespace cresset::cpu
