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

/// The kinds of types that there are here, in PyTorch's order.
#define C10_FORALL_TYPES(_) \
  _(AnyType)                \
  _(EnumType)               \
  _(AnyEnumType)            \
  _(TensorType)             \
  _(StorageType)            \
  _(TupleType)              \
  _(ListType)               \
  _(DictType)               \
  _(NumberType)             \
  _(FloatType)              \
  _(ComplexType)            \
  _(FutureType)             \
  _(AwaitType)              \
  _(RRefType)               \
  _(IntType)                \
  _(NoneType)               \
  _(StringType)             \
  _(GeneratorType)          \
  _(BoolType)               \
  _(OptionalType)           \
  _(VarType)                \
  _(DeviceObjType)          \
  _(StreamObjType)          \
  _(FunctionType)           \
  _(ClassType)              \
  _(CapsuleType)            \
  _(InterfaceType)          \
  _(ScalarTypeType)         \
  _(LayoutType)             \
  _(MemoryFormatType)       \
  _(AnyListType)            \
  _(AnyTupleType)           \
  _(AnyClassType)           \
  _(SymIntType)             \
  _(UnionType)

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
using cresset::ShapeSymbol;
using cresset::Stride;
using cresset::SymbolicShape;
using cresset::typeKindToString;
using cresset::unifyTypes;
using cresset::VaryingShape;
/// How a type's parts are spelt; an empty one leaves it to them.
using TypePrinter = std::function<std::optional<std::string>(const cresset::Type&)>;
/// Base of types that a program derives. Their spelling as annotations is one of two functions: PyTorch's of today takes the printer by
/// reference, the one of releases before by value.
struct SharedType : cresset::Type {
  using cresset::Type::Type;
  std::string annotation_str() const override { return (this->*static_cast<ByValue>(&SharedType::annotation_str_impl))({}); }

 protected:
  virtual std::string annotation_str_impl(const TypePrinter& /*printer*/) const { return cresset::Type::annotation_str(); }
  virtual std::string annotation_str_impl(TypePrinter printer) const {
    return (this->*static_cast<ByReference>(&SharedType::annotation_str_impl))(printer);
  }

 private:
  using ByValue = std::string (SharedType::*)(TypePrinter) const;
  using ByReference = std::string (SharedType::*)(const TypePrinter&) const;
};
/// One type in another.
template <TypeKind K, class T>
struct SingleElementType : SharedType {
  static constexpr TypeKind Kind = K;
  const TypePtr& getElementType() const { return contained[0]; }

 protected:
  explicit SingleElementType(TypePtr element) : SharedType(K, {std::move(element)}) {
    TORCH_CHECK(contained[0], "Can not create ", typeKindToString(K), " with None type");
  }
};
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
