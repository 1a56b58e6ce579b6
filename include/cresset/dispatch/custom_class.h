// class_<T>: C++ classes whose objects operators take and return, and that Python makes and calls.
//
//   struct Counter : CustomClassHolder { … };
//   CRESSET_LIBRARY(demo, m) {
//     m.class_<Counter>("Counter")
//         .def(init<int64_t>())
//         .def("next", &Counter::next)
//         .def_pickle([](const intrusive_ptr<Counter>& c) { return c->state(); },
//                     [](int64_t state) { return make_intrusive<Counter>(state); });
//     m.def("total(__torch__.torch.classes.demo.Counter c) -> int", &total);
//   }
// In Python: c = cresset.classes.demo.Counter(3); c.next(); cresset.ops.demo.total(c).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <cresset/dispatch/library.h>

namespace cresset {

/// A parameter's name and, with `=`, its default: arg("step") = 1.
struct arg {
  explicit arg(std::string name) : name(std::move(name)) {}
  arg& operator=(const IValue& value) & {
    default_value = value;
    return *this;
  }
  arg&& operator=(const IValue& value) && {
    default_value = value;
    return std::move(*this);
  }
  static IValue none() { return IValue(); }

  std::string name;
  std::optional<IValue> default_value;
};

/// A method: takes the object (static ones do not) and the arguments off the stack and leaves the result.
struct CustomMethod {
  FunctionSchema schema;
  KernelFunction kernel;
  std::string doc;
  bool is_static = false;
  void run(Stack& stack) const { kernel.callBoxed(OperatorHandle(nullptr), DispatchKeySet(), &stack); }
};

struct CustomProperty {
  CustomMethod getter;
  std::optional<CustomMethod> setter;
};

/// What is known of a registered class. `__init__`, `__getstate__` and `__setstate__` are methods; the first and the last are
/// static and give the object.
struct CRESSET_API CustomClassInfo {
  std::string qualified_name;  // "__torch__.torch.classes.ns.Name"
  std::string doc;
  std::map<std::string, CustomMethod> methods;
  std::map<std::string, CustomProperty> properties;
  void add_method(const std::string& name, CustomMethod method);
  bool has_state() const { return methods.contains("__getstate__") && methods.contains("__setstate__"); }
  /// What __getstate__ gives. Only with has_state().
  IValue get_state(const IValue& object) const;
};

/// Raises when the name or the C++ type is taken.
CRESSET_API CustomClassInfo& register_custom_class(const std::type_info& type, const std::string& ns, const std::string& name,
                                                   std::string doc);
/// By "__torch__.torch.classes.ns.Name"; null when there is none.
CRESSET_API const CustomClassInfo* find_custom_class(const std::string& qualified_name);
CRESSET_API const CustomClassInfo* find_custom_class(const std::type_info& type);
CRESSET_API std::vector<std::string> custom_class_names();
/// The schema type of an object.
CRESSET_API TypePtr custom_class_type_of(const CustomClassHolder& object);

namespace detail {
template <class... A>
struct ConstructorArguments {};
template <class F>
struct ConstructorFunction {
  F f;
};
CRESSET_API FunctionSchema name_arguments(FunctionSchema schema, bool has_self, const std::vector<arg>& names);
template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
/// A std::tuple is several results of an operator, and one value of a method.
CRESSET_API FunctionSchema with_tuple_result(const FunctionSchema& schema);
template <class F, class R, class... A>
auto with_one_result(F f, R (*)(A...)) {
  if constexpr (is_tuple<R>)
    return [f = std::move(f)](A... a) mutable { return IValue(f(std::forward<A>(a)...)); };
  else
    return f;
}
}  // namespace detail

/// The constructor with these parameters, for class_::def.
template <class... A>
detail::ConstructorArguments<A...> init() {
  return {};
}
/// A function that makes the object, for class_::def.
template <class F>
detail::ConstructorFunction<std::decay_t<F>> init(F&& f) {
  return {std::forward<F>(f)};
}

template <class T>
class class_ {
  static_assert(std::is_base_of_v<CustomClassHolder, T>, "class_<T>: T must derive from CustomClassHolder.");

 public:
  class_(const std::string& ns, const std::string& name, std::string doc = {})
      : info_(&register_custom_class(typeid(T), ns, name, std::move(doc))) {}

