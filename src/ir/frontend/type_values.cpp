// Types as things of the compiler: casts, constructors of types, classes, named tuples and enums.
#include "ir/frontend/annotation_words.h"
#include "ir/frontend/script_error.h"
#include "ir/frontend/tree.h"
#include "ir/frontend/values.h"
#include "ir/operators/custom_class_function.h"

namespace cresset::jit {
namespace {

struct TypeCast {
  TypeKind type;
  const char* op;
  const char* magic;
};
constexpr TypeCast kTypeCasts[] = {
    {TypeKind::Int, "aten::Int", "__int__"},    {TypeKind::Float, "aten::Float", "__float__"},
    {TypeKind::Bool, "aten::Bool", "__bool__"}, {TypeKind::Complex, "aten::Complex", "__complex__"},
    {TypeKind::String, "aten::str", "__str__"}, {TypeKind::Device, "aten::device", nullptr},
};

class TypeValue final : public SugaredValue {
 public:
  explicit TypeValue(TypePtr type) : type_(std::move(type)) {}
  std::string kind() const override { return "type '" + type_->annotation_str() + "'"; }
  TypePtr asType() const override { return type_; }

  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    if (type_->kind == TypeKind::Generator) return builtin_function(Symbol::aten("Generator"))->call(range, m, args, kwargs, results);
    for (const TypeCast& c : kTypeCasts) {
      if (c.type != type_->kind) continue;
      std::vector<CallValue> values = call_values(m, args, kwargs);
      if (values.size() == 1) {
        Value* v = values[0].value;
        if (*v->type() == *type_ && type_->kind != TypeKind::String) return simple_value(v);
        if (c.magic && has_method(*v->type(), c.magic)) return call_method_of(range, m, v, c.magic, {});
        if (type_->kind == TypeKind::Device)
          if (const auto text = constant_as<std::string>(v)) return constant_value(IValue(Device(*text)));
        // Containers are true when they have elements.
        const bool container =
            v->type()->kind == TypeKind::List || v->type()->kind == TypeKind::Dict || v->type()->kind == TypeKind::String;
        if (type_->kind == TypeKind::Bool && container)
          return operator_result(range, m, Symbol::aten("gt"), {simple_value(v)->len(range, m), int_constant(range, m, 0)});
      }
      return simple_value(emit_operator(range, *m.graph(), {Symbol::fromQualString(c.op)}, std::move(values)));
    }
    if (type_->kind == TypeKind::List && args.size() == 1 && kwargs.empty()) return simple_value(list_of_iterable(range, m, args[0].value));
    return SugaredValue::call(range, m, args, kwargs, results);
  }

 private:
  TypePtr type_;
};

// List, Dict, Optional, …: types when they are subscripted. list, dict and tuple are functions too.
class TypeConstructor final : public SugaredValue {
 public:
  explicit TypeConstructor(std::string name) : name_(std::move(name)) {}
  std::string kind() const override { return name_; }
  TypePtr asType() const override {
    if (name_ == "list" || name_ == "List") return basic_type(TypeKind::AnyList);
    if (name_ == "tuple" || name_ == "Tuple") return basic_type(TypeKind::AnyTuple);
    return nullptr;
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr&) override {
    std::vector<SugaredValuePtr> parts{index};
    const auto refuse_bare = [&](const SugaredValue& part) {  // List[Future]
      if (const auto* bare = dynamic_cast<const TypeConstructor*>(&part)) script_error(range, missing_contained_type(bare->name_));
    };
    if (!index->asType()) {
      refuse_bare(*index);
      parts = index->asTuple(range, m);
    }
    // The rules are those of annotations.
    auto base = std::make_shared<Expr>();
    base->kind = ExprKind::Name;
    base->text = name_;
    base->range = range;
    auto e = std::make_shared<Expr>();
    e->kind = ExprKind::Subscript;
    e->range = range;
    e->parts.push_back(base);
    Members members;
    for (const SugaredValuePtr& p : parts) {
      const TypePtr type = p->asType();
      if (!type) refuse_bare(*p);
      if (!type) script_error(range, name_ + "[...]: a type was expected; a " + p->kind() + " was given");
      auto member = std::make_shared<Expr>();
      member->kind = ExprKind::Name;
      member->text = "$" + std::to_string(members.types.size());
      member->range = range;
      members.types.push_back(type);
      e->parts.push_back(member);
    }
    return type_value(type_of_annotation(e, &members));
  }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    if (name_ == "list" && kwargs.empty() && args.size() <= 1) {
      if (!args.empty()) return simple_value(list_of_iterable(range, m, args[0].value));
      Graph& g = *m.graph();
      return simple_value(g.insertNode(g.createList(basic_type(TypeKind::Tensor), {}))->setSourceRange(range)->output());
    }
    if (name_ == "tuple" && kwargs.empty()) {
      if (args.size() > 1) script_error(range, "tuple expected exactly 1 arguments but found " + std::to_string(args.size()));
      if (args.empty()) return tuple_value({});
      return tuple_value(args[0].value->iter(range, m)->asTuple(range, m));
    }
    if (name_ == "dict" && args.size() <= 1) return make_dict(range, m, args, kwargs);
    return SugaredValue::call(range, m, args, kwargs, results);
  }

