// The classes of scripts: classes and modules, interfaces, enums, and functions as types.
#pragma once

#include <functional>
#include <optional>

#include <cresset/dispatch/function_schema.h>
#include <cresset/dispatch/script_values.h>
#include <cresset/dispatch/tuple_type.h>

namespace cresset::jit {

using cresset::Type;
using cresset::TypeKind;
using cresset::TypePtr;
class CompilationUnit;
class Function;

struct ClassAttribute {
  std::string name;
  TypePtr type;
  bool is_parameter = false;
  bool is_buffer = false;
  const std::string& getName() const { return name; }
  const TypePtr& getType() const { return type; }
};

/// The name of a function, with dots between its parts.
struct FunctionName : std::string {
  FunctionName(std::string name) : std::string(std::move(name)) {}
  operator QualifiedName() const { return QualifiedName(std::string(*this)); }
  const std::string& qualifiedName() const { return *this; }
  std::string name() const { return substr(rfind('.') + 1); }
  std::string prefix() const { return QualifiedName(std::string(*this)).prefix(); }
};

/// A class or module. Attributes have slots in the order they were added. A class that was only named (an IR text without its
/// sources) is opaque: it has a name and nothing else, and equals every class with that name.
///
/// Methods belong to the class's compilation unit, because their graphs refer to the class. Objects, and what else needs the methods, own
/// the unit; types and graphs do not. A class that outlives its unit has no methods any more.
class CRESSET_API ClassType final : public Type {
 public:
  static constexpr TypeKind Kind = TypeKind::Object;
  static std::shared_ptr<ClassType> create(std::string qualified_name, bool is_module = false);
  /// In a unit.
  static std::shared_ptr<ClassType> create(const QualifiedName& name, const std::shared_ptr<CompilationUnit>& unit, bool is_module = false);
  static std::shared_ptr<ClassType> opaque(std::string qualified_name);
  ClassType(std::string qualified_name, bool is_module, bool is_opaque)
      : Type(TypeKind::Object, {}, std::move(qualified_name)), is_module_(is_module), is_opaque_(is_opaque) {}

  bool is_module() const override { return is_module_; }
  bool is_opaque() const { return is_opaque_; }
  const std::string& doc_string() const { return doc_; }
  void set_doc_string(std::string doc) { doc_ = std::move(doc); }
  /// "Linear" of "__torch__.torch.nn.Linear".
  std::string base_name() const { return name.substr(name.rfind('.') + 1); }

  const std::vector<ClassAttribute>& attributes() const { return attributes_; }
  const std::vector<ClassAttribute>& getAttributes() const { return attributes_; }
  std::size_t numAttributes() const { return attributes_.size(); }
  std::size_t addAttribute(const std::string& name, TypePtr type, bool is_parameter = false, bool is_buffer = false);
  std::size_t addOrCheckAttribute(const std::string& name, TypePtr type, bool is_parameter = false, bool is_buffer = false);
  void removeAttribute(const std::string& name);
  bool hasAttribute(std::string_view name) const { return findAttributeSlot(name).has_value(); }
  std::optional<std::size_t> findAttributeSlot(std::string_view name) const;
  std::size_t getAttributeSlot(std::string_view name) const;
  TypePtr findAttribute(std::string_view name) const;
  const TypePtr& getAttribute(std::string_view name) const;
  const TypePtr& getAttribute(std::size_t slot) const { return attributes_.at(slot).type; }
  const std::string& getAttributeName(std::size_t slot) const { return attributes_.at(slot).name; }
  bool is_parameter(std::size_t slot) const { return attributes_.at(slot).is_parameter; }
  bool is_buffer(std::size_t slot) const { return attributes_.at(slot).is_buffer; }
  void unsafeRemoveAttribute(const std::string& name) { removeAttribute(name); }
  void unsafeChangeAttributeType(const std::string& name, TypePtr type) { refineAttribute(getAttributeSlot(name), std::move(type)); }
  /// A more exact type for a slot (freezing, specialisation).
  void refineAttribute(std::size_t slot, TypePtr type) { attributes_.at(slot).type = std::move(type); }

