// Modules made of modules: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict, and Functional for plain functions.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cresset/nn/any.h>

namespace cresset::nn {

/// A function as a module: Functional(relu), Functional(elu, 1.0, 1, 1) binds what follows the input.
class CRESSET_API FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  explicit FunctionalImpl(Function function) : function_(std::move(function)) {}
  template <class F, class... A, class = std::enable_if_t<(sizeof...(A) > 0)>>
  explicit FunctionalImpl(F function, A&&... bound)
      : function_([function, ... bound = std::decay_t<A>(std::forward<A>(bound))](Tensor input) {
          return function(std::move(input), bound...);
        }) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return function_(std::move(input)); }
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
CRESSET_MODULE(Functional);

/// Modules called one after another, each with what the one before gave.
class CRESSET_API SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  template <class First, class... Rest,
            class = std::enable_if_t<!std::is_same_v<std::decay_t<First>, SequentialImpl> &&
                                     !std::is_same_v<std::decay_t<First>, OrderedDict<std::string, AnyModule>>>>
  explicit SequentialImpl(First&& first, Rest&&... rest) {
    push_back(std::forward<First>(first));
    (push_back(std::forward<Rest>(rest)), ...);
  }
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
    for (const NamedAnyModule& m : modules) push_back(m.name(), m.module());
  }
  explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& modules) {
    for (auto& [name, module] : modules) push_back(name, module);
  }

  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  template <class R = Tensor, class... A>
  R forward(A&&... inputs) {
    CRESSET_CHECK(!is_empty(), "Cannot call forward() on an empty Sequential");
    AnyValue value = modules_.front().any_forward(std::forward<A>(inputs)...);
    for (std::size_t i = 1; i < modules_.size(); ++i) value = modules_[i].any_forward(std::move(value));
    R* result = value.try_get<R>();
    CRESSET_CHECK(result, "The type of the return value is ", autograd::detail::demangle(value.type_info().name()),
                  ", but you asked for type ", autograd::detail::demangle(typeid(R).name()));
    return std::move(*result);
  }

  void push_back(AnyModule module) { push_back(std::to_string(modules_.size()), std::move(module)); }
  void push_back(std::string name, AnyModule module) {
    modules_.push_back(std::move(module));
    register_module(std::move(name), modules_.back().ptr());
  }
  template <class M, class = std::enable_if_t<!std::is_same_v<std::decay_t<M>, AnyModule>>>
  void push_back(M&& module) {
    push_back(std::to_string(modules_.size()), std::forward<M>(module));
  }
  template <class M, class = std::enable_if_t<!std::is_same_v<std::decay_t<M>, AnyModule>>>
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), AnyModule(std::forward<M>(module)));
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  std::size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }
  /// Raises when the module at the index is of another class.
  template <class T, class = std::enable_if_t<std::is_base_of_v<Module, T>>>
  T& at(std::size_t index) const {
    return entry(index).get<T>();
  }
  const std::shared_ptr<Module>& ptr(std::size_t index) const { return entry(index).ptr(); }
  template <class T, class = std::enable_if_t<std::is_base_of_v<Module, T>>>
  std::shared_ptr<T> ptr(std::size_t index) const {
    return entry(index).ptr<T>();
  }
  const std::shared_ptr<Module>& operator[](std::size_t index) const { return ptr(index); }

 private:
  const AnyModule& entry(std::size_t index) const {
    CRESSET_CHECK_INDEX(index < modules_.size(), "Index out of range");
    return modules_[index];
  }
  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> modules) : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
  template <class... A>
  Tensor operator()(A&&... inputs) const {
    return get()->forward(std::forward<A>(inputs)...);
  }
};

