// Optimiser steps on lists: constants of each parameter's step, memory the loops can read, elements split among threads.
#include <algorithm>
#include <array>
#include <cmath>

#include <cresset/base/error.h>
#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>

#include "backends/cpu/fused_loops.h"
#include "cpu/cpu_decl_fused.h"
#include "ops/fused.h"
#include "ops/ops_decl_fused.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

namespace {

constexpr int64_t kGrain = 1 << 14;  // elements worth waking a thread for

/// The tensors of one parameter's step as memory of one layout in float or double. Others (half types, strides that differ or
/// leave holes) are worked on in copies that `finish` writes back.
template <std::size_t N>
class Operands {
 public:
  explicit Operands(const std::array<Tensor, N>& given) : given_(given), used_(given) {
    const Tensor& first = given[0];
    const ScalarType type = isReducedFloatingType(first.scalar_type()) ? kFloat : first.scalar_type();
    bool direct = type == first.scalar_type();
    for (const Tensor& t : given) direct = direct && (!t.defined() || (t.is_non_overlapping_and_dense() && t.strides() == first.strides()));
    if (direct) return;
    copied_ = true;
    for (std::size_t i = 0; i < N; ++i) {
      if (!given[i].defined()) continue;
      used_[i] = detail::empty_cpu(given[i].sizes(), type);
      ops::copy_data(given[i], used_[i]);
    }
  }
  ScalarType type() const { return used_[0].scalar_type(); }
  int64_t numel() const { return used_[0].numel(); }
  /// Null for a tensor that is not there.
  template <class T>
  T* data(std::size_t i) const {
    return used_[i].defined() ? used_[i].template mutable_data_ptr<T>() : nullptr;
  }
  void finish() const {
    if (!copied_) return;
    for (std::size_t i = 0; i < N; ++i)
      if (given_[i].defined()) ops::copy_data(used_[i], given_[i]);
  }

 private:
  std::array<Tensor, N> given_, used_;
  bool copied_ = false;
};

template <class T>
T* at(T* p, int64_t i) {
  return p ? p + i : nullptr;
}

template <class Step>
Step common_of(const std::optional<Tensor>& grad_scale, bool maximize, double weight_decay) {
  Step s;
  s.scaled = grad_scale && grad_scale->defined();
  if (s.scaled) s.grad_scale = grad_scale->item<double>();
  s.sign = maximize ? -1 : 1;
  s.decay = weight_decay != 0 ? Decay::Gradient : Decay::None;
  s.weight_decay = weight_decay;
  return s;
}

void adam_steps(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                TensorList state_steps, FusedAdamStep s, double lr, bool amsgrad) {
  for (std::size_t i = 0; i < self.size(); ++i) {
    const double count = state_steps[i].item<double>();
    s.step_size = lr / (1 - std::pow(s.beta1, count));
    s.correction = std::sqrt(1 - std::pow(s.beta2, count));
    const Operands<5> o({self[i], grads[i], exp_avgs[i], exp_avg_sqs[i], amsgrad ? max_exp_avg_sqs[i] : Tensor()});
    CRESSET_DISPATCH(o.type(), "fused_adam_kernel", CRESSET_FLOATING_TYPES, [&] {
      using T = scalar_t;
      const auto& loops = find_fused_loops<T>();
      T *const p = o.data<T>(0), *const g = o.data<T>(1), *const m = o.data<T>(2), *const v = o.data<T>(3), *const x = o.data<T>(4);
      parallel_for(0, o.numel(), kGrain, [&](int64_t b, int64_t e) { loops.adam(p + b, g + b, m + b, v + b, at(x, b), e - b, s); });
    });
    o.finish();
  }
}

}  // namespace

void fused_adam(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                TensorList state_steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  ops::fused_adam_meta(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad,
                       maximize, grad_scale, found_inf);
  if (ops::found_infinity(found_inf)) return;
  auto step = common_of<FusedAdamStep>(grad_scale, maximize, weight_decay);
  step.beta1 = beta1, step.beta2 = beta2, step.eps = eps;
  adam_steps(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, step, lr, amsgrad);
}

void fused_adamw(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                 TensorList state_steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                 bool maximize, const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  ops::fused_adamw_meta(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad,
                        maximize, grad_scale, found_inf);
  if (ops::found_infinity(found_inf)) return;
  auto step = common_of<FusedAdamStep>(grad_scale, maximize, lr * weight_decay);
  if (weight_decay != 0) step.decay = Decay::Parameter;
  step.beta1 = beta1, step.beta2 = beta2, step.eps = eps;
  adam_steps(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, step, lr, amsgrad);
}

void fused_sgd(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay, double momentum, double lr,
               double dampening, bool nesterov, bool maximize, bool is_first_step, const std::optional<Tensor>& grad_scale,
               const std::optional<Tensor>& found_inf) {
  ops::fused_sgd_meta(self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
                      grad_scale, found_inf);
  if (ops::found_infinity(found_inf)) return;
  auto step = common_of<FusedSgdStep>(grad_scale, maximize, weight_decay);
  step.lr = lr, step.momentum = momentum, step.dampening = dampening, step.nesterov = nesterov, step.first = is_first_step;
  for (std::size_t i = 0; i < self.size(); ++i) {
    const Operands<3> o({self[i], grads[i], momentum != 0 ? momentum_buffer_list[i] : Tensor()});
    CRESSET_DISPATCH(o.type(), "fused_sgd_kernel", CRESSET_FLOATING_TYPES, [&] {
      using T = scalar_t;
      const auto& loops = find_fused_loops<T>();
      T *const p = o.data<T>(0), *const g = o.data<T>(1), *const m = o.data<T>(2);
      parallel_for(0, o.numel(), kGrain, [&](int64_t b, int64_t e) { loops.sgd(p + b, g + b, at(m, b), e - b, step); });
    });
    o.finish();
  }
}

void fused_adagrad(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps, double lr, double lr_decay,
                   double weight_decay, double eps, bool maximize, const std::optional<Tensor>& grad_scale,
                   const std::optional<Tensor>& found_inf) {
  ops::fused_adagrad_meta(self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf);
  if (ops::found_infinity(found_inf)) return;
  auto step = common_of<FusedAdagradStep>(grad_scale, maximize, weight_decay);
  step.eps = eps;
  for (std::size_t i = 0; i < self.size(); ++i) {
    step.step_size = lr / (1 + (state_steps[i].item<double>() - 1) * lr_decay);
    const Operands<3> o({self[i], grads[i], state_sums[i]});
    CRESSET_DISPATCH(o.type(), "fused_adagrad_kernel", CRESSET_FLOATING_TYPES, [&] {
      using T = scalar_t;
      const auto& loops = find_fused_loops<T>();
      T *const p = o.data<T>(0), *const g = o.data<T>(1), *const sum = o.data<T>(2);
      parallel_for(0, o.numel(), kGrain, [&](int64_t b, int64_t e) { loops.adagrad(p + b, g + b, sum + b, e - b, step); });
    });
    o.finish();
  }
}

}  // namespace cresset::cpu