  template <class... A>
  class_& def(detail::ConstructorArguments<A...>, std::string doc = {}, std::initializer_list<arg> names = {}) {
    return add("__init__", [](A... a) { return make_intrusive<T>(std::forward<A>(a)...); }, std::move(doc), names, true);
  }
  template <class F>
  class_& def(detail::ConstructorFunction<F> constructor, std::string doc = {}, std::initializer_list<arg> names = {}) {
    return add("__init__", std::move(constructor.f), std::move(doc), names, true);
  }
  /// A method: a member function, or anything callable whose first parameter is the object as intrusive_ptr<T>.
  template <class F>
  class_& def(const std::string& name, F f, std::string doc = {}, std::initializer_list<arg> names = {}) {
    return add(name, as_function(std::move(f)), std::move(doc), names, false);
  }
  template <class F>
  class_& def_static(const std::string& name, F f, std::string doc = {}) {
    return add(name, std::move(f), std::move(doc), {}, true);
  }
  template <class G>
  class_& def_property(const std::string& name, G getter, std::string doc = {}) {
    info_->properties[name] = {method(as_function(std::move(getter)), std::move(doc), {}, false), std::nullopt};
    return *this;
  }
  template <class G, class S, class = std::enable_if_t<!std::is_convertible_v<S, std::string>>>
  class_& def_property(const std::string& name, G getter, S setter, std::string doc = {}) {
    info_->properties[name] = {method(as_function(std::move(getter)), std::move(doc), {}, false),
                               method(as_function(std::move(setter)), {}, {}, false)};
    return *this;
  }
  template <class M, class C>
  class_& def_readonly(const std::string& name, M C::*member) {
    return def_property(name, [member](const intrusive_ptr<T>& self) -> M { return (*self).*member; });
  }
  template <class M, class C>
  class_& def_readwrite(const std::string& name, M C::*member) {
    return def_property(
        name, [member](const intrusive_ptr<T>& self) -> M { return (*self).*member; },
        [member](const intrusive_ptr<T>& self, M value) { (*self).*member = std::move(value); });
  }
  /// How objects are saved: the state of an object, and the object of a state. Both states have one type.
  template <class G, class S>
  class_& def_pickle(G get_state, S set_state) {
    add("__getstate__", as_function(std::move(get_state)), {}, {}, false);
    return add("__setstate__", std::move(set_state), {}, {}, true);
  }

 private:
  template <class F>
  static auto as_function(F f) {
    if constexpr (std::is_member_function_pointer_v<F>)
      return of_member(f);
    else
      return f;
  }
  template <class C, class R, class... A>
  static auto of_member(R (C::*f)(A...)) {
    return [f](const intrusive_ptr<T>& self, A... a) -> R { return ((*self).*f)(std::forward<A>(a)...); };
  }
  template <class C, class R, class... A>
  static auto of_member(R (C::*f)(A...) const) {
    return [f](const intrusive_ptr<T>& self, A... a) -> R { return ((*self).*f)(std::forward<A>(a)...); };
  }
  template <class F>
  static CustomMethod method(F f, std::string doc, const std::vector<arg>& names, bool is_static) {
    using S = impl::signature_of<typename impl::function_type_of<F>::type>;
    FunctionSchema schema = impl::infer_schema(static_cast<typename S::type*>(nullptr));
    if constexpr (detail::is_tuple<typename S::type::result>) schema = detail::with_tuple_result(schema);
    return {detail::name_arguments(std::move(schema), !is_static, names),
            KernelFunction::makeFromUnboxed(
                detail::with_one_result(std::move(f), static_cast<typename impl::function_type_of<F>::type*>(nullptr))),
            std::move(doc), is_static};
  }
  template <class F>
  class_& add(const std::string& name, F f, std::string doc, const std::vector<arg>& names, bool is_static) {
    info_->add_method(name, method(std::move(f), std::move(doc), names, is_static));
    return *this;
  }

  CustomClassInfo* info_;
};

template <class T>
cresset::class_<T> Library::class_(const std::string& name, std::string doc) {
  CRESSET_CHECK(kind_ == DEF || kind_ == FRAGMENT, "class_(\"", name,
                "\"): Cannot define a class inside of a TORCH_LIBRARY_IMPL block. All "
                "class_()s should be placed in the (unique) TORCH_LIBRARY block for their namespace.");
  return cresset::class_<T>(ns_, name, std::move(doc));
}

/// An object of a registered class as a value.
template <class T, class... A>
IValue make_custom_class(A&&... a) {
  return IValue(make_intrusive<T>(std::forward<A>(a)...));
}

}  // namespace cresset
