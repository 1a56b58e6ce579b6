// Optimisers for C++ training loops, with groups of parameters that have options of their own; the arithmetic is PyTorch's single-tensor
// form.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <cresset/nn/optim_fields.h>

namespace cresset::optim {

class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_), options_(other.options_ ? other.options_->clone() : nullptr) {}
  OptimizerParamGroup& operator=(const OptimizerParamGroup& other) {
    params_ = other.params_;
    options_ = other.options_ ? other.options_->clone() : nullptr;
    return *this;
  }
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() {
    CRESSET_CHECK(options_, "optim: this group has no options of its own yet");
    return *options_;
  }
  const OptimizerOptions& options() const { return const_cast<OptimizerParamGroup*>(this)->options(); }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

/// Holds groups of parameters (leaves that require grad) and updates them from their gradients.
class CRESSET_API Optimizer {
 public:
  /// Computes the loss anew, with gradients.
  using LossClosure = std::function<Tensor()>;

  Optimizer(const std::vector<OptimizerParamGroup>& groups, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)
      : Optimizer(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  Optimizer(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// One update; parameters without gradient are left alone. Gives back the closure's loss.
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  /// Drops all gradients, or makes them zero.
  void zero_grad(bool set_to_none = true);
  void add_param_group(const OptimizerParamGroup& group);

  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }
  OptimizerOptions& defaults() { return *defaults_; }
  const OptimizerOptions& defaults() const { return *defaults_; }
  /// What is remembered of the parameters, by `parameter.unsafeGetTensorImpl()`.
  std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>& state() { return state_; }
  const std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>& state() const { return state_; }

  // Of the time before groups; each warns that it will be removed.
  /// Adds to the first group.
  void add_parameters(const std::vector<Tensor>& more);
  /// The parameters of the first group.
  const std::vector<Tensor>& parameters() const;
  std::vector<Tensor>& parameters();
  /// The number of parameters in all groups.
  std::size_t size() const;

  virtual void save(serialize::OutputArchive& archive) const;
  /// Also reads what PyTorch's C++ optimisers wrote before 1.5, without options and by names of lists; that gives a warning.
  virtual void load(serialize::InputArchive& archive);

 protected:
  /// The state of a parameter, made when it is asked for the first time.
  template <class State>
  State& state_of(const Tensor& parameter) {
    std::unique_ptr<OptimizerParamState>& state = state_[parameter.unsafeGetTensorImpl()];
    if (!state) state = std::make_unique<State>();
    return static_cast<State&>(*state);
  }
  /// An empty state of this optimiser's kind, to be read into; optimisers with states of their own override it or load().
  virtual std::unique_ptr<OptimizerParamState> new_state() const { return nullptr; }
  /// Reads the format of the time before groups.
  virtual void load_old(serialize::InputArchive& archive);
  static Tensor loss_of(const LossClosure& closure);

  std::vector<OptimizerParamGroup> groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::unordered_map<void*, std::unique_ptr<OptimizerParamState>> state_;
};

CRESSET_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer);
CRESSET_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer);

/// An optimiser with its two constructors.
#define CRESSET_OPTIM_CLASS(Name)                                                                                                          \
 public:                                                                                                                                   \
  explicit Name(const std::vector<OptimizerParamGroup>& groups, const Name##Options& defaults = {})                                        \
      : Optimizer(groups, defaults.clone()) {                                                                                              \
    check();                                                                                                                               \
  }                                                                                                                                        \
  explicit Name(std::vector<Tensor> parameters, const Name##Options& defaults = {}) : Optimizer(std::move(parameters), defaults.clone()) { \
    check();                                                                                                                               \
  }                                                                                                                                        \
  Tensor step(LossClosure closure = nullptr) override;                                                                                     \
                                                                                                                                           \
 private:                                                                                                                                  \
  void check();                                                                                                                            \
  std::unique_ptr<OptimizerParamState> new_state() const override { return std::make_unique<Name##ParamState>(); }                         \
  void load_old(serialize::InputArchive& archive) override;

struct CRESSET_API SGDOptions : OptimizerCloneableOptions<SGDOptions> {
  SGDOptions(double lr = 1e-3) : lr_(lr) {}
  CRESSET_OPTIM_FIELDS(SGDOptions, CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(momentum) CRESSET_OPTIM_VISIT(dampening)
                                       CRESSET_OPTIM_VISIT(weight_decay) CRESSET_OPTIM_VISIT(nesterov))
  CRESSET_ARG(double, lr);
  CRESSET_ARG(double, momentum) = 0;
  CRESSET_ARG(double, dampening) = 0;
  CRESSET_ARG(double, weight_decay) = 0;
  CRESSET_ARG(bool, nesterov) = false;
};
struct CRESSET_API SGDParamState : OptimizerCloneableParamState<SGDParamState> {
  CRESSET_OPTIM_FIELDS(SGDParamState, CRESSET_OPTIM_VISIT(momentum_buffer))
  CRESSET_ARG(Tensor, momentum_buffer);
};
/// Stochastic gradient descent with momentum and weight decay.
class CRESSET_API SGD : public Optimizer {
  CRESSET_OPTIM_CLASS(SGD)
};

using Betas = std::tuple<double, double>;
#define CRESSET_OPTIM_ADAM(Name, decay)                                                                                           \
  struct CRESSET_API Name##Options : OptimizerCloneableOptions<Name##Options> {                                                   \
    Name##Options(double lr = 1e-3) : lr_(lr) {}                                                                                  \
    CRESSET_OPTIM_FIELDS(Name##Options, CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(betas) CRESSET_OPTIM_VISIT(eps)               \
                                            CRESSET_OPTIM_VISIT(weight_decay) CRESSET_OPTIM_VISIT(amsgrad))                       \
    CRESSET_ARG(double, lr);                                                                                                      \
    CRESSET_ARG(Betas, betas) = Betas(0.9, 0.999);                                                                                \
    CRESSET_ARG(double, eps) = 1e-8;                                                                                              \
    CRESSET_ARG(double, weight_decay) = decay;                                                                                    \
    CRESSET_ARG(bool, amsgrad) = false;                                                                                           \
  };                                                                                                                              \
  struct CRESSET_API Name##ParamState : OptimizerCloneableParamState<Name##ParamState> {                                          \
    CRESSET_OPTIM_FIELDS(Name##ParamState, CRESSET_OPTIM_VISIT(step) CRESSET_OPTIM_VISIT(exp_avg) CRESSET_OPTIM_VISIT(exp_avg_sq) \
                                               CRESSET_OPTIM_VISIT(max_exp_avg_sq))                                               \
    CRESSET_ARG(int64_t, step) = 0;                                                                                               \
    CRESSET_ARG(Tensor, exp_avg);                                                                                                 \
    CRESSET_ARG(Tensor, exp_avg_sq);                                                                                              \
    CRESSET_ARG(Tensor, max_exp_avg_sq);                                                                                          \
  };
