// Operators that meant something else when an archive was written.
#pragma once

#include <cstdint>

#include "ir/frontend/sugared_value.h"

namespace cresset::jit {

/// What `torch.<name>` is in the code of an archive of this version: `today`, or a thing whose calls keep the old meaning. Such calls go
/// to functions that are added to the unit as "__torch__.upgraders.<operator>_<overload>_<first version>_<last version>".
SugaredValuePtr operator_of_version(CompilationUnit& unit, int64_t version, const std::string& name, const SugaredValuePtr& today);

}  // namespace cresset::jit
