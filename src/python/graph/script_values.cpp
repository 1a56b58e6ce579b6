// Python objects while a script is compiled.
#include "python/graph/script_values.h"

#include <unordered_map>

#include <cresset/dispatch/custom_class.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/operator.h>

#include "python/convert.h"
#include "python/graph/script_convert.h"
#include "python/graph/script_python_call.h"
#include "python/graph/script_things.h"

namespace cresset::python {

using jit::CallArgument;
using jit::GraphFunction;
using jit::script_error;
using jit::SourceRange;
using jit::SugaredValue;
using jit::SugaredValuePtr;
using Arguments = std::vector<CallArgument>;

namespace {

// Calls a method of a Python object; its exception goes through the compiler as a C++ one.
template <class... A>
Ref ask(PyObject* object, const char* method, A... arguments) {
  const Ref name = checked(PyUnicode_InternFromString(method));
  Ref result = Ref::steal(PyObject_CallMethodObjArgs(object, name.get(), arguments..., nullptr));
  if (!result) throw_python_error();
  return result;
}
Ref text_object(const std::string& s) { return checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()))); }
Ref names_module() { return checked(PyImport_ImportModule("cresset.jit._names")); }

class PythonResolver final : public jit::Resolver {
 public:
  explicit PythonResolver(PyObject* resolver) : resolver_(std::make_shared<Held>(resolver)) {}
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& m, const SourceRange& range) override {
    const GilAcquire gil;
    HeldPtr& thing = things_[name];
    if (!thing) thing = std::make_shared<Held>(ask(resolver_->get(), "value", text_object(name).get()).get());
    return to_sugared(HeldPtr(thing)->get(), {range, m});
  }
  TypePtr resolveType(const std::string& name, const SourceRange& range) override {
    const GilAcquire gil;
    const Ref found = ask(resolver_->get(), "type", text_object(name).get());
    if (found.get() == Py_None) return nullptr;
    if (PyUnicode_Check(found.get())) script_error(range, to_text(found.get()));
    return to_type(found.get());
  }

 private:
  HeldPtr resolver_;
  std::unordered_map<std::string, HeldPtr> things_;  // what Python said of a name, which it is asked of once
};

/// Asks one resolver, then another.
class ChainedResolver final : public jit::Resolver {
 public:
  ChainedResolver(jit::ResolverPtr first, jit::ResolverPtr then) : first_(std::move(first)), then_(std::move(then)) {}
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& m, const SourceRange& range) override {
    SugaredValuePtr found = first_->resolveValue(name, m, range);
    return found ? found : then_->resolveValue(name, m, range);
  }
  TypePtr resolveType(const std::string& name, const SourceRange& range) override {
    TypePtr found = first_->resolveType(name, range);
    return found ? found : then_->resolveType(name, range);
  }

 private:
  jit::ResolverPtr first_, then_;
};

// ---- things

/// An object that scripts cannot use: the reason is said where something is wanted of it.
class UnusableValue : public SugaredValue {
 public:
  explicit UnusableValue(std::string why) : why_(std::move(why)) {}
  std::string kind() const override { return "python value"; }
  Value* asValue(const SourceRange& range, GraphFunction&) override { script_error(range, why_); }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction&, const std::string&) override { script_error(range, why_); }
  bool hasAttr(const SourceRange& range, GraphFunction&, const std::string&) override { script_error(range, why_); }
  SugaredValuePtr call(const SourceRange& range, GraphFunction&, const Arguments&, const Arguments&, std::size_t) override {
    script_error(range, why_);
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction&, const SugaredValuePtr&, const TypePtr&) override {
    script_error(range, why_);
  }
  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction&, std::optional<std::size_t>) override {
    script_error(range, why_);
  }
  SugaredValuePtr iter(const SourceRange& range, GraphFunction&) override { script_error(range, why_); }

 private:
  std::string why_;
};

/// A function of PyTorch that gives tensors of a kind which does not exist here: scripts may have a call of it, which raises when it is
/// reached.
class RefusalValue final : public SugaredValue {
 public:
  explicit RefusalValue(std::string message) : message_(std::move(message)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments&, const Arguments&, std::size_t) override {
    Graph& g = *m.graph();
    Value* message = jit::constant_value(IValue(message_))->asValue(range, m);
    Value* name = jit::constant_value(IValue("builtins.NotImplementedError"))->asValue(range, m);
    g.insertNode(g.create(jit::prim::RaiseException, {message, name}, 0))->setSourceRange(range);
    return jit::simple_value(g.insertNode(g.createUninitialized(basic_type(TypeKind::Tensor)))->output());
  }

