// nn::Module: parameters, buffers and submodules by name, in PyTorch's C++ style; holders, and modules that can be cloned.
#pragma once

#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/nn/archive.h>
#include <cresset/nn/ordered_dict.h>

namespace cresset::nn {

template <class M>
class ModuleHolder;
class AnyValue;

/// A node in a tree of named parameters, buffers and submodules.
class CRESSET_API Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using ConstModuleApplyFunction = std::function<void(const Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = std::function<void(const std::string&, const Module&)>;
  using ModulePointerApplyFunction = std::function<void(const std::shared_ptr<Module>&)>;
  using NamedModulePointerApplyFunction = std::function<void(const std::string&, const std::shared_ptr<Module>&)>;

  explicit Module(std::string name) : name_(std::move(name)) {}
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  virtual ~Module() = default;

  /// The name given, else that of the class.
  const std::string& name() const;

  /// Names are unique among a module's own entries and contain no dot. Gives back what was registered.
  Tensor& register_parameter(std::string name, Tensor value, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor value);
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  /// For holders (CRESSET_MODULE): registers the module inside.
  template <class M>
  std::shared_ptr<M> register_module(std::string name, ModuleHolder<M> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    replace_child(name, module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, ModuleHolder<M> holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name);

  /// Own entries first, then children in order of registration; names are joined with dots. Undefined entries are left out.
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  std::vector<Tensor> parameters(bool recurse = true) const { return named_parameters(recurse).values(); }
  std::vector<Tensor> buffers(bool recurse = true) const { return named_buffers(recurse).values(); }
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const { return children_; }
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  /// All modules of the tree, depth first; with include_self the module must be held by a shared pointer.
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& prefix = "", bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const { return named_modules("", include_self).values(); }
  /// Calls the function for this module and all below it. With pointers the module must be held by one.
  void apply(const ModuleApplyFunction& function);
  void apply(const ConstModuleApplyFunction& function) const;
  void apply(const NamedModuleApplyFunction& function, const std::string& prefix = "");
  void apply(const ConstNamedModuleApplyFunction& function, const std::string& prefix = "") const;
  void apply(const ModulePointerApplyFunction& function) const;
  void apply(const NamedModulePointerApplyFunction& function, const std::string& prefix = "") const;

  /// Parameters and buffers.
  std::vector<std::pair<std::string, Tensor>> state_dict() const;
  /// Copies values by name. Raises with the lists of missing and unexpected names and of size mismatches; nothing is copied then.
  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state);

  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return training_; }
  virtual void zero_grad(bool set_to_none = true);
  /// Moves and converts in place; only floating-point tensors take the dtype.
  virtual void to(Device device, ScalarType dtype, bool non_blocking = false);
  virtual void to(ScalarType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);

  /// A deep copy; classes that derive from Cloneable can do it.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  /// Modules without state of their own that say false here are left out of archives.
  virtual bool is_serializable() const { return true; }
  /// One line: what operator<< writes for this module.
  virtual void pretty_print(std::ostream& stream) const;

  /// This module as another class (or as the class that a holder holds), or null.
  template <class H>
    requires requires { typename H::ContainedType; }
  typename H::ContainedType* as() noexcept {
    return dynamic_cast<typename H::ContainedType*>(this);
  }
  template <std::derived_from<Module> M>
  M* as() noexcept {
    return dynamic_cast<M*>(this);
  }
  template <std::derived_from<Module> M>
  const M* as() const noexcept {
    return dynamic_cast<const M*>(this);
  }

  /// Arguments that AnyModule adds to a call with fewer of them; see CRESSET_FORWARD_DEFAULTS.
  virtual std::vector<AnyValue> forward_defaults(std::size_t given) const;

 protected:
  OrderedDict<std::string, Tensor> parameters_{"Parameter"}, buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};

 private:
  template <class Derived>
  friend class Cloneable;
  void add_child(std::string name, std::shared_ptr<Module> module);
  void replace_child(const std::string& name, std::shared_ptr<Module> module);
  void check_name(const char* what, const std::string& name) const;
  void collect(bool buffers, bool recurse, const std::string& prefix, OrderedDict<std::string, Tensor>& out) const;
  void convert(const std::optional<Device>& device, const std::optional<ScalarType>& dtype, bool non_blocking);
  void copy_state_to(Module& copy, const std::optional<Device>& device) const;
  /// Becomes a copy of a module of the same class; classes that cannot be cloned take over parameters, buffers and children.
  virtual void take_clone_of(const Module& other, const std::optional<Device>& device);
  void print_tree(std::ostream& stream, const std::string& indent) const;
  friend CRESSET_API std::ostream& operator<<(std::ostream& stream, const Module& module);

  mutable std::string name_;
  bool training_ = true;
};

