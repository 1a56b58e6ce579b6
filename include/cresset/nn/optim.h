// Optimisers for C++ training loops; the arithmetic is PyTorch's single-tensor form.
#pragma once

#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::optim {

/// Holds parameters (leaves that require grad) and updates them from their gradients.
class CRESSET_API Optimizer {
 public:
  explicit Optimizer(std::vector<Tensor> parameters);
  virtual ~Optimizer() = default;
  /// One update; parameters without gradient are left alone.
  virtual void step() = 0;
  /// Drops all gradients.
  void zero_grad();

 protected:
  std::vector<Tensor> parameters_;
};

/// Stochastic gradient descent with momentum and weight decay.
class CRESSET_API SGD final : public Optimizer {
 public:
  SGD(std::vector<Tensor> parameters, double lr, double momentum = 0, double weight_decay = 0);
  void step() override;

 private:
  double lr_, momentum_, weight_decay_;
  std::vector<Tensor> velocity_;
};

/// Adam (Kingma and Ba 2015); with decoupled = true, AdamW (Loshchilov and Hutter 2019).
class CRESSET_API Adam final : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8,
       double weight_decay = 0, bool decoupled = false);
  void step() override;

 private:
  double lr_, beta1_, beta2_, eps_, weight_decay_;
  bool decoupled_;
  int64_t steps_ = 0;
  std::vector<Tensor> mean_, square_;
};

}  // namespace cresset::optim