CRESSET_OPTIM_ADAM(Adam, 0)
CRESSET_OPTIM_ADAM(AdamW, 1e-2)
/// Adam (Kingma and Ba 2015).
class CRESSET_API Adam : public Optimizer {
  CRESSET_OPTIM_CLASS(Adam)
};
/// Adam with decoupled weight decay (Loshchilov and Hutter 2019).
class CRESSET_API AdamW : public Optimizer {
  CRESSET_OPTIM_CLASS(AdamW)
};

struct CRESSET_API AdagradOptions : OptimizerCloneableOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  CRESSET_OPTIM_FIELDS(AdagradOptions, CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(lr_decay) CRESSET_OPTIM_VISIT(weight_decay)
                                           CRESSET_OPTIM_VISIT(initial_accumulator_value) CRESSET_OPTIM_VISIT(eps))
  CRESSET_ARG(double, lr);
  CRESSET_ARG(double, lr_decay) = 0;
  CRESSET_ARG(double, weight_decay) = 0;
  CRESSET_ARG(double, initial_accumulator_value) = 0;
  CRESSET_ARG(double, eps) = 1e-10;
};
struct CRESSET_API AdagradParamState : OptimizerCloneableParamState<AdagradParamState> {
  CRESSET_OPTIM_FIELDS(AdagradParamState, CRESSET_OPTIM_VISIT(step) CRESSET_OPTIM_VISIT(sum))
  CRESSET_ARG(int64_t, step) = 0;
  CRESSET_ARG(Tensor, sum);
};
/// Adagrad (Duchi et al. 2011). The accumulators of the parameters it is made with exist from the beginning.
class CRESSET_API Adagrad : public Optimizer {
  CRESSET_OPTIM_CLASS(Adagrad)
};

struct CRESSET_API RMSpropOptions : OptimizerCloneableOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  CRESSET_OPTIM_FIELDS(RMSpropOptions, CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(alpha) CRESSET_OPTIM_VISIT(eps)
                                           CRESSET_OPTIM_VISIT(weight_decay) CRESSET_OPTIM_VISIT(momentum) CRESSET_OPTIM_VISIT(centered))
  CRESSET_ARG(double, lr);
  CRESSET_ARG(double, alpha) = 0.99;
  CRESSET_ARG(double, eps) = 1e-8;
  CRESSET_ARG(double, weight_decay) = 0;
  CRESSET_ARG(double, momentum) = 0;
  CRESSET_ARG(bool, centered) = false;
};
struct CRESSET_API RMSpropParamState : OptimizerCloneableParamState<RMSpropParamState> {
  CRESSET_OPTIM_FIELDS(RMSpropParamState, CRESSET_OPTIM_VISIT(step) CRESSET_OPTIM_VISIT(square_avg) CRESSET_OPTIM_VISIT(momentum_buffer)
                                              CRESSET_OPTIM_VISIT(grad_avg))
  CRESSET_ARG(int64_t, step) = 0;
  CRESSET_ARG(Tensor, square_avg);
  CRESSET_ARG(Tensor, momentum_buffer);
  CRESSET_ARG(Tensor, grad_avg);
};
/// RMSprop (Hinton's lecture 6e), centered as in Graves 2013.
class CRESSET_API RMSprop : public Optimizer {
  CRESSET_OPTIM_CLASS(RMSprop)
};
#undef CRESSET_OPTIM_ADAM
#undef CRESSET_OPTIM_CLASS

}  // namespace cresset::optim
