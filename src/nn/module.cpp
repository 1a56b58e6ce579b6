// The module tree.
#include <cresset/nn/module.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <typeinfo>

#include <cresset/autograd/function.h>
#include <cresset/nn/any.h>
#include <cresset/ops/functions_copy.h>

namespace cresset::nn {

const std::string& Module::name() const {
  if (name_.empty()) {
    name_ = autograd::detail::demangle(typeid(*this).name());
    // Modules write themselves under the names that PyTorch's programs know them by.
    constexpr std::string_view own = "cresset::";
    if (name_.starts_with(own)) name_ = "torch::" + name_.substr(own.size());
  }
  return name_;
}

void Module::check_name(const char* what, const std::string& name) const {
  CRESSET_CHECK(!name.empty(), what, " name must not be empty");
  CRESSET_CHECK(name.find('.') == std::string::npos, what, " name must not contain a dot (got '", name, "')");
  CRESSET_CHECK_AS(KeyError, !parameters_.contains(name) && !buffers_.contains(name) && !children_.contains(name), what, " '", name,
                   "' already defined");
}

Tensor& Module::register_parameter(std::string name, Tensor value, bool requires_grad) {
  check_name("Parameter", name);
  if (value.defined())
    value.set_requires_grad(requires_grad);
  else if (requires_grad)
    warn("An undefined tensor cannot require grad. Ignoring the `requires_grad=true` function parameter.");
  return parameters_.insert(std::move(name), std::move(value));
}

Tensor& Module::register_buffer(std::string name, Tensor value) {
  check_name("Buffer", name);
  return buffers_.insert(std::move(name), std::move(value));
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name("Submodule", name);
  CRESSET_CHECK(module, "nn: a module was required for '", name, "'; an empty pointer was given.");
  children_.insert(std::move(name), std::move(module));
}
void Module::replace_child(const std::string& name, std::shared_ptr<Module> module) { children_[name] = std::move(module); }
void Module::unregister_module(const std::string& name) {
  CRESSET_CHECK_AS(KeyError, children_.contains(name), "No Module with name `", name, "` is registered");
  children_.erase(name);
}

void Module::collect(bool buffers, bool recurse, const std::string& prefix, OrderedDict<std::string, Tensor>& out) const {
  for (const auto& [name, value] : buffers ? buffers_ : parameters_)
    if (value.defined()) out.insert(prefix + name, value);
  if (!recurse) return;
  for (const auto& [name, child] : children_) child->collect(buffers, true, prefix + name + ".", out);
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<std::string, Tensor> out("Parameter");
  collect(false, recurse, "", out);
  return out;
}
OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<std::string, Tensor> out("Buffer");
  collect(true, recurse, "", out);
  return out;
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& prefix, bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> out("Submodule");
  if (include_self) {
    const auto self = weak_from_this().lock();
    CRESSET_CHECK(self,
                  "It looks like you attempted to retrieve your top-level module as a shared_ptr, but it is not stored in a shared_ptr. "
                  "Use std::make_shared<",
                  name(),
                  "> instead of creating your module on the stack, or do not try to access the "
                  "top-level module by passing /*include_self=*/false");
    out.insert(prefix, std::const_pointer_cast<Module>(self));
  }
  for (const auto& [name, child] : children_)
    for (auto& [path, module] : child->named_modules(prefix.empty() ? name : prefix + "." + name)) out.insert(path, module);
  return out;
}

void Module::apply(const ModuleApplyFunction& function) {
  function(*this);
  for (auto& [name, child] : children_) child->apply(function);
}
void Module::apply(const ConstModuleApplyFunction& function) const {
  function(*this);
  for (const auto& [name, child] : children_) std::as_const(*child).apply(function);
}
void Module::apply(const NamedModuleApplyFunction& function, const std::string& prefix) {
  function(prefix, *this);
  for (auto& [name, child] : children_) child->apply(function, prefix.empty() ? name : prefix + "." + name);
}
void Module::apply(const ConstNamedModuleApplyFunction& function, const std::string& prefix) const {
  function(prefix, *this);
  for (const auto& [name, child] : children_) std::as_const(*child).apply(function, prefix.empty() ? name : prefix + "." + name);
}
void Module::apply(const ModulePointerApplyFunction& function) const {
  for (const auto& module : modules()) function(module);
}
void Module::apply(const NamedModulePointerApplyFunction& function, const std::string& prefix) const {
  for (const auto& [name, module] : named_modules(prefix)) function(name, module);
}

