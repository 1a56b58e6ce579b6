// The error of a call for which no kernel exists.
#pragma once

#include <cresset/dispatch/dispatcher.h>

namespace cresset::impl {
/// Raises NotImplementedError that names operator, key and the backends that do have a kernel.
[[noreturn]] void raise_missing_kernel(const OperatorHandle& op, DispatchKeySet ks);
}  // namespace cresset::impl
