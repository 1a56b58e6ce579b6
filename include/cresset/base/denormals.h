// Numbers too small for their exponent.
#pragma once

#include <cresset/base/macros.h>

namespace cresset {

/// From here on, operators of this thread and its helpers take denormal floats (below 1.2e-38, doubles below 2.2e-308) for zero and give
/// zero instead of them: they are many times slower. Threads begin with the setting of the thread that starts them. False where the
/// processor is not known to do so.
CRESSET_API bool set_flush_denormal(bool on);

}  // namespace cresset
