// c10's number types: half types whose arithmetic gives a half again, and types that exist only as names and bytes.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/base/half.h>
#include <cresset/core/scalar_type.h>

// Found by argument-dependent lookup, so they belong to Cresset's namespace. Only extension sources see them.
namespace cresset {

#define CRESSET_COMPAT_HALF_OPERATOR(T, op)                                                   \
  inline T operator op(T a, T b) { return static_cast<float>(a) op static_cast<float>(b); }   \
  inline float operator op(T a, float b) { return static_cast<float>(a) op b; }               \
  inline float operator op(float a, T b) { return a op static_cast<float>(b); }               \
  inline double operator op(T a, double b) { return static_cast<double>(a) op b; }            \
  inline double operator op(double a, T b) { return a op static_cast<double>(b); }            \
  inline T operator op(T a, int b) { return a op static_cast<T>(static_cast<float>(b)); }     \
  inline T operator op(int a, T b) { return static_cast<T>(static_cast<float>(a)) op b; }     \
  inline T operator op(T a, int64_t b) { return a op static_cast<T>(static_cast<float>(b)); } \
  inline T operator op(int64_t a, T b) { return static_cast<T>(static_cast<float>(a)) op b; }
#define CRESSET_COMPAT_HALF_TYPE(T)  \
  CRESSET_COMPAT_HALF_OPERATOR(T, +) \
  CRESSET_COMPAT_HALF_OPERATOR(T, -) \
  CRESSET_COMPAT_HALF_OPERATOR(T, *) \
  CRESSET_COMPAT_HALF_OPERATOR(T, /) \
  inline T operator-(T a) { return -static_cast<float>(a); }
CRESSET_COMPAT_HALF_TYPE(Half)
CRESSET_COMPAT_HALF_TYPE(BFloat16)
#undef CRESSET_COMPAT_HALF_TYPE
#undef CRESSET_COMPAT_HALF_OPERATOR

}  // namespace cresset

namespace c10 {

struct alignas(1) qint8 {
  using underlying = int8_t;
  int8_t val_;
  qint8() = default;
  explicit qint8(int8_t v) : val_(v) {}
};
struct alignas(1) quint8 {
  using underlying = uint8_t;
  uint8_t val_;
  quint8() = default;
  explicit quint8(uint8_t v) : val_(v) {}
};
struct alignas(4) qint32 {
  using underlying = int32_t;
  int32_t val_;
  qint32() = default;
  explicit qint32(int32_t v) : val_(v) {}
};
struct alignas(1) quint4x2 {
  using underlying = uint8_t;
  uint8_t val_;
};
struct alignas(1) quint2x4 {
  using underlying = uint8_t;
  uint8_t val_;
};
struct alignas(1) bits8 {
  using underlying = uint8_t;
  uint8_t val_;
};
struct alignas(2) bits16 {
  using underlying = uint16_t;
  uint16_t val_;
};

#define CRESSET_COMPAT_TYPE(T, Name, number, text) using T;
CRESSET_FLOAT8_TYPES(CRESSET_COMPAT_TYPE)
#undef CRESSET_COMPAT_TYPE

}  // namespace c10

namespace cresset {
#define CRESSET_COMPAT_MAP(T, Name)                                                        \
  template <>                                                                              \
  struct CppTypeToScalarType<T> : std::integral_constant<ScalarType, ScalarType::Name> {}; \
  template <>                                                                              \
  struct ScalarTypeToCPPType<ScalarType::Name> {                                           \
    using type = T;                                                                        \
  };
CRESSET_COMPAT_MAP(c10::qint8, QInt8)
CRESSET_COMPAT_MAP(c10::quint8, QUInt8)
CRESSET_COMPAT_MAP(c10::qint32, QInt32)
CRESSET_COMPAT_MAP(c10::quint4x2, QUInt4x2)
CRESSET_COMPAT_MAP(c10::quint2x4, QUInt2x4)
#undef CRESSET_COMPAT_MAP
}  // namespace cresset
namespace c10 {
/// The type of a quantized type's whole numbers; t itself otherwise.
inline cresset::ScalarType toUnderlying(cresset::ScalarType t) {
  using cresset::ScalarType;
  switch (t) {
    case ScalarType::QInt8: return ScalarType::Char;
    case ScalarType::QInt32: return ScalarType::Int;
    case ScalarType::QUInt8:
    case ScalarType::QUInt4x2:
    case ScalarType::QUInt2x4: return ScalarType::Byte;
    default: return t;
  }
}
}  // namespace c10
namespace c10::impl {
template <cresset::ScalarType S>
using ScalarTypeToCPPTypeT = typename cresset::ScalarTypeToCPPType<S>::type;
template <cresset::ScalarType S>
using ScalarTypeToCPPType = cresset::ScalarTypeToCPPType<S>;
}  // namespace c10::impl

