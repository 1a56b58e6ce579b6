// Objects and modules of scripts: attributes, methods, the tree of submodules, copies.
#include <cresset/ir/module.h>

#include <unordered_set>

#include <cresset/ir/interpreter.h>
#include <cresset/ops/functions_copy.h>

#include "ir/frontend/frontend.h"
#include "ir/frontend/tree.h"
#include "ir/module/deep_copier.h"

namespace cresset::jit {

// ---- methods and objects

Object Method::owner() const { return Object(owner_); }

IValue Method::operator()(Stack arguments, const Kwargs& kwargs) const {
  arguments.insert(arguments.begin(), IValue(owner_));
  function_->checkAndNormalize(arguments, kwargs);
  function_->run(arguments);
  if (arguments.empty()) return IValue();
  if (arguments.size() == 1) return std::move(arguments[0]);
  return IValue(make_intrusive<ivalue::TupleImpl>(std::move(arguments)));
}

Object::Object(std::shared_ptr<CompilationUnit> /*unit*/, const ClassTypePtr& type) : object_(new_object(type)) {}

const intrusive_ptr<ivalue::Object>& Object::_ivalue() const {
  CRESSET_CHECK(object_, "an object was required; an empty handle was given.");
  return object_;
}

ClassTypePtr Object::type() const { return _ivalue()->type->expect<ClassType>(); }

namespace {

// Slots appear when they are written first: an attribute added to the class later reads as None.
IValue slot_of(const ivalue::Object& object, std::size_t i) { return i < object.slots.size() ? object.slots[i] : IValue(); }

std::optional<IValue> find_attribute(const Object& object, const std::string& name) {
  const ClassTypePtr type = object.type();
  if (const auto slot = type->findAttributeSlot(name)) return slot_of(*object._ivalue(), *slot);
  return type->findConstant(name);
}

}  // namespace

IValue Object::attr(const std::string& name) const {
  auto found = find_attribute(*this, name);
  CRESSET_CHECK_AS(AttributeError, found, type()->name, " (of Python compilation unit at: 0) does not have a field with name '", name, "'");
  return std::move(*found);
}
IValue Object::attr(const std::string& name, IValue or_else) const {
  auto found = find_attribute(*this, name);
  return found ? std::move(*found) : std::move(or_else);
}
bool Object::hasattr(const std::string& name) const { return find_attribute(*this, name).has_value(); }

void Object::setattr(const std::string& name, IValue v) const {
  const ClassTypePtr cls = type();
  if (const auto constant = cls->findConstant(name))
    CRESSET_THROW(Error, "Can't set constant '", name, "' which has value:", to_string(*constant));
  const auto slot = cls->findAttributeSlot(name);
  CRESSET_CHECK_AS(AttributeError, slot, cls->name, " does not have an attribute with name '", name, "'");
  const TypePtr& expected = cls->getAttribute(*slot);
  CRESSET_CHECK(value_is_of_type(v, *expected), "Expected a value of type '", expected->annotation_str(), "' for field '", name,
                "', but found '", v.type()->annotation_str(), "'");
  object_->set_slot(*slot, std::move(v));
}

std::optional<Method> Object::find_method(const std::string& name) const {
  Function* f = type()->findMethod(name);
  return f ? std::optional(Method(object_, f)) : std::nullopt;
}
Method Object::get_method(const std::string& name) const {
  auto method = find_method(name);
  CRESSET_CHECK_AS(AttributeError, method, "Method '", name, "' is not defined.");
  return std::move(*method);
}
std::vector<Method> Object::get_methods() const {
  std::vector<Method> out;
  for (Function* f : type()->methods()) out.emplace_back(object_, f);
  return out;
}

Object Object::copy() const {
  const ClassTypePtr cls = type();
  auto out = new_object(cls);
  for (std::size_t i = 0; i < cls->numAttributes(); ++i) out->set_slot(i, slot_of(*object_, i));
  return Object(std::move(out));
}

Object Object::deepcopy() const { return Object(DeepCopier().copy(IValue(_ivalue())).toObject()); }

// ---- modules

namespace {

ClassTypePtr new_module_class(const std::string& name, CompilationUnit& unit) {
  const std::string prefix = "__torch__.";
  const ClassTypePtr type = ClassType::create(unit.mangle(name.starts_with(prefix) ? name : prefix + name), true);
  type->addAttribute("training", basic_type(TypeKind::Bool));
  unit.register_type(type);
  return type;
}

}  // namespace

Module::Module(const std::string& qualified_name, std::shared_ptr<CompilationUnit> unit) {
  if (!unit) unit = std::make_shared<CompilationUnit>();
  *this = Module(unit, new_module_class(qualified_name, *unit));
  setattr("training", true);
}

void Module::register_parameter(const std::string& name, Tensor value, bool is_buffer) const {
  register_attribute(name, basic_type(TypeKind::Tensor), std::move(value), !is_buffer, is_buffer);
}
void Module::register_attribute(const std::string& name, TypePtr attribute_type, IValue value, bool is_parameter, bool is_buffer) const {
  type()->addOrCheckAttribute(name, std::move(attribute_type), is_parameter, is_buffer);
  setattr(name, std::move(value));
}
void Module::register_module(const std::string& name, const Module& module) const {
  register_attribute(name, module.type(), module._ivalue());
}

namespace {

// The module and what is below it, each once, with paths; those without recursion stop at the root.
void walk(const Module& root, bool recurse, const std::function<void(const std::string&, const Module&)>& visit) {
  std::vector<std::pair<std::string, Module>> stack{{"", root}};
  std::unordered_set<const void*> seen;
  while (!stack.empty()) {
    const auto [path, module] = std::move(stack.back());
    stack.pop_back();
    if (!seen.insert(module._ivalue().get()).second) continue;
    visit(path, module);
    if (!recurse) return;
    const auto children = module.named_children();
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      stack.emplace_back(path.empty() ? child->name : path + "." + child->name, child->value);
  }
}

std::vector<NameValue<Tensor>> named_tensors(const Module& root, bool recurse, bool ClassAttribute::*kind) {
  std::vector<NameValue<Tensor>> out;
  std::unordered_set<const void*> seen;
  walk(root, recurse, [&](const std::string& path, const Module& module) {
    const ClassTypePtr type = module.type();
    for (std::size_t i = 0; i < type->numAttributes(); ++i) {
      const ClassAttribute& a = type->attributes()[i];
      const IValue v = slot_of(*module._ivalue(), i);
      if (!(a.*kind) || !v.isTensor() || !v.toTensor().defined() || !seen.insert(v.toTensor().unsafeGetTensorImpl()).second) continue;
      out.emplace_back(path.empty() ? a.name : path + "." + a.name, v.toTensor());
    }
  });
  return out;
}

template <class T>
std::vector<T> without_names(std::vector<NameValue<T>> named) {
  std::vector<T> out;
  for (auto& [name, value] : named) out.push_back(std::move(value));
  return out;
}

// In place, so that all who hold the tensors see it; a parameter's gradient moves along.
void convert(const Module& module, std::optional<Device> device, std::optional<ScalarType> dtype, bool non_blocking) {
  const NoGradGuard no_grad;
  const auto moved = [&](const Tensor& t) {
    const ScalarType to_dtype = dtype && (t.is_floating_point() || t.is_complex()) ? *dtype : t.scalar_type();
    return t.to(device.value_or(t.device()), to_dtype, non_blocking);
  };
  for (const auto kind : {&ClassAttribute::is_parameter, &ClassAttribute::is_buffer})
    for (const auto& [name, tensor] : named_tensors(module, true, kind)) {
      tensor.set_data(moved(tensor));
      if (tensor.grad().defined()) tensor.grad().set_data(moved(tensor.grad()));
    }
}

}  // namespace

std::vector<NameValue<Tensor>> Module::named_parameters(bool recurse) const {
  return named_tensors(*this, recurse, &ClassAttribute::is_parameter);
}
std::vector<NameValue<Tensor>> Module::named_buffers(bool recurse) const {
  return named_tensors(*this, recurse, &ClassAttribute::is_buffer);
}
std::vector<NameValue<IValue>> Module::named_attributes(bool recurse) const {
  std::vector<NameValue<IValue>> out;
  walk(*this, recurse, [&](const std::string& path, const Module& module) {
    const ClassTypePtr cls = module.type();
    for (std::size_t i = 0; i < cls->numAttributes(); ++i) {
      const std::string& name = cls->attributes()[i].name;
      out.emplace_back(path.empty() ? name : path + "." + name, slot_of(*module._ivalue(), i));
    }
  });
  return out;
}
std::vector<NameValue<Module>> Module::named_children() const {
  std::vector<NameValue<Module>> out;
  const ClassTypePtr cls = type();
  for (std::size_t i = 0; i < cls->numAttributes(); ++i) {
    const IValue v = slot_of(*_ivalue(), i);
    if (!v.isScriptObject()) continue;
    const auto child = v.toObjectRef().type->cast<ClassType>();
    if (child && child->is_module()) out.emplace_back(cls->attributes()[i].name, Module(v.toObject()));
  }
  return out;
}
std::vector<NameValue<Module>> Module::named_modules() const {
  std::vector<NameValue<Module>> out;
  walk(*this, true, [&](const std::string& path, const Module& module) { out.emplace_back(path, module); });
  return out;
}
std::vector<Tensor> Module::parameters(bool recurse) const { return without_names(named_parameters(recurse)); }
std::vector<Tensor> Module::buffers(bool recurse) const { return without_names(named_buffers(recurse)); }
std::vector<Module> Module::children() const { return without_names(named_children()); }
std::vector<Module> Module::modules() const { return without_names(named_modules()); }

IValue Module::operator()(Stack arguments) const {
  const ClassTypePtr cls = type();
  const IValue self(_ivalue());
  const auto as_tuple = [](Stack values) { return IValue(make_intrusive<ivalue::TupleImpl>(std::move(values))); };
  for (Function* hook : cls->getForwardPreHooks()) {
    const IValue changed = (*hook)({self, as_tuple(arguments)});
    if (changed.isNone()) continue;
    if (changed.isTuple())
      arguments = changed.toTupleRef().elements;
    else
      arguments = {changed};
  }
  if (cls->getForwardHooks().empty()) return forward(std::move(arguments));
  IValue result = forward(arguments);
  for (Function* hook : cls->getForwardHooks()) {
    IValue changed = (*hook)({self, as_tuple(arguments), result});
    if (!changed.isNone()) result = std::move(changed);
  }
  return result;
}

void Module::train(bool on) const {
  walk(*this, true, [on](const std::string&, const Module& module) {
    if (module.type()->hasAttribute("training")) module.setattr("training", on);
  });
}

void Module::to(Device device, bool non_blocking) const { convert(*this, device, std::nullopt, non_blocking); }
void Module::to(ScalarType dtype, bool non_blocking) const { convert(*this, std::nullopt, dtype, non_blocking); }
void Module::to(Device device, ScalarType dtype, bool non_blocking) const { convert(*this, device, dtype, non_blocking); }

namespace {

// Copies of module classes, each made once; types that contain one are rebuilt around the copy.
class ClassCloner {
 public:
  TypePtr map(const TypePtr& t) {
    if (const auto cls = t->cast<ClassType>()) return cls->is_module() && !cls->is_opaque() ? clone(cls) : t;
    switch (t->kind) {
      case TypeKind::List: return rebuilt(t, [&] { return list_of(map(t->element())); });
      case TypeKind::Optional: return rebuilt(t, [&] { return optional_of(map(t->element())); });
      case TypeKind::Dict: return rebuilt(t, [&] { return dict_of(t->contained[0], map(t->contained[1])); });
      case TypeKind::Tuple:
        if (!t->name.empty()) return t;
        return rebuilt(t, [&] {
          std::vector<TypePtr> members;
          for (const TypePtr& m : t->contained) members.push_back(map(m));
          return tuple_of(std::move(members));
        });
      default: return t;
    }
  }

