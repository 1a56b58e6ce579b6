// Schedules of learning rates.
#include <cresset/nn/lr_scheduler.h>

#include <algorithm>
#include <iostream>
#include <limits>

namespace cresset::optim {

std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> out;
  for (const OptimizerParamGroup& group : optimizer_.param_groups()) out.push_back(group.options().get_lr());
  return out;
}
void LRScheduler::step() {
  ++step_count_;
  const std::vector<double> lrs = get_lrs();
  auto& groups = optimizer_.param_groups();
  CRESSET_CHECK(lrs.size() == groups.size(), "Number of learning rates not equal to the number of param groups");
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(lrs[i]);
}
std::vector<double> StepLR::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  if (step_count_ % step_size_ == 0)
    for (double& lr : lrs) lr *= gamma_;
  return lrs;
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode, float factor, int patience,
                                                       double threshold, ThresholdMode threshold_mode, int cooldown,
                                                       const std::vector<float>& min_lr, double eps, bool verbose)
    : optimizer_(optimizer),
      mode_(mode),
      threshold_mode_(threshold_mode),
      factor_(factor),
      threshold_(threshold),
      eps_(eps),
      patience_(patience),
      cooldown_(cooldown),
      verbose_(verbose),
      min_lr_(min_lr.begin(), min_lr.end()),
      best_(mode == min ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity()) {
  CRESSET_CHECK_VALUE(factor < 1, "Factor should be < 1.0; ", factor, " was given.");
  const std::size_t groups = optimizer.param_groups().size();
  if (min_lr_.size() < 2) min_lr_.assign(groups, min_lr_.empty() ? 0.0 : min_lr_[0]);
  CRESSET_CHECK_VALUE(min_lr_.size() == groups, "Number of learning rates not equal to the number of param groups: ", min_lr_.size(),
                      " minima, ", groups, " groups.");
}

bool ReduceLROnPlateauScheduler::improves(double metric) const {
  if (threshold_mode_ == abs) return mode_ == min ? metric < best_ - threshold_ : metric > best_ + threshold_;
  return mode_ == min ? metric < best_ * (1 - threshold_) : metric > best_ * (1 + threshold_);
}

void ReduceLROnPlateauScheduler::reduce() {
  auto& groups = optimizer_.param_groups();
  CRESSET_CHECK(min_lr_.size() == groups.size(), "ReduceLROnPlateauScheduler: a group was added since it was made.");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double old = groups[i].options().get_lr(), reduced = std::max(old * factor_, min_lr_[i]);
    if (old - reduced <= eps_) continue;
    groups[i].options().set_lr(reduced);
    if (verbose_) std::cout << "Epoch " << steps_ << ": reducing learning rate of group " << i << " to " << reduced << ".\n";
  }
}

void ReduceLROnPlateauScheduler::step(float metric) {
  ++steps_;
  if (improves(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= patience_) return;
  reduce();
  cooling_ = cooldown_;
  bad_steps_ = 0;
}

}  // namespace cresset::optim
