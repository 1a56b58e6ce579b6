// Reading and writing named tensors in the safetensors format: an 8-byte little-endian header length, a JSON header with
// dtype, shape and byte range by name, then the data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset {

/// Tensors of a file, in the header's order. Raises for files that are not whole, ranges outside of the data and unknown dtypes.
CRESSET_API std::vector<std::pair<std::string, Tensor>> load_safetensors(const std::string& path);
/// Writes dense copies of CPU tensors; the file appears only when it is complete.
CRESSET_API void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace cresset
