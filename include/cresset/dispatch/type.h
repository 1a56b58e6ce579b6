// Types of schema arguments and IR values. Immutable, shared, compared by structure.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cresset/base/array_ref.h>
#include <cresset/base/field.h>
#include <cresset/dispatch/qualified_name.h>

namespace cresset {

enum class TypeKind : uint8_t {
  Any,
  Tensor,
  Number,
  Int,
  SymInt,
  Float,
  Complex,
  Bool,
  String,
  None,
  Device,
  ScalarType,
  Layout,
  MemoryFormat,
  Generator,
  Storage,
  Stream,
  Capsule,
  List,
  Optional,
  Tuple,
  Dict,
  Future,
  Var,
  Object,
  AnyList,
  AnyTuple,
  AnyClass,
  AnyEnum,
  Union,
  RRef,
  Await,
  Function,
  Interface,
  Enum,
  // The same under PyTorch's names.
  AnyType = Any,
  TensorType = Tensor,
  NumberType = Number,
  IntType = Int,
  SymIntType = SymInt,
  FloatType = Float,
  ComplexType = Complex,
  BoolType = Bool,
  StringType = String,
  NoneType = None,
  DeviceObjType = Device,
  ScalarTypeType = ScalarType,
  LayoutType = Layout,
  MemoryFormatType = MemoryFormat,
  GeneratorType = Generator,
  StorageType = Storage,
  StreamObjType = Stream,
  CapsuleType = Capsule,
  ListType = List,
  OptionalType = Optional,
  TupleType = Tuple,
  DictType = Dict,
  FutureType = Future,
  VarType = Var,
  ClassType = Object,
  AnyListType = AnyList,
  AnyTupleType = AnyTuple,
  AnyClassType = AnyClass,
  AnyEnumType = AnyEnum,
  UnionType = Union,
  RRefType = RRef,
  AwaitType = Await,
  FunctionType = Function,
  InterfaceType = Interface,
  EnumType = Enum,
};
/// "ListType": the kind under PyTorch's name.
CRESSET_API const char* typeKindToString(TypeKind kind);

struct Type;
using TypePtr = std::shared_ptr<const Type>;

/// The name of a type; called, a qualified name, which types that have none do not give.
struct TypeName : std::string {
  TypeName() = default;
  explicit TypeName(std::string text) : std::string(std::move(text)) {}
  using std::string::operator=;
  std::optional<QualifiedName> operator()() const { return empty() ? std::nullopt : std::optional(QualifiedName(std::string(*this))); }
};

/// A type: a kind, the contained types, and a name where the kind has one (Var, Object, Interface, Enum, Function, named tuples).
/// Each kind has a class of its own: those below, TensorType (tensor_type.h), tuples with field names (tuple_type.h), and the classes of
/// scripts (ir/class_type.h). Programs may derive classes of their own.
struct CRESSET_API Type : std::enable_shared_from_this<Type> {
  Field<TypeKind> kind;            // also kind()
  std::vector<TypePtr> contained;  // element; key and value; tuple and union members
  TypeName name;                   // also name()

  explicit Type(TypeKind kind, std::vector<TypePtr> contained = {}, std::string name = {})
      : kind(kind), contained(std::move(contained)), name(std::move(name)) {}
  virtual ~Type();

  /// The spelling of schemas and IR: "Tensor?", "int[]", "Scalar", "(int, Tensor)", "Float(2, 3, device=cpu)".
  virtual std::string str() const;
  /// The spelling of Python annotations: "Optional[Tensor]", "List[int]", "Tuple[int, Tensor]".
  virtual std::string annotation_str() const;
  const TypePtr& element() const { return contained.at(0); }
  /// May a value of this type be used where `other` is expected? (Int for Number, T for T?, anything for Any.) Says why not when asked.
  bool is_subtype_of(const Type& other, std::string* why_not = nullptr) const;
  /// Does a type variable occur in it?
  bool has_free_variables() const;
  /// This object as one of the derived classes, or null.
  template <class T>
  std::shared_ptr<T> cast() const {
    return std::dynamic_pointer_cast<T>(std::const_pointer_cast<Type>(shared_from_this()));
  }
  /// The same, where it must be one.
  template <class T>
  std::shared_ptr<T> expect() const {
    auto r = cast<T>();
    CRESSET_CHECK(r, "a type of another kind was required; '", str(), "' was given.");
    return r;
  }
  /// The same without a share of it: this object as one of the derived classes, or null.
  template <class T>
  T* castRaw() {
    return dynamic_cast<T*>(this);
  }
  template <class T>
  const T* castRaw() const {
    return dynamic_cast<const T*>(this);
  }
  template <class T>
  const T& expectRef() const {
    return *expect<T>();
  }
  friend bool operator==(const Type& a, const Type& b) { return &a == &b || a.equals(b); }