  void addConstant(const std::string& name, IValue v);
  bool hasConstant(std::string_view name) const { return findConstant(name).has_value(); }
  std::optional<IValue> findConstant(std::string_view name) const;
  const std::vector<std::pair<std::string, IValue>>& constants() const { return constants_; }
  std::size_t numConstants() const { return constants_.size(); }
  const IValue& getConstant(std::size_t slot) const { return constants_.at(slot).second; }
  const std::string& getConstantName(std::size_t slot) const { return constants_.at(slot).first; }
  /// Raises when there is none of this name.
  const IValue& getConstant(std::string_view name) const;
  void unsafeRemoveConstant(const std::string& name);

  /// A jit::Function, which goes to the class's unit if it is not there already.
  void addMethod(intrusive_ptr<ivalue::FunctionBase> method);
  /// One of the class's unit.
  void addMethod(Function* method);
  /// From the class and its unit.
  void removeMethod(std::string_view name);
  Function* findMethod(std::string_view name) const;
  Function& getMethod(std::string_view name) const;
  std::vector<Function*> methods() const;

  /// What runs around `forward` when a module is called, in this order: functions (self, inputs) that may give other inputs, and functions
  /// (self, inputs, result) that may give another result. They belong to the class's unit and are no methods.
  void addForwardPreHook(Function* hook) { forward_pre_hooks_.push_back(hook); }
  void addForwardHook(Function* hook) { forward_hooks_.push_back(hook); }
  const std::vector<Function*>& getForwardPreHooks() const { return forward_pre_hooks_; }
  const std::vector<Function*>& getForwardHooks() const { return forward_hooks_; }
  /// The hook of this name; null when there is none.
  Function* findHook(std::string_view name) const;

  /// The unit that registered the class; null for none and when it is gone.
  std::shared_ptr<CompilationUnit> unit() const { return unit_.lock(); }
  std::shared_ptr<CompilationUnit> compilation_unit() const { return unit(); }
  /// From the class alone: it stays a function of the unit. Raises when there is none.
  void unsafeRemoveMethod(const std::string& name);
  /// A class of the same name, in no unit, with the same methods and with other types of the attributes, each a subtype of the one here.
  std::shared_ptr<ClassType> refine(ArrayRef<TypePtr> types) const;

 protected:
  bool same_details(const Type& other) const override;
  bool details_below(const Type& other, std::string* why_not) const override;

 private:
  friend class CompilationUnit;
  friend CRESSET_API intrusive_ptr<ivalue::Object> new_object(const TypePtr& type, std::size_t slots);
  void join(const std::shared_ptr<CompilationUnit>& unit);
  void leave_unit();

  bool is_module_, is_opaque_, left_unit_ = false;
  std::string doc_;
  std::vector<ClassAttribute> attributes_;
  std::vector<std::pair<std::string, IValue>> constants_;
  std::vector<Function*> methods_, forward_pre_hooks_, forward_hooks_;  // of the unit
  std::weak_ptr<CompilationUnit> unit_;
};
using ClassTypePtr = std::shared_ptr<ClassType>;
using NamedTypePtr = TypePtr;

/// An object with empty slots that owns its class's unit. Raises when the unit is gone.
CRESSET_API intrusive_ptr<ivalue::Object> new_object(const TypePtr& type, std::size_t slots);
/// With a slot for each attribute.
inline intrusive_ptr<ivalue::Object> new_object(const ClassTypePtr& type) { return new_object(type, type->numAttributes()); }

/// The methods that a class must have to be used in its place.
class CRESSET_API InterfaceType final : public Type {
 public:
  static constexpr TypeKind Kind = TypeKind::Interface;
  InterfaceType(std::string qualified_name, bool is_module)
      : Type(TypeKind::Interface, {}, std::move(qualified_name)), is_module_(is_module) {}
  static std::shared_ptr<InterfaceType> create(std::string qualified_name, bool is_module = false) {
    return std::make_shared<InterfaceType>(std::move(qualified_name), is_module);
  }
  bool is_module() const override { return is_module_; }
  void addMethod(FunctionSchema schema) { methods_.push_back(std::move(schema)); }
  const FunctionSchema* getMethod(std::string_view name) const;
  const std::vector<FunctionSchema>& methods() const { return methods_; }

