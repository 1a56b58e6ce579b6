// What optimisers remember, and schedules.
#include <cresset/nn.h>
#include <cresset/ops/functions.h>
#include <cresset/serialize.h>

#include <sstream>

#include <gtest/gtest.h>

#include "error_of.h"

using namespace cresset;

namespace {
std::vector<std::string>& heard() {
  static std::vector<std::string> warnings;
  return warnings;
}
/// Collects warnings while it lives.
struct Listening {
  Listening() : previous(set_warning_handler([](std::string_view, const std::string& message) { heard().push_back(message); })) {
    heard().clear();
  }
  ~Listening() { set_warning_handler(previous); }
  WarningHandler previous;
};

Tensor parameter(double value) { return full({2}, value).requires_grad_(true); }
template <class State>
const State& state_of(const optim::Optimizer& optimizer, const Tensor& p) {
  return static_cast<const State&>(*optimizer.state().at(p.unsafeGetTensorImpl()));
}
void step(optim::Optimizer& optimizer, const Tensor& p) {
  optimizer.zero_grad();
  (p * p).sum().backward();
  optimizer.step();
}
/// A list as files had it before optimisers had groups.
void write_old(serialize::OutputArchive& archive, const std::string& name, const std::vector<Tensor>& tensors) {
  archive.write(name + "/size", full({}, static_cast<int64_t>(tensors.size()), TensorOptions(kLong)));
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.write(name + "/" + std::to_string(i), tensors[i], true);
}
}  // namespace

TEST(OptimState, IsThereByParameter) {
  const Tensor p = parameter(3), q = parameter(1);
  optim::Adam adam({p, q}, optim::AdamOptions(0.1).amsgrad(true));
  EXPECT_TRUE(adam.state().empty());
  step(adam, p);
  EXPECT_EQ(adam.state().size(), 1u);  // q had no gradient
  const auto& state = state_of<optim::AdamParamState>(adam, p);
  EXPECT_EQ(state.step(), 1);
  EXPECT_NEAR(state.exp_avg()[0].item<double>(), 0.6, 1e-6);       // a tenth of the gradient 6
  EXPECT_NEAR(state.exp_avg_sq()[0].item<double>(), 0.036, 1e-6);  // a thousandth of its square
  const auto copy = state.clone();
  EXPECT_TRUE(static_cast<optim::AdamParamState&>(*copy) == state);
  static_cast<optim::AdamParamState&>(*copy).step(2);
  EXPECT_FALSE(static_cast<optim::AdamParamState&>(*copy) == state);
  EXPECT_TRUE(optim::AdamOptions(0.1) == optim::AdamOptions(0.1));
  EXPECT_FALSE(optim::AdamOptions(0.1) == optim::AdamOptions(0.1).betas({0.5, 0.9}));
  optim::Adagrad adagrad({p}, optim::AdagradOptions().initial_accumulator_value(2));
  EXPECT_EQ(state_of<optim::AdagradParamState>(adagrad, p).sum()[1].item<double>(), 2);
}

TEST(OptimState, OfOldFiles) {
  const Listening listening;
  const Tensor p = parameter(3), q = parameter(1);
  serialize::OutputArchive out;
  write_old(out, "step_buffers", {full({}, 7, TensorOptions(kLong))});
  write_old(out, "exp_average_buffers", {full({2}, 0.5)});
  write_old(out, "exp_average_sq_buffers", {full({2}, 0.25)});
  write_old(out, "max_exp_average_sq_buffers", {});
  std::stringstream file;
  out.save_to(file);
  optim::Adam adam({p, q});
  load(adam, file);
  EXPECT_EQ(adam.state().size(), 1u);
  const auto& state = state_of<optim::AdamParamState>(adam, p);
  EXPECT_EQ(state.step(), 7);
  EXPECT_EQ(state.exp_avg()[0].item<double>(), 0.5);
  EXPECT_FALSE(state.max_exp_avg_sq().defined());
  ASSERT_EQ(heard().size(), 1u);
  EXPECT_NE(heard()[0].find("old serialization format"), std::string::npos);
  std::stringstream again(file.str());
  optim::SGD sgd({p}, 0.1);
  EXPECT_EQ(error_of([&] { load(sgd, again); }),
            "the archive has neither 'param_groups' nor 'momentum_buffers': it is not this optimizer's.");
}

TEST(OptimState, OldInterfaceWarns) {
  const Listening listening;
  optim::SGD sgd(std::vector<Tensor>{}, 0.1);
  EXPECT_EQ(sgd.size(), 0u);
  sgd.add_parameters({parameter(1)});
  EXPECT_EQ(sgd.parameters().size(), 1u);
  ASSERT_EQ(heard().size(), 3u);
  EXPECT_EQ(heard()[0], "Optimizer::size() will be removed; use Optimizer::param_groups()");
}

TEST(ReduceLROnPlateau, WaitsReducesAndCools) {
  using Schedule = optim::ReduceLROnPlateauScheduler;
  const Tensor p = parameter(1);
  struct Case {
    Schedule::SchedulerMode mode;
    Schedule::ThresholdMode threshold_mode;
    double threshold;
    int cooldown;
    std::vector<float> metrics;
    std::vector<double> rates;  // after each
  };
  // patience 1: the second bad step in a row reduces, from 1 by halves, not below 0.2.
  const std::vector<Case> cases = {
      {Schedule::min, Schedule::rel, 0.1, 0, {10, 9.5, 9.5, 8.9F, 9, 9, 9, 9}, {1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2}},
      {Schedule::max, Schedule::abs, 1, 0, {1, 1.5, 2.5, 3, 3, 3}, {1, 1, 1, 1, 0.5, 0.5}},
      {Schedule::min, Schedule::abs, 0, 2, {5, 5, 5, 5, 5, 5, 5}, {1, 1, 0.5, 0.5, 0.5, 0.5, 0.25}},
  };
  for (const Case& c : cases) {
    optim::SGD sgd({p}, 1.0);
    Schedule schedule(sgd, c.mode, 0.5F, 1, c.threshold, c.threshold_mode, c.cooldown, {0.2F});
    std::vector<double> rates;
    for (const float metric : c.metrics) {
      schedule.step(metric);
      rates.push_back(sgd.param_groups()[0].options().get_lr());
    }
    for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], c.rates[i], 1e-6) << i;
  }
  optim::SGD sgd({p}, 1.0);
  EXPECT_EQ(error_of([&] { Schedule(sgd, Schedule::min, 2.F); }), "Factor should be < 1.0; 2 was given.");
}
