// Optimisers.
#include <cresset/nn/optim.h>

#include <algorithm>
#include <cmath>

#include <cresset/autograd/autograd.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>

namespace cresset::optim {

Optimizer::Optimizer(const std::vector<OptimizerParamGroup>& groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : groups) add_param_group(group);
}

void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  CRESSET_CHECK_VALUE(!group.params().empty(), "optimizer got an empty parameter list");
  for (const Tensor& p : group.params()) {
    CRESSET_CHECK_VALUE(p.is_leaf(), "can't optimize a non-leaf Tensor");
    for (const OptimizerParamGroup& other : groups_)
      for (const Tensor& q : other.params()) CRESSET_CHECK_VALUE(!p.is_same(q), "some parameters appear in more than one parameter group");
  }
  groups_.push_back(group);
  if (!group.has_options()) groups_.back().set_options(defaults_->clone());
}

std::size_t Optimizer::size() const {
  std::size_t n = 0;
  for (const OptimizerParamGroup& group : groups_) n += group.params().size();
  return n;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (OptimizerParamGroup& group : groups_) {
    for (Tensor& p : group.params()) {
      Tensor& grad = p.mutable_grad();
      if (set_to_none)
        grad.reset();
      else if (grad.defined())
        (grad = grad.detach()).zero_();
    }
  }
}

Tensor Optimizer::loss_of(const LossClosure& closure) {
  if (!closure) return {};
  const AutoGradMode with_grad(true);
  return closure();
}

// Parameters are known by their place in the groups.
void Optimizer::save(serialize::OutputArchive& archive) const {
  serialize::OutputArchive groups(archive.compilation_unit()), state(archive.compilation_unit());
  std::size_t place = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    serialize::OutputArchive options(archive.compilation_unit());
    groups_[g].options().save(options);
    groups.write(std::to_string(g), options);
    for (const Tensor& p : groups_[g].params()) {
      const auto it = state_.find(p.unsafeGetTensorImpl());
      if (it != state_.end()) {
        serialize::OutputArchive entry(archive.compilation_unit());
        entry.write("step", IValue(it->second.step));
        for (const auto& [name, value] : it->second.tensors) entry.write(name, value, true);
        state.write(std::to_string(place), entry);
      }
      ++place;
    }
  }
  archive.write("param_groups", groups);
  archive.write("state", state);
}

void Optimizer::load(serialize::InputArchive& archive) {
  serialize::InputArchive groups, state;
  archive.read("param_groups", groups);
  archive.read("state", state);
  CRESSET_CHECK(groups.keys().size() == groups_.size(), "loaded state dict has ", groups.keys().size(),
                " parameter groups, the optimizer has ", groups_.size());
  std::size_t place = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    serialize::InputArchive options;
    groups.read(std::to_string(g), options);
    groups_[g].options().load(options);
    for (const Tensor& p : groups_[g].params()) {
      serialize::InputArchive entry;
      if (state.try_read(std::to_string(place++), entry)) {
        OptimizerParamState& own = state_of(p);
        for (const std::string& name : entry.keys()) {
          IValue value;
          entry.read(name, value);
          if (name == "step")
            own.step = value.toInt();
          else
            own.tensors[name] = value.toTensor();
        }
      }
    }
  }
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

namespace {
void check_common(double lr, double weight_decay) {
  CRESSET_CHECK_VALUE(lr >= 0, "Invalid learning rate: ", lr);
  CRESSET_CHECK_VALUE(weight_decay >= 0, "Invalid weight_decay value: ", weight_decay);
}
template <class Options>
void check_adam(const Options& o) {
  check_common(o.lr(), o.weight_decay());
  CRESSET_CHECK_VALUE(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
  const auto [beta1, beta2] = o.betas();
  CRESSET_CHECK_VALUE(0 <= beta1 && beta1 < 1, "Invalid beta parameter at index 0: ", beta1);
  CRESSET_CHECK_VALUE(0 <= beta2 && beta2 < 1, "Invalid beta parameter at index 1: ", beta2);
}
/// Calls f(options, parameter, gradient) for every parameter that has a gradient.
template <class Options, class F>
void for_each_gradient(std::vector<OptimizerParamGroup>& groups, const F& f) {
  for (OptimizerParamGroup& group : groups) {
    const auto& options = static_cast<const Options&>(group.options());
    for (Tensor& p : group.params())
      if (const Tensor grad = p.grad(); grad.defined()) f(options, p, grad);
  }
}
/// The state's tensor of this name, zeros like the parameter at first.
Tensor& zeros_at_first(OptimizerParamState& state, const char* name, const Tensor& like) {
  Tensor& value = state.tensors[name];
  if (!value.defined()) value = cresset::zeros_like(like);
  return value;
}

template <class Options>
void adam_step(const Options& o, bool decoupled, Tensor& p, Tensor grad, OptimizerParamState& state) {
  const auto [beta1, beta2] = o.betas();
  if (o.weight_decay() != 0) {
    if (decoupled)
      p.mul_(1 - o.lr() * o.weight_decay());
    else
      grad = grad.add(p, o.weight_decay());
  }
  const auto steps = static_cast<double>(++state.step);
  Tensor& mean = zeros_at_first(state, "exp_avg", p);
  Tensor& square = zeros_at_first(state, "exp_avg_sq", p);
  mean.lerp_(grad, 1 - beta1);
  square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
  Tensor largest = square;
  if (o.amsgrad()) {
    Tensor& kept = zeros_at_first(state, "max_exp_avg_sq", p);
    kept = cresset::maximum(kept, square);
    largest = kept;
  }
  const Tensor denominator = largest.sqrt().div_(std::sqrt(1 - std::pow(beta2, steps))).add_(o.eps());
  p.addcdiv_(mean, denominator, -o.lr() / (1 - std::pow(beta1, steps)));
}
}  // namespace

void SGD::check() const {
  const auto& o = static_cast<const SGDOptions&>(defaults());
  check_common(o.lr(), o.weight_decay());
  CRESSET_CHECK_VALUE(o.momentum() >= 0, "Invalid momentum value: ", o.momentum());
  CRESSET_CHECK_VALUE(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
                      "Nesterov momentum requires a momentum and zero dampening");
}
Tensor SGD::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<SGDOptions>(groups_, [&](const SGDOptions& o, Tensor& p, Tensor grad) {
    if (o.weight_decay() != 0) grad = grad.add(p, o.weight_decay());
    if (o.momentum() != 0) {
      Tensor& velocity = state_of(p).tensors["momentum_buffer"];
      if (velocity.defined())
        velocity.mul_(o.momentum()).add_(grad, 1 - o.dampening());
      else
        velocity = grad.clone().detach();
      grad = o.nesterov() ? grad.add(velocity, o.momentum()) : velocity;
    }
    p.add_(grad, -o.lr());
  });
  return loss;
}