 private:
  std::string message_;
};

/// A class that scripts cannot make objects of (nn.Module): only its static members, and what isinstance asks of members of modules.
class StaticMembers final : public UnusableValue {
 public:
  StaticMembers(PyObject* cls, std::string why) : UnusableValue(std::move(why)), cls_(std::make_shared<Held>(cls)) {}
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    const GilAcquire gil;
    const Ref thing = ask(names_module().get(), "static_thing", cls_->get(), text_object(field).get());
    return thing.get() == Py_None ? UnusableValue::attr(range, m, field) : to_sugared(thing.get(), {range, m});
  }
  std::optional<std::vector<TypePtr>> asTypes() const override {
    const GilAcquire gil;
    const Ref types = ask(names_module().get(), "module_types", cls_->get());
    if (types.get() == Py_None) return std::nullopt;
    std::vector<TypePtr> out;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types.get()); ++i) out.push_back(to_type(PyList_GET_ITEM(types.get(), i)));
    return out;
  }

 private:
  HeldPtr cls_;
};

/// All overloads of an operator: called, the one that fits is taken; attributes are overloads.
class OverloadsValue final : public SugaredValue {
 public:
  OverloadsValue(PyObject* packet, Symbol kind) : packet_(std::make_shared<Held>(packet)), all_(jit::builtin_function(kind)) {}
  std::string kind() const override { return all_->kind(); }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs,
                       std::size_t results) override {
    return all_->call(range, m, args, kwargs, results);
  }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    const GilAcquire gil;
    const Ref thing = ask(names_module().get(), "attribute_thing", packet_->get(), text_object(field).get());
    if (thing.get() == Py_None) script_error(range, "the operator has no overload '" + field + "'");
    return to_sugared(thing.get(), {range, m});
  }

 private:
  HeldPtr packet_;
  SugaredValuePtr all_;
};

/// Functions or methods that were declared for several types (jit._overload): the first is called that takes the arguments as they are,
/// else the first that takes them with conversions. Each is asked for when the ones before it do not fit, so that only what is used is
/// compiled.
class OverloadedValue final : public SugaredValue {
 public:
  struct Candidate {
    SugaredValuePtr callee;
    const FunctionSchema& schema;
    std::size_t bound;  // parameters that the callee fills in itself
  };
  using Get = std::function<Candidate(std::size_t)>;
  OverloadedValue(std::size_t count, Get candidate) : count_(count), candidate_(std::move(candidate)) {}
  std::string kind() const override { return "overloaded function"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs,
                       std::size_t results) override {
    const Arguments positional = values(args, m), named = values(kwargs, m);
    for (std::size_t i = 0; i < count_; ++i) {
      const Candidate c = candidate_(i);
      if (takes(c, positional, named)) return c.callee->call(range, m, positional, named, results);
    }
    std::string why;
    for (std::size_t i = 0; i < count_; ++i) {
      try {
        return candidate_(i).callee->call(range, m, positional, named, results);
      } catch (const jit::ScriptError& e) {
        const std::string text = e.what();
        why += "\n  " + text.substr(0, text.find("\n  File"));
      }
    }
    script_error(range, "Could not find any matching overload:" + why);
  }

 private:
  static Arguments values(const Arguments& all, GraphFunction& m) {
    Arguments out;
    for (const CallArgument& a : all) out.push_back({a.range, jit::simple_value(a.value->asValue(a.range, m)), a.name});
    return out;
  }
  static bool takes(const Candidate& c, const Arguments& positional, const Arguments& named) {
    const auto& formals = c.schema.arguments();
    const auto fits = [&](const CallArgument& a, std::size_t at) {
      return at < formals.size() && a.value->plainValue()->type()->is_subtype_of(*formals[at].type);
    };
    for (std::size_t i = 0; i < positional.size(); ++i)
      if (!fits(positional[i], i + c.bound)) return false;
    return std::all_of(named.begin(), named.end(),
                       [&](const CallArgument& a) { return fits(a, c.schema.argument_index(a.name).value_or(formals.size())); });
  }
  std::size_t count_;
  Get candidate_;
};

/// An operator, and functions for the arguments that it does not take.
class OperatorElseFunctions final : public SugaredValue {
 public:
  OperatorElseFunctions(Symbol kind, SugaredValuePtr functions)
      : operator_(jit::builtin_function(kind)), functions_(std::move(functions)) {}
  std::string kind() const override { return "builtin"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs,
                       std::size_t results) override {
    const auto values = [&](const Arguments& all) {  // evaluated once for both
      Arguments out;
      for (const CallArgument& a : all) out.push_back({a.range, jit::simple_value(a.value->asValue(a.range, m)), a.name});
      return out;
    };
    const Arguments positional = values(args), named = values(kwargs);
    try {
      return operator_->call(range, m, positional, named, results);
    } catch (const jit::ScriptError&) {
      return functions_->call(range, m, positional, named, results);
    }
  }