  // Under PyTorch's names.
  bool isSubtypeOf(const Type& other) const { return is_subtype_of(other); }
  bool isSubtypeOf(const TypePtr& other) const { return is_subtype_of(*other); }
  bool isSubtypeOfExt(const Type& other, std::ostream* why_not) const;
  bool isSubtypeOfExt(const TypePtr& other, std::ostream* why_not) const { return isSubtypeOfExt(*other, why_not); }
  virtual bool equals(const Type& other) const;
  std::string repr_str() const { return annotation_str(); }
  bool hasFreeVariables() const { return has_free_variables(); }
  bool isUnionType() const { return kind == TypeKind::Union; }
  ArrayRef<TypePtr> containedTypes() const { return contained; }
  const TypePtr& containedType(std::size_t i) const { return contained.at(i); }
  std::size_t containedTypeSize() const { return contained.size(); }
  /// May a tensor of this type, or one in it, require grad?
  bool requires_grad() const;
  /// The same kind of type with others in it. Raises for kinds that contain none.
  TypePtr withContained(std::vector<TypePtr> types) const;
  TypePtr createWithContained(std::vector<TypePtr> types) const { return withContained(std::move(types)); }

 protected:
  Type(const Type&) = default;  // of a whole object: a Type alone would lose what its class knows
  // What derived classes know of themselves. `other` has the same kind.
  virtual std::string own_str() const { return name; }
  virtual std::string own_annotation_str() const { return name; }
  virtual bool same_details(const Type& other) const;
  virtual bool details_below(const Type& other, std::string* why_not) const;

 public:
  /// Of a module's class or interface?
  virtual bool is_module() const { return false; }
};
inline std::string to_string(const Type& t) { return t.str(); }
inline std::string toString(const TypePtr& t) { return t->str(); }
CRESSET_API std::ostream& operator<<(std::ostream& out, const Type& t);

/// The shared object of a kind without contained types.
CRESSET_API TypePtr basic_type(TypeKind kind);
CRESSET_API TypePtr list_of(TypePtr element);
CRESSET_API TypePtr optional_of(TypePtr element);
CRESSET_API TypePtr tuple_of(std::vector<TypePtr> members);
CRESSET_API TypePtr named_tuple_of(std::string name, std::vector<std::string> fields, std::vector<TypePtr> members);
CRESSET_API TypePtr dict_of(TypePtr key, TypePtr value);
CRESSET_API TypePtr future_of(TypePtr value);
CRESSET_API TypePtr await_of(TypePtr value);
CRESSET_API TypePtr rref_of(TypePtr value);
/// Nested unions are flattened, members below others dropped; T and NoneType give T?, one member gives itself.
CRESSET_API TypePtr union_of(std::vector<TypePtr> members);
CRESSET_API TypePtr var_type(std::string name);
CRESSET_API TypePtr object_type(std::string name);
CRESSET_API TypePtr function_type(std::string name);

// ---- a class for each kind -------------------------------------------------------------------------------------------

#define CRESSET_SIMPLE_TYPES(_)     \
  _(AnyType, Any)                   \
  _(NumberType, Number)             \
  _(IntType, Int)                   \
  _(SymIntType, SymInt)             \
  _(FloatType, Float)               \
  _(ComplexType, Complex)           \
  _(BoolType, Bool)                 \
  _(StringType, String)             \
  _(NoneType, None)                 \
  _(DeviceObjType, Device)          \
  _(ScalarTypeType, ScalarType)     \
  _(LayoutType, Layout)             \
  _(MemoryFormatType, MemoryFormat) \
  _(GeneratorType, Generator)       \
  _(StorageType, Storage)           \
  _(StreamObjType, Stream)          \
  _(CapsuleType, Capsule)           \
  _(AnyListType, AnyList)           \
  _(AnyTupleType, AnyTuple)         \
  _(AnyClassType, AnyClass)         \
  _(AnyEnumType, AnyEnum)

// One object each.
#define CRESSET_SIMPLE_TYPE(Class, kind_name)                                       \
  struct CRESSET_API Class final : Type {                                           \
    static constexpr TypeKind Kind = TypeKind::kind_name;                           \
    Class() : Type(Kind) {}                                                         \
    static std::shared_ptr<Class> get() { return basic_type(Kind)->cast<Class>(); } \
  };                                                                                \
  using Class##Ptr = std::shared_ptr<Class>;
CRESSET_SIMPLE_TYPES(CRESSET_SIMPLE_TYPE)
#undef CRESSET_SIMPLE_TYPE

// One type in another.
#define CRESSET_ELEMENT_TYPE(Class, kind_name)                                                                    \
  struct CRESSET_API Class final : Type {                                                                         \
    static constexpr TypeKind Kind = TypeKind::kind_name;                                                         \
    explicit Class(TypePtr element) : Type(Kind, {std::move(element)}) {}                                         \
    static std::shared_ptr<Class> create(TypePtr element) { return std::make_shared<Class>(std::move(element)); } \
    const TypePtr& getElementType() const { return contained[0]; }                                                \
  };                                                                                                              \
  using Class##Ptr = std::shared_ptr<Class>;
CRESSET_ELEMENT_TYPE(FutureType, Future)
CRESSET_ELEMENT_TYPE(RRefType, RRef)
CRESSET_ELEMENT_TYPE(AwaitType, Await)
#undef CRESSET_ELEMENT_TYPE

struct ListType;
using ListTypePtr = std::shared_ptr<ListType>;
struct CRESSET_API ListType final : Type {
  static constexpr TypeKind Kind = TypeKind::List;
  explicit ListType(TypePtr element) : Type(Kind, {std::move(element)}) {}
  static ListTypePtr create(TypePtr element) { return std::make_shared<ListType>(std::move(element)); }
  const TypePtr& getElementType() const { return contained[0]; }
  static ListTypePtr ofTensors() { return of(TypeKind::Tensor); }
  static ListTypePtr ofOptionalTensors();
  static ListTypePtr ofInts() { return of(TypeKind::Int); }
  static ListTypePtr ofSymInts() { return of(TypeKind::SymInt); }
  static ListTypePtr ofFloats() { return of(TypeKind::Float); }
  static ListTypePtr ofComplexDoubles() { return of(TypeKind::Complex); }
  static ListTypePtr ofBools() { return of(TypeKind::Bool); }
  static ListTypePtr ofStrings() { return of(TypeKind::String); }
  static ListTypePtr ofNumbers() { return of(TypeKind::Number); }

