// Schedules of learning rates for C++ training loops.
#pragma once

#include <vector>

#include <cresset/nn/optim.h>

namespace cresset::optim {

/// Changes the learning rates of an optimiser, step by step.
class CRESSET_API LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  virtual ~LRScheduler() = default;
  void step();

 protected:
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;

  Optimizer& optimizer_;
  unsigned step_count_ = 0;
};

/// Multiplies the rates by gamma every step_size steps.
class CRESSET_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1) : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
    CRESSET_CHECK_VALUE(step_size > 0, "StepLR: a step_size of at least 1 was required; 0 was given.");
  }

 protected:
  std::vector<double> get_lrs() override;

 private:
  const unsigned step_size_;
  const double gamma_;
};

/// Multiplies the rates by `factor` when a metric has not improved for more than `patience` steps. No rate falls below its minimum (one for
/// all groups, one for each, or none: 0), and a change smaller than `eps` is left out. After a change, `cooldown` steps do not count. With
/// `verbose` each change is printed.
class CRESSET_API ReduceLROnPlateauScheduler {
 public:
  /// Which way the metric improves.
  enum SchedulerMode { min, max };
  /// Is `threshold`, by how much it must improve, a share of the best metric or a difference?
  enum ThresholdMode { rel, abs };

  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1F, int patience = 10,
                             double threshold = 1e-4, ThresholdMode threshold_mode = rel, int cooldown = 0,
                             const std::vector<float>& min_lr = {}, double eps = 1e-8, bool verbose = false);
  virtual ~ReduceLROnPlateauScheduler() = default;
  virtual void step(float metric);

 private:
  bool improves(double metric) const;
  void reduce();

  Optimizer& optimizer_;
  const SchedulerMode mode_;
  const ThresholdMode threshold_mode_;
  const double factor_, threshold_, eps_;
  const int patience_, cooldown_;
  const bool verbose_;
  std::vector<double> min_lr_;
  double best_;
  int bad_steps_ = 0, cooling_ = 0, steps_ = 0;
};

}  // namespace cresset::optim