 private:
  SugaredValuePtr operator_, functions_;
};

/// Two functions, of which a bool argument chooses while the script is compiled: their results have different types.
class ChoiceValue final : public SugaredValue {
 public:
  ChoiceValue(std::string name, std::size_t index, SugaredValuePtr if_true, SugaredValuePtr if_false)
      : name_(std::move(name)), index_(index), if_true_(std::move(if_true)), if_false_(std::move(if_false)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs,
                       std::size_t results) override {
    const auto named = std::find_if(kwargs.begin(), kwargs.end(), [&](const CallArgument& a) { return a.name == name_; });
    const CallArgument* given = index_ < args.size() ? &args[index_] : named != kwargs.end() ? &*named : nullptr;
    if (!given) return if_false_->call(range, m, args, kwargs, results);
    const auto chosen = jit::constant_as<bool>(given->value->asValue(given->range, m));
    if (!chosen)
      script_error(given->range, "'" + name_ + "' decides the type of the result: it must be known while the script is compiled");
    return (*chosen ? if_true_ : if_false_)->call(range, m, args, kwargs, results);
  }

 private:
  std::string name_;
  std::size_t index_;
  SugaredValuePtr if_true_, if_false_;
};

/// A function of a module that gives some of its attributes, as a tuple when they are several.
class AttributesValue final : public SugaredValue {
 public:
  explicit AttributesValue(std::vector<std::string> names) : names_(std::move(names)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments&, std::size_t) override {
    if (args.size() != 1) script_error(range, "one module was expected");
    std::vector<SugaredValuePtr> parts;
    for (const std::string& name : names_) parts.push_back(args[0].value->attr(range, m, name));
    return parts.size() == 1 ? parts[0] : jit::tuple_value(std::move(parts));
  }

 private:
  std::vector<std::string> names_;
};

/// A Python module: attributes are looked up when a script names them.
class NamespaceValue final : public SugaredValue {
 public:
  explicit NamespaceValue(PyObject* module) : module_(std::make_shared<Held>(module)) {}
  std::string kind() const override { return "module"; }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    const GilAcquire gil;
    SugaredValuePtr found = find(range, m, field);
    if (!found) script_error(range, "object has no attribute " + field);
    return found;
  }
  bool hasAttr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    const GilAcquire gil;
    return find(range, m, field) != nullptr;
  }

 private:
  SugaredValuePtr find(const SourceRange& range, GraphFunction& m, const std::string& field) {
    return to_sugared(ask(names_module().get(), "attribute_thing", module_->get(), text_object(field).get()).get(), {range, m});
  }
  HeldPtr module_;
};

/// A class, enum or named tuple with what Python knows of it: static methods and defaults of fields.
class PythonClassValue final : public SugaredValue {
 public:
  PythonClassValue(TypePtr type, PyObject* cls, std::vector<std::pair<std::string, IValue>> defaults)
      : type_(std::move(type)), cls_(std::make_shared<Held>(cls)), defaults_(std::move(defaults)), plain_(jit::class_value(type_)) {}
  std::string kind() const override { return plain_->kind(); }
  TypePtr asType() const override { return type_; }
  Value* asValue(const SourceRange& range, GraphFunction& m) override { return plain_->asValue(range, m); }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    if (type_->kind != TypeKind::Enum && cls_->get() != Py_None) {
      const GilAcquire gil;
      const Ref thing = ask(names_module().get(), "static_thing", cls_->get(), text_object(field).get());
      if (thing.get() != Py_None) return to_sugared(thing.get(), {range, m});
    }
    return plain_->attr(range, m, field);
  }
  bool hasAttr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    if (plain_->hasAttr(range, m, field)) return true;
    if (type_->kind == TypeKind::Enum || cls_->get() == Py_None) return false;
    const GilAcquire gil;
    return ask(names_module().get(), "static_thing", cls_->get(), text_object(field).get()).get() != Py_None;
  }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs,
                       std::size_t results) override {
    const auto* named = dynamic_cast<const NamedTupleType*>(type_.get());
    if (!named || defaults_.empty()) return plain_->call(range, m, args, kwargs, results);
    Arguments all = kwargs;
    for (std::size_t i = args.size(); i < named->fields.size(); ++i) {
      const std::string& field = named->fields[i];
      if (std::any_of(kwargs.begin(), kwargs.end(), [&](const CallArgument& a) { return a.name == field; })) continue;
      for (const auto& [name, value] : defaults_)
        if (name == field) all.push_back({range, jit::constant_value(value), field});
    }
    return plain_->call(range, m, args, all, results);
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint) override {
    return plain_->getitem(range, m, index, hint);
  }
  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& m, std::optional<std::size_t> size) override {
    return plain_->asTuple(range, m, size);
  }
  SugaredValuePtr iter(const SourceRange& range, GraphFunction& m) override { return plain_->iter(range, m); }
  std::optional<std::size_t> staticLen() const override { return plain_->staticLen(); }
  Value* len(const SourceRange& range, GraphFunction& m) override { return plain_->len(range, m); }

 private:
  TypePtr type_;
  HeldPtr cls_;
  std::vector<std::pair<std::string, IValue>> defaults_;
  SugaredValuePtr plain_;
};

