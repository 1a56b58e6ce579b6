// Values of the graph: their attributes, methods, elements and parts by their type.
#include <algorithm>

#include <cresset/dispatch/custom_class.h>

#include "ir/frontend/values.h"
#include "ir/operators/custom_class_function.h"

namespace cresset::jit {
namespace {

// Attributes of tensors and complex numbers that are operators of another name or namespace. All others are operators prim::NAME on one
// value of the type.
constexpr std::pair<std::string_view, std::string_view> kProperties[] = {
    {"shape", "aten::size"}, {"ndim", "aten::dim"}, {"T", "aten::numpy_T"}, {"mT", "aten::mT"},
    {"mH", "aten::mH"},      {"H", "prim::H"},      {"real", "aten::real"}, {"imag", "aten::imag"},
};

// x.float() and the like are conversions.
constexpr std::pair<std::string_view, ScalarType> kDtypeCasts[] = {
    {"byte", ScalarType::Byte},
    {"char", ScalarType::Char},
    {"short", ScalarType::Short},
    {"int", ScalarType::Int},
    {"long", ScalarType::Long},
    {"half", ScalarType::Half},
    {"float", ScalarType::Float},
    {"double", ScalarType::Double},
    {"bool", ScalarType::Bool},
    {"bfloat16", ScalarType::BFloat16},
    {"chalf", ScalarType::ComplexHalf},
    {"cfloat", ScalarType::ComplexFloat},
    {"cdouble", ScalarType::ComplexDouble},
};

class TensorCast final : public SugaredValue {
 public:
  TensorCast(Value* self, ScalarType dtype) : self_(self), dtype_(dtype) {}
  std::string kind() const override { return "tensor cast method"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    std::vector<CallValue> values = call_values(m, args, kwargs);
    if (!args.empty()) script_error(range, "a conversion to a dtype takes keyword arguments only");
    values.insert(values.begin(), {int_constant(range, m, static_cast<int64_t>(dtype_)), ""});
    return simple_value(emit_operator(range, *m.graph(), {Symbol::aten("to")}, std::move(values), self_));
  }

 private:
  Value* self_;
  ScalarType dtype_;
};

// What x.tolist() gives depends on the tensor; the type has to be said.
class ToList final : public SugaredValue {
 public:
  explicit ToList(Value* self) : self(self) {}
  std::string kind() const override { return "method tolist"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction&, const std::vector<CallArgument>&, const std::vector<CallArgument>&,
                       std::size_t) override {
    script_error(range, "Expected type hint for result of tolist()");
  }
  Value* const self;
};

/// The operator behind an attribute of tensors, complex numbers and devices; none: there is no such attribute.
std::optional<Symbol> property_of(const std::string& field, const TypePtr& type) {
  if (type->kind != TypeKind::Tensor && type->kind != TypeKind::Device && type->kind != TypeKind::Complex) return std::nullopt;
  const auto takes_it = [&](Symbol kind) {
    const auto overloads = operators_of(kind);
    return std::any_of(overloads.begin(), overloads.end(), [&](const Operator* op) {
      const auto& formals = op->schema().arguments();
      return !formals.empty() && formals[0].type->kind == type->kind &&
             std::all_of(formals.begin() + 1, formals.end(), [](const Argument& a) { return a.default_value.has_value(); });
    });
  };
  for (const auto& [name, op] : kProperties)
    if (name == field) {
      const Symbol kind = Symbol::fromQualString(op);
      return takes_it(kind) ? std::optional(kind) : std::nullopt;
    }
  const Symbol kind = Symbol::prim(field);
  return takes_it(kind) ? std::optional(kind) : std::nullopt;
}

ObjectMembers& object_members() {
  static auto& members = *new ObjectMembers();
  return members;
}

// x.type(dtype) is a conversion.
class TypeMethod final : public SugaredValue {
 public:
  explicit TypeMethod(Value* self) : self_(self) {}
  std::string kind() const override { return "method type"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    if (args.size() != 1) script_error(range, "type: a dtype was expected");
    return simple_value(emit_operator(range, *m.graph(), {Symbol::aten("to")}, call_values(m, args, kwargs), self_));
  }

