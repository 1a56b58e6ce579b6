// C++ classes of extensions in scripts.
#include "ir/operators/custom_class_function.h"

#include <mutex>

namespace cresset::jit {
namespace {

void run_method(const CustomMethod& method, Stack& stack) {
  method.run(stack);
  const std::size_t results = method.schema.returns().size();
  if (results == 0) stack.emplace_back();
  if (results <= 1) return;
  std::vector<IValue> members(std::make_move_iterator(stack.end() - static_cast<std::ptrdiff_t>(results)),
                              std::make_move_iterator(stack.end()));
  stack.resize(stack.size() - results);
  stack.emplace_back(make_intrusive<ivalue::TupleImpl>(std::move(members), nullptr));
}

class CustomClassFunction final : public Function {
 public:
  CustomClassFunction(std::string name, const CustomMethod& method)
      : Function(std::move(name)), method_(method), schema_(schema_in_scripts(method)) {
    doc_ = method.doc;
  }
  const FunctionSchema& getSchema() const override { return schema_; }
  void run(Stack& stack) override { run_method(method_, stack); }

 private:
  const CustomMethod& method_;  // of a class, which stays registered
  const FunctionSchema schema_;
};

}  // namespace

FunctionSchema schema_in_scripts(const CustomMethod& method) {
  const FunctionSchema& s = method.schema;
  if (s.returns().size() <= 1) return s;
  std::vector<TypePtr> members;
  for (const Argument& r : s.returns()) members.push_back(r.type);
  return s.cloneWithReturns({Argument("", tuple_of(std::move(members)))});
}

const CustomClassInfo* custom_class_of(const Type& type) {
  return type.kind == TypeKind::Object && !type.cast<ClassType>() ? find_custom_class(type.name) : nullptr;
}

intrusive_ptr<Function> custom_class_function(const CustomClassInfo& cls, const std::string& name, const CustomMethod& method) {
  return make_intrusive<CustomClassFunction>(cls.qualified_name + "." + name, method);
}

ClassTypePtr getCustomClass(const std::string& name) {
  const CustomClassInfo* info = find_custom_class(name);
  if (!info) return nullptr;
  static std::mutex mutex;
  static const auto unit = std::make_shared<CompilationUnit>();
  const std::lock_guard lock(mutex);
  ClassTypePtr cls = unit->find_class(name);
  if (!cls) {
    cls = ClassType::create(QualifiedName(name), unit);
    cls->set_doc_string(info->doc);
  }
  // A class is registered method by method.
  for (const auto& [method, description] : info->methods)
    if (!cls->findMethod(method)) cls->addMethod(custom_class_function(*info, method, description));
  return cls;
}

void call_custom_method(const IValue& self, const std::string& name, Stack& stack) {
  const CustomClassInfo* cls = custom_class_of(*self.type());
  CRESSET_CHECK(cls, "the class of an object is not registered.");
  const auto method = cls->methods.find(name);
  CRESSET_CHECK_AS(AttributeError, method != cls->methods.end(), "'", cls->qualified_name, "' object has no method '", name, "'.");
  run_method(method->second, stack);
}

}  // namespace cresset::jit
