// Optimisers for C++ training loops, with groups of parameters that have options of their own; the arithmetic is PyTorch's single-tensor
// form.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/dispatch/boxing.h>
#include <cresset/nn/archive.h>
#include <cresset/nn/arg.h>

namespace cresset::optim {

/// What an optimiser is told: its defaults, and each group's own.
class CRESSET_API OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

/// Derived::visit(f) calls f(name, reference) for every option; options without it cannot be saved, without lr() not scheduled.
template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override { return std::make_unique<Derived>(static_cast<const Derived&>(*this)); }
  double get_lr() const override {
    if constexpr (requires(const Derived& d) { d.lr(); })
      return static_cast<const Derived&>(*this).lr();
    else
      CRESSET_THROW(Error, "double get_lr() has not been overidden and implemented in subclass of torch::optim::OptimizerOptions");
  }
  void set_lr(double lr) override {
    if constexpr (requires(Derived& d) { d.lr(lr); })
      static_cast<Derived&>(*this).lr(lr);
    else
      CRESSET_THROW(Error, "double set_lr() has not been overidden and implemented in subclass of torch::optim::OptimizerOptions");
  }
  void save(serialize::OutputArchive& archive) const override {
    Derived copy(static_cast<const Derived&>(*this));
    visit_all(copy, [&](const std::string& name, auto& value) {
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, std::tuple<double, double>>) {
        archive.write(name + "_0", IValue(std::get<0>(value)));
        archive.write(name + "_1", IValue(std::get<1>(value)));
      } else {
        archive.write(name, IValue(value));
      }
    });
  }
  void load(serialize::InputArchive& archive) override {
    visit_all(static_cast<Derived&>(*this), [&](const std::string& name, auto& value) {
      using T = std::decay_t<decltype(value)>;
      IValue read;
      if constexpr (std::is_same_v<T, std::tuple<double, double>>) {
        archive.read(name + "_0", read);
        std::get<0>(value) = read.toDouble();
        archive.read(name + "_1", read);
        std::get<1>(value) = read.toDouble();
      } else {
        archive.read(name, read);
        value = read.to<T>();
      }
    });
  }

 private:
  template <class F>
  static void visit_all(Derived& options, const F& f) {
    if constexpr (requires { options.visit(f); })
      options.visit(f);
    else
      CRESSET_THROW(Error, "save() and load() have not been implemented by these options: they have no visit()");
  }
};

/// What an optimiser remembers of a parameter.
struct OptimizerParamState {
  int64_t step = 0;
  std::map<std::string, Tensor> tensors;
};

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
  /// Adds to the first group.
  void add_parameters(const std::vector<Tensor>& more) { parameters().insert(parameters().end(), more.begin(), more.end()); }
  /// The parameters of the first group.
  std::vector<Tensor>& parameters() { return groups_.front().params(); }
  std::size_t size() const;

  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  OptimizerParamState& state_of(const Tensor& parameter) { return state_[parameter.unsafeGetTensorImpl()]; }
  static Tensor loss_of(const LossClosure& closure);

  std::vector<OptimizerParamGroup> groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::unordered_map<TensorImpl*, OptimizerParamState> state_;
};

CRESSET_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer);
CRESSET_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer);

/// `fields` are lines of CRESSET_ARG, `names` the calls of visit().
#define CRESSET_OPTIM_OPTIONS(Name, default_lr, fields, ...)  \
  struct CRESSET_API Name : OptimizerCloneableOptions<Name> { \
    Name(double lr default_lr) : lr_(lr) {}                   \
    template <class F>                                        \
    void visit(F&& f){__VA_ARGS__} CRESSET_ARG(double, lr);   \
    fields                                                    \
  };
#define CRESSET_OPTIM_FIELD(T, name, value) CRESSET_ARG(T, name) = value;
#define CRESSET_OPTIM_VISIT(name) f(#name, this->name());
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
  void check() const;

using Betas = std::tuple<double, double>;

