// Names, promotion and the default dtype.
#include <cresset/core/dispatch_types.h>
#include <cresset/core/scalar_type.h>

#include <array>
#include <atomic>

namespace cresset {

const char* toString(ScalarType t) {
  switch (t) {
#define CRESSET_CASE(T, Name) \
  case ScalarType::Name: return #Name;
    CRESSET_FORALL_SCALAR_TYPES(CRESSET_CASE)
#undef CRESSET_CASE
    case ScalarType::ComplexHalf: return "ComplexHalf";
    default: return "Undefined";
  }
}

const char* dtype_name(ScalarType t) {
  switch (t) {
    case ScalarType::Byte: return "uint8";
    case ScalarType::Char: return "int8";
    case ScalarType::Short: return "int16";
    case ScalarType::Int: return "int32";
    case ScalarType::Long: return "int64";
    case ScalarType::Half: return "float16";
    case ScalarType::Float: return "float32";
    case ScalarType::Double: return "float64";
    case ScalarType::ComplexHalf: return "complex32";
    case ScalarType::ComplexFloat: return "complex64";
    case ScalarType::ComplexDouble: return "complex128";
    case ScalarType::Bool: return "bool";
    case ScalarType::BFloat16: return "bfloat16";
    default: return "undefined";
  }
}

namespace {

// Order of the promotion lattice below; the four kinds bool < integer < floating < complex never go down.
int rank_of(ScalarType t) {
  switch (t) {
    case ScalarType::Bool: return 0;
    case ScalarType::Byte: return 1;
    case ScalarType::Char: return 2;
    case ScalarType::Short: return 3;
    case ScalarType::Int: return 4;
    case ScalarType::Long: return 5;
    case ScalarType::Half: return 6;
    case ScalarType::BFloat16: return 7;
    case ScalarType::Float: return 8;
    case ScalarType::Double: return 9;
    case ScalarType::ComplexHalf: return 10;
    case ScalarType::ComplexFloat: return 11;
    case ScalarType::ComplexDouble: return 12;
    default: return -1;
  }
}

std::atomic<ScalarType> default_dtype{ScalarType::Float};

}  // namespace

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (rank_of(a) > rank_of(b)) std::swap(a, b);
  const int low = rank_of(a), high = rank_of(b);
  CRESSET_CHECK(low >= 0, "promote_types: two defined dtypes were required; ", a, " and ", b, " were given.");
  if (low == 1 && high == 2) return kShort;  // uint8 and int8
  if (low == 6 && high == 7) return kFloat;  // float16 and bfloat16
  if (isComplexType(b)) {                    // complex keeps the wider real type
    if (a == kDouble) return kComplexDouble;
    if (b == ScalarType::ComplexHalf && (a == kFloat || a == kBFloat16)) return kComplexFloat;
  }
  return b;
}

ScalarType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType t) {
  CRESSET_CHECK_TYPE(isFloatingType(t), "set_default_dtype: only floating-point types are supported as the default type; ", dtype_name(t),
                     " was given.");
  default_dtype.store(t, std::memory_order_relaxed);
}

namespace detail {
void raise_dtype_not_implemented(const char* name, ScalarType t) {
  CRESSET_THROW(NotImplementedError, "\"", name, "\" not implemented for '", t, "'");
}
}  // namespace detail
}  // namespace cresset
