// Modules made of modules.
#include <cresset/nn/containers.h>

#include <ostream>

namespace cresset::nn {

namespace {
void print_parameters(std::ostream& stream, const char* name, const OrderedDict<std::string, Tensor>& parameters) {
  stream << "torch::nn::" << name << "(\n";
  for (const auto& [key, value] : parameters)
    stream << "(" << key << "): Parameter containing: [" << toString(value.scalar_type()) << " of size " << to_string(value.sizes())
           << "]\n";
  stream << ")";
}
}  // namespace

void FunctionalImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Functional()"; }

void SequentialImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Sequential"; }
std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<SequentialImpl>();
  for (std::size_t i = 0; i < modules_.size(); ++i) copy->push_back(children_[i].key(), modules_[i].clone(device));
  copy->train(is_training());
  return copy;
}

void ModuleListImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleList"; }
std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& module : modules_) copy->push_back(module->clone(device));
  return copy;
}
void ModuleListImpl::insert(std::size_t index, std::shared_ptr<Module> module) {
  CRESSET_CHECK_INDEX(index <= modules_.size(), "Index out of range");
  modules_.insert(modules_.begin() + static_cast<std::ptrdiff_t>(index), std::move(module));
  children_.clear();
  for (std::size_t i = 0; i < modules_.size(); ++i) children_.insert(std::to_string(i), modules_[i]);
}

void ModuleDictImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleDict"; }
std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& [name, module] : children_) copy->register_module(name, module->clone(device));
  return copy;
}
std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& name) {
  auto module = children_[name];
  unregister_module(name);
  return module;
}

std::shared_ptr<Module> ParameterListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterListImpl>();
  for (const auto& [name, value] : parameters_)
    copy->append((device ? value.to(*device) : value).detach().clone().set_requires_grad(value.requires_grad()));
  return copy;
}
std::shared_ptr<Module> ParameterDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterDictImpl>();
  for (const auto& [name, value] : parameters_)
    copy->insert(name, (device ? value.to(*device) : value).detach().clone().set_requires_grad(value.requires_grad()));
  return copy;
}
void ParameterListImpl::pretty_print(std::ostream& stream) const { print_parameters(stream, "ParameterList", parameters_); }
void ParameterDictImpl::pretty_print(std::ostream& stream) const { print_parameters(stream, "ParameterDict", parameters_); }
Tensor ParameterDictImpl::pop(const std::string& name) {
  Tensor value = parameters_[name];
  parameters_.erase(name);
  return value;
}

}  // namespace cresset::nn
