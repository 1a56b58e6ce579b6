// What other formats call the element types: safetensors, PyTorch's exported programs, DLPack. NumPy's codes follow from kind and size
// (numpy_type). One row for each type stands in src/core/dtype_codes.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <cresset/core/scalar_type.h>

namespace cresset {

/// The code of the safetensors format: "F32", "BF16", …; null for types that it does not have.
CRESSET_API const char* safetensors_code(ScalarType t);
/// The type of such a code; nothing for others.
CRESSET_API std::optional<ScalarType> dtype_from_safetensors(std::string_view code);

/// The type of a number in an exported program (.pt2), whose numbers are not those of ScalarType; nothing for others.
CRESSET_API std::optional<ScalarType> dtype_from_exported(int64_t number);

/// DLPack 1.1's code and bits of an element; bits are 0 for types without elements.
CRESSET_API std::pair<uint8_t, uint8_t> dlpack_type(ScalarType t);
CRESSET_API std::optional<ScalarType> dtype_from_dlpack(uint8_t code, uint8_t bits);

}  // namespace cresset
