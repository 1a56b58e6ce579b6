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
  for (const Tensor& p : group.params()) {
    CRESSET_CHECK_VALUE(p.is_leaf(), "can't optimize a non-leaf Tensor");
    for (const OptimizerParamGroup& other : groups_)
      for (const Tensor& q : other.params()) CRESSET_CHECK_VALUE(!p.is_same(q), "some parameters appear in more than one parameter group");
  }
  groups_.push_back(group);
  if (!group.has_options()) groups_.back().set_options(defaults_->clone());
}

void Optimizer::add_parameters(const std::vector<Tensor>& more) {
  warn("Optimizer::add_parameters() will be removed; use Optimizer::add_param_group() or its group's params()");
  std::vector<Tensor>& own = groups_.front().params();
  own.insert(own.end(), more.begin(), more.end());
}
std::vector<Tensor>& Optimizer::parameters() {
  warn("Optimizer::parameters() will be removed; use Optimizer::param_groups()");
  return groups_.front().params();
}
const std::vector<Tensor>& Optimizer::parameters() const { return const_cast<Optimizer*>(this)->parameters(); }
std::size_t Optimizer::size() const {
  warn("Optimizer::size() will be removed; use Optimizer::param_groups()");
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
    groups_[g].options().serialize(options);
    groups.write(std::to_string(g), options);
    for (const Tensor& p : groups_[g].params()) {
      const auto it = state_.find(p.unsafeGetTensorImpl());
      if (it != state_.end()) {
        serialize::OutputArchive entry(archive.compilation_unit());
        it->second->serialize(entry);
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
  if (!archive.try_read("param_groups", groups)) return load_old(archive);
  archive.read("state", state);
  CRESSET_CHECK(groups.keys().size() == groups_.size(), "loaded state dict has ", groups.keys().size(),
                " parameter groups, the optimizer has ", groups_.size());
  std::size_t place = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    serialize::InputArchive options;
    groups.read(std::to_string(g), options);
    groups_[g].options().serialize(options);
    for (const Tensor& p : groups_[g].params()) {
      serialize::InputArchive entry;
      if (!state.try_read(std::to_string(place++), entry)) continue;
      std::unique_ptr<OptimizerParamState> own = new_state();
      CRESSET_CHECK(own, "load() of this optimizer has to be overridden: it has states of its own and no new_state()");
      own->serialize(entry);
      state_[p.unsafeGetTensorImpl()] = std::move(own);
    }
  }
}

void Optimizer::load_old(serialize::InputArchive&) { CRESSET_THROW(Error, "the archive has no 'param_groups': it is not an optimizer's."); }

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
/// A tensor of a state, zeros like the parameter at first.
Tensor& zeros_at_first(Tensor& value, const Tensor& like) {
  if (!value.defined()) value = cresset::zeros_like(like);
  return value;
}

// Files of the time before groups: a list of tensors "name/0", "name/1" and so on for each field, for as many parameters as had one.
class OldLists {
 public:
  OldLists(serialize::InputArchive& archive, const std::vector<OptimizerParamGroup>& groups, const char* optimizer)
      : archive_(archive), parameters_(groups.front().params()) {
    warn("Your serialized " + std::string(optimizer) + " optimizer is still using the old serialization format. " +
         "Save it again to have it in the new one.");
  }
  template <class F>
  void each(const std::string& name, const F& f) {
    Tensor size;
    CRESSET_CHECK(archive_.try_read(name + "/size", size), "the archive has neither 'param_groups' nor '", name,
                  "': it is not this optimizer's.");
    const auto count = static_cast<std::size_t>(size.item<int64_t>());
    CRESSET_CHECK(count <= parameters_.size(), "the archive has ", count, " of '", name, "', the optimizer ", parameters_.size(),
                  " parameters.");
    for (std::size_t i = 0; i < count; ++i) {
      Tensor value;
      archive_.read(name + "/" + std::to_string(i), value, true);
      f(parameters_[i], value);
    }
  }

 private:
  serialize::InputArchive& archive_;
  const std::vector<Tensor>& parameters_;
};

template <class State, class Options>
void adam_step(const Options& o, bool decoupled, Tensor& p, Tensor grad, State& state) {
  const auto [beta1, beta2] = o.betas();
  if (o.weight_decay() != 0) {
    if (decoupled)
      p.mul_(1 - o.lr() * o.weight_decay());
    else
      grad = grad.add(p, o.weight_decay());
  }
  const auto steps = static_cast<double>(++state.step());
  Tensor& mean = zeros_at_first(state.exp_avg(), p);
  Tensor& square = zeros_at_first(state.exp_avg_sq(), p);
  mean.lerp_(grad, 1 - beta1);
  square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
  Tensor largest = square;
  if (o.amsgrad()) {
    Tensor& kept = zeros_at_first(state.max_exp_avg_sq(), p);
    kept = cresset::maximum(kept, square);
    largest = kept;
  }
  const Tensor denominator = largest.sqrt().div_(std::sqrt(1 - std::pow(beta2, steps))).add_(o.eps());
  p.addcdiv_(mean, denominator, -o.lr() / (1 - std::pow(beta1, steps)));
}
}  // namespace