// Element types one by one: _(C++ type, name).
#define CRESSET_COMPAT_PAIR(T, Name, number, text, _) _(T, Name)
#define CRESSET_COMPAT_PAIR_OF(Name, _) _(c10::impl::ScalarTypeToCPPTypeT<at::ScalarType::Name>, Name)
#define AT_FORALL_INT_TYPES(_) CRESSET_INTEGER_TYPES(CRESSET_COMPAT_PAIR, _)
#define AT_FORALL_SCALAR_TYPES(_) AT_FORALL_INT_TYPES(_) CRESSET_WIDE_FLOAT_TYPES(CRESSET_COMPAT_PAIR, _)
#define AT_FORALL_SCALAR_TYPES_AND(A, _) AT_FORALL_SCALAR_TYPES(_) CRESSET_COMPAT_PAIR_OF(A, _)
#define AT_FORALL_SCALAR_TYPES_AND2(A, B, _) AT_FORALL_SCALAR_TYPES_AND(A, _) CRESSET_COMPAT_PAIR_OF(B, _)
#define AT_FORALL_SCALAR_TYPES_AND3(A, B, C, _) AT_FORALL_SCALAR_TYPES_AND2(A, B, _) CRESSET_COMPAT_PAIR_OF(C, _)
#define AT_FORALL_SCALAR_TYPES_AND7(A, B, C, D, E, F, G, _) \
  AT_FORALL_SCALAR_TYPES_AND3(A, B, C, _)                   \
  CRESSET_COMPAT_PAIR_OF(D, _) CRESSET_COMPAT_PAIR_OF(E, _) CRESSET_COMPAT_PAIR_OF(F, _) CRESSET_COMPAT_PAIR_OF(G, _)
#define AT_FORALL_COMPLEX_TYPES(_) CRESSET_COMPLEX_TYPES(CRESSET_COMPAT_PAIR, _)
#define AT_FORALL_QINT_TYPES(_)     \
  CRESSET_COMPAT_PAIR_OF(QInt8, _)  \
  CRESSET_COMPAT_PAIR_OF(QUInt8, _) \
  CRESSET_COMPAT_PAIR_OF(QInt32, _) CRESSET_COMPAT_PAIR_OF(QUInt4x2, _) CRESSET_COMPAT_PAIR_OF(QUInt2x4, _)
#define AT_FORALL_FLOAT8_TYPES(_) CRESSET_FLOAT8_TYPES(CRESSET_COMPAT_PAIR, _)
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_EXCEPT_COMPLEX_HALF_F8NZ(_) \
  AT_FORALL_SCALAR_TYPES_AND7(Half, ComplexFloat, ComplexDouble, Bool, BFloat16, Float8_e5m2, Float8_e4m3fn, _)
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(_)         \
  AT_FORALL_SCALAR_TYPES_AND3(Half, Bool, BFloat16, _) \
  CRESSET_COMPLEX_HALF_TYPES(CRESSET_COMPAT_PAIR, _) AT_FORALL_COMPLEX_TYPES(_) AT_FORALL_FLOAT8_TYPES(_)
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(_) \
  AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(_) AT_FORALL_QINT_TYPES(_) CRESSET_WIDE_UNSIGNED_TYPES(CRESSET_COMPAT_PAIR, _)
