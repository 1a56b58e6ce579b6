// c10's names of the types of scripts' values.
#pragma once

#include <cresset_compat/c10.h>

#include <cresset/dispatch/boxing.h>
#include <cresset/dispatch/tensor_type.h>
#include <cresset/dispatch/tuple_type.h>

namespace cresset::jit {
class EnumType;
class FunctionType;
class InterfaceType;
}  // namespace cresset::jit

namespace c10 {

#define CRESSET_USE(Class, kind) \
  using cresset::Class;          \
  using cresset::Class##Ptr;
CRESSET_SIMPLE_TYPES(CRESSET_USE)
CRESSET_USE(AwaitType, Await)
CRESSET_USE(DictType, Dict)
CRESSET_USE(FutureType, Future)
CRESSET_USE(ListType, List)
CRESSET_USE(OptionalType, Optional)
CRESSET_USE(RRefType, RRef)
CRESSET_USE(TensorType, Tensor)
CRESSET_USE(TupleType, Tuple)
CRESSET_USE(UnionType, Union)
CRESSET_USE(VarType, Var)
#undef CRESSET_USE
using cresset::typeKindToString;
using cresset::unifyTypes;
using cresset::VaryingShape;
// Of scripts; complete with torch/csrc/jit/api/module.h.
using cresset::jit::EnumType;
using cresset::jit::FunctionType;
using cresset::jit::InterfaceType;
using ClassTypePtr = std::shared_ptr<ClassType>;
using ConstTypePtr = TypePtr;
using EnumTypePtr = std::shared_ptr<EnumType>;
using FunctionTypePtr = std::shared_ptr<FunctionType>;
using InterfaceTypePtr = std::shared_ptr<InterfaceType>;
using NamedTypePtr = TypePtr;

/// The dtype of tensors made of numbers of this type; none for a type without one.
inline std::optional<ScalarType> tryScalarTypeFromJitType(const cresset::Type& type) {
  switch (type.kind) {
    case cresset::TypeKind::Float: return kDouble;
    case cresset::TypeKind::Int: return kLong;
    case cresset::TypeKind::Bool: return kBool;
    case cresset::TypeKind::Complex: return cresset::typeMetaToScalarType(cresset::get_default_complex_dtype());
    default: return std::nullopt;
  }
}
inline ScalarType scalarTypeFromJitType(const cresset::Type& type) {
  const auto dtype = tryScalarTypeFromJitType(type);
  TORCH_CHECK(dtype, "Add new condition, expected Float, Complex, Int, or Bool but got ", type.str());
  return *dtype;
}

template <class T>
struct getTypePtr_ {
  static TypePtr call() { return cresset::impl::infer_schema(static_cast<cresset::impl::Signature<T>*>(nullptr)).returns()[0].type; }
};
/// The type of values of a C++ type.
template <class T>
TypePtr getTypePtr() {
  return getTypePtr_<T>::call();
}

}  // namespace c10
