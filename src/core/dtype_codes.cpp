#include <cresset/core/dtype_codes.h>

#include <algorithm>
#include <array>

namespace cresset {
namespace {

enum DlpackCode : uint8_t {
  kSigned = 0,
  kUnsigned = 1,
  kReal = 2,
  kBfloat = 4,
  kComplex = 5,
  kTruth = 6,
  kE4m3fn = 10,
  kE4m3fnuz,
  kE5m2,
  kE5m2fnuz,
  kE8m0fnu
};

struct Codes {
  ScalarType type;
  const char* safetensors;
  int exported;
  DlpackCode dlpack;
};
constexpr Codes kCodes[] = {
    {kByte, "U8", 1, kUnsigned},
    {kChar, "I8", 2, kSigned},
    {kShort, "I16", 3, kSigned},
    {kInt, "I32", 4, kSigned},
    {kLong, "I64", 5, kSigned},
    {kHalf, "F16", 6, kReal},
    {kFloat, "F32", 7, kReal},
    {kDouble, "F64", 8, kReal},
    {kComplexHalf, nullptr, 9, kComplex},
    {kComplexFloat, "C64", 10, kComplex},
    {kComplexDouble, "C128", 11, kComplex},
    {kBool, "BOOL", 12, kTruth},
    {kBFloat16, "BF16", 13, kBfloat},
    {kUInt16, "U16", 28, kUnsigned},
    {kFloat8_e4m3fn, "F8_E4M3", 29, kE4m3fn},
    {kFloat8_e5m2, "F8_E5M2", 30, kE5m2},
    {kFloat8_e4m3fnuz, "F8_E4M3FNUZ", 31, kE4m3fnuz},
    {kFloat8_e5m2fnuz, "F8_E5M2FNUZ", 32, kE5m2fnuz},
    {kFloat8_e8m0fnu, "F8_E8M0", 33, kE8m0fnu},
    {kUInt32, "U32", 34, kUnsigned},
    {kUInt64, "U64", 35, kUnsigned},
};
#define CRESSET_ONE(T, Name, number, text) +1
static_assert(std::size(kCodes) == 0 CRESSET_FORALL_SCALAR_TYPES(CRESSET_ONE), "a type lacks its row of codes");
#undef CRESSET_ONE

template <class Matches>
std::optional<ScalarType> find(Matches&& matches) {
  const auto* row = std::find_if(std::begin(kCodes), std::end(kCodes), matches);
  if (row == std::end(kCodes)) return std::nullopt;
  return row->type;
}
const Codes* row_of(ScalarType t) {
  const auto* row = std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Codes& c) { return c.type == t; });
  return row == std::end(kCodes) ? nullptr : row;
}

}  // namespace

const char* safetensors_code(ScalarType t) {
  const Codes* row = row_of(t);
  return row ? row->safetensors : nullptr;
}
std::optional<ScalarType> dtype_from_safetensors(std::string_view code) {
  return find([&](const Codes& c) { return c.safetensors && code == c.safetensors; });
}
std::optional<ScalarType> dtype_from_exported(int64_t number) {
  return find([&](const Codes& c) { return c.exported == number; });
}

std::pair<uint8_t, uint8_t> dlpack_type(ScalarType t) {
  const Codes* row = row_of(t);
  if (!row) return {0, 0};
  return {row->dlpack, static_cast<uint8_t>(8 * element_size(t))};
}
std::optional<ScalarType> dtype_from_dlpack(uint8_t code, uint8_t bits) {
  return find([&](const Codes& c) { return c.dlpack == code && 8 * element_size(c.type) == bits; });
}

}  // namespace cresset
