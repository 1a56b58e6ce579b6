// Gradients clipped, parameters as one vector.
#include <cresset/nn/utils.h>

#include <cmath>
#include <limits>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_linalg.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

namespace cresset::nn::utils {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  std::vector<Tensor> norms, grads;
  for (const Tensor& p : parameters) {
    if (!p.grad().defined()) continue;
    grads.push_back(p.grad());
    norms.push_back(cresset::linalg_vector_norm(p.grad().detach(), norm_type).to(kDouble));
  }
  if (grads.empty()) return 0;
  const double total = cresset::linalg_vector_norm(cresset::stack(norms), norm_type).item<double>();
  CRESSET_CHECK(
      !error_if_nonfinite || std::isfinite(total), "The total norm of order ", norm_type,
      " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the gradients with "
      "the non-finite norm anyway, set `error_if_nonfinite=false`");
  const double factor = max_norm / (total + 1e-6);
  if (factor < 1)
    for (Tensor& g : grads) g.mul_(factor);
  return total;
}
double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type, bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard no_grad;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) p.grad().clamp_(-clip_value, clip_value);
}
void clip_grad_value_(const Tensor& parameter, double clip_value) { clip_grad_value_(std::vector<Tensor>{parameter}, clip_value); }

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& p : parameters) flat.push_back(p.reshape({-1}));
  return cresset::cat(flat);
}
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t at = 0;
  for (Tensor p : parameters) {
    p.set_data(vector.narrow(0, at, p.numel()).view(p.sizes()).detach());
    at += p.numel();
  }
}

}  // namespace cresset::nn::utils
