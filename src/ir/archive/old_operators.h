// Operators that meant something else when an archive was written.
#pragma once

#include <cstdint>

#include "ir/frontend/sugared_value.h"

namespace cresset::jit {

/// What `torch.<name>` is in the code of an archive of this version: `today`, or a thing whose calls keep the old meaning. Such calls go
/// to functions that are added to the unit as "__torch__.upgraders.<operator>_<overload>_<first version>_<last version>".
SugaredValuePtr operator_of_version(CompilationUnit& unit, int64_t version, const std::string& name, const SugaredValuePtr& today);

/// The C++ class of an attribute that releases before such classes declared as a tensor: the packed weights of quantized modules of
/// torch.nn.quantized and torch.nn.intrinsic.quantized. Null for other attributes.
TypePtr packed_weights_of(const std::string& module_class, const std::string& attribute);

}  // namespace cresset::jit
