// ScalarType: the element types. Numeric values are PyTorch's, because serialised programs contain them.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include <cresset/base/error.h>
#include <cresset/base/half.h>

namespace cresset {

enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,  // named in schemas and files only; no kernels
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  // Quantized, packed, eight-bit floating and wide unsigned types: names only, like ComplexHalf.
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  BFloat16 = 15,
  QUInt4x2 = 16,
  QUInt2x4 = 17,
  Bits1x8 = 18,
  Bits2x4 = 19,
  Bits4x2 = 20,
  Bits8 = 21,
  Bits16 = 22,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  Float8_e5m2fnuz = 25,
  Float8_e4m3fnuz = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  Undefined = 44,
  NumOptions = 45,
};

inline constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte, kChar = ScalarType::Char, kInt8 = ScalarType::Char,
                            kShort = ScalarType::Short, kInt16 = ScalarType::Short, kInt = ScalarType::Int, kInt32 = ScalarType::Int,
                            kLong = ScalarType::Long, kInt64 = ScalarType::Long, kHalf = ScalarType::Half, kFloat16 = ScalarType::Half,
                            kFloat = ScalarType::Float, kFloat32 = ScalarType::Float, kDouble = ScalarType::Double,
                            kFloat64 = ScalarType::Double, kComplexFloat = ScalarType::ComplexFloat,
                            kComplexDouble = ScalarType::ComplexDouble, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16,
                            kComplexHalf = ScalarType::ComplexHalf, kQInt8 = ScalarType::QInt8, kQUInt8 = ScalarType::QUInt8,
                            kQInt32 = ScalarType::QInt32, kUInt16 = ScalarType::UInt16, kUInt32 = ScalarType::UInt32,
                            kUInt64 = ScalarType::UInt64, kFloat8_e5m2 = ScalarType::Float8_e5m2,
                            kFloat8_e4m3fn = ScalarType::Float8_e4m3fn, kFloat8_e5m2fnuz = ScalarType::Float8_e5m2fnuz,
                            kFloat8_e4m3fnuz = ScalarType::Float8_e4m3fnuz;

/// CRESSET_FORALL_SCALAR_TYPES(_): _(C++ type, enumerator) for the twelve types with kernels.
#define CRESSET_FORALL_SCALAR_TYPES(_)   \
  _(uint8_t, Byte)                       \
  _(int8_t, Char)                        \
  _(int16_t, Short)                      \
  _(int32_t, Int)                        \
  _(int64_t, Long)                       \
  _(::cresset::Half, Half)               \
  _(float, Float)                        \
  _(double, Double)                      \
  _(std::complex<float>, ComplexFloat)   \
  _(std::complex<double>, ComplexDouble) \
  _(bool, Bool)                          \
  _(::cresset::BFloat16, BFloat16)

template <class T>
struct CppTypeToScalarType;
template <ScalarType S>
struct ScalarTypeToCPPType;
#define CRESSET_MAP(T, Name)                              \
  template <>                                             \
  struct CppTypeToScalarType<T> {                         \
    static constexpr ScalarType value = ScalarType::Name; \
  };                                                      \
  template <>                                             \
  struct ScalarTypeToCPPType<ScalarType::Name> {          \
    using type = T;                                       \
  };
CRESSET_FORALL_SCALAR_TYPES(CRESSET_MAP)
#undef CRESSET_MAP

/// Bytes of one element; 0 for Undefined.
constexpr std::size_t element_size(ScalarType t) {
  switch (t) {
#define CRESSET_CASE(T, Name) \
  case ScalarType::Name: return sizeof(T);
    CRESSET_FORALL_SCALAR_TYPES(CRESSET_CASE)
#undef CRESSET_CASE
    case ScalarType::ComplexHalf: return 4;
    default: return 0;
  }
}
inline std::size_t elementSize(ScalarType t) { return element_size(t); }

/// PyTorch's C++ name: "Float", "Long", …
CRESSET_API const char* toString(ScalarType t);
/// Python's name: "float32", "int64", …
CRESSET_API const char* dtype_name(ScalarType t);
inline std::string to_string(ScalarType t) { return toString(t); }

constexpr bool isFloatingType(ScalarType t) { return t == kHalf || t == kFloat || t == kDouble || t == kBFloat16; }
constexpr bool isReducedFloatingType(ScalarType t) { return t == kHalf || t == kBFloat16; }
constexpr bool isComplexType(ScalarType t) { return t == kComplexFloat || t == kComplexDouble || t == ScalarType::ComplexHalf; }
constexpr bool isIntegralType(ScalarType t, bool includeBool = false) {
  return t == kByte || t == kChar || t == kShort || t == kInt || t == kLong || (includeBool && t == kBool);
}
constexpr bool isSignedType(ScalarType t) { return t != kByte && t != kBool; }
constexpr bool isDifferentiableType(ScalarType t) { return isFloatingType(t) || isComplexType(t); }
/// float32 for complex64, float64 for complex128, t itself otherwise.
constexpr ScalarType toRealValueType(ScalarType t) {
  return t == kComplexFloat ? kFloat : t == kComplexDouble ? kDouble : t == ScalarType::ComplexHalf ? kHalf : t;
}
constexpr ScalarType toComplexType(ScalarType t) { return t == kDouble || t == kComplexDouble ? kComplexDouble : kComplexFloat; }
/// The type arithmetic on t is done in.
constexpr ScalarType toOpMathType(ScalarType t) { return isReducedFloatingType(t) ? kFloat : t; }
/// May a value of type `from` be stored into `to` by an in-place or out= operator (no category is lost)?
constexpr bool canCast(ScalarType from, ScalarType to) {
  if (isComplexType(from) && !isComplexType(to)) return false;
  if (isFloatingType(from) && isIntegralType(to, true)) return false;
  return to != kBool || from == kBool;
}
/// PyTorch's promotion table for two types of equal standing.
CRESSET_API ScalarType promote_types(ScalarType a, ScalarType b);
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return promote_types(a, b); }

/// The type of new floating tensors, float32 at the start (process wide).
CRESSET_API ScalarType get_default_dtype();
/// Sets it; only float16, bfloat16, float32, float64 are accepted (TypeError otherwise).
CRESSET_API void set_default_dtype(ScalarType t);
inline ScalarType get_default_complex_dtype() { return toComplexType(get_default_dtype()); }

/// caffe2::TypeMeta's role: a ScalarType under another name, convertible both ways.
class TypeMeta {
 public:
  constexpr TypeMeta() = default;
  constexpr TypeMeta(ScalarType t) : type_(t) {}
  constexpr operator ScalarType() const { return type_; }
  constexpr ScalarType toScalarType() const { return type_; }
  static constexpr TypeMeta fromScalarType(ScalarType t) { return t; }
  template <class T>
  static constexpr TypeMeta Make() {
    return CppTypeToScalarType<T>::value;
  }
  std::size_t itemsize() const { return element_size(type_); }
  const char* name() const { return toString(type_); }
  template <class T>
  bool Match() const {
    return type_ == CppTypeToScalarType<T>::value;
  }
  friend constexpr bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend constexpr bool operator==(TypeMeta a, ScalarType b) { return a.type_ == b; }

 private:
  ScalarType type_ = ScalarType::Undefined;
};
inline ScalarType typeMetaToScalarType(TypeMeta t) { return t; }
inline TypeMeta scalarTypeToTypeMeta(ScalarType t) { return t; }

}  // namespace cresset
