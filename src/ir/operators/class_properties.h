// Properties that the class of a tensor knows and C++ does not: that it is quantized or nested, and the dtype of quantized numbers.
#pragma once

#include <cstdint>
#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::jit {

/// A property by its name in Python, a dtype as its number; none: the class says nothing about it.
using ClassProperty = std::optional<int64_t> (*)(const Tensor& t, const char* name);
/// While the program starts: asked for tensors with the key Python.
CRESSET_API void set_class_property(ClassProperty property);

}  // namespace cresset::jit