 private:
  /// One object for each kind.
  static ListTypePtr of(TypeKind element);
};

struct UnionType;
using UnionTypePtr = std::shared_ptr<UnionType>;
struct CRESSET_API UnionType : Type {
  static constexpr TypeKind Kind = TypeKind::Union;
  /// Members as union_of makes them.
  explicit UnionType(std::vector<TypePtr> members) : Type(Kind, std::move(members)) {}
  /// As union_of, of at least two different types.
  static UnionTypePtr create(std::vector<TypePtr> members);
  /// The members; of an optional type its element and None.
  const std::vector<TypePtr>& getTypes() const { return optional_.empty() ? contained : optional_; }

 protected:
  /// T?
  UnionType(TypeKind kind, TypePtr element) : Type(kind, {element}), optional_{std::move(element), basic_type(TypeKind::None)} {}

 private:
  std::vector<TypePtr> optional_;
};

struct OptionalType;
using OptionalTypePtr = std::shared_ptr<OptionalType>;
struct CRESSET_API OptionalType final : UnionType {
  static constexpr TypeKind Kind = TypeKind::Optional;
  explicit OptionalType(TypePtr element) : UnionType(Kind, std::move(element)) {}
  /// Of an optional type itself the same.
  static OptionalTypePtr create(TypePtr element);
  static OptionalTypePtr ofTensor();
  const TypePtr& getElementType() const { return contained[0]; }
};

struct DictType;
using DictTypePtr = std::shared_ptr<DictType>;
struct CRESSET_API DictType final : Type {
  static constexpr TypeKind Kind = TypeKind::Dict;
  DictType(TypePtr key, TypePtr value) : Type(Kind, {std::move(key), std::move(value)}) {}
  static DictTypePtr create(TypePtr key, TypePtr value) { return std::make_shared<DictType>(std::move(key), std::move(value)); }
  const TypePtr& getKeyType() const { return contained[0]; }
  const TypePtr& getValueType() const { return contained[1]; }
};

struct TupleType;
using TupleTypePtr = std::shared_ptr<TupleType>;
/// Tuples; those with field names are NamedTupleTypes (tuple_type.h).
struct CRESSET_API TupleType : Type {
  static constexpr TypeKind Kind = TypeKind::Tuple;
  explicit TupleType(std::vector<TypePtr> members, std::string name = {}) : Type(Kind, std::move(members), std::move(name)) {}
  static TupleTypePtr create(std::vector<TypePtr> members) { return std::make_shared<TupleType>(std::move(members)); }
  static TupleTypePtr createNamed(const std::optional<QualifiedName>& name, const std::vector<std::string>& fields,
                                  const std::vector<TypePtr>& members);
  ArrayRef<TypePtr> elements() const { return contained; }
  /// The names of the fields, where they have some.
  std::optional<std::vector<std::string_view>> names() const;
};

/// A variable of a schema's types: "t" of "t[] -> t".
struct CRESSET_API VarType final : Type {
  static constexpr TypeKind Kind = TypeKind::Var;
  explicit VarType(std::string name) : Type(Kind, {}, std::move(name)) {}
  static std::shared_ptr<VarType> create(std::string name) { return std::make_shared<VarType>(std::move(name)); }
};
using VarTypePtr = std::shared_ptr<VarType>;

/// The smallest type that holds values of both, as the outputs of an If need it: equal types; the common refinement of tensors; T and
/// NoneType give T?; the larger of two. Null when there is none.
CRESSET_API TypePtr unify_types(const TypePtr& a, const TypePtr& b, bool default_to_union = false);
inline std::optional<TypePtr> unifyTypes(const TypePtr& a, const TypePtr& b, bool default_to_union = false) {
  const TypePtr type = unify_types(a, b, default_to_union);
  return type ? std::optional(type) : std::nullopt;
}

}  // namespace cresset
