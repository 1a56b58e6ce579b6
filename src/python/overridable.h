// Functions written in Python under the __torch_function__ protocol.
#pragma once

#include "python/object.h"

namespace cresset::python {

/// Adds the type `overridable` to the module.
void init_overridable(PyObject* module);

}  // namespace cresset::python
