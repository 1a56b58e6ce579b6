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
  CRESSET_OPTIM_FIELDS(LBFGSOptions, CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(max_iter) CRESSET_OPTIM_VISIT(max_eval)
                                         CRESSET_OPTIM_VISIT(tolerance_grad) CRESSET_OPTIM_VISIT(tolerance_change)
                                             CRESSET_OPTIM_VISIT(history_size) CRESSET_OPTIM_VISIT(line_search_fn))
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

/// What is remembered of all parameters together; it is the state of the first one.
struct CRESSET_API LBFGSParamState : OptimizerCloneableParamState<LBFGSParamState> {
  CRESSET_OPTIM_FIELDS(LBFGSParamState,
                       CRESSET_OPTIM_VISIT(func_evals) CRESSET_OPTIM_VISIT(n_iter) CRESSET_OPTIM_VISIT(t) CRESSET_OPTIM_VISIT(prev_loss)
                           CRESSET_OPTIM_VISIT(d) CRESSET_OPTIM_VISIT(H_diag) CRESSET_OPTIM_VISIT(prev_flat_grad)
                               CRESSET_OPTIM_VISIT(old_dirs) CRESSET_OPTIM_VISIT(old_stps) CRESSET_OPTIM_VISIT(ro) CRESSET_OPTIM_VISIT(al))
  /// Calls of the closure and iterations, over all steps.
  CRESSET_ARG(int64_t, func_evals) = 0;
  CRESSET_ARG(int64_t, n_iter) = 0;
  /// The last iteration's step length, loss before it, direction, and gradient before it.
  CRESSET_ARG(double, t) = 0;
  CRESSET_ARG(double, prev_loss) = 0;
  CRESSET_ARG(Tensor, d);
  /// The first estimate of the inverse Hessian is this number times the unit matrix.
  CRESSET_ARG(Tensor, H_diag);
  CRESSET_ARG(Tensor, prev_flat_grad);
  /// Of the remembered iterations: the changes of the gradient, those of the parameters, and one over their products.
  CRESSET_ARG(std::deque<Tensor>, old_dirs);
  CRESSET_ARG(std::deque<Tensor>, old_stps);
  CRESSET_ARG(std::deque<Tensor>, ro);
  /// The weights of the last two-loop recursion.
  CRESSET_ARG(std::optional<std::vector<Tensor>>, al);
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

 private:
  struct Point;
  class Line;

  const std::vector<Tensor>& all() const { return groups_.front().params(); }
  Tensor flat_gradient() const;
  void move(double t, const Tensor& direction);
  void remember(LBFGSParamState& state, const Tensor& gradient) const;
  static Tensor direction_from(LBFGSParamState& state, const Tensor& gradient);
  std::unique_ptr<OptimizerParamState> new_state() const override { return std::make_unique<LBFGSParamState>(); }
  void load_old(serialize::InputArchive& archive) override;
};

}  // namespace cresset::optim