 private:
  Value* self_;
};

// x.where(condition, other): the tensor is the operator's second operand.
class WhereMethod final : public SugaredValue {
 public:
  explicit WhereMethod(Value* self) : self_(self) {}
  std::string kind() const override { return "method where"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    std::vector<CallArgument> all = args, named = kwargs;
    const CallArgument self{range, simple_value(self_), ""};
    if (all.empty())
      named.push_back({range, self.value, "self"});
    else
      all.insert(all.begin() + 1, self);
    return builtin_function(Symbol::aten("where"))->call(range, m, all, named, results);
  }

 private:
  Value* self_;
};

// x.__getitem__(i): one index.
class GetItemMethod final : public SugaredValue {
 public:
  explicit GetItemMethod(SugaredValuePtr self) : self_(std::move(self)) {}
  std::string kind() const override { return "method"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    if (args.size() != 1 || !kwargs.empty())
      script_error(range, "__getitem__ expected exactly 1 argument, got " + std::to_string(args.size() + kwargs.size()));
    Value *self = self_->asValue(range, m), *index = args[0].value->asValue(args[0].range, m);
    if (index->type()->kind != TypeKind::Tensor) return self_->getitem(range, m, args[0].value);
    Value* list = m.graph()->insertNode(m.graph()->createList(optional_of(TensorType::get()), {index}))->setSourceRange(range)->output();
    return operator_result(range, m, Symbol::aten("index"), {self, list});
  }

 private:
  SugaredValuePtr self_;
};

class SimpleValue final : public SugaredValue {
 public:
  explicit SimpleValue(Value* v) : value_(v) {}
  std::string kind() const override { return "value of type '" + type_name() + "'"; }
  Value* asValue(const SourceRange&, GraphFunction&) override { return value_; }
  Value* plainValue() const override { return value_; }
  std::optional<IValue> asConstant() const override { return toIValue(value_); }

  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    if (SugaredValuePtr found = find(range, m, field)) return found;
    std::string text = "'" + type_words(type()) + "' object has no attribute or method '" + field + "'.";
    if (type()->cast<ClassType>()) text += " Did you forget to initialize an attribute in __init__()?";
    script_error(range, text);
  }

  bool hasAttr(const SourceRange& range, GraphFunction&, const std::string& field) override {
    if (const auto named = type()->cast<NamedTupleType>()) return named->field_index(field).has_value();
    if (const auto cls = type()->cast<ClassType>())
      return cls->hasAttribute(field) || cls->hasConstant(field) || cls->findMethod(field) || cls->findMethod("__get_" + field);
    if (type()->kind == TypeKind::Interface || type()->kind == TypeKind::Object) return has_method(*type(), field);
    if (type()->kind == TypeKind::Tuple)
      script_error(range, "hasattr's first argument must be an object or NamedTuple, but got a normal Tuple instead");
    script_error(range, "hasattr's first argument must be an object or NamedTuple, got " + type_name() + " instead");
  }

