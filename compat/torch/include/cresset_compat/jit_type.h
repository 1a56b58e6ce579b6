// c10's names of the types of scripts' values.
#pragma once

#include <cresset_compat/c10.h>

#include <cresset/dispatch/tensor_type.h>

namespace c10 {

using cresset::TensorType;
template <cresset::TypeKind kind>
struct BasicType {
  static TypePtr get() { return cresset::basic_type(kind); }
};
using AnyType = BasicType<cresset::TypeKind::Any>;
using BoolType = BasicType<cresset::TypeKind::Bool>;
using ComplexType = BasicType<cresset::TypeKind::Complex>;
using DeviceObjType = BasicType<cresset::TypeKind::Device>;
using FloatType = BasicType<cresset::TypeKind::Float>;
using IntType = BasicType<cresset::TypeKind::Int>;
using NoneType = BasicType<cresset::TypeKind::None>;
using NumberType = BasicType<cresset::TypeKind::Number>;
using StringType = BasicType<cresset::TypeKind::String>;

struct ListType {
  static TypePtr create(TypePtr element) { return cresset::list_of(std::move(element)); }
  static TypePtr ofTensors() { return create(TensorType::get()); }
  static TypePtr ofInts() { return create(IntType::get()); }
  static TypePtr ofFloats() { return create(FloatType::get()); }
  static TypePtr ofBools() { return create(BoolType::get()); }
  static TypePtr ofStrings() { return create(StringType::get()); }
};
struct OptionalType {
  static TypePtr create(TypePtr element) { return cresset::optional_of(std::move(element)); }
  static TypePtr ofTensor() { return create(TensorType::get()); }
};
struct DictType {
  static TypePtr create(TypePtr key, TypePtr value) { return cresset::dict_of(std::move(key), std::move(value)); }
};
struct TupleType {
  static TypePtr create(std::vector<TypePtr> members) { return cresset::tuple_of(std::move(members)); }
};

}  // namespace c10
