// Operators, functions, methods and namespaces.
#include <cresset/dispatch/custom_class.h>

#include "ir/frontend/script_error.h"
#include "ir/frontend/values.h"
#include "ir/operators/custom_class_function.h"

namespace cresset::jit {
namespace {

class OperatorValue final : public SugaredValue {
 public:
  OperatorValue(Symbol kind, Value* self) : kind_(kind), self_(self) {}
  std::string kind() const override { return "builtin"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    return simple_value(emit_operator(range, *m.graph(), {kind_}, call_values(m, args, kwargs), self_));
  }

 private:
  Symbol kind_;
  Value* self_;
};

TypePtr result_type(const FunctionSchema& schema) {
  if (schema.returns().empty()) return basic_type(TypeKind::None);
  if (schema.returns().size() == 1) return schema.returns()[0].type;
  std::vector<TypePtr> members;
  for (const Argument& r : schema.returns()) members.push_back(r.type);
  return tuple_of(std::move(members));
}

class FunctionValue final : public SugaredValue {
 public:
  explicit FunctionValue(intrusive_ptr<Function> f) : function_(std::move(f)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    const std::vector<CallValue> values = call_values(m, args, kwargs);
    const FunctionSchema& schema = [&]() -> const FunctionSchema& {
      const CallPlace place(range);
      return function_->getSchema();
    }();
    Graph& g = *m.graph();
    std::vector<Value*> inputs = match_schema(range, g, schema, values);
    inputs.insert(inputs.begin(), asValue(range, m));
    return simple_value(insert_node(range, g, prim::CallFunction, inputs, result_type(schema)));
  }
  // Functions are constants of their own type.
  Value* asValue(const SourceRange& range, GraphFunction& m) override {
    return m.graph()->insertConstant(IValue(intrusive_ptr<ivalue::FunctionBase>(function_)), range);
  }

 private:
  intrusive_ptr<Function> function_;
};

class MethodValue final : public SugaredValue {
 public:
  MethodValue(Value* self, std::string name) : self_(self), name_(std::move(name)) {}
  std::string kind() const override { return "method"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    const std::vector<CallValue> values = call_values(m, args, kwargs);
    const FunctionSchema schema = [&]() -> FunctionSchema {
      const CallPlace place(range);
      return schema_of_method(range);
    }();
    Graph& g = *m.graph();
    // An interface's schema need not mention self, nor does the constructor of a C++ class, which gives the object.
    const bool constructs = name_ == "__init__" && custom_class_of(*self_->type());
    const bool names_self = !constructs && (self_->type()->kind != TypeKind::Interface ||
                                            (!schema.arguments().empty() && schema.arguments()[0].name == "self"));
    std::vector<Value*> inputs = match_schema(range, g, schema, values, names_self ? self_ : nullptr);
    if (!names_self) inputs.insert(inputs.begin(), self_);
    Value* out = insert_node(range, g, prim::CallMethod, inputs, constructs ? basic_type(TypeKind::None) : result_type(schema));
    out->node()->s_(attr::name, name_);
    return simple_value(out);
  }

 private:
  FunctionSchema schema_of_method(const SourceRange& range) const {
    const Type& type = *self_->type();
    if (const auto cls = type.cast<ClassType>())
      if (const Function* method = cls->findMethod(name_)) return method->getSchema();
    if (const auto interface = type.cast<InterfaceType>())
      if (const FunctionSchema* schema = interface->getMethod(name_)) return *schema;
    if (const CustomClassInfo* info = find_custom_class(type.name))
      if (const auto found = info->methods.find(name_); found != info->methods.end()) return found->second.schema;
    script_error(range, "'" + type.annotation_str() + "' object has no attribute or method '" + name_ + "'.");
  }

  Value* self_;
  std::string name_;
};

class OperatorNamespace final : public SugaredValue {
 public:
  explicit OperatorNamespace(std::string ns) : ns_(std::move(ns)) {}
  std::string kind() const override { return "namespace of operators"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string& field) override {
    return builtin_function(Symbol::fromQualString(ns_ + "::" + field));
  }
  bool hasAttr(const SourceRange&, GraphFunction&, const std::string& field) override {
    return !operators_of(Symbol::fromQualString(ns_ + "::" + field)).empty();
  }

 private:
  std::string ns_;
};

}  // namespace

SugaredValuePtr builtin_function(Symbol kind, Value* self) { return std::make_shared<OperatorValue>(kind, self); }
SugaredValuePtr function_value(intrusive_ptr<Function> f) { return std::make_shared<FunctionValue>(std::move(f)); }
SugaredValuePtr method_value(Value* self, std::string name) { return std::make_shared<MethodValue>(self, std::move(name)); }
SugaredValuePtr operator_namespace(std::string ns) { return std::make_shared<OperatorNamespace>(std::move(ns)); }

std::vector<CallValue> call_values(GraphFunction& m, const std::vector<CallArgument>& args, const std::vector<CallArgument>& kwargs) {
  std::vector<CallValue> out;
  for (const CallArgument& a : args) out.push_back({a.value->asValue(a.range, m), ""});
  for (const CallArgument& a : kwargs) {
    if (a.name.empty()) script_error(a.range, "keyword arguments from a dict are not supported");
    out.push_back({a.value->asValue(a.range, m), a.name});
  }
  return out;
}

SugaredValuePtr call_method_of(const SourceRange& range, GraphFunction& m, Value* self, const std::string& method,
                               const std::vector<CallArgument>& args, const std::vector<CallArgument>& kwargs) {
  return method_value(self, method)->call(range, m, args, kwargs, 1);
}

}  // namespace cresset::jit
