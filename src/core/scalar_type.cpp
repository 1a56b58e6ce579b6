// Names, promotion and the default dtype.
#include <cresset/core/dispatch_types.h>
#include <cresset/core/scalar_type.h>

#include <array>
#include <atomic>

namespace cresset {

const char* toString(ScalarType t) {
  switch (t) {
#define CRESSET_CASE(T, Name, number, text) \
  case ScalarType::Name: return #Name;
#define CRESSET_NAMED(Name, number) \
  case ScalarType::Name: return #Name;
    CRESSET_FORALL_SCALAR_TYPES(CRESSET_CASE)
    CRESSET_FORALL_NAMED_TYPES(CRESSET_NAMED)
#undef CRESSET_NAMED
#undef CRESSET_CASE
    default: return "Undefined";
  }
}

const char* TypeMeta::name() const {
  switch (type_) {
    case kByte: return "unsigned char";
    case kChar: return "signed char";
    case kShort: return "short int";
    case kInt: return "int";
    case kLong: return "long int";
    case kUInt16: return "short unsigned int";
    case kUInt32: return "unsigned int";
    case kUInt64: return "long unsigned int";
    case kFloat: return "float";
    case kDouble: return "double";
    case kBool: return "bool";
    case kHalf: return "c10::Half";
    case kBFloat16: return "c10::BFloat16";
    case kComplexHalf: return "c10::complex<c10::Half>";
    case kComplexFloat: return "c10::complex<float>";
    case kComplexDouble: return "c10::complex<double>";
    case kQInt8: return "c10::qint8";
    case kQUInt8: return "c10::quint8";
    case kQInt32: return "c10::qint32";
    case ScalarType::Undefined: return "nullptr (uninitialized)";
    default: return toString(type_);
  }
}

const char* dtype_name(ScalarType t) {
  switch (t) {
#define CRESSET_CASE(T, Name, number, text) \
  case ScalarType::Name: return text;
    CRESSET_FORALL_SCALAR_TYPES(CRESSET_CASE)
#undef CRESSET_CASE
    default: return "undefined";
  }
}

const char* dtype_alias(ScalarType t) {
  switch (t) {
    case kShort: return "short";
    case kInt: return "int";
    case kLong: return "long";
    case kHalf: return "half";
    case kFloat: return "float";
    case kDouble: return "double";
    case kComplexHalf: return "chalf";
    case kComplexFloat: return "cfloat";
    case kComplexDouble: return "cdouble";
    default: return nullptr;
  }
}

std::optional<ScalarType> dtype_from_name(std::string_view name) {
#define CRESSET_MATCH(T, Name, number, text) \
  if (name == text) return ScalarType::Name;
  CRESSET_FORALL_SCALAR_TYPES(CRESSET_MATCH)
#undef CRESSET_MATCH
  return std::nullopt;
}

std::string numpy_type(ScalarType t) {
  if (t == kBool) return "b1";
  if (element_size(t) == 0 || t == kBFloat16 || isFloat8Type(t) || t == kComplexHalf) return "";
  const char kind = isComplexType(t) ? 'c' : isFloatingType(t) ? 'f' : isSignedType(t) ? 'i' : 'u';
  return kind + std::to_string(element_size(t));
}

std::optional<ScalarType> dtype_from_numpy(std::string_view code) {
  for (int i = 0; i < static_cast<int>(ScalarType::Undefined) && !code.empty(); ++i)
    if (const auto t = static_cast<ScalarType>(i); numpy_type(t) == code) return t;
  return std::nullopt;
}

namespace {

// Order of the promotion lattice; the four kinds bool < integer < floating < complex never go down.
constexpr ScalarType kOrder[] = {kBool,     kByte,  kChar,   kShort,       kInt,          kLong,         kHalf,
                                 kBFloat16, kFloat, kDouble, kComplexHalf, kComplexFloat, kComplexDouble};
constexpr auto kRanks = [] {
  std::array<int8_t, static_cast<std::size_t>(ScalarType::NumOptions)> ranks{};
  ranks.fill(-1);
  int8_t rank = 0;
  for (const ScalarType t : kOrder) ranks[static_cast<std::size_t>(t)] = rank++;
  return ranks;
}();
int rank_of(ScalarType t) { return kRanks[static_cast<std::size_t>(t)]; }

std::atomic<ScalarType> default_dtype{ScalarType::Float};

}  // namespace

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  // Types that are only stored promote with nothing, but that wide unsigned integers become floating.
  CRESSET_CHECK(!isFloat8Type(a) && !isFloat8Type(b), "Promotion for Float8 Types is not supported, attempted to promote ", a, " and ", b);
  if (isBarebonesUnsignedType(a) && isFloatingType(b)) return b;
  if (isBarebonesUnsignedType(b) && isFloatingType(a)) return a;
  CRESSET_CHECK(!isBarebonesUnsignedType(a) && !isBarebonesUnsignedType(b),
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", a, " and ", b);
  if (rank_of(a) > rank_of(b)) std::swap(a, b);
  CRESSET_CHECK(rank_of(a) >= 0, "promote_types: two defined dtypes were required; ", a, " and ", b, " were given.");
  if (a == kByte && b == kChar) return kShort;
  if (a == kHalf && b == kBFloat16) return kFloat;
  if (isComplexType(b)) {  // complex keeps the wider real type
    if (a == kDouble) return kComplexDouble;
    if (b == kComplexHalf && (a == kFloat || a == kBFloat16)) return kComplexFloat;
  }
  return b;
}

ScalarType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType t) {
  CRESSET_CHECK_TYPE(isFloatingType(t) && !isFloat8Type(t),
                     "set_default_dtype: only floating-point types are supported as the default type; ", dtype_name(t), " was given.");
  default_dtype.store(t, std::memory_order_relaxed);
}

namespace detail {
void raise_dtype_not_implemented(const char* name, ScalarType t) {
  CRESSET_THROW(NotImplementedError, "\"", name, "\" not implemented for '", t, "'");
}
}  // namespace detail
}  // namespace cresset