void SGD::check() {
  const auto& o = static_cast<const SGDOptions&>(defaults());
  check_common(o.lr(), o.weight_decay());
  CRESSET_CHECK_VALUE(o.momentum() >= 0, "Invalid momentum value: ", o.momentum());
  CRESSET_CHECK_VALUE(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
                      "Nesterov momentum requires a momentum and zero dampening");
}
void SGD::load_old(serialize::InputArchive& archive) {
  OldLists lists(archive, groups_, "SGD");
  lists.each("momentum_buffers", [&](const Tensor& p, const Tensor& t) { state_of<SGDParamState>(p).momentum_buffer(t); });
}
Tensor SGD::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<SGDOptions>(groups_, [&](const SGDOptions& o, Tensor& p, Tensor grad) {
    if (o.weight_decay() != 0) grad = grad.add(p, o.weight_decay());
    if (o.momentum() != 0) {
      Tensor& velocity = state_of<SGDParamState>(p).momentum_buffer();
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

void Adam::check() { check_adam(static_cast<const AdamOptions&>(defaults())); }
void Adam::load_old(serialize::InputArchive& archive) {
  OldLists lists(archive, groups_, "Adam");
  lists.each("step_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamParamState>(p).step(t.item<int64_t>()); });
  lists.each("exp_average_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamParamState>(p).exp_avg(t); });
  lists.each("exp_average_sq_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamParamState>(p).exp_avg_sq(t); });
  lists.each("max_exp_average_sq_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamParamState>(p).max_exp_avg_sq(t); });
}
Tensor Adam::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<AdamOptions>(
      groups_, [&](const AdamOptions& o, Tensor& p, const Tensor& grad) { adam_step(o, false, p, grad, state_of<AdamParamState>(p)); });
  return loss;
}

void AdamW::check() { check_adam(static_cast<const AdamWOptions&>(defaults())); }
void AdamW::load_old(serialize::InputArchive& archive) {
  OldLists lists(archive, groups_, "AdamW");
  lists.each("step_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamWParamState>(p).step(t.item<int64_t>()); });
  lists.each("exp_average_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamWParamState>(p).exp_avg(t); });
  lists.each("exp_average_sq_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamWParamState>(p).exp_avg_sq(t); });
  lists.each("max_exp_average_sq_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdamWParamState>(p).max_exp_avg_sq(t); });
}
Tensor AdamW::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<AdamWOptions>(
      groups_, [&](const AdamWOptions& o, Tensor& p, const Tensor& grad) { adam_step(o, true, p, grad, state_of<AdamWParamState>(p)); });
  return loss;
}

namespace {
Tensor& accumulator(AdagradParamState& state, const Tensor& p, const AdagradOptions& o) {
  if (!state.sum().defined()) state.sum(cresset::full_like(p, o.initial_accumulator_value()).detach());
  return state.sum();
}
}  // namespace
void Adagrad::check() {
  const auto& o = static_cast<const AdagradOptions&>(defaults());
  check_common(o.lr(), o.weight_decay());
  CRESSET_CHECK_VALUE(o.lr_decay() >= 0, "Invalid lr_decay value: ", o.lr_decay());
  CRESSET_CHECK_VALUE(o.initial_accumulator_value() >= 0, "Invalid initial_accumulator_value value: ", o.initial_accumulator_value());
  CRESSET_CHECK_VALUE(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
  for (const OptimizerParamGroup& group : groups_)
    for (const Tensor& p : group.params())
      accumulator(state_of<AdagradParamState>(p), p, static_cast<const AdagradOptions&>(group.options()));
}
void Adagrad::load_old(serialize::InputArchive& archive) {
  OldLists lists(archive, groups_, "Adagrad");
  lists.each("sum_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdagradParamState>(p).sum(t); });
  lists.each("step_buffers", [&](const Tensor& p, const Tensor& t) { state_of<AdagradParamState>(p).step(t.item<int64_t>()); });
}
Tensor Adagrad::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<AdagradOptions>(groups_, [&](const AdagradOptions& o, Tensor& p, Tensor grad) {
    AdagradParamState& state = state_of<AdagradParamState>(p);
    if (o.weight_decay() != 0) grad = grad.add(p, o.weight_decay());
    Tensor& sum = accumulator(state, p, o);
    sum.addcmul_(grad, grad, 1.0);
    const double lr = o.lr() / (1 + static_cast<double>(state.step()++) * o.lr_decay());
    p.addcdiv_(grad, sum.sqrt().add_(o.eps()), -lr);
  });
  return loss;
}

void RMSprop::check() {
  const auto& o = static_cast<const RMSpropOptions&>(defaults());
  check_common(o.lr(), o.weight_decay());
  CRESSET_CHECK_VALUE(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
  CRESSET_CHECK_VALUE(o.momentum() >= 0, "Invalid momentum value: ", o.momentum());
  CRESSET_CHECK_VALUE(o.alpha() >= 0, "Invalid alpha value: ", o.alpha());
}
void RMSprop::load_old(serialize::InputArchive& archive) {
  OldLists lists(archive, groups_, "RMSprop");
  lists.each("square_average_buffers", [&](const Tensor& p, const Tensor& t) { state_of<RMSpropParamState>(p).square_avg(t); });
  lists.each("momentum_buffers", [&](const Tensor& p, const Tensor& t) { state_of<RMSpropParamState>(p).momentum_buffer(t); });
  lists.each("grad_average_buffers", [&](const Tensor& p, const Tensor& t) { state_of<RMSpropParamState>(p).grad_avg(t); });
}
Tensor RMSprop::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for_each_gradient<RMSpropOptions>(groups_, [&](const RMSpropOptions& o, Tensor& p, Tensor grad) {
    RMSpropParamState& state = state_of<RMSpropParamState>(p);
    ++state.step();
    if (o.weight_decay() != 0) grad = grad.add(p, o.weight_decay());
    Tensor& square = zeros_at_first(state.square_avg(), p);
    square.mul_(o.alpha()).addcmul_(grad, grad, 1 - o.alpha());
    Tensor variance = square;
    if (o.centered()) {
      Tensor& mean = zeros_at_first(state.grad_avg(), p);
      mean.lerp_(grad, 1 - o.alpha());
      variance = square.sub(mean.mul(mean));
    }
    const Tensor denominator = variance.sqrt().add_(o.eps());
    if (o.momentum() == 0) {
      p.addcdiv_(grad, denominator, -o.lr());
      return;
    }
    Tensor& buffer = zeros_at_first(state.momentum_buffer(), p);
    buffer.mul_(o.momentum()).addcdiv_(grad, denominator, 1.0);
    p.add_(buffer, -o.lr());
  });
  return loss;
}

}  // namespace cresset::optim
