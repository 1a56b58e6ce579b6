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
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;

/// A type: a kind, the contained types, and for Var and Object a name.
struct CRESSET_API Type {
  TypeKind kind;
  std::vector<TypePtr> contained;  // element; key and value; tuple members
  std::string name;

  /// The schema spelling: "Tensor?", "int[]", "Scalar", "(int, Tensor)".
  std::string str() const;
  const TypePtr& element() const { return contained.at(0); }
  /// May a value of this type be used where `other` is expected? (Int for Number, T for T?, anything for Any.)
  bool is_subtype_of(const Type& other) const;
  friend CRESSET_API bool operator==(const Type& a, const Type& b);
};
inline std::string to_string(const Type& t) { return t.str(); }

/// The shared object of a kind without contained types.
CRESSET_API TypePtr basic_type(TypeKind kind);
CRESSET_API TypePtr list_of(TypePtr element);
CRESSET_API TypePtr optional_of(TypePtr element);
CRESSET_API TypePtr tuple_of(std::vector<TypePtr> members);
CRESSET_API TypePtr dict_of(TypePtr key, TypePtr value);
CRESSET_API TypePtr var_type(std::string name);
CRESSET_API TypePtr object_type(std::string name);

}  // namespace cresset