void Adam::check() const { check_adam(static_cast<const AdamOptions&>(defaults())); }
Tensor Adam::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<AdamOptions>(groups_,
                                 [&](const AdamOptions& o, Tensor& p, const Tensor& grad) { adam_step(o, false, p, grad, state_of(p)); });
  return loss;
}

void AdamW::check() const { check_adam(static_cast<const AdamWOptions&>(defaults())); }
Tensor AdamW::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<AdamWOptions>(groups_,
                                  [&](const AdamWOptions& o, Tensor& p, const Tensor& grad) { adam_step(o, true, p, grad, state_of(p)); });
  return loss;
}

void Adagrad::check() const {
  const auto& o = static_cast<const AdagradOptions&>(defaults());
  check_common(o.lr(), o.weight_decay());
  CRESSET_CHECK_VALUE(o.lr_decay() >= 0, "Invalid lr_decay value: ", o.lr_decay());
  CRESSET_CHECK_VALUE(o.initial_accumulator_value() >= 0, "Invalid initial_accumulator_value value: ", o.initial_accumulator_value());
  CRESSET_CHECK_VALUE(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
}
Tensor Adagrad::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<AdagradOptions>(groups_, [&](const AdagradOptions& o, Tensor& p, Tensor grad) {
    OptimizerParamState& state = state_of(p);
    if (o.weight_decay() != 0) grad = grad.add(p, o.weight_decay());
    Tensor& sum = state.tensors["sum"];
    if (!sum.defined()) sum = cresset::full_like(p, o.initial_accumulator_value()).detach();
    sum.addcmul_(grad, grad, 1.0);
    const double lr = o.lr() / (1 + static_cast<double>(state.step++) * o.lr_decay());
    p.addcdiv_(grad, sum.sqrt().add_(o.eps()), -lr);
  });
  return loss;
}

void RMSprop::check() const {
  const auto& o = static_cast<const RMSpropOptions&>(defaults());
  check_common(o.lr(), o.weight_decay());
  CRESSET_CHECK_VALUE(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
  CRESSET_CHECK_VALUE(o.momentum() >= 0, "Invalid momentum value: ", o.momentum());
  CRESSET_CHECK_VALUE(o.alpha() >= 0, "Invalid alpha value: ", o.alpha());
}
Tensor RMSprop::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<RMSpropOptions>(groups_, [&](const RMSpropOptions& o, Tensor& p, Tensor grad) {
    OptimizerParamState& state = state_of(p);
    ++state.step;
    if (o.weight_decay() != 0) grad = grad.add(p, o.weight_decay());
    Tensor& square = zeros_at_first(state, "square_avg", p);
    square.mul_(o.alpha()).addcmul_(grad, grad, 1 - o.alpha());
    Tensor variance = square;
    if (o.centered()) {
      Tensor& mean = zeros_at_first(state, "grad_avg", p);
      mean.lerp_(grad, 1 - o.alpha());
      variance = square.sub(mean.mul(mean));
    }
    const Tensor denominator = variance.sqrt().add_(o.eps());
    if (o.momentum() == 0) {
      p.addcdiv_(grad, denominator, -o.lr());
      return;
    }
    Tensor& buffer = zeros_at_first(state, "momentum_buffer", p);
    buffer.mul_(o.momentum()).addcdiv_(grad, denominator, 1.0);
    p.add_(buffer, -o.lr());
  });
  return loss;
}

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

}  // namespace cresset::optim