 private:
  template <class F>
  TypePtr rebuilt(const TypePtr& t, F&& make) {
    const TypePtr made = make();
    return *made == *t ? t : made;
  }
  TypePtr clone(const ClassTypePtr& from) {
    if (const auto found = done_.find(from.get()); found != done_.end()) return found->second;
    const auto taken = [&](const std::string& name) { return name == from->name || !names_.insert(name).second; };
    const ClassTypePtr to = ClassType::create(mangle_name(from->name, taken), true);
    unit_->register_type(to);
    done_.emplace(from.get(), to);
    for (const ClassAttribute& a : from->attributes()) to->addAttribute(a.name, map(a.type), a.is_parameter, a.is_buffer);
    for (const auto& [name, value] : from->constants()) to->addConstant(name, value);
    for (const Function* f : from->methods()) to->addMethod(clone_function(*f, *to));
    for (const Function* f : from->getForwardPreHooks()) to->addForwardPreHook(clone_hook(*f, *to));
    for (const Function* f : from->getForwardHooks()) to->addForwardHook(clone_hook(*f, *to));
    return to;
  }
  intrusive_ptr<GraphFunction> clone_function(const Function& f, const ClassType& to) {
    const std::shared_ptr<Graph> graph = f.graph();
    CRESSET_CHECK(graph, "clone: method '", f.qualname(), "' has no graph.");
    auto copy = make_intrusive<GraphFunction>(to.name + "." + f.name(), clone_graph(*graph));
    FunctionSchema schema = f.getSchema();
    std::vector<Argument> arguments = schema.arguments(), returns = schema.returns();
    for (auto* list : {&arguments, &returns})
      for (Argument& a : *list) a.type = map(a.type);
    copy->setSchema(FunctionSchema(OperatorName{schema.name(), ""}, std::move(arguments), std::move(returns)));
    return copy;
  }
  Function* clone_hook(const Function& f, const ClassType& to) {
    if (Function* known = to.findHook(f.name())) return known;
    const auto copy = clone_function(f, to);
    unit_->register_function(copy);
    return copy.get();
  }
  std::shared_ptr<Graph> clone_graph(const Graph& from) {
    std::shared_ptr<Graph> g = from.copy();
    const auto retype = [this](Value* v) { v->setType(map(v->type())); };
    for (Value* v : g->inputs()) retype(v);
    g->block()->visit([&](Node* n) {
      for (Value* v : n->outputs()) retype(v);
      for (Block* b : n->blocks())
        for (Value* v : b->inputs()) retype(v);
    });
    return g;
  }

