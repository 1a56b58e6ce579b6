// ScalarType: the element types. Numeric values are PyTorch's, because serialised programs contain them.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <cresset/base/error.h>
#include <cresset/base/half.h>

namespace cresset {

// One row for each element type: _(C++ type, enumerator, its number, Python's name). All lists of types derive from these rows; what
// follows the name is passed on. Kernels exist for bool and the integral, floating, half and complex types; the stored ones
// can be created, moved, converted and compared for equality, and compute where PyTorch's do (docs/design/dtypes.md).
#define CRESSET_BOOL_TYPES(_, ...) _(bool, Bool, 11, "bool" __VA_OPT__(, ) __VA_ARGS__)
#define CRESSET_INTEGER_TYPES(_, ...)                      \
  _(uint8_t, Byte, 0, "uint8" __VA_OPT__(, ) __VA_ARGS__)  \
  _(int8_t, Char, 1, "int8" __VA_OPT__(, ) __VA_ARGS__)    \
  _(int16_t, Short, 2, "int16" __VA_OPT__(, ) __VA_ARGS__) \
  _(int32_t, Int, 3, "int32" __VA_OPT__(, ) __VA_ARGS__)   \
  _(int64_t, Long, 4, "int64" __VA_OPT__(, ) __VA_ARGS__)
#define CRESSET_HALF_TYPES(_, ...)                                  \
  _(::cresset::Half, Half, 5, "float16" __VA_OPT__(, ) __VA_ARGS__) \
  _(::cresset::BFloat16, BFloat16, 15, "bfloat16" __VA_OPT__(, ) __VA_ARGS__)
#define CRESSET_WIDE_FLOAT_TYPES(_, ...)                   \
  _(float, Float, 6, "float32" __VA_OPT__(, ) __VA_ARGS__) \
  _(double, Double, 7, "float64" __VA_OPT__(, ) __VA_ARGS__)
#define CRESSET_COMPLEX_TYPES(_, ...)                                             \
  _(std::complex<float>, ComplexFloat, 9, "complex64" __VA_OPT__(, ) __VA_ARGS__) \
  _(std::complex<double>, ComplexDouble, 10, "complex128" __VA_OPT__(, ) __VA_ARGS__)
#define CRESSET_WIDE_UNSIGNED_TYPES(_, ...)                    \
  _(uint16_t, UInt16, 27, "uint16" __VA_OPT__(, ) __VA_ARGS__) \
  _(uint32_t, UInt32, 28, "uint32" __VA_OPT__(, ) __VA_ARGS__) \
  _(uint64_t, UInt64, 29, "uint64" __VA_OPT__(, ) __VA_ARGS__)
#define CRESSET_FLOAT8_TYPES(_, ...)                                                               \
  _(::cresset::Float8_e5m2, Float8_e5m2, 23, "float8_e5m2" __VA_OPT__(, ) __VA_ARGS__)             \
  _(::cresset::Float8_e4m3fn, Float8_e4m3fn, 24, "float8_e4m3fn" __VA_OPT__(, ) __VA_ARGS__)       \
  _(::cresset::Float8_e5m2fnuz, Float8_e5m2fnuz, 25, "float8_e5m2fnuz" __VA_OPT__(, ) __VA_ARGS__) \
  _(::cresset::Float8_e4m3fnuz, Float8_e4m3fnuz, 26, "float8_e4m3fnuz" __VA_OPT__(, ) __VA_ARGS__) \
  _(::cresset::Float8_e8m0fnu, Float8_e8m0fnu, 44, "float8_e8m0fnu" __VA_OPT__(, ) __VA_ARGS__)
#define CRESSET_COMPLEX_HALF_TYPES(_, ...) _(std::complex<::cresset::Half>, ComplexHalf, 8, "complex32" __VA_OPT__(, ) __VA_ARGS__)

/// The types with kernels, those that are stored, and all.
#define CRESSET_FORALL_COMPUTED_TYPES(_) \
  CRESSET_BOOL_TYPES(_) CRESSET_INTEGER_TYPES(_) CRESSET_HALF_TYPES(_) CRESSET_WIDE_FLOAT_TYPES(_) CRESSET_COMPLEX_TYPES(_)
#define CRESSET_FORALL_STORED_TYPES(_) CRESSET_WIDE_UNSIGNED_TYPES(_) CRESSET_FLOAT8_TYPES(_) CRESSET_COMPLEX_HALF_TYPES(_)
#define CRESSET_FORALL_SCALAR_TYPES(_) CRESSET_FORALL_COMPUTED_TYPES(_) CRESSET_FORALL_STORED_TYPES(_)
/// Names in schemas, files and other programs' headers, without elements: _(enumerator, number).
#define CRESSET_FORALL_NAMED_TYPES(_) \
  _(QInt8, 12)                        \
  _(QUInt8, 13) _(QInt32, 14) _(QUInt4x2, 16) _(QUInt2x4, 17) _(Bits1x8, 18) _(Bits2x4, 19) _(Bits4x2, 20) _(Bits8, 21) _(Bits16, 22)

enum class ScalarType : int8_t {
#define CRESSET_ENUMERATOR(T, Name, number, text) Name = number,
#define CRESSET_NAMED(Name, number) Name = number,
  CRESSET_FORALL_SCALAR_TYPES(CRESSET_ENUMERATOR) CRESSET_FORALL_NAMED_TYPES(CRESSET_NAMED)
#undef CRESSET_NAMED
#undef CRESSET_ENUMERATOR
      Undefined = 45,
  NumOptions = 46,
};
/// Whole numbers with a scale and a zero point, which the tensor has.
constexpr bool isQuantizedType(ScalarType t) {
  return t == ScalarType::QInt8 || t == ScalarType::QUInt8 || t == ScalarType::QInt32 || t == ScalarType::QUInt4x2 ||
         t == ScalarType::QUInt2x4;
}
inline constexpr uint16_t NumScalarTypes = static_cast<uint16_t>(ScalarType::NumOptions);

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
                            kFloat8_e4m3fnuz = ScalarType::Float8_e4m3fnuz, kFloat8_e8m0fnu = ScalarType::Float8_e8m0fnu;

template <class T>
struct CppTypeToScalarType;
template <ScalarType S>
struct ScalarTypeToCPPType;
#define CRESSET_MAP(T, Name, number, text)                                                 \
  template <>                                                                              \
  struct CppTypeToScalarType<T> : std::integral_constant<ScalarType, ScalarType::Name> {}; \
  template <>                                                                              \
  struct ScalarTypeToCPPType<ScalarType::Name> {                                           \
    using type = T;                                                                        \
  };
CRESSET_FORALL_SCALAR_TYPES(CRESSET_MAP)
#undef CRESSET_MAP

/// Bytes of one element; 0 for types without elements.
constexpr std::size_t element_size(ScalarType t) {
  switch (t) {
#define CRESSET_CASE(T, Name, number, text) \
  case ScalarType::Name: return sizeof(T);
    CRESSET_FORALL_SCALAR_TYPES(CRESSET_CASE)
#undef CRESSET_CASE
    default: return 0;
  }
}
inline std::size_t elementSize(ScalarType t) { return element_size(t); }

/// PyTorch's C++ name: "Float", "Long", …
CRESSET_API const char* toString(ScalarType t);
/// Python's name: "float32", "int64", …
CRESSET_API const char* dtype_name(ScalarType t);
/// Python's second name: "float", "long", …; null where there is none.
CRESSET_API const char* dtype_alias(ScalarType t);
/// The type of a name that dtype_name gives; nothing for others.
CRESSET_API std::optional<ScalarType> dtype_from_name(std::string_view name);
/// NumPy's code without byte order: "u2", "f4", …; empty for types that NumPy does not have.
CRESSET_API std::string numpy_type(ScalarType t);
CRESSET_API std::optional<ScalarType> dtype_from_numpy(std::string_view code);
inline std::string to_string(ScalarType t) { return toString(t); }

namespace detail {
// A set of types as bits.
#define CRESSET_BIT(T, Name, number, text) | (uint64_t{1} << number)
inline constexpr uint64_t kIntegralTypes = 0 CRESSET_INTEGER_TYPES(CRESSET_BIT) CRESSET_WIDE_UNSIGNED_TYPES(CRESSET_BIT);
inline constexpr uint64_t kWideUnsignedTypes = 0 CRESSET_WIDE_UNSIGNED_TYPES(CRESSET_BIT);
inline constexpr uint64_t kFloat8Types = 0 CRESSET_FLOAT8_TYPES(CRESSET_BIT);
inline constexpr uint64_t kReducedTypes = 0 CRESSET_HALF_TYPES(CRESSET_BIT) CRESSET_FLOAT8_TYPES(CRESSET_BIT);
inline constexpr uint64_t kFloatingTypes = kReducedTypes CRESSET_WIDE_FLOAT_TYPES(CRESSET_BIT);
inline constexpr uint64_t kComplexTypes = 0 CRESSET_COMPLEX_TYPES(CRESSET_BIT) CRESSET_COMPLEX_HALF_TYPES(CRESSET_BIT);
inline constexpr uint64_t kStoredTypes = 0 CRESSET_FORALL_STORED_TYPES(CRESSET_BIT);
#undef CRESSET_BIT
constexpr bool is_in(ScalarType t, uint64_t types) { return (types >> static_cast<int>(t)) & 1; }
}  // namespace detail

constexpr bool isFloatingType(ScalarType t) { return detail::is_in(t, detail::kFloatingTypes); }
constexpr bool isReducedFloatingType(ScalarType t) { return detail::is_in(t, detail::kReducedTypes); }
constexpr bool isFloat8Type(ScalarType t) { return detail::is_in(t, detail::kFloat8Types); }
constexpr bool isComplexType(ScalarType t) { return detail::is_in(t, detail::kComplexTypes); }
constexpr bool isIntegralType(ScalarType t, bool includeBool = false) {
  return detail::is_in(t, detail::kIntegralTypes) || (includeBool && t == kBool);
}
/// uint16, uint32 and uint64, which hardly compute.
constexpr bool isBarebonesUnsignedType(ScalarType t) { return detail::is_in(t, detail::kWideUnsignedTypes); }
constexpr bool isSignedType(ScalarType t) {
  return t != kByte && t != kBool && !isBarebonesUnsignedType(t) && t != ScalarType::Float8_e8m0fnu;
}
/// Can the type only be stored, moved and converted, but for the operators that name it?
constexpr bool is_stored_type(ScalarType t) { return detail::is_in(t, detail::kStoredTypes); }
constexpr bool isDifferentiableType(ScalarType t) { return isFloatingType(t) || isComplexType(t); }
/// float32 for complex64, float64 for complex128, t itself otherwise.
constexpr ScalarType toRealValueType(ScalarType t) {
  return t == kComplexFloat ? kFloat : t == kComplexDouble ? kDouble : t == kComplexHalf ? kHalf : t;
}
constexpr ScalarType toComplexType(ScalarType t) {
  return t == kDouble || t == kComplexDouble ? kComplexDouble : t == kHalf || t == kComplexHalf ? kComplexHalf : kComplexFloat;
}
/// The type arithmetic on t is done in.
constexpr ScalarType toOpMathType(ScalarType t) { return isReducedFloatingType(t) ? kFloat : t == kComplexHalf ? kComplexFloat : t; }
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
  /// The C++ type's: "float", "long int", "c10::Half"; "nullptr (uninitialized)" of none.
  CRESSET_API const char* name() const;
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
