// Machine code of a region.
#pragma once

#include "ir/native/region.h"

namespace cresset::jit::native {

/// Without memory when it cannot be made.
MachineCode emit(const Region& region);

}  // namespace cresset::jit::native
