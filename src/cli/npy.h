// NumPy's .npy files: one tensor each.
#pragma once

#include <string>

#include <cresset/core/tensor.h>

namespace cresset::cli {

/// Raises with the path and what is wrong with the file.
Tensor read_npy(const std::string& path);
/// Row-major, from any device; a type that NumPy does not know (bfloat16, float8_e5m2) becomes float32, complex32 complex64.
void write_npy(const std::string& path, const Tensor& t);

}  // namespace cresset::cli
