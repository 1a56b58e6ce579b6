// Objects of scripts' classes as C++ sees them: Object, Method, and Module with what modules have beyond it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cresset/core/device.h>
#include <cresset/ir/function.h>
#include <cresset/ir/script_effects.h>

namespace cresset::jit {

/// What a list of named things gives: a name (a path, "layer1.weight") and the thing.
template <class T>
struct NameValue {
  std::string name;
  T value;
};

using Kwargs = std::vector<std::pair<std::string, IValue>>;
class Object;

/// A method bound to its object.
class CRESSET_API Method {
 public:
  Method(intrusive_ptr<ivalue::Object> owner, Function* function) : owner_(std::move(owner)), function_(function) {}
  const std::string& qualname() const { return function_->qualname(); }
  std::string name() const { return function_->name(); }
  Function& function() const { return *function_; }
  const FunctionSchema& getSchema() const { return function_->getSchema(); }
  std::size_t num_inputs() const { return function_->num_inputs(); }
  std::shared_ptr<Graph> graph() const { return function_->graph(); }
  Object owner() const;
  /// Arguments without self; defaults are filled in. Raises for missing, superfluous and badly typed ones.
  IValue operator()(Stack arguments, const Kwargs& kwargs = {}) const;
  /// The same here and now, as a completed future; what it forks goes to the launcher.
  intrusive_ptr<ivalue::Future> run_async(Stack arguments, const Kwargs& kwargs = {}, TaskLauncher launcher = nullptr) const;
  intrusive_ptr<ivalue::Future> run_async(Stack arguments, const std::unordered_map<std::string, IValue>& kwargs,
                                          TaskLauncher launcher = nullptr) const {
    return run_async(std::move(arguments), Kwargs(kwargs.begin(), kwargs.end()), std::move(launcher));
  }

 private:
  intrusive_ptr<ivalue::Object> owner_;
  Function* function_;
};

/// An instance of a class. Copies of this handle are the same object.
class CRESSET_API Object {
 public:
  Object() = default;
  explicit Object(intrusive_ptr<ivalue::Object> object) : object_(std::move(object)) {}
  /// A new object of a class with empty slots.
  Object(std::shared_ptr<CompilationUnit> unit, const ClassTypePtr& type);

  const intrusive_ptr<ivalue::Object>& _ivalue() const;
  ClassTypePtr type() const;
  bool defined() const { return static_cast<bool>(object_); }
  /// The attribute or constant; raises with the class's name when there is none.
  IValue attr(const std::string& name) const;
  IValue attr(const std::string& name, IValue or_else) const;
  /// Raises when there is no such attribute or the value is of another type.
  void setattr(const std::string& name, IValue v) const;
  bool hasattr(const std::string& name) const;
  Method get_method(const std::string& name) const;
  std::optional<Method> find_method(const std::string& name) const;
  std::vector<Method> get_methods() const;
  IValue run_method(const std::string& name, Stack arguments = {}) const { return get_method(name)(std::move(arguments)); }
  /// The same with the arguments one by one.
  template <class First, class... Rest>
    requires(!std::is_convertible_v<First, Stack> && std::is_constructible_v<IValue, First>)
  IValue run_method(const std::string& name, First&& first, Rest&&... rest) const {
    return run_method(name, Stack{IValue(std::forward<First>(first)), IValue(std::forward<Rest>(rest))...});
  }
  /// New object, same attribute values.
  Object copy() const;
  /// New object; tensors and objects inside are copied too, shared ones stay shared among themselves.
  Object deepcopy() const;
  friend bool operator==(const Object& a, const Object& b) { return a.object_ == b.object_; }

 protected:
  intrusive_ptr<ivalue::Object> object_;
};

class CRESSET_API Module : public Object {
 public:
  Module() = default;
  Module(intrusive_ptr<ivalue::Object> object) : Object(std::move(object)) {}
  /// An empty module of a new class of this name in a new (or the given) unit.
  explicit Module(const std::string& qualified_name, std::shared_ptr<CompilationUnit> unit = nullptr);
  Module(std::shared_ptr<CompilationUnit> unit, const ClassTypePtr& type) : Object(std::move(unit), type) {}

