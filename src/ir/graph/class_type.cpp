// Classes, interfaces, enums and functions as types; mangled names.
#include <cresset/ir/class_type.h>

#include <algorithm>
#include <cctype>

#include <cresset/ir/function.h>

namespace cresset::jit {

ClassTypePtr ClassType::create(std::string qualified_name, bool is_module) {
  return std::make_shared<ClassType>(std::move(qualified_name), is_module, false);
}
ClassTypePtr ClassType::create(const QualifiedName& name, const std::shared_ptr<CompilationUnit>& unit, bool is_module) {
  auto type = create(name.qualifiedName(), is_module);
  if (unit) unit->register_type(type);
  return type;
}
ClassTypePtr ClassType::opaque(std::string qualified_name) { return std::make_shared<ClassType>(std::move(qualified_name), false, true); }

std::optional<std::size_t> ClassType::findAttributeSlot(std::string_view attribute) const {
  for (std::size_t i = 0; i < attributes_.size(); ++i)
    if (attributes_[i].name == attribute) return i;
  return std::nullopt;
}
std::size_t ClassType::getAttributeSlot(std::string_view attribute) const {
  const auto slot = findAttributeSlot(attribute);
  CRESSET_CHECK_AS(AttributeError, slot, "'", name, "' object has no attribute or method '", attribute, "'.");
  return *slot;
}
std::size_t ClassType::addAttribute(const std::string& attribute, TypePtr type, bool is_parameter, bool is_buffer) {
  CRESSET_CHECK(!hasAttribute(attribute) && !findConstant(attribute), "attempting to add attribute '", attribute, "' to '", name,
                "' but it already exists.");
  CRESSET_CHECK(!is_parameter || type->kind == TypeKind::Tensor || type->kind == TypeKind::None || type->kind == TypeKind::Optional,
                "Expecting parameter or buffer to have either None, Tensor or Optional[Tensor] type, but got: ", type->str());
  attributes_.push_back({attribute, std::move(type), is_parameter, is_buffer});
  return attributes_.size() - 1;
}
std::size_t ClassType::addOrCheckAttribute(const std::string& attribute, TypePtr type, bool is_parameter, bool is_buffer) {
  const auto slot = findAttributeSlot(attribute);
  if (!slot) return addAttribute(attribute, std::move(type), is_parameter, is_buffer);
  CRESSET_CHECK(type->is_subtype_of(*attributes_[*slot].type), "attribute '", attribute, "' of '", name, "': a value of type '",
                attributes_[*slot].type->str(), "' was required; '", type->str(), "' was given.");
  return *slot;
}
void ClassType::removeAttribute(const std::string& attribute) {
  attributes_.erase(attributes_.begin() + static_cast<std::ptrdiff_t>(getAttributeSlot(attribute)));
}
TypePtr ClassType::findAttribute(std::string_view attribute) const {
  const auto slot = findAttributeSlot(attribute);
  return slot ? attributes_[*slot].type : nullptr;
}
const TypePtr& ClassType::getAttribute(std::string_view attribute) const { return attributes_[getAttributeSlot(attribute)].type; }

const IValue& ClassType::getConstant(std::string_view constant) const {
  const auto found = std::ranges::find(constants_, constant, &std::pair<std::string, IValue>::first);
  CRESSET_CHECK_AS(AttributeError, found != constants_.end(), "'", name, "' object has no constant '", constant, "'.");
  return found->second;
}
void ClassType::unsafeRemoveConstant(const std::string& constant) {
  static_cast<void>(getConstant(constant));
  std::erase_if(constants_, [&](const auto& c) { return c.first == constant; });
}
std::shared_ptr<ClassType> ClassType::refine(ArrayRef<TypePtr> types) const {
  CRESSET_CHECK(types.size() == attributes_.size(), "refine: ", attributes_.size(), " types were required for the attributes of '", name,
                "'; ", types.size(), " were given.");
  auto refined = create(std::string(name), is_module_);
  for (std::size_t i = 0; i < types.size(); ++i) {
    CRESSET_CHECK(types[i]->is_subtype_of(*attributes_[i].type), "refine: a subtype of '", attributes_[i].type->str(),
                  "' was required for attribute '", attributes_[i].name, "'; '", types[i]->str(), "' was given.");
    refined->attributes_.push_back(attributes_[i]);
    refined->attributes_.back().type = types[i];
  }
  refined->constants_ = constants_;
  refined->methods_ = methods_;
  return refined;
}
void ClassType::addConstant(const std::string& constant, IValue v) {
  CRESSET_CHECK(!findConstant(constant) && !hasAttribute(constant), "attempting to add constant '", constant, "' to '", name,
                "' but it already exists.");
  constants_.emplace_back(constant, std::move(v));
}
std::optional<IValue> ClassType::findConstant(std::string_view constant) const {
  for (const auto& [n, v] : constants_)
    if (n == constant) return v;
  return std::nullopt;
}

namespace {
Function* as_function(const intrusive_ptr<ivalue::FunctionBase>& f) { return static_cast<Function*>(f.get()); }
}  // namespace

void ClassType::join(const std::shared_ptr<CompilationUnit>& unit) {
  CRESSET_CHECK(unit, "register_type: a unit that a shared_ptr owns was required for the class '", name, "'.");
  CRESSET_CHECK(!this->unit() && !left_unit_, "register_type: the class '", name, "' belongs to another unit.");
  unit_ = unit;
}
// What may refer to the class itself goes too: the attributes of a class that is no module.
void ClassType::leave_unit() {
  left_unit_ = true;
  unit_.reset();
  for (auto* functions : {&methods_, &forward_pre_hooks_, &forward_hooks_}) functions->clear();
  if (!is_module_) attributes_.clear();
}

intrusive_ptr<ivalue::Object> new_object(const TypePtr& type, std::size_t slots) {
  const auto* cls = dynamic_cast<const ClassType*>(type.get());
  if (!cls) return make_intrusive<ivalue::Object>(type, slots);
  std::shared_ptr<CompilationUnit> unit = cls->unit();
  CRESSET_CHECK(unit || !cls->left_unit_, "the compilation unit of class '", cls->name, "' is gone; no object of it can be made.");
  return make_intrusive<ivalue::Object>(type, slots, std::move(unit));
}

}  // namespace cresset::jit