 private:
  struct Members final : Resolver {
    SugaredValuePtr resolveValue(const std::string&, GraphFunction&, const SourceRange&) override { return nullptr; }
    TypePtr resolveType(const std::string& name, const SourceRange&) override {
      return name.starts_with("$") ? types.at(static_cast<std::size_t>(std::stoul(name.substr(1)))) : nullptr;
    }
    std::vector<TypePtr> types;
  };

  static SugaredValuePtr make_dict(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                                   const std::vector<CallArgument>& kwargs) {
    Graph& g = *m.graph();
    Value* dict = nullptr;
    // dict([]): of no pairs nothing is known, as of {}.
    const Value* pairs = args.empty() ? nullptr : args[0].value->plainValue();
    const bool is_empty_list = pairs && pairs->node()->kind() == prim::ListConstruct && pairs->node()->inputs().empty();
    if (!args.empty() && !is_empty_list) {
      const Value* plain = args[0].value->plainValue();
      dict = plain && plain->type()->kind == TypeKind::Dict
                 ? operator_result(range, m, Symbol::aten("dict"), {args[0].value->asValue(range, m)})->asValue(range, m)
                 : dict_of_iterable(range, m, args[0].value);
    }
    std::vector<Value*> keys, values;
    for (const CallArgument& a : kwargs) {
      keys.push_back(g.insertConstant(IValue(a.name), a.range));
      values.push_back(a.value->asValue(a.range, m));
    }
    if (!dict) {
      const TypePtr value = values.empty() ? basic_type(TypeKind::Tensor) : values[0]->type();
      return simple_value(g.insertNode(g.createDict(basic_type(TypeKind::String), value, keys, values))->setSourceRange(range)->output());
    }
    for (std::size_t i = 0; i < keys.size(); ++i)
      emit_operator(range, g, {Symbol::aten("_set_item")}, {{dict, ""}, {keys[i], ""}, {values[i], ""}});
    return simple_value(dict);
  }

  std::string name_;
};

// FloatTensor and its kin: empty tensors of sizes, or tensors with the elements of a list.
class LegacyConstructor final : public SugaredValue {
 public:
  explicit LegacyConstructor(ScalarType dtype) : dtype_(dtype) {}
  std::string kind() const override { return "legacy tensor constructor"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    if (!kwargs.empty()) script_error(range, "Legacy tensor constructors take no argument '" + kwargs[0].name + "' by name");
    Graph& g = *m.graph();
    std::vector<Value*> values;
    for (const CallArgument& a : args) values.push_back(a.value->asValue(a.range, m));
    const CallValue dtype{g.insertConstant(IValue(dtype_), range), "dtype"};
    const bool sizes = std::all_of(values.begin(), values.end(), [](const Value* v) { return v->type()->kind == TypeKind::Int; });
    if (sizes) {
      if (values.empty()) values.push_back(int_constant(range, m, 0));
      Value* list = g.insertNode(g.createList(basic_type(TypeKind::Int), values))->setSourceRange(range)->output();
      return simple_value(emit_operator(range, g, {Symbol::aten("empty")}, {{list, ""}, dtype}));
    }
    if (values.size() != 1)
      script_error(range, "Legacy tensor constructor called with multiple positional arguments that were not all integers");
    if (values[0]->type()->kind == TypeKind::Tuple) values[0] = list_of_iterable(range, m, simple_value(values[0]));
    return simple_value(emit_operator(range, g, {Symbol::aten("tensor")}, {{values[0], ""}, dtype}));
  }

 private:
  ScalarType dtype_;
};

// C.__new__(C), which archives write: the object without its __init__.
class NewPythonObject final : public SugaredValue {
 public:
  explicit NewPythonObject(TypePtr type) : type_(std::move(type)) {}
  std::string kind() const override { return "__new__"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>&, const std::vector<CallArgument>&,
                       std::size_t) override {
    return simple_value(m.graph()->insertNode(m.graph()->createObject(type_))->setSourceRange(range)->output());
  }

 private:
  TypePtr type_;
};