std::vector<std::pair<std::string, Tensor>> Module::state_dict() const {
  auto out = named_parameters().pairs();
  for (auto& entry : named_buffers().pairs()) out.push_back(entry);
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

void Module::zero_grad(bool set_to_none) {
  for (Tensor& p : parameters()) {
    Tensor& grad = p.mutable_grad();
    if (!grad.defined()) continue;
    if (set_to_none) {
      grad.reset();
    } else {
      grad = grad.detach();
      grad.zero_();
    }
  }
}

void Module::convert(const std::optional<Device>& device, const std::optional<ScalarType>& dtype, bool non_blocking) {
  const NoGradGuard no_grad;
  for (auto* list : {&parameters_, &buffers_}) {
    for (auto& [name, value] : *list) {
      if (!value.defined()) continue;
      const bool converts = dtype && value.is_floating_point();
      value.set_data(value.to(device.value_or(value.device()), converts ? *dtype : value.scalar_type(), non_blocking));
    }
  }
  for (auto& [name, child] : children_) {
    if (device && dtype)
      child->to(*device, *dtype, non_blocking);
    else if (device)
      child->to(*device, non_blocking);
    else
      child->to(*dtype, non_blocking);
  }
}
void Module::to(Device device, ScalarType dtype, bool non_blocking) { convert(device, dtype, non_blocking); }
void Module::to(ScalarType dtype, bool non_blocking) { convert(std::nullopt, dtype, non_blocking); }
void Module::to(Device device, bool non_blocking) { convert(device, std::nullopt, non_blocking); }

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  CRESSET_CHECK(false, "clone() has not been implemented for ", name(), ". Subclass torch::nn::Cloneable<", name(),
                "> instead of torch::nn::Module to inherit the ability to clone.");
}

// What a copy made by reset() gets: the values, and copies of the children in place of the fresh ones.
void Module::take_clone_of(const Module& other, const std::optional<Device>& device) { other.copy_state_to(*this, device); }
void Module::copy_state_to(Module& copy, const std::optional<Device>& device) const {
  const auto fill = [&](const OrderedDict<std::string, Tensor>& from, OrderedDict<std::string, Tensor>& to) {
    CRESSET_CHECK(from.size() == to.size(),
                  "The cloned module does not have the same number of parameters or buffers as the original module "
                  "after calling reset(). Are you sure you called register_parameter() and register_buffer() inside reset() and not the "
                  "constructor?");
    for (const auto& [name, value] : from) {
      if (!value.defined()) continue;
      const Tensor data = device ? value.to(*device).clone() : value.clone();
      to[name].set_data(data);
    }
  };
  fill(parameters_, copy.parameters_);
  fill(buffers_, copy.buffers_);
  CRESSET_CHECK(children_.size() == copy.children_.size(),
                "The cloned module does not have the same number of child modules as the original "
                "module after calling reset(). Are you sure you called register_module() inside reset() and not the constructor?");
  // Members of the copy point at the children that reset() made, so their contents are replaced, not they.
  for (const auto& [name, child] : children_) copy.children_[name]->take_clone_of(*child, device);
  copy.training_ = training_;
}

void Module::save(serialize::OutputArchive& archive) const {
  for (const auto* list : {&parameters_, &buffers_})
    for (const auto& [name, value] : *list)
      if (value.defined()) archive.write(name, value, list == &buffers_);
  for (const auto& [name, child] : children_) {
    if (!child->is_serializable()) continue;
    serialize::OutputArchive part(archive.compilation_unit());
    child->save(part);
    archive.write(name, part);
  }
}

void Module::load(serialize::InputArchive& archive) {
  for (auto* list : {&parameters_, &buffers_})
    for (auto& [name, value] : *list)
      if (value.defined()) archive.read(name, value, list == &buffers_);
  for (auto& [name, child] : children_) {
    if (!child->is_serializable()) continue;
    serialize::InputArchive part;
    archive.read(name, part);
    child->load(part);
  }
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const std::shared_ptr<Module>& module) {
  CRESSET_CHECK(module, "Cannot serialize empty module");
  module->save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, const std::shared_ptr<Module>& module) {
  CRESSET_CHECK(module, "Cannot deserialize empty module");
  module->load(archive);
  return archive;
}

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

void Module::print_tree(std::ostream& stream, const std::string& indent) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  stream << "(\n";
  for (const auto& [name, child] : children_) {
    stream << indent << "  (" << name << "): ";
    child->print_tree(stream, indent + "  ");
    stream << "\n";
  }
  stream << indent << ")";
}
std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.print_tree(stream, "");
  return stream;
}

std::vector<AnyValue> Module::forward_defaults(std::size_t) const { return {}; }

namespace detail {
void raise_argument_count(const Module& module, std::size_t given, std::size_t expected) {
  const std::size_t defaults = module.forward_defaults(0).size();
  CRESSET_CHECK(defaults == 0, module.name(), "'s forward() method expects at least ", expected - defaults, " argument(s) and at most ",
                expected, " argument(s), but received ", given, ".");
  CRESSET_THROW(Error, module.name(), "'s forward() method expects ", expected, " argument(s), but received ", given, ". If ",
                module.name(),
                "'s forward() method has default arguments, please make sure the forward() method is declared with a corresponding "
                "`FORWARD_HAS_DEFAULT_ARGS` macro.");
}
}  // namespace detail

}  // namespace cresset::nn

namespace cresset::serialize {

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) {
  const ArchiveNode::Entry* entry = node_->find(key);
  if (!entry || entry->part || !entry->value.isTensor()) return false;
  const Tensor value = entry->value.toTensor();
  if (!tensor.defined() || !value.defined()) {
    tensor = value;
    return true;
  }
  const NoGradGuard no_grad;
  tensor.set_data(value.to(tensor.device()));
  return true;
}

}  // namespace cresset::serialize
