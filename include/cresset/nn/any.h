// Modules of any class behind one type: AnyModule calls forward() with values whose types are checked when it runs.
#pragma once

#include <any>
#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include <cresset/autograd/function.h>
#include <cresset/nn/module.h>

namespace cresset::nn {

/// One value of any copyable type.
class AnyValue {
 public:
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue>>>
  explicit AnyValue(T&& value) : value_(std::forward<T>(value)) {}
  /// The value if it is exactly of this type, else null.
  template <class T>
  T* try_get() {
    return std::any_cast<T>(&value_);
  }
  template <class T>
  T get() {
    T* found = try_get<T>();
    CRESSET_CHECK(found, "Attempted to cast AnyValue to ", autograd::detail::demangle(typeid(T).name()), ", but its actual type is ",
                  autograd::detail::demangle(value_.type().name()));
    return *found;
  }
  const std::type_info& type_info() const { return value_.type(); }

 private:
  std::any value_;
};

namespace detail {
template <class F>
struct forward_traits;
template <class M, class R, class... A>
struct forward_traits<R (M::*)(A...)> {
  using result = R;
  using arguments = std::tuple<std::decay_t<A>...>;
  using parameters = std::tuple<A...>;
};
template <class M, class R, class... A>
struct forward_traits<R (M::*)(A...) const> : forward_traits<R (M::*)(A...)> {};
/// Raises with the numbers of arguments that forward() takes.
[[noreturn]] CRESSET_API void raise_argument_count(const Module& module, std::size_t given, std::size_t expected);
}  // namespace detail

class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
  explicit AnyModule(std::shared_ptr<M> module) : module_(module), call_(caller<M>(module.get())), type_(&typeid(M)) {}
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>>>
  explicit AnyModule(M&& module) : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}
  template <class M>
  AnyModule& operator=(std::shared_ptr<M> module) {
    return *this = AnyModule(std::move(module));
  }

  AnyModule clone(const std::optional<Device>& device = std::nullopt) const {
    AnyModule copy;
    if (is_empty()) return copy;
    copy.module_ = module_->clone(device);
    copy.maker_ = maker_;
    copy.call_ = maker_ ? maker_(copy.module_.get()) : call_;
    copy.type_ = type_;
    return copy;
  }

  /// forward() of the module; arguments must be of its parameters' types (without const and reference).
  template <class... A>
  AnyValue any_forward(A&&... arguments) const {
    CRESSET_CHECK(!is_empty(), "Cannot call forward() on an empty AnyModule");
    std::vector<AnyValue> values;
    values.reserve(sizeof...(A));
    (values.push_back(wrap(std::forward<A>(arguments))), ...);
    return call_(std::move(values));
  }
  template <class R = Tensor, class... A>
  R forward(A&&... arguments) const {
    return any_forward(std::forward<A>(arguments)...).template get<R>();
  }

  template <class T, class = std::enable_if_t<std::is_base_of_v<Module, T>>>
  T& get() const {
    CRESSET_CHECK(!is_empty(), "Cannot call get() on an empty AnyModule");
    T* found = dynamic_cast<T*>(module_.get());
    CRESSET_CHECK(found, "Attempted to cast module of type ", autograd::detail::demangle(type_->name()), " to type ",
                  autograd::detail::demangle(typeid(T).name()));
    return *found;
  }
  /// The holder of this type with the module.
  template <class H, class C = typename H::ContainedType>
  H get() const {
    return H(std::static_pointer_cast<C>(get<C>().shared_from_this()));
  }
  const std::shared_ptr<Module>& ptr() const {
    CRESSET_CHECK(!is_empty(), "Cannot call ptr() on an empty AnyModule");
    return module_;
  }
  template <class T, class = std::enable_if_t<std::is_base_of_v<Module, T>>>
  std::shared_ptr<T> ptr() const {
    CRESSET_CHECK(!is_empty(), "Cannot call ptr() on an empty AnyModule");
    get<T>();
    return std::static_pointer_cast<T>(module_);
  }
  bool is_empty() const { return module_ == nullptr; }
  const std::type_info& type_info() const {
    CRESSET_CHECK(!is_empty(), "Cannot call type_info() on an empty AnyModule");
    return *type_;
  }

 private:
  using Call = std::function<AnyValue(std::vector<AnyValue>&&)>;

  static AnyValue wrap(AnyValue value) { return value; }
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue>>>
  static AnyValue wrap(T&& value) {
    return AnyValue(std::decay_t<T>(std::forward<T>(value)));
  }
  template <class M>
  Call caller(M* module) {
    maker_ = [](Module* m) { return call_of(static_cast<M*>(m)); };
    return call_of(module);
  }
  template <class M>
  static Call call_of(M* module) {
    using Traits = detail::forward_traits<decltype(&M::forward)>;
    return [module](std::vector<AnyValue>&& values) {
      constexpr std::size_t n = std::tuple_size_v<typename Traits::arguments>;
      if (values.size() != n) {
        const std::size_t given = values.size();
        std::vector<AnyValue> more = module->forward_defaults(given);
        if (given > n || given + more.size() != n) detail::raise_argument_count(*module, given, n);
        for (AnyValue& value : more) values.push_back(std::move(value));
      }
      return invoke<M, Traits>(*module, values, std::make_index_sequence<n>());
    };
  }
  template <class M, class Traits, std::size_t... I>
  static AnyValue invoke(M& module, std::vector<AnyValue>& values, std::index_sequence<I...>) {
    const auto argument = [&]<std::size_t i>() -> std::tuple_element_t<i, typename Traits::parameters>&& {
      using T = std::tuple_element_t<i, typename Traits::arguments>;
      T* found = values[i].template try_get<T>();
      CRESSET_CHECK(found, "Expected argument #", i, " to be of type ", autograd::detail::demangle(typeid(T).name()),
                    ", but received value of type ", autograd::detail::demangle(values[i].type_info().name()));
      return static_cast<std::tuple_element_t<i, typename Traits::parameters>&&>(*found);
    };
    return AnyValue(module.forward(argument.template operator()<I>()...));
  }

  std::shared_ptr<Module> module_;
  Call (*maker_)(Module*) = nullptr;  // set while call_ is made
  Call call_;
  const std::type_info* type_ = &typeid(void);
};

/// A module and the name it gets in a container.
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, M&& module) : name_(std::move(name)), module_(std::forward<M>(module)) {}
  NamedAnyModule(std::string name, AnyModule module) : name_(std::move(name)), module_(std::move(module)) {}
  const std::string& name() const { return name_; }
  AnyModule& module() { return module_; }
  const AnyModule& module() const { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

}  // namespace cresset::nn

/// In a module whose forward() has defaults: FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(...)}, ...) names them by position for AnyModule.
#define CRESSET_FORWARD_DEFAULTS(...)                                                       \
 public:                                                                                    \
  std::vector<::cresset::nn::AnyValue> forward_defaults(std::size_t given) const override { \
    std::vector<std::pair<unsigned, ::cresset::nn::AnyValue>> all = {__VA_ARGS__};          \
    std::vector<::cresset::nn::AnyValue> missing;                                           \
    for (auto& [position, value] : all)                                                     \
      if (position >= given) missing.push_back(value);                                      \
    return missing;                                                                         \
  }