class ClassValue final : public SugaredValue {
 public:
  explicit ClassValue(TypePtr type) : type_(std::move(type)) {}
  std::string kind() const override { return type_->kind == TypeKind::Enum ? "EnumClass" : "class '" + type_->annotation_str() + "'"; }
  TypePtr asType() const override { return type_; }

  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    if (const auto e = type_->cast<EnumType>())
      if (auto holder = e->find(field)) return constant_value(IValue(std::move(holder)));
    if (field == "__new__" && type_->kind == TypeKind::Object) return std::make_shared<NewPythonObject>(type_);
    if (const auto cls = type_->cast<ClassType>()) {
      if (const auto constant = cls->findConstant(field)) return constant_value(*constant);
    }
    if (const CustomClassInfo* custom = custom_class_of(*type_)) return custom_method(range, *custom, field);
    if (type_->kind == TypeKind::Enum)
      script_error(range, "type object '" + type_->annotation_str() + "' has no attribute '" + field + "'");
    return SugaredValue::attr(range, m, field);
  }
  bool hasAttr(const SourceRange&, GraphFunction&, const std::string& field) override {
    if (const auto e = type_->cast<EnumType>()) return e->find(field) != nullptr;
    const auto cls = type_->cast<ClassType>();
    return cls && (cls->hasConstant(field) || cls->findMethod(field));
  }

  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    Graph& g = *m.graph();
    if (const auto named = type_->cast<NamedTupleType>()) {
      std::vector<Argument> fields;
      for (std::size_t i = 0; i < named->fields.size(); ++i) {
        Argument a;
        a.name = named->fields[i];
        a.type = type_->contained[i];
        fields.push_back(std::move(a));
      }
      const FunctionSchema schema(OperatorName{named->name, ""}, std::move(fields), {});
      const std::vector<Value*> members = match_schema(range, g, schema, call_values(m, args, kwargs));
      return simple_value(g.insertNode(g.createTuple(members, type_))->setSourceRange(range)->output());
    }
    const bool custom = custom_class_of(*type_) != nullptr;
    if (custom && !has_method(*type_, "__init__"))
      script_error(range, "Class " + type_->name.substr(type_->name.rfind('.') + 1) + " does not have an __init__ function defined");
    if (type_->kind != TypeKind::Object || (type_->cast<ClassType>() && type_->cast<ClassType>()->is_module()))
      return SugaredValue::call(range, m, args, kwargs, results);
    Value* object = g.insertNode(g.createObject(type_))->setSourceRange(range)->output();
    if (has_method(*type_, "__init__"))
      call_method_of(range, m, object, "__init__", args, kwargs);
    else if (!args.empty() || !kwargs.empty())
      script_error(range, "class '" + type_->annotation_str() + "' has no __init__ method that takes arguments");
    return simple_value(object);
  }

  // A static method of a C++ class.
  SugaredValuePtr custom_method(const SourceRange& range, const CustomClassInfo& custom, const std::string& name) const {
    const auto found = custom.methods.find(name);
    if (found == custom.methods.end() || !found->second.is_static)
      script_error(range, "class '" + custom.qualified_name + "' has no static method '" + name + "'");
    return function_value(custom_class_function(custom, name, found->second));
  }

  // An enum is the sequence of its enumerators.
  std::optional<std::size_t> staticLen() const override {
    const auto e = type_->cast<EnumType>();
    return e ? std::optional(e->enumerators().size()) : std::nullopt;
  }
  SugaredValuePtr iter(const SourceRange& range, GraphFunction& m) override {
    return staticLen() ? shared_from_this() : SugaredValue::iter(range, m);
  }
  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& m, std::optional<std::size_t> size) override {
    const auto e = type_->cast<EnumType>();
    if (!e) return SugaredValue::asTuple(range, m, size);
    std::vector<SugaredValuePtr> out;
    for (const auto& holder : e->enumerators()) out.push_back(constant_value(IValue(holder)));
    return out;
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint) override {
    const auto constant = index->asConstant();
    if (type_->kind != TypeKind::Enum || !constant) return SugaredValue::getitem(range, m, index, hint);
    if (constant->isString()) return attr(range, m, constant->toStringRef());
    return tuple_value(asTuple(range, m, std::nullopt))->getitem(range, m, index, hint);
  }

 private:
  TypePtr type_;
};

}  // namespace

SugaredValuePtr type_value(TypePtr type) { return std::make_shared<TypeValue>(std::move(type)); }
SugaredValuePtr legacy_constructor(ScalarType dtype) { return std::make_shared<LegacyConstructor>(dtype); }
SugaredValuePtr class_value(TypePtr type) { return std::make_shared<ClassValue>(std::move(type)); }

SugaredValuePtr type_constructor(const std::string& name) {
  static constexpr std::string_view kNames[] = {"List",     "list",  "Dict",   "dict",  "Tuple", "tuple",
                                                "Optional", "Union", "Future", "Await", "RRef",  "Final"};
  for (const std::string_view known : kNames)
    if (known == name) return std::make_shared<TypeConstructor>(name);
  return nullptr;
}

}  // namespace cresset::jit
