#include <cresset/core/dtype_codes.h>

#include <algorithm>
#include <array>

#include <cresset/base/dlpack_abi.h>

namespace cresset {
namespace {

struct Codes {
  ScalarType type;
  const char* safetensors;
  int exported;
  DLDataTypeCode dlpack;
};
constexpr Codes kCodes[] = {
    {kByte, "U8", 1, kDLUInt},
    {kChar, "I8", 2, kDLInt},
    {kShort, "I16", 3, kDLInt},
    {kInt, "I32", 4, kDLInt},
    {kLong, "I64", 5, kDLInt},
    {kHalf, "F16", 6, kDLFloat},
    {kFloat, "F32", 7, kDLFloat},
    {kDouble, "F64", 8, kDLFloat},
    {kComplexHalf, nullptr, 9, kDLComplex},
    {kComplexFloat, "C64", 10, kDLComplex},
    {kComplexDouble, "C128", 11, kDLComplex},
    {kBool, "BOOL", 12, kDLBool},
    {kBFloat16, "BF16", 13, kDLBfloat},
    {kUInt16, "U16", 28, kDLUInt},
    {kFloat8_e4m3fn, "F8_E4M3", 29, kDLFloat8_e4m3fn},
    {kFloat8_e5m2, "F8_E5M2", 30, kDLFloat8_e5m2},
    {kFloat8_e4m3fnuz, "F8_E4M3FNUZ", 31, kDLFloat8_e4m3fnuz},
    {kFloat8_e5m2fnuz, "F8_E5M2FNUZ", 32, kDLFloat8_e5m2fnuz},
    {kFloat8_e8m0fnu, "F8_E8M0", 33, kDLFloat8_e8m0fnu},
    {kUInt32, "U32", 34, kDLUInt},
    {kUInt64, "U64", 35, kDLUInt},
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
