// The clock of the profiler's session, for records that are made elsewhere.
#pragma once

#include <cresset/base/macros.h>

#include <cstdint>

namespace cresset::profiler {

/// When the session that runs began, in nanoseconds of the steady clock; 0 when none runs.
CRESSET_API int64_t session_started();

}  // namespace cresset::profiler