std::vector<std::pair<std::string, IValue>> field_defaults(PyObject* dict, const Type& type) {
  std::vector<std::pair<std::string, IValue>> out;
  const auto* named = dynamic_cast<const NamedTupleType*>(&type);
  if (!named) return out;
  for (std::size_t i = 0; i < named->fields.size(); ++i)
    if (PyObject* value = PyDict_GetItemString(dict, named->fields[i].c_str()))
      out.emplace_back(named->fields[i], to_ivalue(value, *named->contained[i], named->name));
  return out;
}

// ---- modules

/// keys(), values(), items() and `in` of containers of modules; children() and the like of all.
class ContainerMethod final : public SugaredValue {
 public:
  using Run = std::function<SugaredValuePtr(const SourceRange&, GraphFunction&, const Arguments&)>;
  explicit ContainerMethod(Run run) : run_(std::move(run)) {}
  std::string kind() const override { return "method"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs, std::size_t) override {
    Arguments all = args;
    all.insert(all.end(), kwargs.begin(), kwargs.end());
    return run_(range, m, all);
  }

 private:
  Run run_;
};

}  // namespace

class ModuleValue final : public SugaredValue {
 public:
  ModuleValue(Value* self, HeldPtr concrete) : self_(self), concrete_(std::move(concrete)) {
    const GilAcquire gil;
    const Ref keys = ask(concrete_->get(), "container_keys");
    if (keys.get() != Py_None) keys_ = Convert<std::vector<std::string>>::from(keys.get());
    if (keys_) is_dict_ = PyObject_IsTrue(ask(concrete_->get(), "is_dict").get()) == 1;
  }
  std::string kind() const override { return "module"; }
  Value* asValue(const SourceRange&, GraphFunction&) override { return self_; }

  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    if (SugaredValuePtr method = container_method(field)) return method;
    const GilAcquire gil;
    return to_sugared(ask(concrete_->get(), "attribute", text_object(field).get()).get(), {range, m, self_, this});
  }
  bool hasAttr(const SourceRange&, GraphFunction&, const std::string& field) override {
    if (container_method(field)) return true;
    const GilAcquire gil;
    return PyObject_IsTrue(ask(concrete_->get(), "has_attribute", text_object(field).get()).get()) == 1;
  }
  void setAttr(const SourceRange& range, GraphFunction& m, const std::string& field, Value* v) override {
    {
      const GilAcquire gil;
      const Ref setter = ask(concrete_->get(), "setter", text_object(field).get());
      if (setter.get() != Py_None) {
        jit::method_value(self_, to_text(setter.get()))->call(range, m, {{range, jit::simple_value(v), ""}}, {}, 0);
        return;
      }
    }
    const auto cls = self_->type()->expect<jit::ClassType>();
    if (!cls->hasAttribute(field))
      script_error(range, "Tried to set nonexistent attribute: " + field + ". Did you forget to initialize it in __init__()?");
    jit::simple_value(self_)->setAttr(range, m, field, v);
  }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs,
                       std::size_t results) override {
    Ref before, after;
    {
      const GilAcquire gil;
      before = ask(concrete_->get(), "hook_functions", Py_True);
      after = ask(concrete_->get(), "hook_functions", Py_False);
    }
    const SugaredValuePtr forward = attr(range, m, "forward");
    if (PyList_GET_SIZE(before.get()) + PyList_GET_SIZE(after.get()) == 0) return forward->call(range, m, args, kwargs, results);
    return call_with_hooks(range, m, args, kwargs, forward, before.get(), after.get());
  }

  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& m, std::optional<std::size_t> size) override {
    require_container(range);
    if (size && *size != keys_->size())
      script_error(range, "Provided " + std::to_string(*size) + " names for a container of " + std::to_string(keys_->size()) + " modules");
    return is_dict_ ? key_values() : elements(range, m);
  }
  SugaredValuePtr iter(const SourceRange& range, GraphFunction& m) override {
    require_container(range);
    return jit::tuple_value(asTuple(range, m, std::nullopt));
  }
  std::optional<std::size_t> staticLen() const override { return keys_ ? std::optional(keys_->size()) : std::nullopt; }
  Value* len(const SourceRange& range, GraphFunction& m) override {
    require_container(range);
    if (overrides("__len__")) return attr(range, m, "__len__")->call(range, m, {}, {}, 1)->asValue(range, m);
    return m.graph()->insertConstant(static_cast<int64_t>(keys_->size()), range);
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint) override {
    if (!keys_) return attr(range, m, "__getitem__")->call(range, m, {{range, index, ""}}, {}, 1);
    std::optional<IValue> at = index->asConstant();
    if (!at) at = jit::toIValue(index->asValue(range, m));
    if (at && is_dict_ && at->isString()) {
      if (std::find(keys_->begin(), keys_->end(), at->toStringRef()) == keys_->end())
        script_error(range, "Key Error, " + at->toStringRef());
      return attr(range, m, at->toStringRef());
    }
    if (at && !is_dict_ && at->isInt()) {
      const auto n = static_cast<int64_t>(keys_->size());
      const int64_t i = at->toInt() < 0 ? at->toInt() + n : at->toInt();
      if (i < 0 || i >= n) script_error(range, "Index " + std::to_string(at->toInt()) + " out of range of length " + std::to_string(n));
      return attr(range, m, (*keys_)[static_cast<std::size_t>(i)]);
    }
    if (hint && hint->kind == TypeKind::Interface) return dynamic_item(range, m, index, hint);
    if (is_dict_)
      script_error(
          range,
          "Unable to extract string literal index. ModuleDict indexing is only supported with string literals. For example, 'i = "
          "\"a\"; self.layers[i](x)' will fail because i is not a literal. Enumeration of ModuleDict is supported, e.g. 'for k, v in "
          "self.items(): out = v(inp)'");
    script_error(
        range,
        "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential indexing is only supported with "
        "integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is not a literal. Enumeration is supported, "
        "e.g. 'for index, v in enumerate(self): out = v(inp)'");
  }

  // What things of modules are.
  Value* get(const SourceRange& range, GraphFunction& m, const std::string& field) {
    Node* n = m.graph()->insertNode(m.graph()->createGetAttr(self_, field));
    n->setSourceRange(range);
    if (Value::isValidName(field)) n->output()->setDebugName(field);
    return n->output();
  }
  SugaredValuePtr list_of_attributes(const SourceRange& range, GraphFunction& m, const std::vector<std::string>& names) {
    std::vector<Value*> values;
    for (const std::string& name : names) values.push_back(get(range, m, name));
    Node* n = m.graph()->insertNode(m.graph()->createList(basic_type(TypeKind::Tensor), values));
    return jit::simple_value(n->setSourceRange(range)->output());
  }
  // children(), named_buffers() and the like: a tuple, since the members are known.
  SugaredValuePtr members(std::string name, bool with_names, std::vector<std::string> paths) {
    const auto self = std::static_pointer_cast<ModuleValue>(shared_from_this());
    return std::make_shared<ContainerMethod>([=](const SourceRange& range, GraphFunction& m, const Arguments& args) {
      if (!args.empty()) script_error(range, name + " method does not accept any arguments");
      std::vector<SugaredValuePtr> out;
      for (const std::string& path : paths) {
        SugaredValuePtr member = self;
        for (std::size_t at = 0; at < path.size();) {
          const std::size_t dot = std::min(path.find('.', at), path.size());
          member = member->attr(range, m, path.substr(at, dot - at));
          at = dot + 1;
        }
        out.push_back(with_names ? jit::tuple_value({jit::constant_value(path), member}) : member);
      }
      return jit::tuple_value(std::move(out));
    });
  }
  SugaredValuePtr overloaded_method(std::string name, std::size_t count) const {
    return std::make_shared<OverloadedValue>(count, [self = self_, concrete = concrete_, name = std::move(name)](std::size_t i) {
      const GilAcquire gil;
      const Ref number = checked(PyLong_FromSize_t(i));
      const std::string method = to_text(ask(concrete->get(), "overloaded_method", text_object(name).get(), number.get()).get());
      return OverloadedValue::Candidate{jit::method_value(self, method),
                                        self->type()->expect<jit::ClassType>()->getMethod(method).getSchema(), 1};
    });
  }

 private:
  void require_container(const SourceRange& range) const {
    if (!keys_) script_error(range, "Only ModuleList, Sequential, ModuleDict, ParameterList, and ParameterDict modules can be iterated");
  }
  std::vector<SugaredValuePtr> key_values() const {
    std::vector<SugaredValuePtr> out;
    for (const std::string& k : *keys_) out.push_back(jit::constant_value(k));
    return out;
  }
  std::vector<SugaredValuePtr> elements(const SourceRange& range, GraphFunction& m) {
    std::vector<SugaredValuePtr> out;
    for (const std::string& k : *keys_) out.push_back(attr(range, m, k));
    return out;
  }
  bool overrides(const std::string& method) const {
    const GilAcquire gil;
    return PyObject_IsTrue(ask(concrete_->get(), "overrides", text_object(method).get()).get()) == 1;
  }
  SugaredValuePtr container_method(const std::string& field) {
    if (!keys_ || overrides(field)) return nullptr;
    const auto self = std::static_pointer_cast<ModuleValue>(shared_from_this());
    if (field == "__len__")
      return std::make_shared<ContainerMethod>([self](const SourceRange&, GraphFunction&, const Arguments&) {
        return jit::constant_value(static_cast<int64_t>(self->keys_->size()));
      });
    if (!is_dict_) return nullptr;
    if (field == "keys")
      return std::make_shared<ContainerMethod>(
          [self](const SourceRange&, GraphFunction&, const Arguments&) { return jit::tuple_value(self->key_values()); });
    if (field == "values")
      return std::make_shared<ContainerMethod>(
          [self](const SourceRange& range, GraphFunction& m, const Arguments&) { return jit::tuple_value(self->elements(range, m)); });
    if (field == "items")
      return std::make_shared<ContainerMethod>([self](const SourceRange& range, GraphFunction& m, const Arguments&) {
        std::vector<SugaredValuePtr> pairs = self->key_values();
        const auto values = self->elements(range, m);
        for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = jit::tuple_value({pairs[i], values[i]});
        return jit::tuple_value(std::move(pairs));
      });
    if (field == "__contains__")
      return std::make_shared<ContainerMethod>([self](const SourceRange& range, GraphFunction& m, const Arguments& args) {
        std::optional<IValue> key = args.at(0).value->asConstant();
        if (!key) key = jit::toIValue(args[0].value->asValue(range, m));
        if (!key || !key->isString()) script_error(range, "'in' with ModuleDict is only supported with string literals");
        return jit::constant_value(std::find(self->keys_->begin(), self->keys_->end(), key->toStringRef()) != self->keys_->end());
      });
    return nullptr;
  }
  // An index that is only known when the script runs: every element has the interface's methods.
  SugaredValuePtr dynamic_item(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint) {
    const auto cls = self_->type()->expect<jit::ClassType>();
    for (const std::string& k : *keys_) {
      std::string why;
      if (!cls->getAttribute(k)->is_subtype_of(*hint, &why))
        script_error(range, "Attribute " + k + " is not of annotated type " + hint->annotation_str() + ": " + why);
    }
    Graph& g = *m.graph();
    Node* n = g.insertNode(g.create(Symbol::fromQualString("prim::ModuleContainerIndex"), {self_, index->asValue(range, m)}));
    n->setSourceRange(range);
    n->output()->setType(hint);
    return jit::simple_value(n->output());
  }
  // before(self, inputs) may give new inputs, after(self, inputs, result) a new result.
  SugaredValuePtr call_with_hooks(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs,
                                  const SugaredValuePtr& forward, PyObject* before, PyObject* after) {
    if (!kwargs.empty()) script_error(range, "modules with hooks take no keyword arguments in scripts");
    Graph& g = *m.graph();
    std::vector<Value*> values;
    for (const CallArgument& a : args) values.push_back(a.value->asValue(a.range, m));
    Value* inputs = g.insertNode(g.createTuple(values))->output();
    const SugaredValuePtr self = jit::simple_value(self_);
    const auto run = [&](PyObject* function, std::vector<Value*> arguments) {
      Arguments all{{range, self, ""}};
      for (Value* v : arguments) all.push_back({range, jit::simple_value(v), ""});
      const GilAcquire gil;
      return jit::function_value(reinterpret_cast<PyFunction*>(function)->function)->call(range, m, all, {}, 1)->asValue(range, m);
    };
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(before); ++i) {
      Value* changed = run(PyList_GET_ITEM(before, i), {inputs});
      if (changed->type()->kind == TypeKind::None) continue;
      inputs = changed->type()->kind == TypeKind::Tuple ? changed : g.insertNode(g.createTuple({changed}))->output();
    }
    Arguments unpacked;
    for (Value* v : g.insertNode(g.createTupleUnpack(inputs))->outputs()) unpacked.push_back({range, jit::simple_value(v), ""});
    Value* result = forward->call(range, m, unpacked, {}, 1)->asValue(range, m);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(after); ++i) {
      Value* changed = run(PyList_GET_ITEM(after, i), {inputs, result});
      if (changed->type()->kind != TypeKind::None) result = changed;
    }
    return jit::simple_value(result);
  }

  Value* self_;
  HeldPtr concrete_;
  std::optional<std::vector<std::string>> keys_;  // of containers
  bool is_dict_ = false;
};

