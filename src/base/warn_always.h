// Whether warnings that come once in the life of a process come each time.
#pragma once

#include <cresset/base/macros.h>

namespace cresset {

CRESSET_API bool warn_always() noexcept;
CRESSET_API void set_warn_always(bool always) noexcept;

}  // namespace cresset
