// The module tree.
#include <cresset/nn/module.h>

#include <algorithm>

#include <cresset/ops/functions_copy.h>

namespace cresset::nn {

void Module::check_name(const std::string& name) const {
  CRESSET_CHECK(!name.empty() && name.find('.') == std::string::npos, "nn: a name without dots was required; '", name, "' was given.");
  const auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  };
  CRESSET_CHECK_AS(KeyError, !taken(parameters_) && !taken(buffers_) && !taken(children_), "nn: '", name, "' is registered already.");
}

Tensor& Module::register_parameter(std::string name, Tensor value, bool requires_grad) {
  check_name(name);
  if (value.defined()) value.set_requires_grad(requires_grad);
  parameters_.emplace_back(std::move(name), std::make_unique<Tensor>(std::move(value)));
  return *parameters_.back().second;
}

Tensor& Module::register_buffer(std::string name, Tensor value) {
  check_name(name);
  buffers_.emplace_back(std::move(name), std::make_unique<Tensor>(std::move(value)));
  return *buffers_.back().second;
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name(name);
  children_.emplace_back(std::move(name), std::move(module));
}

void Module::collect(bool buffers, bool recurse, const std::string& prefix, std::vector<std::pair<std::string, Tensor>>& out) const {
  for (const auto& [name, value] : buffers ? buffers_ : parameters_)
    if (value->defined()) out.emplace_back(prefix + name, *value);
  if (!recurse) return;
  for (const auto& [name, child] : children_) child->collect(buffers, true, prefix + name + ".", out);
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters(bool recurse) const {
  std::vector<std::pair<std::string, Tensor>> out;
  collect(false, recurse, "", out);
  return out;
}
std::vector<std::pair<std::string, Tensor>> Module::named_buffers(bool recurse) const {
  std::vector<std::pair<std::string, Tensor>> out;
  collect(true, recurse, "", out);
  return out;
}
std::vector<Tensor> Module::parameters(bool recurse) const {
  std::vector<Tensor> out;
  for (auto& [name, value] : named_parameters(recurse)) out.push_back(value);
  return out;
}
std::vector<std::pair<std::string, Tensor>> Module::state_dict() const {
  auto out = named_parameters();
  for (auto& entry : named_buffers()) out.push_back(entry);
  return out;
}

void Module::load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state) {
  const auto own = state_dict();
  const auto find = [](const auto& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  };
  std::string problems;
  for (const auto& [name, value] : own) {
    const auto it = find(state, name);
    if (it == state.end())
      problems += "\n  missing: " + name;
    else if (it->second.sizes() != value.sizes())
      problems += "\n  size mismatch for " + name + ": " + to_string(it->second.sizes()) + " in the file, " + to_string(value.sizes()) +
                  " in the model";
  }
  for (const auto& [name, value] : state)
    if (find(own, name) == own.end()) problems += "\n  unexpected: " + name;
  CRESSET_CHECK(problems.empty(), "load_state_dict:", problems);
  const NoGradGuard no_grad;
  for (auto [name, value] : own) value.copy_(find(state, name)->second);
}

void Module::train(bool on) {
  training_ = on;
  for (auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad() {
  for (Tensor& p : parameters()) p.mutable_grad().reset();
}

void Module::to(ScalarType dtype) {
  const NoGradGuard no_grad;
  for (auto* list : {&parameters_, &buffers_})
    for (auto& [name, value] : *list)
      if (value->defined() && value->is_floating_point()) value->set_data(value->to(dtype));
  for (auto& [name, child] : children_) child->to(dtype);
}

}  // namespace cresset::nn