  void setAttr(const SourceRange& range, GraphFunction& m, const std::string& field, Value* v) override {
    const auto cls = type()->cast<ClassType>();
    if (const CustomClassInfo* custom = custom_class_of(*type())) {
      const auto p = custom->properties.find(field);
      if (p == custom->properties.end())
        script_error(range, "Tried to set nonexistent attribute: " + field + ". Did you forget to initialize it in __init__()?");
      if (!p->second.setter) script_error(range, "Tried to set read-only attribute: " + field);
      function_value(custom_class_function(*custom, field, *p->second.setter))
          ->call(range, m, {{range, shared_from_this(), ""}, {range, simple_value(v), ""}}, {}, 0);
      return;
    }
    if (!cls) script_error(range, "Tried to set an attribute: " + field + " on a non-class: " + type_words(type()));
    if (cls->hasConstant(field)) script_error(range, "Tried to assign to constant attribute '" + field + "' of '" + type_name() + "'");
    TypePtr expected = cls->findAttribute(field);
    if (!expected && cls->findMethod("__set_" + field)) {  // a property
      call_method_of(range, m, value_, "__set_" + field, {{range, simple_value(v), ""}});
      return;
    }
    if (!expected && cls->findMethod("__get_" + field)) script_error(range, "Tried to set read-only attribute: " + field);
    if (!expected) {
      // A plain class gets its attributes from the assignments of __init__.
      const bool initialising =
          !cls->is_module() && m.name() == "__init__" && !m.graph()->inputs().empty() && *m.graph()->inputs()[0]->type() == *cls;
      if (!initialising)
        script_error(range, "Tried to set nonexistent attribute: " + field + ". Did you forget to initialize it in __init__()?");
      if (m.graph()->insertPoint()->owningBlock() != m.graph()->block())
        script_error(range,
                     "First assignment cannot be in a control-flow block. Initialize the field '" + field + "' at the top level first");
      expected = v->type()->kind == TypeKind::Tensor ? basic_type(TypeKind::Tensor) : v->type();
      cls->addAttribute(field, expected);
    }
    Value* fitting = convert_to(range, *m.graph(), v, expected, false);
    if (!fitting)
      script_error(
          range, "Wrong type for attribute assignment. Expected " + expected->annotation_str() + " but got " + v->type()->annotation_str());
    m.graph()->insertNode(m.graph()->createSetAttr(value_, field, fitting))->setSourceRange(range);
  }

  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    if (const auto function = type()->cast<FunctionType>(); function && function->function())
      return function_value(intrusive_ptr<Function>::reclaim_copy(function->function()))->call(range, m, args, kwargs, results);
    for (const char* method : {"__call__", "forward"}) {
      if (method == std::string_view("forward") && !is_module()) continue;
      if (has_method(*type(), method)) return call_method_of(range, m, value_, method, args, kwargs);
    }
    if (type()->kind == TypeKind::Object && !is_module()) return attr(range, m, "__call__");
    script_error(range, "cannot call a " + kind());
  }

  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint) override {
    switch (type()->kind) {
      case TypeKind::Tuple: return tuple_item(range, m, *index, index->asValue(range, m));
      case TypeKind::List:
      case TypeKind::Dict:
      case TypeKind::String: return operator_result(range, m, aten::__getitem__, {value_, index->asValue(range, m)});
      case TypeKind::Tensor:
        return operator_result(range, m, Symbol::aten("select"), {value_, int_constant(range, m, 0), index->asValue(range, m)});
      default: break;
    }
    if (has_method(*type(), "__getitem__")) return call_method_of(range, m, value_, "__getitem__", {{range, index, ""}});
    // A container of modules in an archive: the annotation says which interface its modules have.
    if (is_module() && hint && hint->kind == TypeKind::Interface)
      return simple_value(insert_node(range, *m.graph(), prim::ModuleContainerIndex, {value_, index->asValue(range, m)}, hint));
    if (type()->kind == TypeKind::Object && !is_module()) return attr(range, m, "__getitem__");
    script_error(range, "'" + type_name() + "' object is not subscriptable");
  }

  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& m, std::optional<std::size_t> size) override {
    Graph& g = *m.graph();
    if (type()->kind == TypeKind::Tuple) return simple_values(g.insertNode(g.createTupleUnpack(value_))->setSourceRange(range)->outputs());
    if (type()->kind == TypeKind::List) {
      if (!size) script_error(range, "cannot statically infer the expected size of a list in this context");
      return simple_values(g.insertNode(g.createListUnpack(value_, *size))->setSourceRange(range)->outputs());
    }
    if (type()->kind == TypeKind::Any)
      script_error(range, "Provided 'Any' object cannot be used as a tuple: refine it with isinstance first");
    if (type()->kind == TypeKind::AnyTuple)
      script_error(
          range,
          "Provided tuple is not fully defined/refined including its element types, please provide a value of type like Tuple[int, "
          "int]");
    script_error(range, type_words(type()) + " cannot be used as a tuple");
  }

  SugaredValuePtr iter(const SourceRange& range, GraphFunction& m) override {
    switch (type()->kind) {
      case TypeKind::List:
      case TypeKind::Tensor:
      case TypeKind::String: return shared_from_this();
      case TypeKind::Dict: return operator_result(range, m, Symbol::aten("keys"), {value_});
      case TypeKind::Tuple: return tuple_value(asTuple(range, m, std::nullopt));
      default: break;
    }
    if (has_method(*type(), "__len__") && has_method(*type(), "__getitem__")) return shared_from_this();
    script_error(range, "'" + type_name() + "' object is not iterable");
  }
  std::optional<std::size_t> staticLen() const override {
    return type()->kind == TypeKind::Tuple ? std::optional(type()->contained.size()) : std::nullopt;
  }
  Value* len(const SourceRange& range, GraphFunction& m) override {
    if (has_method(*type(), "__len__") || (type()->kind == TypeKind::Object && !is_module()))
      return call_method_of(range, m, value_, "__len__", {})->asValue(range, m);
    if (const auto n = staticLen()) return int_constant(range, m, static_cast<int64_t>(*n));
    return emit_operator(range, *m.graph(), {aten::len}, {{value_, ""}});
  }

  SugaredValuePtr enter(const SourceRange& range, GraphFunction& m) override {
    const auto cls = type()->cast<ClassType>();
    if (!cls) script_error(range, "With item expression must return an object, not a value of type '" + type_name() + "'");
    if (!cls->findMethod("__enter__") || !cls->findMethod("__exit__"))
      script_error(range, "Object returned by with item expression does not define __enter__ and __exit__ methods");
    const auto arguments_of = [&](const char* method) { return cls->getMethod(method).getSchema().arguments().size(); };
    if (arguments_of("__enter__") != 1) script_error(range, "__enter__ must have only one argument and one return value");
    if (arguments_of("__exit__") != 4) script_error(range, "__exit__ must have four arguments");
    for (std::size_t i = 1; i < 4; ++i)
      if (cls->getMethod("__exit__").getSchema().arguments()[i].type->kind != TypeKind::Any)
        script_error(range, "argument " + std::to_string(i) +
                                " of __exit__ must have Any type; TorchScript does not currently support passing exception type, value, or "
                                "traceback to the __exit__ function.");
    const std::vector<Argument>& results = cls->getMethod("__enter__").getSchema().returns();
    return simple_value(
        insert_node(range, *m.graph(), prim::Enter, {value_}, results.empty() ? basic_type(TypeKind::None) : TypePtr(results[0].type)));
  }
  void exit(const SourceRange& range, GraphFunction& m) override {
    insert_node(range, *m.graph(), prim::Exit, {value_}, basic_type(TypeKind::None));
  }

 private:
  const TypePtr& type() const { return value_->type(); }
  std::string type_name() const { return type()->annotation_str(); }
  bool is_module() const {
    const auto cls = type()->cast<ClassType>();
    const auto interface = type()->cast<InterfaceType>();
    return (cls && cls->is_module()) || (interface && interface->is_module());
  }
  static std::vector<SugaredValuePtr> simple_values(const std::vector<Value*>& values) {
    std::vector<SugaredValuePtr> out;
    for (Value* v : values) out.push_back(simple_value(v));
    return out;
  }

  // Null when there is no such attribute.
  SugaredValuePtr find(const SourceRange& range, GraphFunction& m, const std::string& field) {
    Graph& g = *m.graph();
    if (const auto named = type()->cast<NamedTupleType>()) {
      if (const auto i = named->field_index(field)) {
        Value* index = int_constant(range, m, static_cast<int64_t>(*i));
        return simple_value(g.insertNode(g.createTupleIndex(value_, index, type()->contained[*i]))->setSourceRange(range)->output());
      }
    }
    if (const auto cls = type()->cast<ClassType>()) {
      if (cls->findMethod(field)) return method_value(value_, field);
      if (cls->hasAttribute(field)) return simple_value(g.insertNode(g.createGetAttr(value_, field))->setSourceRange(range)->output());
      if (const auto constant = cls->findConstant(field)) return constant_value(*constant);
      if (cls->findMethod("__get_" + field)) return call_method_of(range, m, value_, "__get_" + field, {});  // a property
      if (field == "__class__") return class_value(type());
      return object_members() ? object_members()(value_, field, range, m) : nullptr;
    }
    if (has_method(*type(), field)) return method_value(value_, field);
    // What will be there answers in place of what promises it.
    if (type()->kind == TypeKind::Await) return operator_result(range, m, prim::awaitable_wait, {value_})->attr(range, m, field);
    if (const CustomClassInfo* custom = custom_class_of(*type()))
      if (const auto p = custom->properties.find(field); p != custom->properties.end())
        return function_value(custom_class_function(*custom, field, p->second.getter))
            ->call(range, m, {{range, shared_from_this(), ""}}, {}, 1);
    if (const auto e = type()->cast<EnumType>()) {
      if (field == "name") return simple_value(insert_node(range, g, prim::EnumName, {value_}, basic_type(TypeKind::String)));
      if (const auto known = jit::toIValue(value_); known && field == "value" && known->isEnum())
        return constant_value(known->toEnumHolder()->value);
      if (field == "value") return simple_value(insert_node(range, g, prim::EnumValue, {value_}, e->value_type()));
      return nullptr;
    }
    if (const auto op = property_of(field, type())) return operator_result(range, m, *op, {value_});
    if (type()->kind == TypeKind::Tensor && field == "type") return std::make_shared<TypeMethod>(value_);
    if (type()->kind == TypeKind::Tensor && field == "where") return std::make_shared<WhereMethod>(value_);
    if (type()->kind == TypeKind::Tensor && field == "__getitem__") return std::make_shared<GetItemMethod>(shared_from_this());
    if (type()->kind == TypeKind::Tensor && field == "tolist") return std::make_shared<ToList>(value_);
    if (type()->kind == TypeKind::Tensor)
      for (const auto& [name, dtype] : kDtypeCasts)
        if (name == field) return std::make_shared<TensorCast>(value_, dtype);
    if (type()->kind == TypeKind::Optional || type()->kind == TypeKind::Union) return nullptr;
    return is_method_of(Symbol::aten(field), type()) ? builtin_function(Symbol::aten(field), value_) : nullptr;
  }

  SugaredValuePtr tuple_item(const SourceRange& range, GraphFunction& m, SugaredValue& index, Value* at) {
    const std::vector<TypePtr>& members = type()->contained;
    const auto constant = index.asConstant();
    TypePtr item;
    if (constant && constant->isInt()) {
      const auto size = static_cast<int64_t>(members.size());
      const int64_t i = constant->toInt() < 0 ? constant->toInt() + size : constant->toInt();
      if (i < 0 || i >= size)
        script_error(range, "Tuple index out of range: the index is " + std::to_string(constant->toInt()) + " and the length is " +
                                std::to_string(size));
      item = members[static_cast<std::size_t>(i)];
    } else {
      if (at->type()->kind != TypeKind::Int) script_error(range, "tuple index must be an integer");
      const bool same =
          !members.empty() && std::all_of(members.begin(), members.end(), [&](const TypePtr& t) { return *t == *members[0]; });
      if (!same)
        script_error(range,
                     "Cannot index into a tuple with a non-integer literal because we cannot resolve the output type: its members have "
                     "different types");
      item = members[0];
    }
    Graph& g = *m.graph();
    return simple_value(g.insertNode(g.createTupleIndex(value_, at, item))->setSourceRange(range)->output());
  }

  Value* value_;
};

}  // namespace