namespace {

SugaredValuePtr word_of_language(const ThingUse& use, const std::string& name) {
  if (auto form = jit::special_form(name)) return form;
  static auto& native = *new jit::ResolverPtr(jit::native_resolver(*python_unit()));
  return native->resolveValue(name, use.m, use.range);
}

ModuleValue& module_in(const ThingUse& use) {
  CRESSET_CHECK(use.module, "a thing that is an attribute of a module was used elsewhere.");
  return *use.module;
}

using Names = std::vector<std::string>;
using Functions = std::vector<intrusive_ptr<jit::Function>>;

// Of functions and operators.
void init_callables() {
  def_thing(
      "native", [](const ThingUse& u, std::string name) { return word_of_language(u, name); },
      "A word of the language: len, range, int, annotate, math.");
  def_thing(
      "operator", [](const ThingUse&, std::string kind) { return jit::builtin_function(Symbol::fromQualString(kind)); },
      "An operator by kind, \"aten::relu\".");
  def_thing(
      "overloads",
      [](const ThingUse&, PyObject* packet, std::string kind) -> SugaredValuePtr {
        return std::make_shared<OverloadsValue>(packet, Symbol::fromQualString(kind));
      },
      "The same with its overloads as attributes.");
  def_thing("function", [](const ThingUse&, intrusive_ptr<jit::Function> f) { return jit::function_value(f); }, "A compiled function.");
  def_thing(
      "functions",
      [](const ThingUse&, Functions all) -> SugaredValuePtr {
        const std::size_t count = all.size();
        return std::make_shared<OverloadedValue>(count, [all = std::move(all)](std::size_t i) {
          return OverloadedValue::Candidate{jit::function_value(all[i]), all[i]->getSchema(), 0};
        });
      },
      "Compiled functions of one name for several types: the first that fits is called.");
  def_thing(
      "operator_else",
      [](const ThingUse& u, std::string kind, PyThing* functions) -> SugaredValuePtr {
        return std::make_shared<OperatorElseFunctions>(Symbol::fromQualString(kind), functions->kind->value(functions->parts, u));
      },
      "An operator by kind, and the functions that are called with what it does not take.");
  def_thing(
      "attributes", [](const ThingUse&, Names names) -> SugaredValuePtr { return std::make_shared<AttributesValue>(std::move(names)); },
      "A function of a module that gives these of its attributes.");
  def_thing(
      "choice",
      [](const ThingUse& u, std::string parameter, int64_t index, PyThing* if_true, PyThing* if_false) -> SugaredValuePtr {
        return std::make_shared<ChoiceValue>(std::move(parameter), static_cast<std::size_t>(index), if_true->kind->value(if_true->parts, u),
                                             if_false->kind->value(if_false->parts, u));
      },
      "Two functions, of which a bool argument chooses while the script is compiled.");
  def_thing(
      "python",
      [](const ThingUse& u, std::string name, PyObject* function, Names names, std::vector<TypePtr> types, PyObject* defaults,
         TypePtr returns, bool bound) -> SugaredValuePtr {
        return python_call_value(name, function, names, types, defaults, std::move(returns), bound ? u.self : nullptr);
      },
      "A function that stays in Python; `bound`: its first argument is the object whose attribute it is.");
}

// Of types, constants and modules of Python.
void init_values() {
  def_thing(
      "script_class",
      [](const ThingUse&, TypePtr type, PyObject* cls, PyObject* defaults) -> SugaredValuePtr {
        auto values = field_defaults(defaults, *type);
        return std::make_shared<PythonClassValue>(std::move(type), cls, std::move(values));
      },
      "A class, enum or named tuple with the defaults of its fields; static methods are looked up on the Python class.");
  def_thing(
      "statics",
      [](const ThingUse&, PyObject* cls, std::string why) -> SugaredValuePtr {
        return std::make_shared<StaticMembers>(cls, std::move(why));
      },
      "A class without objects in scripts, for `why`: only its static methods.");
  def_thing("type", [](const ThingUse&, TypePtr type) { return jit::type_value(std::move(type)); }, "A type that is no class.");
  def_thing(
      "legacy", [](const ThingUse&, ScalarType dtype) { return jit::legacy_constructor(dtype); },
      "The class of tensors of a dtype: FloatTensor.");
  def_thing(
      "constant", [](const ThingUse&, PyObject* value, TypePtr type) { return jit::constant_value(to_ivalue(value, *type, "constant")); },
      "A value known while compiling.");
  def_thing(
      "tuple",
      [](const ThingUse& u, std::vector<PyThing*> things) {
        std::vector<SugaredValuePtr> parts;
        for (const PyThing* t : things) parts.push_back(t->kind->value(t->parts, u));
        return jit::tuple_value(std::move(parts));
      },
      "A tuple of things.");
  def_thing(
      "namespace", [](const ThingUse&, PyObject* module) -> SugaredValuePtr { return std::make_shared<NamespaceValue>(module); },
      "A module of Python: its attributes are looked up when they are needed.");
  def_thing(
      "refusal", [](const ThingUse&, std::string message) -> SugaredValuePtr { return std::make_shared<RefusalValue>(message); },
      "A function whose calls raise when they are reached.");
  def_thing(
      "error", [](const ThingUse&, std::string message) -> SugaredValuePtr { return std::make_shared<UnusableValue>(message); },
      "Nothing that a script can use; why is said where it is used.");
}

void init_module_kinds() {
  def_thing(
      "submodule",
      [](const ThingUse& u, std::string name, PyObject* concrete) {
        return module_value(module_in(u).get(u.range, u.m, name), std::make_shared<Held>(concrete));
      },
      "A module's module, of the type that a ConcreteType describes.");
  def_thing(
      "value", [](const ThingUse& u, std::string name) { return jit::simple_value(module_in(u).get(u.range, u.m, name)); },
      "A module's attribute.");
  def_thing("method", [](const ThingUse& u, std::string name) { return jit::method_value(u.self, name); }, "A compiled method.");
  def_thing(
      "methods",
      [](const ThingUse& u, std::string name, int64_t count) {
        return module_in(u).overloaded_method(std::move(name), static_cast<std::size_t>(count));
      },
      "Methods of one name for several types, compiled when they are called.");
  def_thing(
      "getter", [](const ThingUse& u, std::string name) { return jit::method_value(u.self, name)->call(u.range, u.m, {}, {}, 1); },
      "What a method gives, for properties.");
  def_thing(
      "members",
      [](const ThingUse& u, std::string name, bool with_names, Names paths) {
        return module_in(u).members(std::move(name), with_names, std::move(paths));
      },
      "children(), named_buffers() and the like: the members at these paths.");
  def_thing(
      "list", [](const ThingUse& u, Names names) { return module_in(u).list_of_attributes(u.range, u.m, names); },
      "A list of the values of these attributes of a module.");
  def_thing(
      "missing", [](const ThingUse& u, std::string message) -> SugaredValuePtr { script_error(u.range, message); },
      "No attribute: an error where it is named.");
}

}  // namespace

void install_python_calls() {
  install_python_nodes();
  jit::set_object_members([](Value* self, const std::string& field, const SourceRange& range, GraphFunction& m) -> SugaredValuePtr {
    const GilAcquire gil;
    const Ref thing = ask(names_module().get(), "object_thing", checked(wrap_type(self->type())).get(), text_object(field).get());
    return to_sugared(thing.get(), {range, m, self});
  });
}

jit::ResolverPtr python_resolver(PyObject* resolver) { return std::make_shared<PythonResolver>(resolver); }
jit::ResolverPtr python_resolver(PyObject* resolver, const jit::CompilationUnit& unit) {
  return std::make_shared<ChainedResolver>(python_resolver(resolver), jit::native_resolver(unit));
}
SugaredValuePtr module_value(Value* self, HeldPtr concrete) { return std::make_shared<ModuleValue>(self, std::move(concrete)); }

void init_script_kinds() {
  init_callables();
  init_values();
  init_module_kinds();
}

}  // namespace cresset::python
