// Derivatives of losses.
#include "autograd/formulas_loss.h"

#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_loss.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_view.h>

#include "autograd/formulas.h"

namespace cresset::autograd::formulas {

Tensor reduced(const Tensor& t, int64_t reduction) { return reduction == 0 ? t : reduction == 1 ? t.mean() : t.sum(); }

Tensor pointwise_loss_double_grad_output(const Tensor& grad, const Tensor& slope, int64_t reduction) {
  // The loss is real, also where what it compares is complex.
  return reduced(slope.is_complex() ? cresset::real(grad * slope.conj()) : grad * slope, reduction);
}

Tensor pointwise_loss_double_self(const Tensor& grad, const Tensor& grad_output, double curvature, const Tensor& self, const Tensor& target,
                                  int64_t reduction) {
  Tensor g = grad * grad_output * curvature;
  if (reduction == 1) g = g / static_cast<double>((self - target).numel());
  return g;
}

Tensor distance_loss_double_self(const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                                 double limit, double scale) {
  const Tensor d = self - target;
  Tensor g = grad * grad_output;
  if (reduction == 1) g = g / static_cast<double>(d.numel());
  if (limit == 0 && d.is_complex()) return sgn_backward(g, d, cresset::sgn(d));  // a magnitude's slope turns with the number
  return cresset::where(d.abs() < limit, g / scale, cresset::zeros_like(d));
}

Tensor nll_loss_backward_jvp(const Tensor& grad_output_t, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                             int64_t reduction, int64_t ignore_index, const Tensor& total_weight_t, const Tensor& total_weight,
                             const Tensor& result) {
  const Tensor linear = cresset::nll_loss_backward(grad_output_t, self, target, weight, reduction, ignore_index, total_weight);
  return reduction == 1 ? linear - result * (total_weight_t / total_weight) : linear;
}

Tensor nll_loss_backward_total_weight(const Tensor& grad, const Tensor& result, int64_t reduction, const Tensor& total_weight) {
  return reduction == 1 ? (-(grad * result).sum() / total_weight).reshape(total_weight.sizes()) : cresset::zeros_like(total_weight);
}

namespace {
Tensor weighted_mean(const Tensor& g, const std::optional<Tensor>& weight, int64_t reduction, int64_t n) {
  const Tensor w = weight ? g * *weight : g;
  return reduction == 1 ? w / static_cast<double>(n) : w;
}
}  // namespace

Tensor binary_cross_entropy_target_backward(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& weight,
                                            int64_t reduction) {
  return weighted_mean(-cresset::logit(self) * grad, weight, reduction, self.numel());
}

Tensor bce_with_logits_backward(const Tensor& grad, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                const std::optional<Tensor>& pos_weight, int64_t reduction) {
  if (!pos_weight) return weighted_mean((cresset::sigmoid(self) - target) * grad, weight, reduction, self.numel());
  const Tensor t = *pos_weight * target;
  return weighted_mean(((t + 1 - target) * cresset::sigmoid(self) - t) * grad, weight, reduction, self.numel());
}

Tensor bce_with_logits_target_backward(const Tensor& grad, const Tensor& self, const std::optional<Tensor>& weight,
                                       const std::optional<Tensor>& pos_weight, int64_t reduction) {
  const Tensor slope = pos_weight ? cresset::log_sigmoid(-self) - *pos_weight * cresset::log_sigmoid(self) : -self;
  return weighted_mean(slope * grad, weight, reduction, self.numel());
}

}  // namespace cresset::autograd::formulas
