// Kernels that the core gives every backend with a table: a backend's own kernel replaces them without a warning.
#pragma once

namespace cresset {

/// How the place of registration of such a kernel begins.
inline constexpr const char* kBackendDefault = "default of backends";

}  // namespace cresset
