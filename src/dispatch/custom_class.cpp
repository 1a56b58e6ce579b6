// The registry of C++ classes that operators and Python can use.
#include <cresset/base/fork.h>
#include <cresset/dispatch/custom_class.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <typeindex>
#include <unordered_map>

#include <cxxabi.h>

namespace cresset {
namespace {

// Entries are made while libraries are loaded and live as long as the process: objects and schemas point to them.
struct Registry {
  ForkSafe<std::mutex> mutex;
  std::map<std::string, std::unique_ptr<CustomClassInfo>> by_name;
  std::unordered_map<std::type_index, CustomClassInfo*> by_type;
};
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : mangled;
}

bool is_identifier(const std::string& s) {
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
         std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

}  // namespace

IValue CustomClassInfo::get_state(const IValue& object) const {
  Stack stack{object};
  methods.at("__getstate__").run(stack);
  return pop(stack);
}

void CustomClassInfo::add_method(const std::string& name, CustomMethod method) {
  std::vector<Argument> arguments = method.schema.arguments();
  // A constructor's arguments are counted behind the object that it fills.
  for (std::size_t i = 0; i < arguments.size() && name == "__init__"; ++i)
    if (arguments[i].name == "_" + std::to_string(i)) arguments[i].name = "_" + std::to_string(i + 1);
  method.schema = FunctionSchema(OperatorName{name, ""}, std::move(arguments), method.schema.returns());
  CRESSET_CHECK(methods.emplace(name, std::move(method)).second, qualified_name, ": a method '", name, "' exists already.");
}

CustomClassInfo& register_custom_class(const std::type_info& type, const std::string& ns, const std::string& name, std::string doc) {
  for (const std::string* part : {&ns, &name})
    CRESSET_CHECK(is_identifier(*part), "class_: names of letters, digits and _ were required; '", *part, "' was given.");
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const std::string qualified = "__torch__.torch.classes." + ns + "." + name;
  CRESSET_CHECK(!r.by_name.count(qualified), "Custom class with name ", qualified,
                " is already registered. Ensure that registration with torch::class_ is only called once.");
  CRESSET_CHECK(!r.by_type.count(type), "class_(\"", name, "\"): the C++ class ", readable(type.name()), " is registered already, as ",
                r.by_type.count(type) ? r.by_type[type]->qualified_name : std::string(), ".");
  auto info = std::make_unique<CustomClassInfo>();
  info->qualified_name = qualified;
  info->doc = std::move(doc);
  r.by_type[type] = info.get();
  return *(r.by_name[qualified] = std::move(info));
}

const CustomClassInfo* find_custom_class(const std::string& qualified_name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto it = r.by_name.find(qualified_name);
  return it == r.by_name.end() ? nullptr : it->second.get();
}
const CustomClassInfo* find_custom_class(const std::type_info& type) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto it = r.by_type.find(type);
  return it == r.by_type.end() ? nullptr : it->second;
}
std::vector<std::string> custom_class_names() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<std::string> names;
  for (const auto& [name, info] : r.by_name) names.push_back(name);
  return names;
}

TypePtr custom_class_type_of(const CustomClassHolder& object) { return impl::custom_class_type(typeid(object)); }

namespace impl {
TypePtr custom_class_type(const std::type_info& type) {
  const CustomClassInfo* info = find_custom_class(type);
  CRESSET_CHECK(info, "Can't find class id in custom class type map for ", readable(type.name()),
                ". Register the class with torch::class_ in front of the operators that use it.");
  return object_type(info->qualified_name);
}
}  // namespace impl

namespace detail {
FunctionSchema with_tuple_result(const FunctionSchema& schema) {
  std::vector<TypePtr> members;
  for (const Argument& result : schema.returns()) members.push_back(result.type);
  return schema.cloneWithReturns({Argument("", tuple_of(std::move(members)))});
}
FunctionSchema name_arguments(FunctionSchema schema, bool has_self, const std::vector<arg>& names) {
  std::vector<Argument> arguments = schema.arguments();
  const std::size_t first = has_self ? 1 : 0;
  if (has_self) {
    CRESSET_CHECK(!arguments.empty(), "class_: a method takes the object as its first parameter.");
    arguments[0].name = "self";
  }
  CRESSET_CHECK(names.empty() || names.size() == arguments.size() - first,
                "Default values must be specified for none or all arguments: ", arguments.size() - first, " parameters, ", names.size(),
                " names.");
  for (std::size_t i = 0; i < names.size(); ++i) {
    arguments[first + i].name = names[i].name;
    arguments[first + i].default_value = names[i].default_value;
  }
  return FunctionSchema(schema.operator_name(), std::move(arguments), schema.returns());
}
}  // namespace detail

}  // namespace cresset
