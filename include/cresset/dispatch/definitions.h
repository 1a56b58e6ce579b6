// How often operators were defined and removed.
#pragma once

#include <cstdint>

#include <cresset/base/macros.h>

namespace cresset {

/// Grows whenever an operator is defined or removed: what was looked up before may be out of date. Built-in operators do not count.
CRESSET_API uint64_t definition_count();

}  // namespace cresset
