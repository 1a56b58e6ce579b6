// L-BFGS on Rosenbrock's function in double. Expected numbers are those of PyTorch's Python optimiser.
#include <gtest/gtest.h>

#include <cresset/cresset.h>
#include <cresset/serialize.h>

#include "error_of.h"

using namespace cresset;

namespace {

struct Problem {
  Problem(double x, double y, const optim::LBFGSOptions& options)
      : p(tensor({x, y}, TensorOptions(kDouble)).set_requires_grad(true)), optimizer({p}, options) {}
  double step() {
    return optimizer
        .step([&] {
          ++calls;
          optimizer.zero_grad();
          const Tensor valley = p[1] - p[0] * p[0], rest = 1 - p[0], loss = 100 * valley * valley + rest * rest;
          loss.backward();
          return loss;
        })
        .item<double>();
  }
  Tensor p;
  optim::LBFGS optimizer;
  int calls = 0;
};

struct Case {
  double x, y;
  optim::LBFGSOptions options;
  double losses[3], at[2];
  int calls;
};

}  // namespace

TEST(LBFGS, AsInPython) {
  const Case cases[] = {
      {0.7, 0.5, optim::LBFGSOptions(0.1), {0.1, 0.108744251902, 0.0779356439022}, {0.853349646804, 0.736398722153}, 60},
      {-1.2,
       1,
       optim::LBFGSOptions().line_search_fn("strong_wolfe"),
       {24.2, 0.423482302438, 4.22145751126e-10},
       {0.999981421079, 0.999961965181},
       45},
      {-1.2,
       1,
       optim::LBFGSOptions(0.5).history_size(3).max_iter(7),
       {24.2, 4.10904163703, 3.80017655675},
       {-0.344808578858, 0.0963366405372},
       21},
      {-1.2,
       1,
       optim::LBFGSOptions().max_eval(4).line_search_fn("strong_wolfe"),
       {24.2, 4.12558671367, 4.08495537633},
       {-0.880213164966, 0.727477206072},
       12},
  };
  for (const Case& c : cases) {
    Problem problem(c.x, c.y, c.options);
    for (double loss : c.losses) EXPECT_NEAR(problem.step(), loss, 1e-9 * std::max(1.0, loss));
    EXPECT_NEAR(problem.p[0].item<double>(), c.at[0], 1e-8);
    EXPECT_NEAR(problem.p[1].item<double>(), c.at[1], 1e-8);
    EXPECT_EQ(problem.calls, c.calls);
  }
}

TEST(LBFGS, ContinuesFromAFile) {
  Problem problem(-1.2, 1, optim::LBFGSOptions().max_iter(5).line_search_fn("strong_wolfe")), other(0, 0, optim::LBFGSOptions());
  problem.step();
  std::stringstream file;
  save(problem.optimizer, file);
  load(other.optimizer, file);
  EXPECT_EQ(static_cast<const optim::LBFGSOptions&>(other.optimizer.param_groups()[0].options()).line_search_fn(), "strong_wolfe");
  {
    const NoGradGuard no_grad;
    other.p.copy_(problem.p);
  }
  EXPECT_EQ(problem.step(), other.step());
  EXPECT_NEAR((problem.p - other.p).abs().max().item<double>(), 0, 1e-12);
}

TEST(LBFGS, WrongUseIsRefused) {
  const Tensor p = ones({2}).set_requires_grad(true), q = ones({1}).set_requires_grad(true);
  const std::vector<optim::OptimizerParamGroup> two = {optim::OptimizerParamGroup({p}), optim::OptimizerParamGroup({q})};
  EXPECT_EQ(error_of([&] { optim::LBFGS{two}; }), "LBFGS doesn't support per-parameter options (parameter groups)");
  EXPECT_EQ(error_of([&] { optim::LBFGS({p}, -1); }), "Invalid learning rate: -1");
  optim::LBFGS plain({p}), wrong({p}, optim::LBFGSOptions().line_search_fn("armijo"));
  EXPECT_EQ(error_of([&] { plain.step(nullptr); }), "LBFGS requires a closure function");
  EXPECT_EQ(error_of([&] { wrong.step([&] { return p.sum(); }); }), "only 'strong_wolfe' is supported");
}