/// A list of modules; it has no forward().
class CRESSET_API ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  template <class First, class... Rest, class = std::enable_if_t<!std::is_same_v<std::decay_t<First>, ModuleListImpl>>>
  explicit ModuleListImpl(First&& first, Rest&&... rest) {
    push_back(std::forward<First>(first));
    (push_back(std::forward<Rest>(rest)), ...);
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  void push_back(std::shared_ptr<Module> module) {
    modules_.push_back(register_module(std::to_string(modules_.size()), std::move(module)));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::shared_ptr<Module>(holder.ptr()));
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>>>
  void push_back(M&& module) {
    push_back(std::shared_ptr<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  void insert(std::size_t index, std::shared_ptr<Module> module);
  template <class M>
  void insert(std::size_t index, const ModuleHolder<M>& holder) {
    insert(index, std::shared_ptr<Module>(holder.ptr()));
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  std::size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }
  const std::shared_ptr<Module>& ptr(std::size_t index) const {
    CRESSET_CHECK_INDEX(index < modules_.size(), "Index out of range");
    return modules_[index];
  }
  template <class T>
  std::shared_ptr<T> ptr(std::size_t index) const {
    return std::dynamic_pointer_cast<T>(ptr(index));
  }
  template <class T>
  T& at(std::size_t index) const {
    T* found = dynamic_cast<T*>(ptr(index).get());
    CRESSET_CHECK(found, "Unable to cast module[", index, "] to ", autograd::detail::demangle(typeid(T).name()));
    return *found;
  }
  const std::shared_ptr<Module>& operator[](std::size_t index) const { return ptr(index); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
CRESSET_MODULE(ModuleList);

/// Modules by name, in order; it has no forward().
class CRESSET_API ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) { update(modules); }
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) { update(modules); }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  /// Adds, or replaces in place.
  template <class Container>
  void update(const Container& modules) {
    for (const auto& [name, module] : modules) {
      std::shared_ptr<Module> given(module);
      if (contains(name))
        replace_module(name, std::move(given));
      else
        register_module(name, std::move(given));
    }
  }
  void update(std::initializer_list<std::pair<std::string, std::shared_ptr<Module>>> modules) {
    update<std::initializer_list<std::pair<std::string, std::shared_ptr<Module>>>>(modules);
  }
  std::shared_ptr<Module> pop(const std::string& name);
  void clear() { children_.clear(); }
  bool contains(const std::string& name) const { return children_.contains(name); }
  const std::shared_ptr<Module>& operator[](const std::string& name) const { return children_[name]; }
  template <class T>
  T& at(const std::string& name) const {
    T* found = dynamic_cast<T*>(children_[name].get());
    CRESSET_CHECK(found, "Unable to cast module[", name, "] to ", autograd::detail::demangle(typeid(T).name()));
    return *found;
  }
  std::vector<std::string> keys() const { return children_.keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children_.values(); }
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const { return children_.pairs(); }
  auto begin() { return children_.begin(); }
  auto end() { return children_.end(); }
  auto begin() const { return children_.begin(); }
  auto end() const { return children_.end(); }
  std::size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }
};
CRESSET_MODULE(ModuleDict);

/// Parameters by position.
class CRESSET_API ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  template <class... T, class = std::enable_if_t<(std::is_same_v<std::decay_t<T>, Tensor> && ...)>>
  explicit ParameterListImpl(const Tensor& first, const T&... rest) {
    append(first);
    (append(rest), ...);
  }
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void pretty_print(std::ostream& stream) const override;
  void append(const Tensor& p) { register_parameter(std::to_string(size()), p, p.requires_grad()); }
  void append(const OrderedDict<std::string, Tensor>::Item& item) { append(item.value()); }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& p : container) append(p);
  }
  ParameterListImpl& operator+=(const ParameterListImpl& other) {
    extend(other);
    return *this;
  }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  std::size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
  Tensor& at(std::size_t index) {
    CRESSET_CHECK_INDEX(index < size(), "Index out of range");
    return parameters_[index].value();
  }
  Tensor& operator[](std::size_t index) { return at(index); }
};
CRESSET_MODULE(ParameterList);

/// Parameters by name.
class CRESSET_API ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) {
    for (const auto& [name, value] : parameters) insert(name, value);
  }
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  Tensor& insert(const std::string& name, const Tensor& p) { return register_parameter(name, p, p.requires_grad()); }
  void pretty_print(std::ostream& stream) const override;
  Tensor pop(const std::string& name);
  void clear() { parameters_.clear(); }
  /// Takes over the values of entries that are there already.
  template <class Container>
  void update(const Container& entries) {
    for (const auto& [name, value] : entries) parameters_[name] = value;
  }
  bool contains(const std::string& name) const { return parameters_.contains(name); }
  const Tensor& get(const std::string& name) const { return parameters_[name]; }
  Tensor& operator[](const std::string& name) { return parameters_[name]; }
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  std::size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
};
CRESSET_MODULE(ParameterDict);

}  // namespace cresset::nn
