// L-BFGS for C++ training loops.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <cresset/nn/optim.h>

namespace cresset::optim {

struct CRESSET_API LBFGSOptions : OptimizerCloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  template <class F>
  void visit(F&& f) {
    f("lr", lr());
    f("max_iter", max_iter());
    f("max_eval", max_eval());
    f("tolerance_grad", tolerance_grad());
    f("tolerance_change", tolerance_change());
    f("history_size", history_size());
    f("line_search_fn", line_search_fn());
  }
  CRESSET_ARG(double, lr);
  CRESSET_ARG(int64_t, max_iter) = 20;
  /// Calls of the closure in one step; a quarter more than max_iter unless given.
  CRESSET_ARG(std::optional<int64_t>, max_eval);
  CRESSET_ARG(double, tolerance_grad) = 1e-7;
  CRESSET_ARG(double, tolerance_change) = 1e-9;
  CRESSET_ARG(int64_t, history_size) = 100;
  /// Steps of size lr, or "strong_wolfe".
  CRESSET_ARG(std::optional<std::string>, line_search_fn);
};

/// Quasi-Newton steps from the last `history_size` changes of parameters and gradients. step() calls the closure several times: it clears
/// the gradients, computes the loss, runs backward and returns the loss. All parameters are one group.
class CRESSET_API LBFGS : public Optimizer {
 public:
  explicit LBFGS(const std::vector<OptimizerParamGroup>& groups, const LBFGSOptions& defaults = {});
  explicit LBFGS(std::vector<Tensor> parameters, const LBFGSOptions& defaults = {})
      : LBFGS(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(parameters))}, defaults) {}
  /// Up to max_iter iterations; gives back the loss before the first.
  Tensor step(LossClosure closure) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  /// One remembered step: the change of the gradient, that of the parameters, and one over their product.
  struct Change {
    Tensor gradient, parameters;
    double inverse;
  };
  struct Point;
  class Line;

  Tensor flat_gradient();
  void move(double t, const Tensor& direction);
  void remember(const Tensor& gradient);
  Tensor direction_from(const Tensor& gradient) const;

  int64_t iterations_ = 0, evaluations_ = 0;
  double t_ = 0, scale_ = 1, previous_loss_ = 0;  // scale_: the first estimate of the inverse Hessian, times the unit matrix
  Tensor direction_, previous_gradient_;
  std::deque<Change> history_;
};

}  // namespace cresset::optim
