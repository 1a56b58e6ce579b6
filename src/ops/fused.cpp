// Optimiser steps on lists of tensors: checks, the Meta backend, and the forms that work on copies.
#include "ops/fused.h"

#include <cresset/base/error.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_fused.h>

#include "ops/ops_decl_fused.h"

namespace cresset::ops {

void check_fused(const char* op, TensorList params, std::initializer_list<NamedList> like, std::initializer_list<NamedList> others) {
  const std::size_t n = params.size();
  CRESSET_CHECK(n > 0, op, ": expected at least one parameter");
  for (const auto* lists : {&like, &others})
    for (const NamedList& l : *lists) {
      CRESSET_CHECK(l.list.size() == n, "Expected ", l.name, ".size() == n_tensors to be true, but got false. (", op, ": ", l.list.size(),
                    " tensors for ", n, " parameters)");
    }
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& p = params[i];
    CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(p.scalar_type()), "\"", op, "kernel\" not implemented for '", toString(p.scalar_type()),
                                  "'");
    for (const NamedList& l : like) {
      const Tensor& t = l.list[i];
      CRESSET_CHECK(t.scalar_type() == p.scalar_type(), "expected scalar type ", toString(p.scalar_type()), " but found ",
                    toString(t.scalar_type()));
      CRESSET_CHECK(t.sizes() == p.sizes(), op, ": ", l.name, "[", i, "] must have the size of its parameter, ", p.sizes(),
                    "; given: ", t.sizes());
      CRESSET_CHECK(t.device() == p.device(), op, ": ", l.name, "[", i, "] must be on ", p.device(), "; given: ", t.device());
    }
    for (const NamedList& l : others)
      CRESSET_CHECK(l.list[i].numel() == 1, op, ": ", l.name, "[", i, "] must have one element; given: ", l.list[i].sizes());
  }
}

bool found_infinity(const std::optional<Tensor>& found_inf) { return found_inf && found_inf->defined() && found_inf->item<double>() == 1; }

namespace {

std::vector<Tensor> copies(TensorList list) {
  std::vector<Tensor> out;
  out.reserve(list.size());
  for (const Tensor& t : list) out.push_back(cresset::clone(t));
  return out;
}

void check_adam(const char* op, TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                TensorList state_steps, bool amsgrad) {
  if (amsgrad)
    check_fused(op, self, {{"grads", grads}, {"exp_avgs", exp_avgs}, {"exp_avg_sqs", exp_avg_sqs}, {"max_exp_avg_sqs", max_exp_avg_sqs}},
                {{"state_steps", state_steps}});
  else
    check_fused(op, self, {{"grads", grads}, {"exp_avgs", exp_avgs}, {"exp_avg_sqs", exp_avg_sqs}}, {{"state_steps", state_steps}});
}

}  // namespace

// --- Meta: the checks and nothing else ----------------------------------------------------------------------------------

void fused_adam_meta(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                     TensorList state_steps, double, double, double, double, double, bool amsgrad, bool, const std::optional<Tensor>&,
                     const std::optional<Tensor>&) {
  check_adam("fused_adam_", self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad);
}

void fused_adamw_meta(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                      TensorList state_steps, double, double, double, double, double, bool amsgrad, bool, const std::optional<Tensor>&,
                      const std::optional<Tensor>&) {
  check_adam("fused_adamw_", self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad);
}

void fused_sgd_meta(TensorList self, TensorList grads, TensorList momentum_buffer_list, double, double momentum, double, double, bool, bool,
                    bool, const std::optional<Tensor>&, const std::optional<Tensor>&) {
  check_fused("fused_sgd_", self, {{"grads", grads}});
  if (momentum != 0)
    check_fused("fused_sgd_", self, {{"momentum_buffer_list", momentum_buffer_list}});
  else
    CRESSET_CHECK(momentum_buffer_list.empty(), "Expected momentum_buffer_list.empty() to be true, but got false.");
}

void fused_adagrad_meta(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps, double, double, double, double,
                        bool, const std::optional<Tensor>&, const std::optional<Tensor>&) {
  check_fused("fused_adagrad_", self, {{"grads", grads}, {"state_sums", state_sums}}, {{"state_steps", state_steps}});
}

// --- forms on copies ------------------------------------------------------------------------------------------------------

using Lists3 = std::tuple<std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>>;
using Lists4 = std::tuple<std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>>;
using Lists5 = std::tuple<std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>>;

Lists5 fused_adam_copies(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                         TensorList state_steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                         bool maximize, const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  Lists5 out{copies(self), copies(grads), copies(exp_avgs), copies(exp_avg_sqs), copies(max_exp_avg_sqs)};
  auto& [p, g, m, v, x] = out;
  cresset::_fused_adam_(p, g, m, v, x, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
  return out;
}

Lists5 fused_adam_copies_tensor_lr(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                                   TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1, double beta2,
                                   double weight_decay, double eps, bool amsgrad, bool maximize, const std::optional<Tensor>& grad_scale,
                                   const std::optional<Tensor>& found_inf) {
  return fused_adam_copies(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr.item<double>(), beta1, beta2, weight_decay,
                           eps, amsgrad, maximize, grad_scale, found_inf);
}

Lists5 fused_adamw_copies(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                          TensorList state_steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                          bool maximize, const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  Lists5 out{copies(self), copies(grads), copies(exp_avgs), copies(exp_avg_sqs), copies(max_exp_avg_sqs)};
  auto& [p, g, m, v, x] = out;
  cresset::_fused_adamw_(p, g, m, v, x, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
  return out;
}

Lists5 fused_adamw_copies_tensor_lr(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                                    TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1, double beta2,
                                    double weight_decay, double eps, bool amsgrad, bool maximize, const std::optional<Tensor>& grad_scale,
                                    const std::optional<Tensor>& found_inf) {
  return fused_adamw_copies(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr.item<double>(), beta1, beta2, weight_decay,
                            eps, amsgrad, maximize, grad_scale, found_inf);
}

Lists3 fused_sgd_copies(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay, double momentum, double lr,
                        double dampening, bool nesterov, bool maximize, bool is_first_step, const std::optional<Tensor>& grad_scale,
                        const std::optional<Tensor>& found_inf) {
  Lists3 out{copies(self), copies(grads), copies(momentum_buffer_list)};
  auto& [p, g, b] = out;
  cresset::_fused_sgd_(p, g, b, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf);
  return out;
}

Lists3 fused_sgd_copies_tensor_lr(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay, double momentum,
                                  const Tensor& lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                                  const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  return fused_sgd_copies(self, grads, momentum_buffer_list, weight_decay, momentum, lr.item<double>(), dampening, nesterov, maximize,
                          is_first_step, grad_scale, found_inf);
}

Lists4 fused_adagrad_copies(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps, double lr, double lr_decay,
                            double weight_decay, double eps, bool maximize, const std::optional<Tensor>& grad_scale,
                            const std::optional<Tensor>& found_inf) {
  Lists4 out{copies(self), copies(grads), copies(state_sums), copies(state_steps)};
  auto& [p, g, sums, steps] = out;
  cresset::_fused_adagrad_(p, g, sums, steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf);
  return out;
}

Lists3 fused_adagrad_copies_tensor_lr(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps, const Tensor& lr,
                                      double lr_decay, double weight_decay, double eps, bool maximize,
                                      const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  auto [p, g, sums, steps] = fused_adagrad_copies(self, grads, state_sums, state_steps, lr.item<double>(), lr_decay, weight_decay, eps,
                                                  maximize, grad_scale, found_inf);
  return {std::move(p), std::move(g), std::move(sums)};
}

}  // namespace cresset::ops