  IValue forward(Stack arguments, const Kwargs& kwargs = {}) const { return get_method("forward")(std::move(arguments), kwargs); }
  /// `forward` with the hooks of the module's class around it.
  IValue operator()(Stack arguments) const;

  void register_parameter(const std::string& name, Tensor value, bool is_buffer = false) const;
  void register_buffer(const std::string& name, Tensor value) const { register_parameter(name, std::move(value), true); }
  void register_attribute(const std::string& name, TypePtr type, IValue value, bool is_parameter = false, bool is_buffer = false) const;
  void register_attribute(const std::string& name, const Type* type, IValue value, bool is_parameter = false,
                          bool is_buffer = false) const {
    register_attribute(name, type->shared_from_this(), std::move(value), is_parameter, is_buffer);
  }
  void register_module(const std::string& name, const Module& module) const;

  // With names as paths ("layer1.0.weight"), in the order of slots; a tensor or module met before is left out.
  std::vector<NameValue<Tensor>> named_parameters(bool recurse = true) const;
  std::vector<NameValue<Tensor>> named_buffers(bool recurse = true) const;
  std::vector<NameValue<IValue>> named_attributes(bool recurse = true) const;
  std::vector<NameValue<Module>> named_children() const;
  /// This module itself (with an empty name) first.
  std::vector<NameValue<Module>> named_modules() const;
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  std::vector<Module> children() const;
  std::vector<Module> modules() const;

  /// Sets the attribute `training` of all modules that have one.
  void train(bool on = true) const;
  void eval() const { train(false); }
  bool is_training() const { return attr("training", IValue(true)).toBool(); }
  /// Parameters and buffers, moved or converted in place (floating-point tensors only take the dtype).
  void to(Device device, bool non_blocking = false) const;
  void to(ScalarType dtype, bool non_blocking = false) const;
  void to(Device device, ScalarType dtype, bool non_blocking = false) const;

  Module copy() const { return Module(Object::copy()._ivalue()); }
  Module deepcopy() const { return Module(Object::deepcopy()._ivalue()); }
  /// A copy with a class of its own, so that types and methods may be changed without touching the original; submodules likewise.
  /// Attributes are copied to the depth, or shared (`inplace`).
  Module clone(bool inplace = false) const;
  /// Compiles methods from source text ("def forward(self, x): …") into this module's class.
  void define(const std::string& source, const ResolverPtr& resolver = nullptr) const;
  /// A new object of a class of this module's unit: made by its __init__, which gets the arguments.
  IValue create_class(const QualifiedName& name, Stack arguments) const;
  template <class First, class... Rest>
    requires(!std::is_convertible_v<First, Stack> && std::is_constructible_v<IValue, First>)
  IValue create_class(const QualifiedName& name, First&& first, Rest&&... rest) const {
    return create_class(name, Stack{IValue(std::forward<First>(first)), IValue(std::forward<Rest>(rest))...});
  }

  // Archives (archive/): see archive.h.
  void save(const std::string& path, const std::unordered_map<std::string, std::string>& extra_files = {}) const;
  void save(std::ostream& out, const std::unordered_map<std::string, std::string>& extra_files = {}) const;
};

/// A copy of a module in evaluation mode with everything inlined and constant; `preserved` names what stays besides forward. With
/// `optimize_numerics` batch norm, sums and products become part of the weights of the layers in front of them, where that is the same up
/// to rounding.
CRESSET_API Module freeze(const Module& module, const std::optional<std::vector<std::string>>& preserved = std::nullopt,
                          bool optimize_numerics = true);
/// The module frozen, where it has a training flag, else simplified as it is.
CRESSET_API Module optimize_for_inference(Module& module, const std::vector<std::string>& other_methods = {});

using ModulePtr = intrusive_ptr<ivalue::Object>;
using ObjectPtr = intrusive_ptr<ivalue::Object>;

}  // namespace cresset::jit