CRESSET_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const std::shared_ptr<Module>& module);
CRESSET_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, const std::shared_ptr<Module>& module);

/// Modules that register everything in reset() can be copied deeply. Options and other members are copied as they are.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  /// Registers parameters, buffers and submodules with their starting values.
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    const NoGradGuard no_grad;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->parameters_.clear();
    copy->buffers_.clear();
    copy->children_.clear();
    copy->reset();
    copy_state_to(*copy, device);
    return copy;
  }

 private:
  void take_clone_of(const Module& other, const std::optional<Device>& device) final {
    if constexpr (std::is_copy_assignable_v<Derived>) {
      if (const auto copy = std::dynamic_pointer_cast<Derived>(other.clone(device))) {
        static_cast<Derived&>(*this) = *copy;
        return;
      }
      CRESSET_CHECK(false, "Attempted to clone submodule, but it is of a different type than the submodule it was to be cloned into");
    } else {
      Module::take_clone_of(other, device);
    }
  }
};

/// A shared pointer to a module that is made in place and called with (); the base of CRESSET_MODULE types.
template <class M>
class ModuleHolder {
 public:
  using ContainedType = M;

  /// Makes the module with its default constructor.
  ModuleHolder() : module_(make()) {}
  /// Holds nothing.
  ModuleHolder(std::nullptr_t) {}
  template <class Head, class... Tail,
            class = std::enable_if_t<sizeof...(Tail) != 0 || !(std::is_base_of_v<ModuleHolder, std::decay_t<Head>> ||
                                                               std::is_convertible_v<Head, std::shared_ptr<M>>)>>
  explicit ModuleHolder(Head&& head, Tail&&... tail) : module_(new M(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<M> m) : module_(std::move(m)) {}

  explicit operator bool() const noexcept { return !is_empty(); }
  bool is_empty() const noexcept { return module_ == nullptr; }
  M* operator->() const { return get(); }
  M& operator*() const { return *get(); }
  const std::shared_ptr<M>& ptr() const {
    check();
    return module_;
  }
  M* get() const {
    check();
    return module_.get();
  }
  template <class... A, class I = M>
  auto operator()(A&&... a) const -> decltype(std::declval<I&>().forward(std::forward<A>(a)...)) {
    return get()->forward(std::forward<A>(a)...);
  }
  /// The module's own [], where it has one.
  template <class Key, class I = M>
  auto operator[](Key&& key) const -> decltype(std::declval<I&>()[std::forward<Key>(key)]) {
    return (*get())[std::forward<Key>(key)];
  }

 private:
  static std::shared_ptr<M> make() {
    static_assert(std::is_default_constructible_v<M>,
                  "This module has no default constructor: give arguments, or nullptr for an empty holder.");
    return std::shared_ptr<M>(new M());
  }
  void check() const { CRESSET_CHECK(module_, "Accessing empty ModuleHolder"); }

  std::shared_ptr<M> module_;
};

template <class M>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<M>& holder) {
  return stream << static_cast<const Module&>(*holder);
}
template <class M>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const ModuleHolder<M>& holder) {
  return archive << std::shared_ptr<Module>(holder.ptr());
}
template <class M>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, ModuleHolder<M>& holder) {
  return archive >> std::shared_ptr<Module>(holder.ptr());
}

}  // namespace cresset::nn

/// Defines `Name`, the holder of `ImplType`.
#define CRESSET_MODULE_IMPL(Name, ImplType)                    \
  class Name : public ::cresset::nn::ModuleHolder<ImplType> {  \
   public:                                                     \
    using ::cresset::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl = ImplType;                                     \
  }
/// Defines `Name`, the holder of `NameImpl`.
#define CRESSET_MODULE(Name) CRESSET_MODULE_IMPL(Name, Name##Impl)
