// Optimisers.
#include <cresset/nn/optim.h>

#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_creation.h>

namespace cresset::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
  CRESSET_CHECK_VALUE(!parameters_.empty(), "optimizer got an empty parameter list");
  for (const Tensor& p : parameters_) CRESSET_CHECK_VALUE(p.is_leaf(), "can't optimize a non-leaf Tensor");
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.mutable_grad().reset();
}

SGD::SGD(std::vector<Tensor> parameters, double lr, double momentum, double weight_decay)
    : Optimizer(std::move(parameters)), lr_(lr), momentum_(momentum), weight_decay_(weight_decay), velocity_(parameters_.size()) {
  CRESSET_CHECK_VALUE(lr >= 0, "Invalid learning rate: ", lr);
  CRESSET_CHECK_VALUE(momentum >= 0, "Invalid momentum value: ", momentum);
}

void SGD::step() {
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& p = parameters_[i];
    Tensor g = p.grad();
    if (!g.defined()) continue;
    if (weight_decay_ != 0) g = g.add(p, weight_decay_);
    if (momentum_ != 0) {
      Tensor& v = velocity_[i];
      if (v.defined())
        v.mul_(momentum_).add_(g);
      else
        v = g.clone();
      g = v;
    }
    p.add_(g, -lr_);
  }
}

Adam::Adam(std::vector<Tensor> parameters, double lr, double beta1, double beta2, double eps, double weight_decay, bool decoupled)
    : Optimizer(std::move(parameters)),
      lr_(lr),
      beta1_(beta1),
      beta2_(beta2),
      eps_(eps),
      weight_decay_(weight_decay),
      decoupled_(decoupled),
      mean_(parameters_.size()),
      square_(parameters_.size()) {
  CRESSET_CHECK_VALUE(lr >= 0, "Invalid learning rate: ", lr);
  CRESSET_CHECK_VALUE(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, "Invalid beta parameters: ", beta1, " and ", beta2);
}

void Adam::step() {
  const NoGradGuard no_grad;
  ++steps_;
  const double correction1 = 1 - std::pow(beta1_, static_cast<double>(steps_)),
               correction2 = 1 - std::pow(beta2_, static_cast<double>(steps_));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& p = parameters_[i];
    Tensor g = p.grad();
    if (!g.defined()) continue;
    if (weight_decay_ != 0) {
      if (decoupled_)
        p.mul_(1 - lr_ * weight_decay_);
      else
        g = g.add(p, weight_decay_);
    }
    if (!mean_[i].defined()) {
      mean_[i] = cresset::zeros_like(p);
      square_[i] = cresset::zeros_like(p);
    }
    mean_[i].lerp_(g, 1 - beta1_);
    square_[i].mul_(beta2_).addcmul_(g, g, 1 - beta2_);
    const Tensor denominator = square_[i].sqrt().div_(std::sqrt(correction2)).add_(eps_);
    p.addcdiv_(mean_[i], denominator, -lr_ / correction1);
  }
}

}  // namespace cresset::optim