void set_object_members(ObjectMembers members) { object_members() = std::move(members); }

SugaredValuePtr simple_value(Value* v) { return std::make_shared<SimpleValue>(v); }

Value* emit_tolist(const SourceRange& range, GraphFunction& m, const SugaredValue& callee, const TypePtr& type) {
  const auto* method = dynamic_cast<const ToList*>(&callee);
  if (!method) return nullptr;
  int64_t dims = 0;
  TypePtr element = type;
  for (; element->kind == TypeKind::List; element = element->element()) ++dims;
  constexpr TypeKind kElements[] = {TypeKind::Int, TypeKind::Float, TypeKind::Complex,
                                    TypeKind::Bool};  // by number, as the operator has them
  const auto* found = std::find(std::begin(kElements), std::end(kElements), element->kind);
  if (found == std::end(kElements))
    script_error(range, element->annotation_str() + " is not one of the supported element types for tolist: int, float, complex, bool");
  Value* number = int_constant(range, m, found - std::begin(kElements));
  return insert_node(range, *m.graph(), prim::tolist, {method->self, int_constant(range, m, dims), number}, type);
}

bool has_method(const Type& type, const std::string& name) {
  if (const auto cls = type.cast<ClassType>()) return cls->findMethod(name) != nullptr;
  if (const auto interface = type.cast<InterfaceType>()) return interface->getMethod(name) != nullptr;
  if (type.kind == TypeKind::Object && !type.name.empty())
    if (const CustomClassInfo* info = find_custom_class(type.name)) return info->methods.count(name) != 0;
  return false;
}

Value* insert_node(const SourceRange& range, Graph& g, Symbol kind, const std::vector<Value*>& inputs, TypePtr type) {
  Node* n = g.insertNode(g.create(kind, inputs))->setSourceRange(range);
  return n->output()->setType(std::move(type));
}

}  // namespace cresset::jit