CRESSET_OPTIM_OPTIONS(SGDOptions, = 1e-3,
                      CRESSET_OPTIM_FIELD(double, momentum, 0) CRESSET_OPTIM_FIELD(double, dampening, 0)
                          CRESSET_OPTIM_FIELD(double, weight_decay, 0) CRESSET_OPTIM_FIELD(bool, nesterov, false),
                      CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(momentum) CRESSET_OPTIM_VISIT(dampening) CRESSET_OPTIM_VISIT(weight_decay)
                          CRESSET_OPTIM_VISIT(nesterov))
/// Stochastic gradient descent with momentum and weight decay.
class CRESSET_API SGD : public Optimizer {
  CRESSET_OPTIM_CLASS(SGD)
};

#define CRESSET_OPTIM_ADAM(Name, decay)                                                                                               \
  CRESSET_OPTIM_OPTIONS(Name, = 1e-3,                                                                                                 \
                        CRESSET_OPTIM_FIELD(Betas, betas, Betas(0.9, 0.999)) CRESSET_OPTIM_FIELD(double, eps, 1e-8)                   \
                            CRESSET_OPTIM_FIELD(double, weight_decay, decay) CRESSET_OPTIM_FIELD(bool, amsgrad, false),               \
                        CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(betas) CRESSET_OPTIM_VISIT(eps) CRESSET_OPTIM_VISIT(weight_decay) \
                            CRESSET_OPTIM_VISIT(amsgrad))
CRESSET_OPTIM_ADAM(AdamOptions, 0)
CRESSET_OPTIM_ADAM(AdamWOptions, 1e-2)
/// Adam (Kingma and Ba 2015).
class CRESSET_API Adam : public Optimizer {
  CRESSET_OPTIM_CLASS(Adam)
};
/// Adam with decoupled weight decay (Loshchilov and Hutter 2019).
class CRESSET_API AdamW : public Optimizer {
  CRESSET_OPTIM_CLASS(AdamW)
};

CRESSET_OPTIM_OPTIONS(AdagradOptions, = 1e-2,
                      CRESSET_OPTIM_FIELD(double, lr_decay, 0) CRESSET_OPTIM_FIELD(double, weight_decay, 0)
                          CRESSET_OPTIM_FIELD(double, initial_accumulator_value, 0) CRESSET_OPTIM_FIELD(double, eps, 1e-10),
                      CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(lr_decay) CRESSET_OPTIM_VISIT(weight_decay)
                          CRESSET_OPTIM_VISIT(initial_accumulator_value) CRESSET_OPTIM_VISIT(eps))
/// Adagrad (Duchi et al. 2011).
class CRESSET_API Adagrad : public Optimizer {
  CRESSET_OPTIM_CLASS(Adagrad)
};

CRESSET_OPTIM_OPTIONS(RMSpropOptions, = 1e-2,
                      CRESSET_OPTIM_FIELD(double, alpha, 0.99) CRESSET_OPTIM_FIELD(double, eps, 1e-8)
                          CRESSET_OPTIM_FIELD(double, weight_decay, 0) CRESSET_OPTIM_FIELD(double, momentum, 0)
                              CRESSET_OPTIM_FIELD(bool, centered, false),
                      CRESSET_OPTIM_VISIT(lr) CRESSET_OPTIM_VISIT(alpha) CRESSET_OPTIM_VISIT(eps) CRESSET_OPTIM_VISIT(weight_decay)
                          CRESSET_OPTIM_VISIT(momentum) CRESSET_OPTIM_VISIT(centered))
/// RMSprop (Hinton's lecture 6e), centered as in Graves 2013.
class CRESSET_API RMSprop : public Optimizer {
  CRESSET_OPTIM_CLASS(RMSprop)
};
#undef CRESSET_OPTIM_OPTIONS
#undef CRESSET_OPTIM_FIELD
#undef CRESSET_OPTIM_VISIT
#undef CRESSET_OPTIM_ADAM
#undef CRESSET_OPTIM_CLASS

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

}  // namespace cresset::optim
