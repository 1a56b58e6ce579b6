// NumPy's .npy files: one tensor each.
#pragma once

#include <string>

#include <cresset/core/tensor.h>

namespace cresset::cli {

/// Raises with the path and what is wrong with the file.
Tensor read_npy(const std::string& path);
/// Row-major, from any device; bfloat16, which NumPy does not know, becomes float32.
void write_npy(const std::string& path, const Tensor& t);

}  // namespace cresset::cli
