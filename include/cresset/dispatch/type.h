// Types of schema arguments and IR values. Immutable, shared, compared by structure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cresset/base/error.h>

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
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;

/// A type: a kind, the contained types, and a name where the kind has one (Var, Object, Interface, Enum, Function, named tuples).
/// Kinds with more to say have classes of their own: TensorType (tensor_type.h), TupleType with field names (tuple_type.h),
/// and the classes of scripts (ir/class_type.h).
struct CRESSET_API Type : std::enable_shared_from_this<Type> {
  TypeKind kind;
  std::vector<TypePtr> contained;  // element; key and value; tuple and union members
  std::string name;

  explicit Type(TypeKind kind, std::vector<TypePtr> contained = {}, std::string name = {})
      : kind(kind), contained(std::move(contained)), name(std::move(name)) {}
  Type(const Type&) = delete;
  virtual ~Type();

  /// The spelling of schemas and IR: "Tensor?", "int[]", "Scalar", "(int, Tensor)", "Float(2, 3, device=cpu)".
  std::string str() const;
  /// The spelling of Python annotations: "Optional[Tensor]", "List[int]", "Tuple[int, Tensor]".
  std::string annotation_str() const;
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
  friend CRESSET_API bool operator==(const Type& a, const Type& b);

 protected:
  // What derived classes know of themselves. `other` has the same kind.
  virtual std::string own_str() const { return name; }
  virtual std::string own_annotation_str() const { return name; }
  virtual bool same_details(const Type& other) const;
  virtual bool details_below(const Type& other, std::string* why_not) const;
};
inline std::string to_string(const Type& t) { return t.str(); }

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

/// The smallest type that holds values of both, as the outputs of an If need it: equal types; the common refinement of tensors; T and
/// NoneType give T?; the larger of two. Null when there is none.
CRESSET_API TypePtr unify_types(const TypePtr& a, const TypePtr& b, bool default_to_union = false);

}  // namespace cresset
