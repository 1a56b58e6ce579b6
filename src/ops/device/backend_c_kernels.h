// Kernels in C of a backend's table.
#pragma once

#include <cresset/core/backend_table.h>
#include <cresset/dispatch/library.h>

namespace cresset::ops {

/// Registers every kernel of the table in the library. Raises with one sentence when an operator does not exist.
void register_c_kernels(Library& library, DeviceType type, const cresset_backend& table);

}  // namespace cresset::ops