 protected:
  bool details_below(const Type& other, std::string* why_not) const override;

 private:
  friend class CompilationUnit;
  bool is_module_;
  std::vector<FunctionSchema> methods_;
};

/// An enumeration: the type of its values and its enumerators.
class CRESSET_API EnumType final : public Type {
 public:
  static constexpr TypeKind Kind = TypeKind::Enum;
  EnumType(std::string qualified_name, TypePtr value_type) : Type(TypeKind::Enum, {std::move(value_type)}, std::move(qualified_name)) {}
  static std::shared_ptr<EnumType> create(std::string qualified_name, TypePtr value_type) {
    return std::make_shared<EnumType>(std::move(qualified_name), std::move(value_type));
  }
  /// With its enumerators, of a unit, which may be null.
  static std::shared_ptr<EnumType> create(const QualifiedName& name, TypePtr value_type,
                                          const std::vector<std::pair<std::string, IValue>>& enumerators,
                                          const std::shared_ptr<CompilationUnit>& unit);
  const TypePtr& value_type() const { return contained[0]; }
  const TypePtr& getValueType() const { return contained[0]; }
  void addEnumerator(std::string name, IValue value);
  /// The shared object of an enumerator; null for an unknown name.
  intrusive_ptr<ivalue::EnumHolder> find(std::string_view name) const;
  const std::vector<intrusive_ptr<ivalue::EnumHolder>>& enumerators() const { return enumerators_; }

 private:
  friend class CompilationUnit;
  std::vector<intrusive_ptr<ivalue::EnumHolder>> enumerators_;
};

/// The type of one function.
class CRESSET_API FunctionType final : public Type {
 public:
  static constexpr TypeKind Kind = TypeKind::Function;
  /// Of a jit::Function.
  explicit FunctionType(intrusive_ptr<ivalue::FunctionBase> function)
      : Type(TypeKind::Function, {}, function->qualname()), function_(std::move(function)) {}
  Function* function() const;

 private:
  intrusive_ptr<ivalue::FunctionBase> function_;
};

using InterfaceTypePtr = std::shared_ptr<InterfaceType>;
using EnumTypePtr = std::shared_ptr<EnumType>;
using FunctionTypePtr = std::shared_ptr<FunctionType>;

/// "__torch__.a.B" → "__torch__.a.___torch_mangle_0.B", with the next number where there is one.
CRESSET_API std::string mangle_name(const std::string& qualified, const std::function<bool(const std::string&)>& taken);
/// Without a leading "__torch__." and without any mangle segment.
CRESSET_API std::string unmangled_name(const std::string& qualified);

/// Looks up a class, interface, enum or named tuple by its qualified name; null when it is not known.
using TypeResolver = std::function<TypePtr(const std::string&)>;

/// Reads a type in schema, IR or annotation spelling: "Tensor?", "Float(2, *, strides=[3, 1], device=cpu)", "Float(10:48, 48:1)",
/// "List[int]", "Optional(T)", "Dict(str, int)", "Function<f>". Names that the resolver does not know become opaque classes.
/// `at` is moved behind the type; errors give the position.
CRESSET_API TypePtr parse_type_expression(std::string_view text, const TypeResolver& resolver = nullptr);

}  // namespace cresset::jit
