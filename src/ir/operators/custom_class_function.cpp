// C++ classes of extensions in scripts.
#include "ir/operators/custom_class_function.h"

#include <mutex>

namespace cresset::jit {
namespace {

void run_method(const CustomMethod& method, Stack& stack) {
  method.run(stack);
  if (method.schema.returns().empty()) stack.emplace_back();
}

class CustomClassFunction final : public Function {
 public:
  CustomClassFunction(std::string name, const CustomMethod& method) : Function(std::move(name)), method_(method) { doc_ = method.doc; }
  const FunctionSchema& getSchema() const override { return method_.schema; }
  void run(Stack& stack) override { run_method(method_, stack); }

 private:
  const CustomMethod& method_;  // of a class, which stays registered
};

}  // namespace

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