namespace cresset::ivalue {

std::shared_ptr<jit::ClassType> ObjectType::operator()() const { return (*this)->expect<jit::ClassType>(); }

std::string Object::name() const { return type->name; }
IValue Object::getAttr(const std::string& name) const {
  const std::size_t i = type()->getAttributeSlot(name);
  return i < slots.size() ? slots[i] : IValue();
}
void Object::setAttr(const std::string& name, IValue v) {
  const auto cls = type();
  if (!cls->hasAttribute(name)) cls->addAttribute(name, v.type());
  set_slot(cls->getAttributeSlot(name), std::move(v));
}
bool Object::hasAttr(const std::string& name) const { return type()->hasAttribute(name); }
std::shared_ptr<jit::CompilationUnit> Object::compilation_unit() const { return std::static_pointer_cast<jit::CompilationUnit>(unit_); }
}  // namespace cresset::ivalue

namespace cresset::jit {

std::shared_ptr<EnumType> EnumType::create(const QualifiedName& name, TypePtr value_type,
                                           const std::vector<std::pair<std::string, IValue>>& enumerators,
                                           const std::shared_ptr<CompilationUnit>& unit) {
  auto type = create(name.qualifiedName(), std::move(value_type));
  for (const auto& [enumerator, value] : enumerators) type->addEnumerator(enumerator, value);
  if (unit) unit->register_type(type);
  return type;
}

void ClassType::addMethod(intrusive_ptr<ivalue::FunctionBase> method) {
  Function* f = as_function(method);
  CRESSET_CHECK(!findMethod(f->name()), "Can't redefine method: ", f->name(), " on class: ", name);
  const auto owner = unit();
  CRESSET_CHECK(owner, "addMethod: a class that belongs to a unit was required; '", name, "' does not.");
  if (f->unit() != owner) owner->register_function(intrusive_ptr<Function>::reclaim_copy(f));
  methods_.push_back(f);
}
void ClassType::addMethod(Function* method) {
  addMethod(intrusive_ptr<ivalue::FunctionBase>(intrusive_ptr<Function>::reclaim_copy(method)));
}
void ClassType::removeMethod(std::string_view method) {
  Function* f = findMethod(method);
  if (!f) return;
  std::erase(methods_, f);
  if (const auto owner = unit()) owner->drop_function(std::string(f->qualname()));
}
void ClassType::unsafeRemoveMethod(const std::string& method) {
  Function* f = findMethod(method);
  CRESSET_CHECK(f, "Can't delete undefined method ", method, " on class: ", name);
  std::erase(methods_, f);
}
Function* ClassType::findMethod(std::string_view method) const {
  for (Function* m : methods_)
    if (m->name() == method) return m;
  return nullptr;
}
Function& ClassType::getMethod(std::string_view method) const {
  Function* f = findMethod(method);
  CRESSET_CHECK_AS(AttributeError, f, "Couldn't find method: '", method, "' on class: '", name, "'.");
  return *f;
}

Function* ClassType::findHook(std::string_view hook) const {
  for (const auto* hooks : {&forward_pre_hooks_, &forward_hooks_})
    for (Function* f : *hooks)
      if (f->name() == hook) return f;
  return nullptr;
}

std::vector<Function*> ClassType::methods() const { return methods_; }

// Classes are the same when they are one object; a class of which only the name is known is every class of that name.
bool ClassType::same_details(const Type& other) const {
  if (name != other.name) return false;
  const auto* o = dynamic_cast<const ClassType*>(&other);
  return !o || o == this || is_opaque_ || o->is_opaque_;
}

namespace {
// Can a method stand where an interface has `wanted`? The first argument is the object itself.
bool method_fits(const FunctionSchema& have, const FunctionSchema& wanted) {
  bool out = have.arguments().size() == wanted.arguments().size() && have.returns().size() == wanted.returns().size();
  for (std::size_t i = 1; out && i < wanted.arguments().size(); ++i)
    out = wanted.arguments()[i].type->is_subtype_of(*have.arguments()[i].type) && wanted.arguments()[i].name == have.arguments()[i].name;
  for (std::size_t i = 0; out && i < wanted.returns().size(); ++i) out = have.returns()[i].type->is_subtype_of(*wanted.returns()[i].type);
  return out;
}

// Says in `why_not` what a class or interface (`what`) lacks; `method`: its own of a name, or null.
template <class Method>
bool has_methods_of(const std::string& what, const std::string& name, const Method& method, const InterfaceType& interface,
                    std::string* why_not) {
  for (const FunctionSchema& wanted : interface.methods()) {
    const FunctionSchema* have = method(wanted.name());
    if (have && method_fits(*have, wanted)) continue;
    if (!why_not) return false;
    const std::string lower(1, static_cast<char>(std::tolower(what[0])));
    *why_not = !have ? what + " '" + name + "' does not have method '" + wanted.name() + "' but '" + interface.name + "' does."
                     : "Method on " + lower + what.substr(1) + " '" + name + "' is not compatible with interface '" + interface.name +
                           "':\n  " + lower + what.substr(1) + ": " + have->str() + "\n  interface: " + wanted.str();
    return false;
  }
  return true;
}
}  // namespace

bool ClassType::details_below(const Type& other, std::string* why_not) const {
  const auto* interface = dynamic_cast<const InterfaceType*>(&other);
  if (!interface) return same_details(other);
  if (interface->is_module() && !is_module_) {
    if (why_not) *why_not = "Interface '" + interface->name + "' is a module interface; class '" + name + "' is no module.";
    return false;
  }
  const auto own = [&](const std::string& method) {
    const Function* f = findMethod(method);
    return f ? &f->getSchema() : nullptr;
  };
  return has_methods_of("Class", name, own, *interface, why_not);
}

const FunctionSchema* InterfaceType::getMethod(std::string_view method) const {
  for (const FunctionSchema& m : methods_)
    if (m.name() == method) return &m;
  return nullptr;
}
bool InterfaceType::details_below(const Type& other, std::string* why_not) const {
  if (same_details(other)) return true;
  const auto* o = dynamic_cast<const InterfaceType*>(&other);
  return o && has_methods_of("Interface", name, [&](const std::string& method) { return getMethod(method); }, *o, why_not);
}

void EnumType::addEnumerator(std::string enumerator, IValue value) {
  CRESSET_CHECK(!find(enumerator), "enum '", name, "': '", enumerator, "' was given twice.");
  enumerators_.push_back(make_intrusive<ivalue::EnumHolder>(shared_from_this(), std::move(enumerator), std::move(value)));
}
intrusive_ptr<ivalue::EnumHolder> EnumType::find(std::string_view enumerator) const {
  for (const auto& e : enumerators_)
    if (e->name == enumerator) return e;
  return nullptr;
}

Function* FunctionType::function() const { return as_function(function_); }

namespace {
constexpr std::string_view kMangle = "___torch_mangle_";

// The segments of a name between dots.
std::vector<std::string> segments(const std::string& name) {
  std::vector<std::string> out(1);
  for (char c : name) {
    if (c == '.')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}
std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i ? "." : "") + parts[i];
  return out;
}
bool is_mangle(const std::string& s) {
  constexpr std::size_t kMostDigits = 18;  // of a number that is counted on from
  return s.rfind(kMangle, 0) == 0 && s.size() > kMangle.size() && s.size() <= kMangle.size() + kMostDigits &&
         s.find_first_not_of("0123456789", kMangle.size()) == std::string::npos;
}
}  // namespace

std::string mangle_name(const std::string& qualified, const std::function<bool(const std::string&)>& taken) {
  std::vector<std::string> parts = segments(qualified);
  if (parts.size() < 2 || !is_mangle(parts[parts.size() - 2])) parts.insert(parts.end() - 1, std::string(kMangle) + "0");
  std::string& segment = parts[parts.size() - 2];
  for (uint64_t n = std::stoull(segment.substr(kMangle.size()));; ++n) {
    segment = std::string(kMangle) + std::to_string(n);
    std::string candidate = joined(parts);
    if (!taken(candidate)) return candidate;
  }
}

std::string unmangled_name(const std::string& qualified) {
  std::vector<std::string> parts = segments(qualified);
  CRESSET_CHECK(!is_mangle(parts.back()), "unmangle: a name behind the mangle segment was required; '", qualified, "' was given.");
  std::erase_if(parts, is_mangle);
  if (parts.size() > 1 && parts[0] == "__torch__") parts.erase(parts.begin());
  return joined(parts);
}

}  // namespace cresset::jit
