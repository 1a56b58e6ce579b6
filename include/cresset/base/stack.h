// How much of the thread's stack is left.
#pragma once

#include <cresset/base/macros.h>

namespace cresset {

/// Raises Error, "WHAT: nested too deeply ...", when little of this thread's stack is left. Functions that call themselves as deep as a
/// file, a text or a program says call it.
CRESSET_API void check_stack(const char* what);

}  // namespace cresset
