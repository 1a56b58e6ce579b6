// What the compilation of functions knows of the passes that programs register for it.
#pragma once

#include <cstdint>

namespace cresset::jit {

/// How often they changed: code that was compiled at another count is compiled again.
uint64_t custom_pass_changes();

}  // namespace cresset::jit