  const std::shared_ptr<CompilationUnit> unit_ = std::make_shared<CompilationUnit>();
  std::unordered_map<const ClassType*, ClassTypePtr> done_;
  std::unordered_set<std::string> names_;
};

}  // namespace

namespace {
// A copy of a module and its submodules, each once, with the same attributes.
class SharingCopier {
 public:
  IValue copy(const IValue& module) {
    const ivalue::Object& from = module.toObjectRef();
    if (const auto found = done_.find(&from); found != done_.end()) return found->second;
    auto to = new_object(classes_.map(from.type), from.slots.size());
    done_.emplace(&from, IValue(to));
    for (std::size_t i = 0; i < from.slots.size(); ++i) to->set_slot(i, from.slots[i].isModule() ? copy(from.slots[i]) : from.slots[i]);
    return to;
  }

 private:
  ClassCloner classes_;
  std::unordered_map<const ivalue::Object*, IValue> done_;
};
}  // namespace

Module Module::clone(bool inplace) const {
  if (inplace) return Module(SharingCopier().copy(IValue(_ivalue())).toObject());
  ClassCloner classes;
  return Module(DeepCopier([&](const TypePtr& t) { return classes.map(t); }).copy(IValue(_ivalue())).toObject());
}

std::vector<Function*> CompilationUnit::define(const std::optional<QualifiedName>& prefix, const std::string& source,
                                               const ResolverPtr& resolver, const Self* self) {
  const ResolverPtr names = resolver ? resolver : native_resolver(*this);
  std::vector<Definition> functions;
  const auto file = parse_source(std::make_shared<Source>(source, "<string>"));
  for (const SourceFile::Item& item : file->items) {
    CRESSET_CHECK(item.function, "define: ", self ? "methods ('def name(self, ...):')" : "functions",
                  " were required; the text has something else.");
    Definition& function = functions.emplace_back();
    function.tree = item.function;
    function.resolver = names;
  }
  std::vector<Function*> made;
  for (const auto& f : define_functions(*this, prefix ? prefix->qualifiedName() : "", functions, self ? self->getClassType() : nullptr))
    made.push_back(f.get());
  return made;
}

void Module::define(const std::string& source, const ResolverPtr& resolver) const {
  const auto unit = type()->unit();
  CRESSET_CHECK(unit, "define: a module of a known class was required; '", type()->name, "' is only a name.");
  const SimpleSelf self(type());
  unit->define(QualifiedName(std::string(type()->name)), source, resolver, &self);
}

IValue Module::create_class(const QualifiedName& name, Stack arguments) const {
  const auto unit = _ivalue()->compilation_unit();
  const auto cls = unit ? unit->get_class(name.qualifiedName()) : nullptr;
  CRESSET_CHECK(cls, "Could not find class '", name.qualifiedName(), "' in the module's compilation unit. It must be defined first.");
  auto object = new_object(cls);
  if (cls->findMethod("__init__")) call_method(object, "__init__", std::move(arguments));
  return IValue(std::move(object));
}

intrusive_ptr<ivalue::Future> Method::run_async(Stack arguments, const Kwargs& kwargs, TaskLauncher launcher) const {
  return run_as_future([&] { return (*this)(std::move(arguments), kwargs); }, launcher);
}

}  // namespace cresset::jit

namespace cresset {

jit::Module IValue::toModule() const {
  CRESSET_CHECK(isModule(), "toModule: a module was required; a value of type '", type()->str(), "' was given.");
  return jit::Module(toObject());
}

}  // namespace cresset
